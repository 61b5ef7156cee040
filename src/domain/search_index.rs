//! Words for the full-text search, in any script.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation;

/// Returns a text as the search index stores it: words with folded case and without marks,
/// separated by spaces. A run of an unspaced script becomes its letters and its pairs of letters,
/// as no dictionary tells its words.
pub fn search_words(text: &str) -> String {
    let mut words = vec![];
    for run in words_as_written(text).iter().flat_map(|word| runs(word)) {
        if run.contains(is_unspaced) {
            words.extend(run.graphemes(true).map(str::to_owned));
            words.extend(pairs(&run));
        } else {
            words.push(run);
        }
    }
    words.join(" ")
}

/// Returns the terms that find a text in [`search_words`]. An unspaced run is found by its pairs of
/// letters, and a single letter by itself.
pub fn search_terms(text: &str) -> Vec<String> {
    let mut terms = vec![];
    for run in words_as_written(text).iter().flat_map(|word| runs(word)) {
        let pairs = if run.contains(is_unspaced) {
            pairs(&run)
        } else {
            vec![]
        };
        if pairs.is_empty() {
            terms.push(run);
        } else {
            terms.extend(pairs);
        }
    }
    terms
}

/// Returns the words of a text in lower case, with their marks. What is stored and what is searched
/// for is cut here. A single letter behind an apostrophe, as in "Bob's" and "don't", is no word.
pub fn words_as_written(text: &str) -> Vec<String> {
    let text: String = text.nfkc().collect::<String>().to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || is_combining_mark(c) || is_unspaced(c);
    let is_apostrophe = |c: char| matches!(c, '\'' | '\u{2019}');
    let mut words = vec![];
    for joined in text.split(|c: char| !is_part(c) && !is_apostrophe(c)) {
        let mut before = "";
        for word in joined.split(is_apostrophe) {
            let is_ending = !before.is_empty() && word.chars().count() == 1;
            if !word.is_empty() && !is_ending {
                words.push(word.to_owned());
            }
            before = word;
        }
    }
    words
}

/// Returns the runs of unspaced and of other scripts in a word, with folded case and without marks.
/// Marks of all scripts go: SQLite's tokenizer would split words at those that it does not know.
fn runs(word: &str) -> Vec<String> {
    let bare: String = word.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    // By way of the upper case "ß" becomes "ss".
    let folded: String = bare.to_uppercase().to_lowercase().nfc().collect();
    let mut runs: Vec<String> = vec![];
    for c in folded.chars() {
        match runs.last_mut() {
            Some(run) if run.ends_with(is_unspaced) == is_unspaced(c) => run.push(c),
            _ => runs.push(c.into()),
        }
    }
    runs
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
            ("A\u{30a}ngstro\u{308}m", "Ångström"),
            ("déteste", "il de\u{301}teste"),
            ("कुत्तों", "राजा कुत्तों से डरता है"),
            ("நாய்களை", "அவன் நாய்களை வெறுக்கிறான்"),
            ("නා\u{dca}", "නා\u{dca}"),
            ("ਨਫ਼ਰਤ", "ਰਾਜਾ ਨਫ਼ਰਤ ਕਰਦਾ"),
            ("\u{1d400}", "a"),
            ("Bob’s", "a sword of bob"),
        ] {
            assert!(finds(query, text), "{query}: {text}");
        }
        assert!(!finds("strase", "Die Straße"));
        // The letter behind an apostrophe is no word, and one in quotation marks is.
        assert!(!finds("the dragon's", "it's raining"));
        assert!(!finds("can’t", "don't"));
        assert!(finds("a", "door 'A'"));
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
