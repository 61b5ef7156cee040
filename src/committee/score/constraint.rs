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
use super::reading::Reading;
use super::text::{is_content, sentences, words};
use crate::domain::Obtained;

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

/// The answer as its reader gets it: prose whole, of a structured report the summary.
fn said<'a>(reading: &'a Reading<'_>) -> std::borrow::Cow<'a, str> {
    let report = reading.output.report;
    if reading.output.obtained == Obtained::Text {
        report.reasoning.as_str().into()
    } else {
        report.answer_summary.join("\n").into()
    }
}

pub(super) fn keeps(reading: &Reading<'_>, constraint: &Constraint) -> bool {
    use Constraint::*;
    let text = said(reading);
    let count = || words(&text).len();
    let lines = |sign: &Regex| sign.find_iter(&reading.body).count();
    let lower = || text.to_lowercase();
    let bare = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    match constraint {
        Items(wanted) => items(reading, &text, *wanted),
        LettersEach(letters) => {
            let found = listed(&text);
            !found.is_empty() && found.iter().all(|item| item.chars().filter(|c| c.is_alphabetic()).count() == *letters)
        }
        WordsAtMost(most) => count() * 10 <= most * 11,
        WordsAtLeast(least) => count() * 10 >= least * 9,
        WordsAbout(wanted) => (wanted * 2..=wanted * 4).contains(&(count() * 3)),
        Sentences(wanted) => sentences(&text).len() == *wanted || reading.output.obtained != Obtained::Text,
        SentencesAtMost(most) => sentences(&text).len() <= *most,
        Paragraphs(wanted) => {
            let found = text.split("\n\n").filter(|part| words(part).len() >= 8).count();
            found == *wanted || found == 1 && text.lines().filter(|line| words(line).len() >= 8).count() == *wanted
        }
        Capitals => mostly(&text, char::is_uppercase),
        SmallLetters => mostly(&text, char::is_lowercase),
        Bullets => lines(&BULLET) >= 2,
        Numbers => lines(&NUMBERED) >= 2,
        Json => {
            let parses = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text.trim()).is_ok();
            parses(&text) || reading.markdown.blocks.iter().any(|block| parses(&block.code))
        }
        Table => reading.body.lines().filter(|line| line.matches('|').count() >= 2).count() >= 2,
        Begins(head) => bare(&text).starts_with(&bare(head)),
        Ends(tail) => bare(&text).ends_with(&bare(tail)),
        Has(part) => lower().contains(&part.to_lowercase()),
        Lacks(part) => {
            let part = part.to_lowercase();
            let phrase = part.contains(' ') && lower().contains(&part);
            !(phrase || words(&text).iter().any(|word| word.lower == part))
        }
        LacksLetter(letter) => !lower().contains(letter.to_ascii_lowercase()),
        Likeness(given) => count() <= 3 * given + 10,
        Shorter(given) => count() < *given,
    }
}

static BULLET: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*[-*•–]\s+\S"));
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*\(?\d{1,2}[.):]\s*\S"));

fn mostly(text: &str, kind: fn(char) -> bool) -> bool {
    let letters = || text.chars().filter(|c| c.is_lowercase() || c.is_uppercase());
    let all = letters().count();
    all > 0 && 10 * letters().filter(|c| kind(*c)).count() >= 9 * all
}

fn items(reading: &Reading<'_>, text: &str, wanted: usize) -> bool {
    let steps = reading.output.report.steps_or_deliverables.len();
    let marked = reading.markdown.list_items.max(steps);
    if marked >= 2 {
        return marked == wanted;
    }
    let lines = text.lines().filter(|line| words(line).len() >= 2).count();
    reading.sentences.len() == wanted || lines == wanted || listed(text).len() == wanted
}

