//! The texts that fixed rules write to the user, in the language of the question.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use whatlang::Lang;

use crate::domain::{FailureCause, UnseenImage};
use crate::text::{built_in_json, is_latin, language_code, likeliest, read_markdown};

/// The texts of one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTexts {
    /// The code of the language, of ISO 639-1.
    code: String,
    /// The question about contested positions, with its options for a position and for none.
    pub contested: String,
    pub none_fits: String,
    /// The question of a committee that is not sure, with its options.
    pub unsure: String,
    pub best_answer: String,
    pub deeper: String,
    pub stop: String,
    /// The main answer if no output can be used, and if the user chose to stop.
    pub undecided: String,
    pub stopped: String,
    /// The notes on an answer that was cut: its end is missing, or a second call wrote it.
    pub cut: String,
    pub continued: String,
    /// The restrictions that the Confidence section states, and the option of a position, by name;
    /// `{name}` is replaced by a value. A text may leave out the reason, which the audit has in English.
    notes: BTreeMap<String, String>,
    /// The causes of failed calls, by their English names; empty for English.
    causes: BTreeMap<String, String>,
    /// Why an image was not seen, by cause; empty for English.
    unseen: BTreeMap<String, String>,
}

/// The texts by the code of the language, of ISO 639-3.
static TEXTS: LazyLock<BTreeMap<String, RuleTexts>> =
    LazyLock::new(|| built_in_json(include_str!("rule_texts.json")));

/// The most characters of each text that a language is detected from.
const MAX_CHARS: usize = 2000;

