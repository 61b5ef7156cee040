//! Whether a text keeps a demand on its form.

use std::sync::LazyLock;

use regex::Regex;

use super::constraint::Constraint;
use super::pattern::pattern;
use super::reading::Reading;
use super::text::{is_content, sentences, words};
use crate::domain::Obtained;

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
}
