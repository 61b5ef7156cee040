//! Records the end of a step.

use serde_json::Value;

use super::output::{MAX_TEXT_BYTES, bounded};
use super::view::UNDO;
use crate::committee::Deps;
use crate::journal::{
    Event, FileBefore, FileChange, RunContext, StepFinished, Stop, step_finished_key,
};
use crate::llm::without_secrets;

/// Returns whether a step succeeded; `None` if it has no recorded end.
pub fn has_succeeded(run: &RunContext, step_id: &str) -> Option<bool> {
    match run.recall(&step_finished_key(step_id))? {
        Event::StepFinished(finished) => Some(finished.ok),
        _ => None,
    }
}

/// Records the end of a step without secrets of the service, and without NUL, which not every
/// database can store. A file that a tool wrote as it was is no change. Old contents are left out if
/// the start of the step has them. Returns true if the step succeeded.
pub async fn record(
    run: &RunContext,
    deps: &Deps,
    before: &[FileBefore],
    mut finished: StepFinished,
) -> Result<bool, Stop> {
    let is_undo = finished.tool == UNDO;
    finished
        .changed
        .retain(|it| is_undo || it.before != it.after);
    for FileChange { path, old, .. } in &mut finished.changed {
        let is_kept =
            |it: &FileBefore, old: &str| it.path == *path && it.content.as_deref() == Some(old);
        old.take_if(|old| leaks(old, deps) || before.iter().any(|it| is_kept(it, old)));
    }
    let clean = |text: &str| {
        let text = bounded(text.to_owned(), MAX_TEXT_BYTES);
        without_secrets(&text, &deps.secrets).replace('\0', "\u{fffd}")
    };
    finished.error = finished.error.as_deref().map(clean);
    finished.output = without_secrets(&finished.output, &deps.secrets).replace('\0', "\u{fffd}");
    // Data that cannot be stored so is left out; its text remains.
    let data = finished.value.to_string();
    finished.value = if data.contains("\\u0000") {
        Value::Null
    } else {
        serde_json::from_str(&without_secrets(&data, &deps.secrets)).unwrap_or_default()
    };
    let recorded = run.store(Event::StepFinished(Box::new(finished))).await?;
    Ok(matches!(recorded, Event::StepFinished(finished) if finished.ok))
}

/// True if a text contains a secret of the service.
pub fn leaks(text: &str, deps: &Deps) -> bool {
    without_secrets(text, &deps.secrets) != text
}
