//! Turns prose into a report by fixed rules, for models that cannot follow a schema and for
//! recorded raw texts.

use super::answer::{Options, final_answer};
use crate::domain::{AgentReport, Tag, Unit};
use crate::text::{self, clip, collapse_whitespace, count_words, read_markdown, sentences, words};

const MAX_UNITS: usize = 24;
const MAX_STEPS: usize = 24;
/// The most words of a unit's topic.
const TOPIC_WORDS: usize = 4;

/// Turns raw text into a report:
///
/// - A marked final answer becomes the unit tagged `answer`.
/// - The first statement is the key claim and, after the answer, the summary.
/// - List items are the steps.
/// - Further statements are units without a tag.
/// - The text itself is kept as the reasoning.
/// - `self_confidence` is 0.5, because prose does not state it.
pub fn report_from_text(agent: &str, message: &str, text: &str) -> AgentReport {
    let tidied = collapse_whitespace(clip(text, text::MAX_BYTES));
    let text = tidied.trim();
    let answer = final_answer(text, &Options::read(clip(message, text::MAX_BYTES)));
    let markdown = read_markdown(text);
    let statements: Vec<&str> = sentences(&markdown.prose)
        .into_iter()
        .filter(|s| !s.ends_with(['?', '？']) && count_words(s) >= 3)
        .collect();
    let unit = |(n, (text, tags)): (usize, (String, Vec<Tag>))| Unit {
        id: format!("u{}", n + 1),
        topic: topic(&text),
        text,
        tags,
    };
    let answered = answer
        .iter()
        .map(|answer| (answer.clone(), vec![Tag::Answer, Tag::Key]));
    let stated = statements.iter().enumerate().map(|(n, statement)| {
        let is_key = answer.is_none() && n == 0;
        (
            (*statement).to_owned(),
            if is_key { vec![Tag::Key] } else { vec![] },
        )
    });
    let first = statements.first().map(|first| (*first).to_owned());
    let summary = answer
        .clone()
        .into_iter()
        .chain(first.filter(|first| Some(first) != answer.as_ref()));
    let mut summary: Vec<String> = summary.collect();
    if summary.is_empty() && !text.is_empty() {
        summary.push(clip(text, 400).to_owned());
    }
    AgentReport {
        agent: agent.to_owned(),
        answer_summary: summary,
        assumptions: vec![],
        reasoning: text.to_owned(),
        steps_or_deliverables: if markdown.items.len() >= 2 {
            markdown.items.into_iter().take(MAX_STEPS).collect()
        } else {
            vec![]
        },
        failure_modes: vec![],
        units: answered
            .chain(stated)
            .take(MAX_UNITS)
            .enumerate()
            .map(unit)
            .collect(),
        self_confidence: 0.5,
    }
}

fn topic(text: &str) -> String {
    words(text)
        .into_iter()
        .take(TOPIC_WORDS)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Obtained;

    #[test]
    fn prose_becomes_a_report() {
        let report = report_from_text(
            "solver",
            "Which port?",
            "Do this:\n1. Pull the image now.\n2. Start it with compose.\n\nThe answer is 8080. It can be changed.",
        );
        assert_eq!(report.answer_summary, ["8080", "Pull the image now."]);
        assert_eq!(
            report.steps_or_deliverables,
            ["Pull the image now.", "Start it with compose."]
        );
        assert_eq!(
            (
                report.units[0].text.as_str(),
                report.units[0].tags.as_slice()
            ),
            ("8080", [Tag::Answer, Tag::Key].as_slice())
        );
        assert_eq!(report.self_confidence, 0.5);
    }

    #[test]
    fn models_are_shown_little_more_than_the_text_itself() {
        for text in [
            "1. Stop the pump now.\n2. Swap the seal.\n3. Start the pump again.\n".repeat(90),
            "Water boils at a lower temperature on a mountain. ".repeat(60),
            format!("The answer is {}.", "very ".repeat(400)),
            "水は山の上では低い温度で沸騰します".repeat(80),
            "x".repeat(5000),
        ] {
            let report = report_from_text("solver", "Why?", &text);
            let shown = report.text_for_models(|id| format!("implementer:{id}"));
            let most = Obtained::Text.shown_tokens(text.len() as u64);
            assert!(shown.len() as u64 <= most, "{} of {most}", shown.len());
        }
    }

    #[test]
    fn an_empty_text_is_an_empty_report() {
        let report = report_from_text("solver", "?", " \n ");
        assert_eq!((report.answer_summary.len(), report.units.len()), (0, 0));
    }
}
