//! Says whether an explanation is in English, the only language that the screen reads.

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_script::{Script, UnicodeScript as _};
use whatlang::Lang;

use super::own_words::OwnWords;

/// A clause with fewer words may have none of the expected ones.
const MIN_WORDS: usize = 4;

/// A Greek word with fewer letters may be a unit, such as "μs".
const MIN_LETTERS: usize = 4;

/// The commonest words of English, and those of reports on tools. In the 527 longer clauses of the
/// labelled sentences, 9 have none of them.
static COMMON: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("english.txt").split_whitespace().collect());

/// True if a text is not recognised as another language, and the model's own words are in Latin
/// letters and look English in every longer clause. `verbatim` is as in [`super::screen::screen`].
pub fn is_english(text: &str, verbatim: &[&str]) -> bool {
    let language = whatlang::detect(text);
    if language.is_some_and(|it| it.is_reliable() && it.lang() != Lang::Eng) {
        return false;
    }
    let own = OwnWords::of(text, verbatim);
    let mut clauses = own.clauses().into_iter();
    let mut words = own
        .shown
        .split(|c: char| !c.is_alphabetic() || c == '\u{2bc}');
    !words.any(is_in_another_script)
        && clauses.all(|(start, end)| may_be_english(own.plain(start, end)))
}

/// True for a word with letters of another script than Latin, such as "lіkely" with a Cyrillic letter.
fn is_in_another_script(word: &str) -> bool {
    let is_long = word.chars().count() >= MIN_LETTERS;
    word.chars().any(|c| match c.script() {
        Script::Latin | Script::Inherited => false,
        Script::Greek | Script::Common => is_long,
        _ => true,
    })
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
            "Ошибка исчезла из-за этого изменения. The file was read.",
            "الخطأ سببه خطأ مطبعي.",
            "השגיאה נגרמה בגלל שגיאת כתיב.",
            "Он был.",
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
            "docs/файл.md was read, then `ошибка` was found.",
        ] {
            assert!(is_english(text, &[]), "{text}");
        }
    }
}
