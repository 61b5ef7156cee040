//! The explanation of an execution: a model's text that passed the screen, or the raw output.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::citations;
use super::planner_input::summaries;
use super::screen;
use super::view;
use crate::committee::{CallError, Deps, Failure, SingleCall, call_with_retries, schema_of};
use crate::domain::{CallStep, Role};
use crate::journal::{
    Event, Explained, ExplanationSource, RunContext, StepFinished, Transcript, step,
};
use crate::text::{each_sentence, excerpt, is_english, is_latin};

/// The longest explanation, in output tokens.
const MAX_TOKENS: u32 = 800;

/// The language of a text with fewer letters is not certain.
const MIN_LETTERS: usize = 30;

/// The most characters of all outputs that the model reads.
pub const MAX_OUTPUT_CHARS: usize = 12_000;

/// The longest error that a text of [`MAX_TOKENS`] can repeat, in characters.
const MAX_ERROR_CHARS: usize = 1200;

/// The most characters of a rejected sentence that are quoted.
const MAX_QUOTED: usize = 120;

/// The time that an explanation leaves the run to record it.
const MARGIN: Duration = Duration::from_secs(10);

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
    if run.recorded(&step::explanation()).is_some() {
        return Ok(());
    }
    let events = run.events().to_vec();
    let steps: Vec<StepFinished> = Transcript::of(&events)
        .steps_finished
        .into_iter()
        .cloned()
        .collect();
    let until = run.started() + deadline.saturating_sub(MARGIN);
    let mut rejected = vec![];
    let stated = stated(run, deps, &steps, until, &mut rejected).await?;
    let (text, source) = stated.unwrap_or_else(|| (raw(&steps), ExplanationSource::Output));
    let explained = Explained {
        text,
        source,
        rejected,
    };
    run.record(Event::Explained(explained))?;
    Ok(())
}

/// Returns a text of the model that passed the screen. Why others did not is added to `rejected`.
async fn stated(
    run: &RunContext,
    deps: &Deps,
    steps: &[StepFinished],
    until: Instant,
    rejected: &mut Vec<String>,
) -> Result<Option<(String, ExplanationSource)>, Failure> {
    let errors = steps.iter().filter_map(|step| step.error.as_deref());
    let is_long = |error: &str| error.chars().count() > MAX_ERROR_CHARS;
    if errors.clone().any(is_long) || Instant::now() >= until {
        rejected.push("the model was not asked: an error is too long to be repeated word for word, or no time was left".to_owned());
        return Ok(None);
    }
    let events = run.events().to_vec();
    let evidence = view::authorized(&events).map(|authorized| authorized.evidence.clone());
    let evidence = evidence.unwrap_or_default();
    let errors: Vec<&str> = errors.collect();
    let asked = input(&run.accepted().question.message, steps, &evidence);
    for (step, source) in [
        (CallStep::ToolExplanation, ExplanationSource::Model),
        (CallStep::ToolRestatement, ExplanationSource::Restated),
    ] {
        let mut call = SingleCall {
            step,
            ..single_call(&asked, until)
        };
        if let Some(problem) = rejected.last() {
            let values = json!({ "problem": problem });
            let again = deps.prompts.text("tool_restate.md", values)?;
            call.appendix = format!("\n{again}");
        }
        let text = match call_with_retries::<Explanation>(run, deps, call).await {
            Ok(Explanation { explanation }) => explanation.trim().to_owned(),
            Err(CallError::NoOutput(failed)) => {
                rejected.push(format!("the model gave no text ({})", failed.cause));
                return Ok(None);
            }
            Err(CallError::Stopped(failure)) => return Err(failure),
        };
        let screened = || objections(&text, &asked, &errors, &evidence);
        match run.compute(screened).await? {
            None => return Ok(Some((text, source))),
            Some(why) => rejected.push(why),
        }
    }
    Ok(None)
}

/// Returns the call that writes the explanation.
pub fn single_call(asked: &str, until: Instant) -> SingleCall<'_> {
    SingleCall {
        step: CallStep::ToolExplanation,
        role: Role::Master,
        prompt: "tool_explain",
        appendix: String::new(),
        question: asked,
        schema: schema_of::<Explanation>(),
        max_tokens: MAX_TOKENS,
        until,
    }
}

/// Returns why a text is rejected; `None` if it is not.
pub fn objections(text: &str, asked: &str, errors: &[&str], evidence: &Value) -> Option<String> {
    if text.is_empty() {
        return Some("Response is empty".to_owned());
    }
    // An error is quoted as a whole, also with words that its arguments brought.
    let verbatim = [&[asked], errors].concat();
    if let Some(finding) = screen::screen(text, errors, &verbatim) {
        return Some(finding.message());
    }
    let own = screen::own_text(&screen::without(text, errors), &verbatim);
    let is_foreign = |text: &&str| {
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        !is_latin(text) || letters >= MIN_LETTERS && !is_english(text)
    };
    let mut texts = each_sentence(&own).chain([own.as_str()]);
    if let Some(text) = texts.find(is_foreign) {
        let why = "Response is not in English, the only language that can be screened";
        return Some(format!("{why}: '{}'", excerpt(text, MAX_QUOTED)));
    }
    citations::objection(text, evidence)
}

/// Returns what the model reads of the steps.
pub fn input(request: &str, steps: &[StepFinished], evidence: &Value) -> String {
    let most = MAX_OUTPUT_CHARS / steps.len().max(1);
    let summaries = summaries(evidence);
    // The lines of the outputs may be repeated without quotation marks, those of the request not.
    let request = request.replace('\n', "\n> ");
    let mut text = format!(
        "User request: {request}\n\nEvidence from before these steps:\n{summaries}\nSteps, in order:\n"
    );
    for step in steps {
        let outcome = if step.ok { "SUCCESS" } else { "FAILURE" };
        text.push_str(&format!("\n[{}] {}: {outcome}\n", step.step_id, step.tool));
        match &step.error {
            Some(error) => text.push_str(&format!("Error (repeat it word for word): {error}\n")),
            None => {
                let shown: String = step.output.chars().take(most).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_outputs_are_no_claims_of_the_model_and_those_of_the_request_are() {
        let printed = StepFinished {
            ok: true,
            output: "note: it might be caused by a stale index\n".into(),
            ..StepFinished::new("s", "lsp_check", None)
        };
        let asked = input(
            "Check it\nThe rename caused the error.",
            &[printed],
            &Value::Null,
        );
        let is_accepted = |text: &str| objections(text, &asked, &[], &Value::Null).is_none();
        assert!(is_accepted(
            "It printed note: it might be caused by a stale index."
        ));
        assert!(is_accepted(
            "The request says \"The rename caused the error.\""
        ));
        assert!(!is_accepted("The rename caused the error."));
        let error = "error: failed to parse manifest\n\nCaused by:\n  unknown edition";
        let repeats = |text: &str| objections(text, "", &[error], &Value::Null).is_none();
        assert!(repeats(&format!("Step 1 failed:\n{error}")));
        assert!(!repeats(&format!("{error}\nThe edition caused it.")));
    }

    #[test]
    fn a_text_in_a_language_that_no_detector_knows_is_not_english() {
        for text in [
            "Fitxategia aldatu zen eta horregatik akatsa desagertu zen.",
            "Skránni var breytt og þess vegna hvarf villan. Þetta er hættulegt.",
            "Athraíodh an comhad agus mar sin d'imigh an earráid, agus tá sé contúirteach é.",
        ] {
            let why = objections(text, "", &[], &Value::Null).unwrap_or_default();
            assert!(why.starts_with("Response is not in English"), "{why}");
        }
    }
}
