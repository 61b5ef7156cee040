//! Says whether an explanation is in English, the only language that the screen reads.

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_script::{Script, UnicodeScript as _};
use whatlang::Lang;

use super::own_words::OwnWords;

/// A clause with fewer words may have none of the expected ones.
const MIN_WORDS: usize = 4;

/// A word with fewer letters may be a unit.
const MIN_LETTERS: usize = 4;

/// The commonest words of English, and those of reports on tools. In the 527 longer clauses of the
/// labelled sentences, 9 have none of them.
static COMMON: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("english.txt").split_whitespace().collect());

/// True if a text is not recognised as another language, and every longer clause of the model's own
/// words looks English. `verbatim` is as in [`super::screen::screen`].
pub fn is_english(text: &str, verbatim: &[&str]) -> bool {
    let language = whatlang::detect(text);
    if language.is_some_and(|it| it.is_reliable() && it.lang() != Lang::Eng) {
        return false;
    }
    let own = OwnWords::of(text, verbatim);
    let mut clauses = own.clauses().into_iter();
    !text.split_whitespace().any(mixes_scripts)
        && clauses.all(|(start, end)| may_be_english(own.plain(start, end)))
}

/// True for a word that writes some of its Latin letters in another script, such as "lіkely" with a
/// Cyrillic letter. Short words may be units ("μs"), and words with other signs names of files.
fn mixes_scripts(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
    let is_other = |c: char| matches!(c.script(), Script::Cyrillic | Script::Greek);
    let is_latin = |c: char| c.is_ascii_alphabetic();
    word.chars().count() >= MIN_LETTERS
        && word.chars().all(char::is_alphabetic)
        && word.contains(is_latin)
        && word.contains(is_other)
}

/// Names and quotations are written as "xxx" in a clause.
fn may_be_english(clause: &str) -> bool {
    let words = clause.split(|c: char| !c.is_ascii_alphabetic());
    let own = words.filter(|word| word.contains(|c| c != 'x'));
    let own: Vec<&str> = own.collect();
    own.len() < MIN_WORDS || own.iter().any(|word| COMMON.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_of_other_languages_are_not_english() {
        for text in [
            "Die Datei wurde gelesen, weil der Fehler dadurch verursacht wurde.",
            "Gelesen. Das Risiko ist hoch.",
            "O arquivo foi lido. Isso causou o erro e provavelmente é arriscado.",
            "Dosya okundu. Bu hataya neden oldu ve muhtemelen tehlikeli.",
            "ファイルを読みました。おそらく安全です。",
            "Das Risiko ist in dieser Datei hoch.",
            "La modification a probablement corrigé le problème.",
            "The patch is lіkely to hold.",
        ] {
            assert!(!is_english(text, &[]), "{text}");
        }
        for text in [
            "Read src/main.rs: 58 lines, 1,412 bytes.",
            "The file was read in 5 μs (12μs before).",
            "Q1 shows 2/3 prior attempts succeeded.",
            "Q1 shows file_read succeeded last.",
            "cargo check found 0 errors.",
            "`docs/λ-calculus.md` was read.",
        ] {
            assert!(is_english(text, &[]), "{text}");
        }
    }
}