impl RuleTexts {
    /// Returns the texts in a language, by its code of ISO 639-1 or 639-3; in English if the data file
    /// does not have it.
    pub fn of_language(code: &str) -> &'static Self {
        let mut all = TEXTS.iter();
        let own = all.find(|(long, texts)| *long == code || texts.code == code);
        own.map_or_else(Self::english, |(_, texts)| texts)
    }

    fn english() -> &'static Self {
        static NONE: LazyLock<RuleTexts> = LazyLock::new(RuleTexts::default);
        TEXTS.get(Lang::Eng.code()).unwrap_or(&NONE)
    }

    /// Returns the texts in the language of a question and of what was answered, without code
    /// blocks. English is taken if the language is not certain, or is not in the data file. A text in
    /// another script than the Latin gets the likeliest language of that script.
    pub fn in_language_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> &'static Self {
        let heads = texts.into_iter().map(|text| {
            let prose = read_markdown(text).prose;
            prose.chars().take(MAX_CHARS).collect::<String>()
        });
        let mut heads: Vec<String> = heads.collect();
        // In an answer to a Japanese question, a command in Latin letters says nothing of its language.
        if heads.first().is_some_and(|question| !is_latin(question)) {
            heads.retain(|head| !is_latin(head) || language_code(head).is_some());
        }
        let all = heads.join("\n");
        let among = || likeliest(&all, TEXTS.keys().map(String::as_str));
        let code = language_code(&all).or_else(among);
        code.and_then(|code| TEXTS.get(code))
            .unwrap_or_else(Self::english)
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
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::{Clarification, UnseenCause, is_question_mark};
    use crate::text::pattern;

    #[test]
    fn every_language_has_every_text() {
        let texts: BTreeMap<String, RuleTexts> =
            serde_json::from_str(include_str!("rule_texts.json")).unwrap();
        assert_eq!(texts.len(), 16);
        assert!(texts.keys().all(|code| Lang::from_code(code).is_some()));
        let codes: BTreeSet<&String> = texts.values().map(|it| &it.code).collect();
        assert_eq!(codes.len(), texts.len());
        let english = &texts["eng"];
        assert!(english.causes.is_empty() && english.unseen.is_empty());
        let value = pattern(r"\{[a-z]+\}");
        let values = |note: &str| -> BTreeSet<String> {
            let found = value.find_iter(note);
            found.map(|value| value.as_str().to_owned()).collect()
        };
        for (code, text) in &texts {
            assert!(text.notes.keys().eq(english.notes.keys()), "{code}");
            for (name, note) in &text.notes {
                let (own, mut wanted) = (values(note), values(&english.notes[name]));
                // Only a reason may be left out: the audit has it.
                if !own.contains("{why}") {
                    wanted.remove("{why}");
                }
                assert_eq!(own, wanted, "{code} {name}");
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
    fn the_language_is_that_of_the_question_and_the_reports() {
        let english = "Use PostgreSQL for the shop. It keeps orders and stock in one transaction.";
        for (question, report, code) in [
            ("REST vs GraphQL?", english, "eng"),
            ("What does \"c'est la vie\" mean?", english, "eng"),
            ("Compare São Paulo and Rio de Janeiro", english, "eng"),
            ("17 * 24", "408, because 17 * 24 = 408.", "eng"),
            ("vim or emacs?", "", "eng"),
            (
                "Яблоки стоят 3,20 € за кг. Сколько стоят 2,5 кг?",
                "8 €",
                "rus",
            ),
            ("Скільки коштує марка?", "30 грн", "ukr"),
            (
                "Postgres ?",
                "Pour la boutique, PostgreSQL convient, car les commandes et le stock vont ensemble.",
                "fra",
            ),
            (
                "Postgres?",
                "Voor de winkel past PostgreSQL, omdat bestellingen en voorraad bij elkaar blijven.",
                "nld",
            ),
            ("東京は今何時ですか。", "東京は今、午後三時です。", "jpn"),
            ("东京现在几点？", "东京现在是下午三点。", "cmn"),
            (
                "도쿄는 지금 몇 시인가요?",
                "도쿄는 지금 오후 세 시입니다.",
                "kor",
            ),
            (
                "كم الساعة الآن في طوكيو؟",
                "الساعة الآن في طوكيو هي الثالثة بعد الظهر.",
                "ara",
            ),
            (
                "ウェブサービスを再起動するコマンドは何ですか。",
                "kubectl rollout restart deployment/web --namespace production",
                "jpn",
            ),
            ("Meaning of 一期一会、温故知新、花鳥風月?", english, "eng"),
            // A few words tell the language.
            ("Is 91 a prime number?", "No, 91 = 7 * 13.", "eng"),
            ("Best database for a chat app?", "", "eng"),
            ("kubectl get pods -n prod", "", "eng"),
            ("42", "?", "eng"),
            ("Ist 91 eine Primzahl?", "Nein, 91 = 7 * 13.", "deu"),
            ("¿Es 91 primo?", "No.", "spa"),
            ("91 é primo?", "Não.", "por"),
            ("È sicuro?", "No, non lo è.", "ita"),
            ("Czy 91 jest liczbą pierwszą?", "Nie.", "pol"),
            ("91 asal mı?", "Hayır.", "tur"),
            ("क्या 91 अभाज्य है?", "नहीं।", "hin"),
            // Languages without texts.
            (
                "Vilken databas?",
                "Till butiken passar PostgreSQL, eftersom beställningar och lager hör ihop.",
                "eng",
            ),
            ("Mikä on Suomen pääkaupunki?", "Helsinki", "eng"),
        ] {
            let texts = RuleTexts::in_language_of([question, report]);
            assert_eq!(Some(texts), TEXTS.get(code), "{question}");
        }
    }

    #[test]
    fn the_question_of_every_language_can_be_asked_as_it_is() {
        for (code, text) in TEXTS.iter() {
            let options = [&text.best_answer, &text.deeper, &text.stop].map(String::clone);
            let asked = Clarification::new(&text.unsure, &options).unwrap();
            assert_eq!(asked.options, options, "{code}");
            let is_shown = text.unsure.ends_with(&asked.question);
            assert!(
                is_shown && text.unsure.matches(is_question_mark).count() == 1,
                "{code}"
            );
        }
    }

    #[test]
    fn code_in_a_question_does_not_decide_its_language() {
        let code = "let mut total = 0; for item in items { total += item.price * item.count; }\n";
        let question = format!(
            "Wie mache ich das schneller, ohne dass der Code unlesbar wird?\n\n```rust\n{}```\n",
            code.repeat(6)
        );
        let texts = RuleTexts::in_language_of([question.as_str()]);
        assert_eq!(Some(texts), TEXTS.get("deu"));
    }
}
