//! The explanation of an execution: a model's text that passed the screen, or the raw output.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::screen;
use super::validate::{QUERIES, is_empty};
use super::view;
use crate::committee::{CallError, Consultation, Deps, Failure, consult};
use crate::domain::Role;
use crate::journal::{Event, Explained, ExplanationSource, RunContext, StepFinished};

/// The prompt of the explanation, and its first step.
const PROMPT: &str = "tool_explain";
/// The step of the second text, if the first was rejected.
const RESTATED: &str = "tool_restate";

/// The longest explanation, in output tokens.
const MAX_TOKENS: u32 = 800;

/// The most characters of one output that the model reads.
const MAX_OUTPUT_CHARS: usize = 6000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Explanation {
    /// What the steps did, in plain text.
    explanation: String,
}

/// Records the explanation of the ended steps. The model has one chance to restate a rejected text.
///
/// # Errors
/// [`Failure`] if the run must stop. A model that gives no text is no error.
pub async fn explain(run: &RunContext, deps: &Deps, deadline: Duration) -> Result<(), Failure> {
    if run.recall("explanation").is_some() {
        return Ok(());
    }
    let events = run.events();
    let steps: Vec<StepFinished> = view::finished_steps(&events).into_iter().cloned().collect();
    let until = Instant::now() + deadline;
    let evidence = view::authorized(&events)
        .map(|authorized| authorized.evidence.clone())
        .unwrap_or_default();
    let asked = input(&run.accepted().question.message, &steps);
    let mut rejected = vec![];
    let mut explained = None;
    for (step, source) in [
        (PROMPT, ExplanationSource::Model),
        (RESTATED, ExplanationSource::Restated),
    ] {
        let question = match rejected.last() {
            None => asked.clone(),
            Some(why) => format!("{asked}\n\nYour last text was rejected:\n{why}\nState it again."),
        };
        let consultation = Consultation {
            step,
            role: Role::Master,
            prompt: PROMPT,
            appendix: String::new(),
            question: &question,
            schema: schemars::schema_for!(Explanation).to_value(),
            max_tokens: MAX_TOKENS,
            until,
        };
        let text = match consult::<Explanation>(run, deps, consultation).await {
            Ok((Explanation { explanation }, _)) => explanation.trim().to_owned(),
            Err(CallError::NoOutput(failed)) => {
                rejected.push(format!("the model gave no text ({})", failed.cause));
                break;
            }
            Err(CallError::Stopped(failure)) => return Err(failure),
        };
        let found = run
            .compute("screening an explanation", || {
                objections(&text, &asked, &steps, &evidence)
            })
            .await?;
        match found {
            None => {
                explained = Some((text, source));
                break;
            }
            Some(why) => rejected.push(why),
        }
    }
    let (text, source) = explained.unwrap_or_else(|| (raw(&steps), ExplanationSource::Output));
    run.record(Event::Explained(Explained {
        text,
        source,
        rejected,
    }))
    .await?;
    Ok(())
}

/// Returns why a text is rejected; `None` if it is not.
pub(super) fn objections(
    text: &str,
    asked: &str,
    steps: &[StepFinished],
    evidence: &Value,
) -> Option<String> {
    if text.is_empty() {
        return Some("Response is empty".to_owned());
    }
    let errors: Vec<&str> = steps
        .iter()
        .filter_map(|step| step.error.as_deref())
        .collect();
    let found = screen::screen(text, &errors, &[asked]);
    if !found.is_empty() {
        return Some(screen::message(&found));
    }
    let unfounded = QUERIES
        .iter()
        .find(|(query, _)| names(text, query) && is_empty(evidence, query));
    unfounded.map(|(query, what)| {
        format!(
            "Response references '{what}' but {query} returns empty results: insufficient evidence"
        )
    })
}

/// True if a text refers to a query. The fixed sentence about an empty one does not.
fn names(text: &str, query: &str) -> bool {
    let text = text.replace(&format!("No evidence found for {query}"), "");
    text.split(|c: char| !c.is_alphanumeric())
        .any(|word| word == query)
}

/// Returns what the model reads of the steps.
fn input(request: &str, steps: &[StepFinished]) -> String {
    let mut text = format!("User request: {request}\n\nSteps, in order:\n");
    for step in steps {
        let outcome = if step.ok { "SUCCESS" } else { "FAILURE" };
        text.push_str(&format!("\n[{}] {}: {outcome}\n", step.step_id, step.tool));
        match &step.error {
            Some(error) => text.push_str(&format!("Error (repeat it word for word): {error}\n")),
            None => {
                let shown: String = step.output.chars().take(MAX_OUTPUT_CHARS).collect();
                text.push_str(&format!("Output:\n{shown}\n"));
            }
        }
    }
    text
}

/// Returns the raw output of the steps.
fn raw(steps: &[StepFinished]) -> String {
    let shown = |step: &StepFinished| {
        let body = step.error.as_deref().unwrap_or(&step.output);
        format!("[{}] {}:\n{body}", step.step_id, step.tool)
    };
    steps.iter().map(shown).collect::<Vec<_>>().join("\n\n")
}
