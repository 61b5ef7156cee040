//! Fixed rules that turn prose into a report, for models that cannot hold a schema and for recorded raw texts.

use std::sync::LazyLock;

use regex::Regex;

use super::answer::{conclusive_sentence, is_opener};
use super::pattern::pattern;
use super::text::{self, clip, is_content, sentences, tidy, words};
use crate::domain::{AgentReport, Unit};

const MAX_UNITS: usize = 24;
const MAX_ITEMS: usize = 24;

/// Turns raw text into a report: the conclusive sentence is the summary, list items are the steps, "assuming ..." an
/// assumption, "if ... fails" a failure mode, and each statement a unit. The text itself is kept as the reasoning.
/// `self_confidence` is 0.5, for prose tells nothing about it.
pub fn report_from_text(agent: &str, text: &str) -> AgentReport {
    let tidied = tidy(clip(text, text::MAX_BYTES));
    let text = tidied.trim();
    let statements: Vec<&str> = sentences(text).into_iter().filter(|s| !is_opener(s)).collect();
    AgentReport {
        agent: agent.to_owned(),
        answer_summary: summary(text, &statements),
        assumptions: matching(&statements, &ASSUMES),
        reasoning: text.to_owned(),
        steps_or_deliverables: steps(text),
        failure_modes: matching(&statements, &FAILS),
        units: units(&statements),
        self_confidence: 0.5,
    }
}

static ASSUMES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?:assum(?:e|es|ing|ption)|presum(?:e|ably|ing)|provided that|given that|taking for granted)\b")
});

static FAILS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\bhowever\b|\b(?:if|when|unless)\b[^.]{0,80}\b(?:fails?|breaks?|wrong|error|missing|unavailable|exceeds?|not)\b|\b(?:risks?|caveat|pitfall|limitation|may fail|might fail|could fail|downside|be careful)\b",
    )
});

/// The conclusion first; the opening sentence too when it says something else.
fn summary(text: &str, statements: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = conclusive_sentence(text).into_iter().collect();
    if let Some(first) = statements.first()
        && out.first().is_some_and(|conclusion| conclusion != first)
    {
        out.push((*first).to_owned());
    }
    if out.is_empty() && !text.is_empty() {
        out.push(clip(text, 400).to_owned());
    }
    out
}

/// Numbered items, or bullets where nothing is numbered.
fn steps(text: &str) -> Vec<String> {
    static NUMBERED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?m)^\s*(?:\*\*)?(?:step\s+)?\d{1,2}(?:[.):])\s*(?:\*\*)?\s*(\S[^\n]*)"));
    static BULLET: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*[-*•]\s+(\S[^\n]*)"));
    let items = |regex: &Regex| -> Vec<String> {
        regex
            .captures_iter(text)
            .filter_map(|found| found.get(1))
            .take(MAX_ITEMS)
            .map(|item| item.as_str().trim().to_owned())
            .collect()
    };
    let numbered = items(&NUMBERED);
    let found = if numbered.len() >= 2 { numbered } else { items(&BULLET) };
    if found.len() >= 2 { found } else { vec![] }
}

fn matching(statements: &[&str], regex: &Regex) -> Vec<String> {
    statements
        .iter()
        .filter(|statement| regex.is_match(statement))
        .take(6)
        .map(|statement| (*statement).to_owned())
        .collect()
}

/// A unit per statement of three words or more; its topic is the first two telling words, sorted so that word order
/// does not matter.
fn units(statements: &[&str]) -> Vec<Unit> {
    statements
        .iter()
        .filter(|statement| !statement.ends_with('?') && words(statement).len() >= 3)
        .take(MAX_UNITS)
        .enumerate()
        .map(|(n, statement)| {
            let mut topic: Vec<String> = words(statement)
                .into_iter()
                .filter(|word| {
                    is_content(&word.lower)
                        && word.lower.len() > 2
                        && !word.lower.starts_with(|c: char| c.is_ascii_digit())
                })
                .map(|word| word.lower)
                .take(2)
                .collect();
            topic.sort();
            Unit { id: format!("u{}", n + 1), topic: topic.join(" "), text: (*statement).to_owned(), tags: vec![] }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_becomes_a_report() {
        let report = report_from_text(
            "solver",
            "Sure! Assuming you use Docker, do this:\n1. Pull the image.\n2. Start it.\nHowever, if the port is taken, the start fails.\nThe answer is 8080.",
        );
        assert_eq!(report.answer_summary, ["The answer is 8080.", "Assuming you use Docker, do this:"]);
        assert_eq!(report.assumptions, ["Assuming you use Docker, do this:"]);
        assert_eq!(report.steps_or_deliverables, ["Pull the image.", "Start it."]);
        assert_eq!(report.failure_modes, ["However, if the port is taken, the start fails."]);
        assert_eq!(report.units.last().unwrap().text, "The answer is 8080.");
        assert_eq!(report.self_confidence, 0.5);
    }

    #[test]
    fn an_empty_text_is_an_empty_report() {
        let report = report_from_text("solver", " \n ");
        assert_eq!((report.answer_summary.len(), report.units.len()), (0, 0));
    }
}
