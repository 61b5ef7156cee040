//! The question that the gate asks when confidence is too low. It is used when no synthesis was
//! written, or when the synthesis gave no usable question.

use crate::committee::Failure;
use crate::committee::call::prompts::unquoted;
use crate::committee::call::{buy_text, call_json};
use crate::committee::reply::sections;
use crate::committee::stages::finish;
use crate::committee::stages::plan::QuestionOut;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::config::OutputForm;
use crate::domain::{Clarification, Role, is_question_mark};
use crate::journal::Synthesized;
use crate::journal::step::SynthesisStep;

/// Gets the question alone, without a synthesis.
///
/// # Errors
/// If the master's provider fails.
pub async fn ask_only(input: &SynthesisInput<'_>) -> Result<Synthesized, Failure> {
    if let Some(synthesized) = input.run.recorded(&SynthesisStep) {
        return Ok(*synthesized);
    }
    let form = input
        .deps
        .role(Role::Master)
        .map_or(OutputForm::Json, |master| master.output);
    let (values, texts) = input
        .run
        .compute("asking for the question", || input.values())
        .await?;
    let mut ask = input.ask("question", values, texts)?;
    ask.answer_tokens = Some(500);
    input.run.hold(crate::domain::Usd::ZERO);
    let mut corrections = vec![
        "no synthesis was bought: even the largest bonus could not reach the threshold".to_owned(),
    ];
    let bought =
        match form {
            OutputForm::Json => call_json::<QuestionOut>(input.run, input.deps, ask).await?,
            OutputForm::Text => buy_text(input.run, input.deps, ask).await?.map(|typed| {
                crate::committee::call::Typed {
                    value: of_text(input, &unquoted(&typed.value)),
                    obtained: typed.obtained,
                    truncated: typed.truncated,
                    notes: typed.notes,
                    tokens: typed.tokens,
                }
            }),
        };
    let (question, obtained) = match bought {
        Ok(typed) => {
            let read = || question_of(input, &typed.value);
            (
                input.run.compute("reading the question", read).await?,
                typed.obtained.as_str().to_owned(),
            )
        }
        Err(unbought) if unbought.is_recoverable() => (None, unbought.cause),
        Err(unbought) => return Err(Failure::master("question", &unbought)),
    };
    let question = question.unwrap_or_else(|| {
        corrections.push(
            "the master's question is not a new one with three different options: rules made it"
                .into(),
        );
        by_rule(input)
    });
    let synthesized = Synthesized {
        draft: None,
        question,
        obtained,
        corrections,
        broken_rules: vec![],
    };
    let synthesized = finish::enforce_invariants(input, synthesized).await?;
    let done = Box::new(synthesized);
    Ok(*input.run.record_output(SynthesisStep, done).await?)
}

pub(super) fn question_of(input: &SynthesisInput<'_>, out: &QuestionOut) -> Option<Clarification> {
    let discarded = input.discarded();
    let options: Vec<String> = out
        .options
        .iter()
        .map(|option| discarded.redact(option).into_owned())
        .collect();
    let question = Clarification::new(&discarded.redact(&out.question), &options)?;
    // A question that the user has just answered is not asked again.
    let asked = input
        .request
        .parent
        .as_ref()
        .and_then(|parent| parent.question.as_ref());
    (asked != Some(&question)).then_some(question)
}

/// Takes the question's words from a plain-text master, and the options from rules.
fn of_text(input: &SynthesisInput<'_>, text: &str) -> QuestionOut {
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

/// Makes a question by fixed rules: about the choice between the agents' answers, or else about how
/// to continue.
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
                sections::excerpt(&g.answer, 60),
            )
        })
        .filter(|(support, answer)| *support > 0 && !answer.is_empty())
        .collect();
    groups.sort_by_key(|(support, _)| std::cmp::Reverse(*support));
    groups.into_iter().map(|(_, answer)| answer).collect()
}

/// Returns the plan's own question, for a run in which no agent was called.
pub fn of_plan(question: &Clarification) -> Synthesized {
    let corrections = vec!["the master asked before waking any agent".to_owned()];
    Synthesized {
        draft: None,
        question: question.clone(),
        obtained: "plan".into(),
        corrections,
        broken_rules: vec![],
    }
}
