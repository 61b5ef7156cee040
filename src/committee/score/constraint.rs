//! What a request demands of the answer's form and can be counted: items, words, sentences, letters, cases, beginnings.
//!
//! | constraint | read from, for example | kept if |
//! | --- | --- | --- |
//! | `Items` | "list three tips" | so many list items, or so many things joined by commas and "and" |
//! | `LettersEach` | "5 random 8 letter words" | each item is one word of that length |
//! | `WordsAtMost`, `WordsAtLeast`, `WordsAbout` | "in at most 50 words", "at least 200 words", "a 100-word text" | counted, with a tenth, or for "about" a third, to spare |
//! | `Sentences`, `SentencesAtMost`, `Paragraphs` | "a 5-sentence story", "in one sentence", "three paragraphs" | counted |
//! | `Capitals`, `SmallLetters` | "in all caps", "in lowercase" | nine letters of ten are |
//! | `Bullets`, `Numbers`, `Json`, `Table` | "as a bulleted list", "in JSON" | two lines of the kind, or a text that parses |
//! | `Begins`, `Ends`, `Has`, `Lacks`, `LacksLetter` | "start with \"Yes\"", "do not use the word \"very\"" | as it says |
//! | `Likeness` | "paraphrase this sentence" | at most three times as long as what was given |
//! | `Shorter` | "summarize the following" | shorter than what was given |

use std::sync::LazyLock;

use regex::Regex;

use super::pattern::pattern;
use super::text::{sentences, words};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Constraint {
    Items(usize),
    LettersEach(usize),
    WordsAtMost(usize),
    WordsAtLeast(usize),
    WordsAbout(usize),
    Sentences(usize),
    SentencesAtMost(usize),
    Paragraphs(usize),
    Capitals,
    SmallLetters,
    Bullets,
    Numbers,
    Json,
    Table,
    Begins(String),
    Ends(String),
    Has(String),
    Lacks(String),
    LacksLetter(char),
    /// Words of the text that is to be put in another way.
    Likeness(usize),
    /// Words of the text that is to be made shorter.
    Shorter(usize),
}

/// A way of putting a demand, and what the number or the quoted words in it make of it.
type Way<P, T> = (P, fn(T) -> Constraint);

const NUMBER: &str = r"(two|three|four|five|six|seven|eight|nine|ten|\d{1,4})";

/// The constraints of a request: `asked` is what it asks for, `whole` all of it.
pub(super) fn read(asked: &str, whole: &str) -> Vec<Constraint> {
    use Constraint::*;
    static COUNTED: LazyLock<Vec<Way<Regex, usize>>> = LazyLock::new(|| {
        let kinds: [Way<String, usize>; 10] = [
            (format!(r"(?i)\b(?:list|give|name|suggest|provide|recommend|write|generate|create|brainstorm|come up with|tell)\s+(?:me\s+|us\s+)?(?:the\s+|top\s+|exactly\s+|any\s+)*{NUMBER}\s+(?:\w+\s+){{0,2}}?\w+s\b"), Items),
            (r"(?i)\b(\d{1,2})[- ]letter words\b".to_owned(), LettersEach),
            (r"(?i)\b(?:at most|no more than|under|less than|fewer than|within|up to|maximum of|in)\s+(\d{1,4}|one|two|three|five|ten)\s+words?\b".to_owned(), WordsAtMost),
            (r"(?i)\b(?:at least|no (?:less|fewer) than|minimum(?: of)?|more than|over)\s+(\d{1,4})\s+words\b".to_owned(), WordsAtLeast),
            (r"(?i)\b(?:an?\s+(?:\w+\s+)?|about |around |approximately |exactly )(\d{2,4})[- ]words?\b".to_owned(), WordsAbout),
            (format!(r"(?i)\b{NUMBER}[- ]sentences?\b(?:\s+\w+)"), Sentences),
            (r"(?i)\b(?:in|with|using)\s+(?:exactly\s+|only\s+|at most\s+)?(one|a single|two|three|four|five|\d)\s+sentences?\b".to_owned(), SentencesAtMost),
            (r"(?i)\b(?:write|generate|create|compose|produce|give|form)\b[^.?!\n]{0,20}\b(a|one)(?: \w+)? sentence\b".to_owned(), SentencesAtMost),
            (format!(r"(?i)\b{NUMBER}[- ]paragraphs?\b"), Paragraphs),
            (r"(?i)\bin\s+(one|a single|a) paragraph\b".to_owned(), Paragraphs),
        ];
        kinds.into_iter().map(|(source, kind)| (pattern(&source), kind)).collect()
    });
    static SIGNS: LazyLock<[(Regex, Constraint); 6]> = LazyLock::new(|| {
        [
            (r"(?i)\b(?:in|to|into|use|using) (?:all )?(?:caps\b|upper-? ?case|capital letters|capitals)", Capitals),
            (r"(?i)\b(?:in|to|into|use|using) (?:all )?lower-? ?case", SmallLetters),
            (r"(?i)\b(?:bulleted list|bullet(?:ed)? points|bullet list)\b", Bullets),
            (r"(?i)\bnumbered list\b", Numbers),
            (r"(?i)\b(?:in|as|return|output|produce|valid) (?:a |valid |an? )?json\b", Json),
            (r"(?i)\b(?:in|as|into|create|make) an? (?:markdown |comparison )?table\b", Table),
        ]
        .map(|(source, kind)| (pattern(source), kind))
    });
    static QUOTED: LazyLock<Vec<Way<Regex, String>>> = LazyLock::new(|| {
        let quote = r#"["'“‘]([^"'”’\n]{1,60})["'”’]"#;
        let kinds: [Way<String, String>; 5] = [
            (
                format!(
                    r"(?i)\b(?:start|begin)\w*\b[^.\n]{{0,40}}? with (?:the (?:word|phrase|letter|sentence)s? )?{quote}"
                ),
                Begins,
            ),
            (
                format!(
                    r"(?i)\b(?:end|finish|conclude)\w*\b[^.\n]{{0,40}}? with (?:the (?:word|phrase|sentence)s? )?{quote}"
                ),
                Ends,
            ),
            (
                format!(
                    r"(?i)\b(?:include|use|contain|mention|using|including|containing) the (?:word|phrase)s? {quote}"
                ),
                Has,
            ),
            (
                format!(
                    r"(?i)\b(?:do not|don't|never|without|avoid)\b[^.\n]{{0,30}}?\b(?:us(?:e|ing)|mention\w*|includ\w*|say\w*)\b[^.\n]{{0,10}}? the (?:word|phrase)s? {quote}"
                ),
                Lacks,
            ),
            (format!(r"(?i)\b(?:do not|don't|never|without|avoid)\b[^.\n]{{0,40}}? the letter {quote}"), |text| {
                text.chars().next().map_or_else(|| Lacks(text.clone()), LacksLetter)
            }),
        ];
        kinds.into_iter().map(|(source, kind)| (pattern(&source), kind)).collect()
    });
    let mut out: Vec<Constraint> = Vec::new();
    for (regex, kind) in COUNTED.iter() {
        let stated = regex.captures(asked).and_then(|found| small_number(found.get(1)?.as_str()));
        out.extend(
            stated.filter(|n| *n >= 1).map(kind).filter(|found| !matches!(found, Items(n) if !(2..=30).contains(n))),
        );
    }
    out.extend(SIGNS.iter().filter(|(regex, _)| regex.is_match(asked)).map(|(_, kind)| kind.clone()));
    for (regex, kind) in QUOTED.iter() {
        out.extend(regex.captures(asked).and_then(|found| Some(kind(found.get(1)?.as_str().to_owned()))));
    }
    // What must not be there is no thing to be there.
    let lacking: Vec<Constraint> =
        out.iter().filter_map(|found| if let Lacks(text) = found { Some(Has(text.clone())) } else { None }).collect();
    out.retain(|found| !lacking.contains(found));
    out.extend(of_given(asked, whole));
    out
}

