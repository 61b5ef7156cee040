//! Numbers in words, read by `text2num`.

use std::sync::LazyLock;

use text2num::{Language, replace_numbers_in_text, text2digits};

/// The largest number of [`number_named`].
const MAX_NAMED: u32 = 99;

static ENGLISH: LazyLock<Language> = LazyLock::new(Language::english);

/// The languages of `text2num` with their codes of ISO 639-3. Danish is left out: it panics on some
/// texts (2.8.0).
static LANGUAGES: LazyLock<[(&str, Language); 7]> = LazyLock::new(|| {
    [
        ("eng", Language::english()),
        ("deu", Language::german()),
        ("fra", Language::french()),
        ("spa", Language::spanish()),
        ("ita", Language::italian()),
        ("por", Language::portugese()),
        ("nld", Language::dutch()),
    ]
});

/// Returns the number that a lower-case English word names, from "zero" to "ninety-nine".
pub fn number_named(word: &str) -> Option<u32> {
    // "o" is the letter of a code, and "zero one" has two words.
    let word = Some(word).filter(|word| word.len() > 1 && !word.contains(char::is_whitespace))?;
    let digits = text2digits(word, &*ENGLISH).ok()?;
    digits.parse().ok().filter(|number| *number <= MAX_NAMED)
}

/// Returns the text with its number words as digits. `code` is the language by ISO 639-3; if it is not
/// known, once for each language that is read.
pub fn in_digits(text: &str, code: Option<&str>) -> impl Iterator<Item = String> {
    let is_it = move |own: &str| code.is_none_or(|code| code == own);
    let languages = LANGUAGES.iter().filter(move |(own, _)| is_it(own));
    languages.map(move |(_, language)| replace_numbers_in_text(text, language, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_numbers() {
        for (word, number) in [
            ("zero", Some(0)),
            ("twelve", Some(12)),
            ("thirty", Some(30)),
            ("ninety-nine", Some(99)),
            ("first", None),
            ("hundred", None),
            ("a", None),
            ("o", None),
            ("zwölf", None),
            ("once", None),
            ("null", None),
            ("second", None),
            ("zero one", None),
            ("dice", None),
        ] {
            assert_eq!(number_named(word), number, "{word}");
        }
        let all = |text, code| in_digits(text, code).collect::<Vec<_>>();
        assert_eq!(all("sechs Tage", Some("deu")), ["6 Tage"]);
        assert_eq!(all("a cent each", Some("eng")), ["a cent each"]);
        assert_eq!(all("sześć dni", Some("pol")), [""; 0]);
        assert!(all("Quedan doce.", None).contains(&"Quedan 12.".to_owned()));
    }
}
