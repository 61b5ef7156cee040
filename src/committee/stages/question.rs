//! Gets the question that the gate asks when confidence is too low.

use conclave_lenient_json::Problem;

use crate::committee::call::prompts::unquoted;
use crate::committee::call::{buy_checked, buy_text};
use crate::committee::failure::{CallError, Failure};
use crate::committee::output_shapes::QuestionOut;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::finish;
use crate::committee::stages::question_rules::{by_rule, of_text, question_of, unsure};
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::config::OutputForm;
use crate::domain::{Clarification, Earmark, Obtained, Plan, Role};
use crate::journal::step::SynthesisStep;
use crate::journal::{Draft, SynthesisSource, Synthesized};

/// The longest question, in tokens.
const QUESTION_TOKENS: u32 = 500;

/// What is wrong with a question that cannot be asked.
pub(super) const UNUSABLE: &str =
    "it is asked, because the confidence is too low: give one question and three different options";

/// Gets the question alone, without a synthesis.
///
/// # Errors
/// If the master's provider fails.
pub async fn ask_only(input: &SynthesisInput<'_>) -> Result<Synthesized, Failure> {
    if let Some(synthesized) = input.run.recorded(&SynthesisStep) {
        return Ok(*synthesized);
    }
    input.run.release(Earmark::Synthesis);
    let mut corrections = vec![
        "no synthesis was bought: even the largest bonus could not reach the threshold".to_owned(),
    ];
    let (question, obtained) = match buy(input).await {
        Ok((question, obtained)) => (question, SynthesisSource::Model(obtained)),
        Err(error) => match error.no_output()? {
            failure if failure.is_recoverable() => (None, SynthesisSource::Failed(failure.cause)),
            failure => return Err(Failure::master("question", &failure)),
        },
    };
    let question = question.unwrap_or_else(|| ruled(input, &mut corrections));
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

/// Gets the question for a synthesis that has none that can be asked.
///
/// # Errors
/// If the run must stop, for example because the database fails.
pub(super) async fn instead(
    input: &SynthesisInput<'_>,
    corrections: &mut Vec<String>,
) -> Result<Clarification, Failure> {
    let question = match buy(input).await {
        Ok((question, _)) => question,
        Err(error) => {
            error.no_output()?;
            None
        }
    };
    Ok(question.unwrap_or_else(|| ruled(input, corrections)))
}

fn ruled(input: &SynthesisInput<'_>, corrections: &mut Vec<String>) -> Clarification {
    let why = "the master gave no question with three different options: rules made it";
    corrections.push(why.to_owned());
    by_rule(input)
}

/// Calls the master for the question alone. A question that cannot be asked is repaired once.
async fn buy(input: &SynthesisInput<'_>) -> Result<(Option<Clarification>, Obtained), CallError> {
    let master = input.deps.role(Role::Master);
    let (values, texts) = input
        .run
        .compute("asking for the question", || input.values())
        .await?;
    let mut ask = input.ask("question", values, texts)?;
    ask.answer_tokens = Some(QUESTION_TOKENS);
    let check = |out: &QuestionOut| match question_of(input, out) {
        Some(_) => vec![],
        None => vec![Problem {
            pointer: "/question".into(),
            detail: UNUSABLE.into(),
        }],
    };
    let reading = "reading the question";
    match master.map_or(OutputForm::Json, |master| master.output) {
        OutputForm::Json => {
            let typed = buy_checked(input.run, input.deps, ask, check, |_| None).await?;
            let read = || question_of(input, &typed.value);
            Ok((input.run.compute(reading, read).await?, typed.obtained))
        }
        OutputForm::Text => {
            let typed = buy_text(input.run, input.deps, ask).await?;
            let read = || of_text(input, &unquoted(&typed.value));
            let question = input.run.compute(reading, read).await?;
            Ok((Some(question), typed.obtained))
        }
    }
}

/// Returns the plan's own question, for a run in which no agent was called.
pub fn of_plan(question: &Clarification) -> Synthesized {
    let corrections = vec!["the master asked before waking any agent".to_owned()];
    Synthesized {
        draft: None,
        question: question.clone(),
        obtained: SynthesisSource::Plan,
        corrections,
        broken_rules: vec![],
    }
}

/// Returns the draft of a run that the user's answer stops. The question is not asked.
pub fn stopped(request: &RequestContext, plan: &Plan) -> Synthesized {
    let text = request.rule_texts().stopped.clone();
    let asked = request
        .parent
        .as_ref()
        .and_then(|parent| parent.question.clone());
    Synthesized {
        draft: Some(Draft {
            tldr: vec![text.clone()],
            ..Draft::new(plan.task_type, text)
        }),
        question: asked.unwrap_or_else(|| unsure(request)),
        obtained: SynthesisSource::Plan,
        corrections: vec!["the user chose to stop: nothing was bought".to_owned()],
        broken_rules: vec![],
    }
}
