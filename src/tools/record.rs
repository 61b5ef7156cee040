//! Records the end of a step.

use super::output::CUT;
use crate::committee::Deps;
use crate::journal::{Event, RunContext, StepFinished, Stop, step};
use crate::llm::{without_cut_secrets, without_secrets};

/// Returns whether a step succeeded; `None` if it has no recorded end.
pub fn has_succeeded(run: &RunContext, step_id: &str) -> Option<bool> {
    let finished = run.recorded(&step::tool_finished(step_id))?;
    Some(finished.ok)
}

/// Records the end of a step without secrets of the service, and without NUL, which not every
/// database can store. Returns true if the step succeeded.
pub async fn record(
    run: &RunContext,
    deps: &Deps,
    mut finished: StepFinished,
) -> Result<bool, Stop> {
    for change in &mut finished.changed {
        change.old.take_if(|old| leaks(old, deps));
    }
    let clean =
        |text: &str| without_cut_secrets(text, &CUT, &deps.secrets).replace('\0', "\u{fffd}");
    finished.error = finished.error.as_deref().map(clean);
    finished.output = clean(&finished.output);
    let value = clean(&finished.value.to_string());
    finished.value = serde_json::from_str(&value).unwrap_or_default();
    let recorded = run.store(Event::StepFinished(Box::new(finished))).await?;
    Ok(matches!(recorded, Event::StepFinished(finished) if finished.ok))
}

/// True if a text contains a secret of the service.
pub fn leaks(text: &str, deps: &Deps) -> bool {
    without_secrets(text, &deps.secrets) != text
}
