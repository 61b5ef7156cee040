//! Finds text that the screen of explanations cannot read, because it reads English only.

use whatlang::Script;

use crate::text::{each_sentence, language_code};

/// The language of a sentence with fewer letters is not certain.
const MIN_LETTERS: usize = 30;

/// Returns the first sentence of a text that is not English, or has a word in another script that
/// `said` lacks. The text is the model's own, without what it quotes.
pub fn sentence<'t>(own: &'t str, said: &str) -> Option<&'t str> {
    let is_foreign = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        words.any(|word| is_other_script(word) && !said.contains(word))
            || letters >= MIN_LETTERS && language_code(text).is_some_and(|code| code != "eng")
    };
    let found = each_sentence(own).find(|sentence| is_foreign(sentence));
    found.or_else(|| is_foreign(own).then_some(own))
}

/// True for a word of two letters or more in another script than Latin, and for a word of Latin and
/// Cyrillic letters, some of which look the same.
fn is_other_script(word: &str) -> bool {
    let letters = word.chars().filter(|c| c.is_alphabetic());
    let has_both = word.chars().any(|c| c.is_ascii_alphabetic())
        && word.chars().any(|c| matches!(c, '\u{400}'..='\u{52f}'));
    let script = whatlang::detect_script(word);
    has_both || script.is_some_and(|script| script != Script::Latin) && letters.count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_in_another_language_is_found_behind_english_ones() {
        let english = "The file was read once and nothing was changed. ";
        for foreign in [
            "Probablemente este cambio caus\u{f3} el error y es muy peligroso.",
            "Das behebt den Fehler wahrscheinlich, denn der Import fehlte.",
            "Cette modification est sans danger pour votre projet.",
            "\u{7f6e}\u{4fe1}\u{5ea6}\u{4e3a}\u{767e}\u{5206}\u{4e4b}\u{4e5d}\u{5341}\u{4e94}\u{3002}",
            "This is l\u{456}kely.",
        ] {
            let found = sentence(&format!("{english}{foreign}"), "").map(str::to_owned);
            assert_eq!(found.as_deref(), Some(foreign));
        }
        let quoted = "The first line is \u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}.";
        assert_eq!(
            sentence(quoted, "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}"),
            None
        );
        assert!(sentence(quoted, "").is_some());
        assert_eq!(
            sentence("It took 12 \u{3bc}s, after step x and before x.", ""),
            None
        );
    }

    #[test]
    fn no_english_explanation_is_taken_for_another_language() {
        let corpus = include_str!("../../tests/fixtures/explanations.tsv");
        for line in corpus.lines().skip(1) {
            let text = line.rsplit('\t').next().unwrap();
            let own = crate::tools::screen::own_text(text, &[]);
            assert_eq!(sentence(&own, ""), None, "{text}");
        }
    }
}
