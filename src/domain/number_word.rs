//! Numbers in words, read by `text2num`.

use std::sync::LazyLock;

use text2num::{Language, replace_numbers_in_text, text2digits};

/// The largest number of [`number_named`].
const MAX_NAMED: u32 = 99;

static ENGLISH: LazyLock<Language> = LazyLock::new(Language::english);

/// The languages of `text2num` beside English. Danish is left out: it panics on some texts (2.8.0).
static OTHERS: LazyLock<[Language; 6]> = LazyLock::new(|| {
    [
        Language::german(),
        Language::french(),
        Language::spanish(),
        Language::italian(),
        Language::portugese(),
        Language::dutch(),
    ]
});

fn languages() -> impl Iterator<Item = &'static Language> {
    std::iter::once(&*ENGLISH).chain(&*OTHERS)
}

/// Returns the number that a lower-case English word names, from "zero" to "ninety-nine".
pub fn number_named(word: &str) -> Option<u32> {
    // "o" is the letter of a code.
    let word = Some(word).filter(|word| word.len() > 1)?;
    let digits = text2digits(word, &*ENGLISH).ok()?;
    digits.parse().ok().filter(|number| *number <= MAX_NAMED)
}

/// Returns the whole number that a text consists of, in words of any of the languages: "zwölf". One in
/// capitals is an abbreviation: "UN".
pub fn number_in_words(text: &str) -> Option<u32> {
    if !text.contains(char::is_lowercase) {
        return None;
    }
    let text = &text.to_lowercase();
    languages().find_map(|language| text2digits(text, language).ok()?.parse().ok())
}

/// Returns the text with its number words as digits, for each of the languages.
pub fn in_digits(text: &str) -> impl Iterator<Item = String> {
    languages().map(move |language| replace_numbers_in_text(text, language, 0.0))
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
            ("dice", None),
        ] {
            assert_eq!(number_named(word), number, "{word}");
        }
        for (text, number) in [
            ("zwölf", Some(12)),
            ("quatre-vingt-dix", Some(90)),
            ("doce", Some(12)),
            ("ventuno", Some(21)),
            ("vinte e um", Some(21)),
            ("Paris", None),
            ("UN", None),
        ] {
            assert_eq!(number_in_words(text), number, "{text}");
        }
    }
}
