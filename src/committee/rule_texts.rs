//! The texts that fixed rules write to the user, in the language of the question.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use whatlang::{Detector, Lang};

use crate::domain::{FailureCause, UnseenImage};
use crate::text::read_markdown;

/// The texts of one language. `{}` stands for the value that a text names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTexts {
    /// The question about contested positions, with its options for a position and for none.
    pub contested: String,
    position: String,
    pub none_fits: String,
    /// The question of a committee that is not sure, with its options.
    pub unsure: String,
    pub best_answer: String,
    pub deeper: String,
    pub stop: String,
    below: String,
    taken: String,
    /// The main answer if no output can be used, and if the user chose to stop.
    pub undecided: String,
    pub stopped: String,
    /// The notes on an answer that was cut: its end is missing, or a second call wrote it.
    pub cut: String,
    pub continued: String,
    /// The restrictions that the Confidence section states, by name. A text may leave out the
    /// reason, which the audit has in English.
    notes: BTreeMap<String, String>,
    /// The causes of failed calls, by their English names; empty for English.
    causes: BTreeMap<String, String>,
    /// Why an image was not seen, by cause; empty for English.
    unseen: BTreeMap<String, String>,
}

/// The texts by the code of the language, of ISO 639-3.
static TEXTS: LazyLock<BTreeMap<String, RuleTexts>> =
    LazyLock::new(|| serde_json::from_str(include_str!("rule_texts.json")).unwrap_or_default());

/// The most characters of a question that its language is detected from.
const MAX_CHARS: usize = 2000;

/// The least confidence of whatlang in a language that whichlang does not know.
const MIN_CONFIDENCE: f64 = 0.1;

/// Returns a text's language, `None` for English. whichlang is better at short texts and knows 16
/// languages; whatlang knows 70. Short English texts are often taken for another language, so both
/// must say so. Of 600 English questions, 3 got other texts than English (whatlang alone: 12); of 76
/// short ones in other languages, 57 got their own (43).
fn language(text: &str) -> Option<Lang> {
    let found = whichlang::detect_language(text);
    if found == whichlang::Lang::Eng {
        return None;
    }
    let is_known = |lang: Lang| {
        let mut known = whichlang::LANGUAGES.iter();
        known.any(|it| it.three_letter_code() == lang.code())
    };
    let other = whatlang::detect(text).filter(|it| it.confidence() >= MIN_CONFIDENCE);
    if let Some(other) = other.filter(|it| !is_known(it.lang())) {
        return Some(other.lang());
    }
    let found = Lang::from_code(found.three_letter_code())?;
    let won = Detector::with_allowlist(vec![found, Lang::Eng]).detect_lang(text)?;
    (won == found).then_some(found)
}

