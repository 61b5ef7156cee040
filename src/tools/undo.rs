//! Puts the files of an execution back.

use serde_json::Value;

use super::file_error::FileError;
use super::output::Change;
use super::run::blocking;
use super::step_end::{changes, cleaned, unfinished};
use super::tool::Tool;
use super::toolbox::Toolbox;
use super::view;
use super::workspace::{Workspace, hash};
use crate::committee::{Deps, Failure};
use crate::journal::{
    Authorized, Event, Restore, RunContext, StepFinished, StepStarted, step_finished_key,
};

/// The name of a step that puts a file back.
pub const UNDO: &str = "undo";

/// Returns what puts the files of an execution back, the last change first.
pub fn restores(events: &[Event]) -> Vec<Restore> {
    let kept = |step: &str, path: &str| {
        events.iter().find_map(|event| match event {
            Event::StepStarted(started) if started.step_id == step => {
                let file = started.before.iter().find(|file| file.path == path);
                file.map(|file| file.content.clone())
            }
            _ => None,
        })
    };
    let mut restores = vec![];
    for finished in view::finished_steps(events).into_iter().rev() {
        for change in finished.changed.iter().rev() {
            let old = match &change.old {
                Some(old) => Some(old.clone()),
                None => kept(&finished.step_id, &change.path).flatten(),
            };
            // Without the old content nothing can be put back.
            if old.is_some() == change.before.is_some() {
                restores.push(Restore {
                    path: change.path.clone(),
                    expected: change.after.clone(),
                    old,
                });
            }
        }
    }
    restores
}

/// Puts files back, the last change first. Nothing is put back if a file was changed since. Returns
/// false if a step failed.
///
/// # Errors
/// [`Failure`] if the run must stop.
pub async fn undo(
    run: &RunContext,
    deps: &Deps,
    toolbox: &Toolbox,
    authorized: &Authorized,
) -> Result<bool, Failure> {
    for (number, restore) in authorized.restores.iter().enumerate() {
        let step_id = format!("undo_{}", number + 1);
        if let Some(Event::StepFinished(finished)) = run.recall(&step_finished_key(&step_id)) {
            if finished.ok {
                continue;
            }
            return Ok(false);
        }
        let started = StepStarted {
            step_id: step_id.clone(),
            tool: UNDO.to_owned(),
            before: vec![],
        };
        run.store(Event::StepStarted(started.clone())).await?;
        let left = authorized
            .restores
            .get(number..)
            .unwrap_or_default()
            .to_vec();
        let restored = blocking(Tool::FileWrite, &toolbox.workspace, move |workspace| {
            Ok(put_back(workspace, &left))
        })
        .await;
        let result = restored.map_err(|error| error.to_string()).flatten();
        let finished = match result {
            Ok(change) => StepFinished {
                ok: true,
                output: format!("restored '{}'", restore.path),
                error: None,
                changed: changes(&started, &[change]),
                ..unfinished(&step_id, UNDO, "")
            },
            Err(why) => unfinished(&step_id, UNDO, &format!("{UNDO} failed: {why}")),
        };
        let finished = StepFinished {
            files: vec![restore.path.clone()],
            value: Value::Null,
            ..finished
        };
        let ok = finished.ok;
        let finished = cleaned(finished, deps);
        run.store(Event::StepFinished(Box::new(finished))).await?;
        if !ok {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts the first file back, if all of them are as the execution left them, or back already.
fn put_back(workspace: &Workspace, left: &[Restore]) -> Result<Change, String> {
    let words = |error: FileError| error.to_string();
    let Some(first) = left.first() else {
        return Err("nothing is left to put back".to_owned());
    };
    // A file that several steps changed is compared with its last change, which comes first.
    for (number, restore) in left.iter().enumerate() {
        let earlier = left.iter().take(number);
        if earlier.clone().any(|earlier| earlier.path == restore.path) {
            continue;
        }
        let now = workspace.content_before(&restore.path).map_err(words)?;
        let found = now.as_deref().map(hash);
        if now != restore.old && found != restore.expected {
            return Err(format!("'{}' was changed since", restore.path));
        }
    }
    let now = workspace.content_before(&first.path).map_err(words)?;
    let old = first.old.as_deref();
    if now.as_deref() == old {
        return Ok(Change::new(&first.path, first.old.clone(), old));
    }
    let restored = workspace.restore(&first.path, first.expected.as_deref(), old);
    restored.map_err(words)
}
