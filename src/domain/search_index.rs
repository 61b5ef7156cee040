//! Words for the full-text search, in any script.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation;

/// Returns a text as the search index stores it: words with folded case and without accents,
/// separated by spaces. A run of an unspaced script becomes its letters and its pairs of letters,
/// as no dictionary tells its words.
pub fn search_words(text: &str) -> String {
    let mut words = vec![];
    for_each_run(&folded(text), |run, is_unspaced| {
        if is_unspaced {
            words.extend(run.graphemes(true).map(str::to_owned));
            words.extend(pairs(run));
        } else {
            words.push(run.to_owned());
        }
    });
    words.join(" ")
}

/// Returns the terms that find a word of a query in [`search_words`]. An unspaced run is found by
/// its pairs of letters, and a single letter by itself.
pub fn search_terms(word: &str) -> Vec<String> {
    let mut terms = vec![];
    for_each_run(&folded(word), |run, is_unspaced| {
        let pairs = if is_unspaced { pairs(run) } else { vec![] };
        if pairs.is_empty() {
            terms.push(run.to_owned());
        } else {
            terms.extend(pairs);
        }
    });
    terms
}

/// Folds case by way of the upper case, so that "ß" becomes "ss", and removes accents.
fn folded(text: &str) -> String {
    let cased = text.to_uppercase().to_lowercase();
    let bare: String = cased.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    bare.nfc().collect()
}

/// Passes each run of letters and digits on, with whether its script is unspaced.
fn for_each_run(text: &str, mut pass: impl FnMut(&str, bool)) {
    for run in text.split(|c: char| !is_part_of_word(c)) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let is_first = is_unspaced(first);
            let end = rest.find(|c: char| is_unspaced(c) != is_first);
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            pass(part, is_first);
            rest = after;
        }
    }
}

/// True for letters and digits, and for the marks that scripts use as vowels.
fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_unspaced(c)
}

/// True for letters of scripts that are written without spaces between words.
pub fn is_unspaced(c: char) -> bool {
    matches!(
        c.script(),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Thai
            | Script::Lao
            | Script::Khmer
            | Script::Myanmar
    ) || c == LONG_VOWEL
}

/// The mark of a long vowel, which Hiragana and Katakana share.
const LONG_VOWEL: char = 'ー';

fn pairs(run: &str) -> Vec<String> {
    let letters: Vec<&str> = run.graphemes(true).collect();
    letters.windows(2).map(<[&str]>::concat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if a query of one word finds a text.
    fn finds(query: &str, text: &str) -> bool {
        let words = search_words(text);
        let words: Vec<&str> = words.split(' ').collect();
        search_terms(query)
            .iter()
            .any(|term| words.contains(&term.as_str()))
    }

    #[test]
    fn a_word_is_found_without_its_accents_and_in_any_case() {
        for (query, text) in [
            ("STRASSE", "Die Straße ist gesperrt"),
            ("straße", "DIE STRASSE"),
            ("cafe", "Treffpunkt: Café"),
            ("café", "the cafe\u{301} at noon"),
            ("naïve", "a naive plan"),
            ("ελληνικα", "ΕΛΛΗΝΙΚΆ γράμματα"),
            ("ё", "е"),
        ] {
            assert!(finds(query, text), "{query}: {text}");
        }
        assert!(!finds("strase", "Die Straße"));
    }

    #[test]
    fn a_word_of_a_script_without_spaces_is_found_inside_a_sentence() {
        for (query, text) in [
            ("公爵", "那位公爵讨厌狗"),
            ("犬", "公爵は犬が嫌いだ"),
            ("ドラゴン", "赤いドラゴンが来る"),
            ("มังกร", "ระวังมังกรแดง"),
            ("d20", "用d20骰子"),
        ] {
            assert!(finds(query, text), "{query}: {text}");
        }
        assert!(!finds("公園", "那位公爵讨厌狗"));
    }
}