/// Orders on a text that the request gives: put otherwise it stays as long as it was, summed up it gets shorter.
fn of_given(asked: &str, whole: &str) -> Option<Constraint> {
    static REWRITE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^\W*(?:please |can you |could you )?(?:paraphrase|re-?phrase|reword|rewrite|correct|edit|modify|take the (?:given )?sentence|change|replace|combine)\b[^.:\n]{0,60}\b(?:sentences?|statements?|phrase|text|bill|word)\b",
        )
    });
    static SUMMARY: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)\b(?:summari[sz]e|sum up|tl;?dr|thesis statement|shorten|headline|title) "));
    let all = sentences(whole);
    let order = all.iter().position(|s| REWRITE.is_match(s) || SUMMARY.is_match(s))?;
    let given: usize = all.iter().enumerate().filter(|(at, _)| *at != order).map(|(_, s)| words(s).len()).sum();
    let sentence = all.get(order)?;
    if REWRITE.is_match(sentence) && (3..=120).contains(&given) {
        return Some(Constraint::Likeness(given));
    }
    (SUMMARY.is_match(asked) && given >= 60).then_some(Constraint::Shorter(given))
}

pub(super) fn small_number(word: &str) -> Option<usize> {
    const NAMES: [&str; 11] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let lower = word.to_lowercase();
    if matches!(lower.as_str(), "a single" | "a") {
        return Some(1);
    }
    lower.parse().ok().or_else(|| NAMES.iter().position(|name| *name == lower))
}

/// Whether a request asks for a thing that is short by nature, so that more words make no better one.
pub(super) fn is_brief(asked: &str, constraints: &[Constraint]) -> bool {
    static SHORT_THING: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:write|generate|create|suggest|come up with|give|name|compose|construct|tell|provide|make|think of|find|devise|produce|propose|brainstorm|describe|form|craft)\b(?: (?:me|us|up|with|for))* (?:an?|one|the|two|three|some|\d) (?:[\w-]+ ){0,3}?(?:sentences?|titles?|headlines?|slogans?|taglines?|tweets?|jokes?|haikus?|riddles?|proverbs?|metaphors?|similes?|analogy|analogies|words?|synonyms?|antonyms?|names?|hashtags?|captions?|phrases?|regex|regular expressions?|rhymes?|mottos?|puns?|subject line|thesis statement|acronyms?|equation|card game)\b",
        )
    });
    let short = constraints.iter().any(|found| {
        use Constraint::*;
        match found {
            WordsAtMost(n) => *n <= 100,
            SentencesAtMost(_) | Likeness(_) | Shorter(_) | LettersEach(_) | Items(_) => true,
            _ => false,
        }
    });
    short || SHORT_THING.is_match(asked)
}

#[cfg(test)]
mod tests {
    use super::super::request;
    use super::*;

    #[test]
    fn ordinary_requests_have_no_constraints() {
        for message in [
            "Explain how DNS works.",
            "What is the capital of France?",
            "Write a Python function that reverses a list.",
            "Who wrote two plays in 1600?",
            "Why is JSON slow?",
        ] {
            assert_eq!(request::read(message).limits, [], "{message}");
        }
    }

    #[test]
    fn short_things_need_no_detail() {
        let brief = |message: &str| is_brief(message, &read(message, message));
        for message in ["Suggest a title for a story about rain.", "Tell me a joke.", "Explain DNS in one sentence."] {
            assert!(brief(message), "{message}");
        }
        assert!(!brief("Explain how a cache works.") && !brief("Write an essay about the sea."));
    }
}