/// The things that a text lists: its marked or bare lines, or what commas and "and" join in its longest enumeration.
fn listed(text: &str) -> Vec<String> {
    static JOINT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s*[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+"));
    static MARK: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):])\s*"));
    let lines: Vec<&str> = text.lines().filter(|line| line.chars().any(char::is_alphanumeric)).collect();
    if lines.len() >= 2 {
        return lines.iter().map(|line| MARK.replace(line, "").trim().to_owned()).collect();
    }
    let longest = sentences(text).into_iter().map(|sentence| {
        let body = sentence.split_once(':').map_or(sentence, |(_, body)| body);
        let things = JOINT.split(body).filter(|part| words(part).iter().any(|word| is_content(&word.lower)));
        things.map(|part| part.trim().to_owned()).collect::<Vec<_>>()
    });
    longest.max_by_key(Vec::len).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Output, request};
    use super::*;
    use crate::committee::score::report_from_text;

    /// Whether a text keeps the constraint that a request is read to have.
    fn kept(message: &str, text: &str) -> Vec<bool> {
        let request = request::read(message);
        let report = report_from_text("a", text);
        let output = Output {
            agent: "a",
            report: &report,
            obtained: Obtained::Text,
            truncated: false,
            role_matches: true,
            family: None,
        };
        let reading = Reading::new(&output, &request, 1.0);
        request.limits.iter().map(|limit| keeps(&reading, limit)).collect()
    }

    #[test]
    fn each_constraint_tells_who_keeps_it_from_who_does_not() {
        for (message, good, bad) in [
            ("Name two animals that live in the sea.", "Dolphin and shark.", "Sharks, whales, and dolphins."),
            ("Give three tips for sleep.", "- dark room\n- cool room\n- quiet room", "- dark room\n- cool room"),
            ("Generate random 5 letter words.", "Apple, table, chair", "Apple, elephant, chair"),
            (
                "Explain DNS in at most 10 words.",
                "DNS maps names to addresses.",
                "DNS is the system that maps the names that people type to the addresses that machines use.",
            ),
            ("Explain it, with at least 10 words.", "One two three four five six seven eight nine ten.", "Too short."),
            ("Describe the sea in about 12 words.", "The sea is wide and deep and cold and full of life.", "Wide."),
            ("Write a 3-sentence story about rain.", "It rained. We ran. We laughed.", "It rained. We ran."),
            ("Write a sentence about rain.", "It rained all day.", "It rained. Then it stopped. Then it rained."),
            ("Write the text in all caps: the sea", "THE SEA", "The sea"),
            ("Write the text in lowercase: The Sea", "the sea", "The SEA"),
            ("Explain it as a bulleted list.", "- one thing\n- other thing", "1. one thing\n2. other thing"),
            ("Explain it as a numbered list.", "1. one thing\n2. other thing", "- one thing\n- other thing"),
            ("Describe a car in JSON.", "{\"wheels\": 4}", "A car has 4 wheels."),
            ("Compare cats and dogs in a table.", "| cat | dog |\n| --- | --- |\n| soft | loud |", "Cats are soft."),
            ("Explain it and start with \"In short\".", "In short, it works.", "It works, in short."),
            ("Explain it and end with \"Amen\".", "It works. Amen.", "Amen, it works."),
            ("Explain it and use the word \"tide\".", "The tide turns.", "The sea turns."),
            ("Explain it but do not use the word \"tide\".", "The sea turns.", "The tide turns."),
            ("Write a greeting without the letter \"e\".", "Good day to you", "Hello there"),
            (
                "Paraphrase this sentence. The sea is cold.",
                "The ocean has a low temperature.",
                &"The sea is a very cold place. ".repeat(8),
            ),
        ] {
            assert!(kept(message, good).iter().all(|kept| *kept), "{message}: {good}");
            assert!(kept(message, bad).contains(&false), "{message}: {bad}: {:?}", request::read(message).limits);
        }
        let long = "The town council met on Monday to talk about the new bridge over the river. ".repeat(8);
        let message = format!("Summarize the following text. {long}");
        assert_eq!(
            (kept(&message, "The council discussed a bridge."), kept(&message, &long.repeat(2))),
            (vec![true], vec![false])
        );
    }

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
