//! Checks a model's question to the user, and makes a question by fixed rules if no model gave one.

use crate::committee::output_shapes::QuestionOut;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{Clarification, is_question_mark};
use crate::text::excerpt;

/// Returns the model's question without references to discarded outputs. Returns `None` if it is
/// malformed or equals the question that the user has just answered.
pub(super) fn question_of(input: &SynthesisInput<'_>, out: &QuestionOut) -> Option<Clarification> {
    let discarded = input.discarded();
    let options: Vec<String> = out
        .options
        .iter()
        .map(|option| discarded.redact(option).into_owned())
        .collect();
    let question = Clarification::new(&discarded.redact(&out.question), &options)?;
    let asked = input
        .request
        .parent
        .as_ref()
        .and_then(|parent| parent.question.as_ref());
    (asked != Some(&question)).then_some(question)
}

/// Builds a question from the master's plain text. The question is the text up to the first
/// question mark, and fixed rules make the options. The rules also make the question if the agents'
/// answers differ, or if that text is missing or longer than 200 characters.
pub fn of_text(input: &SynthesisInput<'_>, text: &str) -> QuestionOut {
    let ruled = by_rule(input);
    let words = text
        .split_inclusive(is_question_mark)
        .next()
        .map(str::trim)
        .filter(|q| q.ends_with(is_question_mark));
    let words = words.filter(|q| q.chars().count() <= 200 && groups(input).len() < 2);
    QuestionOut {
        question: words.unwrap_or(&ruled.question).to_owned(),
        options: ruled.options.to_vec(),
    }
}

/// Makes a question by fixed rules. It asks for the choice between the agents' answers if these
/// differ, otherwise for how to continue.
pub fn by_rule(input: &SynthesisInput<'_>) -> Clarification {
    let groups = groups(input);
    let options = match groups.as_slice() {
        [first, second, ..] => [
            format!("It is \"{first}\": the reply will explain that result and check it"),
            format!("It is \"{second}\": the reply will explain that result and check it"),
            "Neither, or unknown: every agent works it out anew from the beginning".to_owned(),
        ],
        _ => [
            "The short version: only what the agents agree on, everything doubtful left out".to_owned(),
            "The long version: each doubtful point worked out step by step and checked".to_owned(),
            "Another angle: say in your own words what matters most, and the committee starts from that".to_owned(),
        ],
    };
    let question = match groups.len() {
        0 | 1 => "The committee is not sure enough of its answer: how should it go on".to_owned(),
        _ => "The committee's members came to different results: which of them fits what you know"
            .to_owned(),
    };
    Clarification::new(&question, &options).unwrap_or_else(|| Clarification {
        question: format!("{question}?"),
        options: [
            "Go on with the first reading",
            "Go on with the second reading",
            "Start anew",
        ]
        .map(str::to_owned),
    })
}

/// Returns the different final answers of the outputs that are not discarded, one line each, the
/// most supported first.
fn groups(input: &SynthesisInput<'_>) -> Vec<String> {
    let usable: Vec<&str> = input
        .usable()
        .iter()
        .map(|(agent, ..)| agent.as_str())
        .collect();
    let mut groups: Vec<(usize, String)> = input
        .deliberation
        .judgement
        .answer_groups
        .iter()
        .map(|g| {
            (
                g.agents
                    .iter()
                    .filter(|a| usable.contains(&a.as_str()))
                    .count(),
                excerpt(&g.answer, 60),
            )
        })
        .filter(|(support, answer)| *support > 0 && !answer.is_empty())
        .collect();
    groups.sort_by_key(|(support, _)| std::cmp::Reverse(*support));
    groups.into_iter().map(|(_, answer)| answer).collect()
}
