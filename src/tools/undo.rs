//! Puts the files of an execution back.

use std::collections::{BTreeMap, BTreeSet};

use super::call::Toolbox;
use super::in_doubt::elsewhere;
use super::output::ToolError;
use super::record::{has_succeeded, record};
use super::view::UNDO;
use super::workspace::{Before, Workspace, changed, hash};
use crate::committee::{Deps, Failure};
use crate::journal::{
    Authorized, Event, FileChange, Restore, RunContext, StepFinished, StepStarted, Transcript,
};

/// Returns what puts the files of an execution back, the last change first.
pub fn restores(events: &[Event]) -> Vec<Restore> {
    let run = Transcript::of(events);
    let kept = |step: &str, path: &str| {
        let started = run.steps_started.iter().filter(|it| it.step_id == step);
        let mut files = started.flat_map(|it| &it.before);
        files.find(|file| file.path == path)?.content.clone()
    };
    let mut restores = vec![];
    for finished in run.steps_finished.iter().rev() {
        for change in finished.changed.iter().rev() {
            let old = change.old.clone();
            let old = old.or_else(|| kept(&finished.step_id, &change.path));
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

/// True if every file is as an undo left it.
pub async fn is_put_back(toolbox: &Toolbox, restores: Vec<Restore>) -> bool {
    let call = toolbox.without_arguments();
    let is_back = call.blocking(move |call| {
        let first = first_changes(&restores);
        let is_old = |it: &&Restore| {
            let now = call.workspace().content_before(&it.path);
            now.is_ok_and(|now| now == it.old)
        };
        Ok(first.values().all(is_old))
    });
    is_back.await.unwrap_or(false)
}

/// Returns the restore of each file's first change, which comes last.
fn first_changes(restores: &[Restore]) -> BTreeMap<&String, &Restore> {
    restores.iter().map(|it| (&it.path, it)).collect()
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
        match has_succeeded(run, &step_id) {
            Some(true) => continue,
            Some(false) => return Ok(false),
            None => {}
        }
        if !toolbox.is_of(&authorized.workspace) {
            return Ok(record(run, deps, elsewhere(run, &step_id, UNDO)).await?);
        }
        let started = StepStarted {
            step_id: step_id.clone(),
            tool: UNDO.to_owned(),
            before: vec![],
        };
        run.store(Event::StepStarted(started)).await?;
        let left: Vec<Restore> = authorized.restores.iter().skip(number).cloned().collect();
        let _lock = toolbox.lock_workspace().await;
        let call = toolbox.without_arguments();
        let restored = call.blocking(move |call| put_back(call.workspace(), &left));
        let (changed, error) = match restored.await {
            Ok(change) if change.before == change.after => (vec![], None),
            Ok(change) => (vec![change], None),
            Err(error) => (vec![], Some(error.of("undo failed"))),
        };
        let finished = StepFinished {
            output: match error {
                None if changed.is_empty() => format!("'{}' was put back before", restore.path),
                None if restore.old.is_none() => format!("removed '{}'", restore.path),
                None => format!("restored '{}'", restore.path),
                Some(_) => String::new(),
            },
            changed,
            files: vec![restore.path.clone()],
            ..StepFinished::new(&step_id, UNDO, error)
        };
        if !record(run, deps, finished).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts the first file back, if all of them are as the execution left them, or back already.
pub fn put_back(workspace: &Workspace, left: &[Restore]) -> Result<FileChange, ToolError> {
    let Some(first) = left.first() else {
        return Err("nothing is left to put back".to_owned().into());
    };
    let old = first.old.as_deref();
    old.inspect(|old| workspace.remove_unfinished(&first.path, old));
    let originals = first_changes(left);
    let is_back = |restore: &Restore, now: &Option<String>| {
        let original = originals.get(&restore.path).map(|it| &it.old);
        *now == restore.old || Some(now) == original
    };
    // A file that several steps changed is compared with its last change, which comes first.
    let mut seen = BTreeSet::new();
    for restore in left {
        if !seen.insert(&restore.path) {
            continue;
        }
        let now = workspace.content_before(&restore.path)?;
        if !is_back(restore, &now) && now.as_deref().map(hash) != restore.expected {
            return Err(format!("'{}' was changed since", restore.path).into());
        }
    }
    // An undo that was interrupted is begun again.
    let now = workspace.content_before(&first.path)?;
    if is_back(first, &now) {
        return Ok(changed(&first.path, now.clone(), now.as_deref()));
    }
    let expected = first.expected.as_deref();
    let before = expected.map_or(Before::Nothing, Before::Hash);
    workspace.change(&first.path, before, old)
}