impl RuleTexts {
    /// Returns the texts in the language of a question without its code blocks. English stands in
    /// for a language that is not in the data file, and for one that cannot be told from English.
    pub fn for_question(question: &str) -> &'static Self {
        static NONE: LazyLock<RuleTexts> = LazyLock::new(RuleTexts::default);
        let prose = read_markdown(question).prose;
        let head: String = prose.chars().take(MAX_CHARS).collect();
        let texts = language(&head).and_then(|language| TEXTS.get(language.code()));
        let texts = texts.or_else(|| TEXTS.get(Lang::Eng.code()));
        texts.unwrap_or(&NONE)
    }

    /// Returns a note with its values filled in.
    pub fn note(&self, name: &str, values: &[(&str, &str)]) -> String {
        let mut note = self.notes.get(name).cloned().unwrap_or_default();
        for (key, value) in values {
            note = note.replace(&format!("{{{key}}}"), value);
        }
        note
    }

    /// Returns the cause of a failed call; `None` in English, where its own name serves.
    pub fn cause(&self, cause: &FailureCause) -> Option<&str> {
        self.causes.get(cause.as_str()).map(String::as_str)
    }

    /// Returns the note on an image that was not seen.
    pub fn unseen(&self, image: &UnseenImage) -> String {
        let UnseenImage::Image { name, cause, .. } = image else {
            return image.to_string();
        };
        match self.unseen.get(<&str>::from(cause)) {
            Some(why) => self.note("unseen", &[("name", name), ("why", why)]),
            None => image.to_string(),
        }
    }

    pub fn position(&self, position: &str) -> String {
        self.position.replace("{}", position)
    }

    /// Returns the position of an option that [`RuleTexts::position`] made.
    pub fn position_in<'o>(&self, option: &'o str) -> Option<&'o str> {
        let (before, after) = self.position.split_once("{}")?;
        let rest = option.strip_prefix(before.trim())?;
        rest.strip_suffix(after.trim()).map(str::trim)
    }

    /// Returns the note on a reply whose `c_final` is below the threshold.
    pub fn below(&self, threshold: f64) -> String {
        self.below.replace("{}", &format!("{threshold:.2}"))
    }

    /// Returns the note that a message was taken as the answer to a question.
    pub fn taken(&self, question: &str) -> String {
        self.taken.replace("{}", question)
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::{Clarification, UnseenCause};

    const VALUES: [&str; 11] = [
        "{run}", "{why}", "{name}", "{agent}", "{number}", "{round}", "{call}", "{limit}",
        "{role}", "{served}", "{model}",
    ];

    #[test]
    fn every_language_has_every_text() {
        let texts: BTreeMap<String, RuleTexts> =
            serde_json::from_str(include_str!("rule_texts.json")).unwrap();
        assert_eq!(texts.len(), 11);
        assert!(texts.keys().all(|code| Lang::from_code(code).is_some()));
        let english = &texts["eng"];
        assert!(english.causes.is_empty() && english.unseen.is_empty());
        for (code, text) in &texts {
            for with_value in [&text.position, &text.below, &text.taken] {
                assert_eq!(with_value.matches("{}").count(), 1, "{code}: {with_value}");
            }
            assert!(text.notes.keys().eq(english.notes.keys()), "{code}");
            for (name, note) in &text.notes {
                for value in VALUES {
                    let wanted = english.notes[name].contains(value);
                    // Only a reason may be left out: the audit has it.
                    let is_spared = value == "{why}" && wanted;
                    let is_right = is_spared || note.contains(value) == wanted;
                    assert!(is_right, "{code} {name}: {value}");
                }
            }
            if code != "eng" {
                let causes: BTreeSet<String> = FailureCause::known().map(String::from).collect();
                assert!(text.causes.keys().eq(&causes), "{code}");
                let unseen: BTreeSet<&str> = UnseenCause::iter().map(<&str>::from).collect();
                assert!(text.unseen.keys().map(String::as_str).eq(unseen), "{code}");
            }
        }
    }

    #[test]
    fn the_position_of_an_option_is_read_back_in_every_language() {
        for (code, texts) in &*TEXTS {
            let positions = ["yes", "no"].map(|position| texts.position(position));
            let options = [positions.as_slice(), std::slice::from_ref(&texts.none_fits)].concat();
            let asked = Clarification::new(&texts.contested, &options).unwrap();
            let read = asked.options.each_ref().map(|it| texts.position_in(it));
            assert_eq!(read, [Some("yes"), Some("no"), None], "{code}");
        }
    }

    #[test]
    fn the_language_is_that_of_the_question() {
        for (question, code) in [
            (
                "Which database should our team use for the web shop?",
                "eng",
            ),
            ("Which database should we use?", "eng"),
            ("How do I get 3 labels on one page?", "eng"),
            ("How do I bake a cake?", "eng"),
            ("Wann endete der Krieg?", "deu"),
            ("Wie spät ist es in Tokio?", "deu"),
            ("Wie hoch ist der Eiffelturm?", "deu"),
            ("¿Qué hora es en Tokio?", "spa"),
            ("Comment faire une sauvegarde de Postgres ?", "fra"),
            ("Quale database dobbiamo usare?", "ita"),
            ("Que horas são em Tóquio?", "por"),
            ("Welke database moeten we gebruiken?", "nld"),
            ("Która jest godzina w Tokio?", "pol"),
            ("Который час в Токио?", "rus"),
            ("東京は今何時ですか。", "jpn"),
            ("东京现在几点？", "cmn"),
            ("17 * 24", "eng"),
            // Languages without texts.
            ("Vilken databas ska vi använda?", "eng"),
            (
                "Hur lång tid tar det att flytta servern till en ny region?",
                "eng",
            ),
            ("Veritabanının yedeğini nasıl alabilirim?", "eng"),
            ("Jak vytvořím zálohu databáze?", "eng"),
            ("Котра година в Токіо?", "eng"),
            ("Яку базу даних нам обрати?", "eng"),
            ("Ce oră este în Tokyo?", "eng"),
            ("도쿄는 지금 몇 시인가요?", "eng"),
        ] {
            let texts = RuleTexts::for_question(question);
            assert_eq!(Some(texts), TEXTS.get(code), "{question}");
        }
    }

    #[test]
    fn code_in_a_question_does_not_decide_its_language() {
        let code = "let mut total = 0; for item in items { total += item.price * item.count; }\n";
        let question = format!(
            "Wie mache ich das schneller?\n\n```rust\n{}```\n",
            code.repeat(6)
        );
        assert_eq!(Some(RuleTexts::for_question(&question)), TEXTS.get("deu"));
    }
}
