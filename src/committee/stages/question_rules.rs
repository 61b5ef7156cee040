//! Checks a model's question to the user, and makes a question by fixed rules if no model gave one.

use crate::committee::output_shapes::QuestionOut;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{AnswerGroup, Clarification, is_question_mark};
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
    let words = words.filter(|q| q.chars().count() <= 200 && positions(input).len() < 2);
    QuestionOut {
        question: words.unwrap_or(&ruled.question).to_owned(),
        options: ruled.options.to_vec(),
    }
}

/// Makes a question by fixed rules (SPEC 2). It asks for the choice between contested positions. If
/// there are none, it says that there is too little confidence, and asks how to continue.
pub fn by_rule(input: &SynthesisInput<'_>) -> Clarification {
    let (question, options) = match positions(input).as_slice() {
        [first, second, ..] => (
            "The committee's members came to different results: which of them fits what you know",
            [
                format!("It is \"{first}\": the reply will explain that result and check it"),
                format!("It is \"{second}\": the reply will explain that result and check it"),
                "Neither, or unknown: every agent works it out anew from the beginning".to_owned(),
            ],
        ),
        _ => (
            "The committee could not reach enough confidence in an answer: what should it do",
            [
                "Give the best answer that it has, with every doubt named",
                "Go deeper: every agent works it out anew and checks each step",
                "Stop here: the question stays unanswered",
            ]
            .map(str::to_owned),
        ),
    };
    Clarification::new(question, &options).unwrap_or_else(|| Clarification {
        question: format!("{question}?"),
        options: [
            "Go on with the first reading",
            "Go on with the second reading",
            "Start anew",
        ]
        .map(str::to_owned),
    })
}

/// Returns the contested positions of the outputs that are not discarded, one line each: their
/// different final answers, the most supported first, or else the sides of the most severe
/// disagreement. Fewer than two if nothing is contested.
fn positions(input: &SynthesisInput<'_>) -> Vec<String> {
    let usable: Vec<&str> = input
        .usable()
        .iter()
        .map(|(agent, ..)| agent.into_str())
        .collect();
    let support = |group: &AnswerGroup| {
        let agents = group.agents.iter();
        agents
            .filter(|agent| usable.contains(&agent.as_str()))
            .count()
    };
    let groups = input.deliberation.judgement.answer_groups.iter();
    let mut groups: Vec<&AnswerGroup> = groups.filter(|group| support(group) > 0).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(support(group)));
    let mut positions: Vec<String> = groups
        .iter()
        .map(|group| excerpt(&group.answer, 60))
        .collect();
    positions.retain(|answer| !answer.is_empty());
    if positions.len() < 2 {
        let mut open = input.deliberation.visible_disagreements().into_iter();
        let sides = open.find(|(disagreement, _)| !disagreement.settled);
        let sides = sides.into_iter().flat_map(|(_, sides)| sides);
        positions = sides.map(|side| excerpt(&side.text, 100)).collect();
    }
    positions
}
