//! Gets the question that the gate asks when confidence is too low, without a synthesis.

use crate::committee::call::prompts::unquoted;
use crate::committee::call::{buy_text, call_json};
use crate::committee::failure::{CallError, Failure};
use crate::committee::output_shapes::QuestionOut;
use crate::committee::stages::finish;
use crate::committee::stages::question_rules::{by_rule, of_text, question_of};
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::config::OutputForm;
use crate::domain::{Clarification, Earmark, Role};
use crate::journal::step::SynthesisStep;
use crate::journal::{SynthesisSource, Synthesized};

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
    input.run.release(Earmark::Synthesis);
    let mut corrections = vec![
        "no synthesis was bought: even the largest bonus could not reach the threshold".to_owned(),
    ];
    let written = match form {
        OutputForm::Json => call_json::<QuestionOut>(input.run, input.deps, ask).await,
        OutputForm::Text => buy_text(input.run, input.deps, ask)
            .await
            .map(|typed| typed.map(|text| of_text(input, &unquoted(&text)))),
    };
    let (question, obtained) = match written {
        Ok(typed) => {
            let read = || question_of(input, &typed.value);
            (
                input.run.compute("reading the question", read).await?,
                SynthesisSource::Model(typed.obtained),
            )
        }
        Err(CallError::NoOutput(failure)) if failure.is_recoverable() => {
            (None, SynthesisSource::Failed(failure.cause))
        }
        Err(error) => return Err(Failure::master("question", &error.no_output()?)),
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
