//! The files that a step may write: before it, after it, and when it was interrupted.

use super::call::{ELSEWHERE, Run};
use super::output::ToolError;
use super::tool::Step;
use super::workspace::{changed, hash};
use crate::journal::{FileBefore, FileChange, RunContext, StepFinished, StepStarted, step};

const INTERRUPTED: &str = "The step was interrupted while it was under way";

/// Reads the files that a step may write. One that cannot be read is left out.
pub async fn before(step: &Step) -> Vec<FileBefore> {
    let own = step.clone();
    let read = step.call.blocking(move |call| {
        let files = own.written().into_iter().filter_map(|path| {
            let content = call.workspace().content_before(&path).ok()?;
            Some(FileBefore { path, content })
        });
        Ok(files.collect())
    });
    read.await.unwrap_or_default()
}

/// Puts back what a program left as something that an undo could not replace, such as a file that is
/// too long.
///
/// # Errors
/// Names the files, if there are any.
pub async fn put_back(step: &Step, before: Vec<FileBefore>) -> Result<(), ToolError> {
    if matches!(step.tool.spec().run, Run::Files(_)) {
        return Ok(());
    }
    let work = step.call.blocking(move |call| {
        let mut spoilt = vec![];
        for FileBefore { path, content } in before {
            if let (Some(old), Err(found)) = (content, call.workspace().content_before(&path)) {
                let now = match call.workspace().put_back(&path, &old) {
                    Ok(()) => "its old content was put back".to_owned(),
                    Err(error) => format!("its old content is in the journal only: {error}"),
                };
                spoilt.push(format!("{found}; {now}"));
            }
        }
        match spoilt.as_slice() {
            [] => Ok(()),
            _ => Err(spoilt.join("; ").into()),
        }
    });
    work.await
}

/// Returns the changes of files since then, and the state of each in words. A step that is `done`
/// made its change, even if another program has written to the file since.
pub async fn compared(
    step: &Step,
    before: Vec<FileBefore>,
    done: bool,
) -> (Vec<FileChange>, Vec<String>) {
    // What a step with contents writes is known. Other content was written by another program.
    let contents = step.call.arguments.get("contents");
    let written = contents.map(|it| hash(it));
    let made = contents.filter(|_| done).cloned();
    let compared = step.call.blocking(move |call| {
        let (mut changes, mut states) = (vec![], vec![]);
        for FileBefore { path, content } in before {
            let now = match &made {
                Some(made) => Ok(Some(made.clone())),
                None => call.workspace().content_before(&path),
            };
            let state = match now {
                Err(_) => "cannot be read",
                Ok(now) if now == content => "is unchanged",
                Ok(now) if written.is_some() && now.as_deref().map(hash) != written => {
                    "has other content than before and than was to be written"
                }
                Ok(now) => {
                    let change = changed(&path, content, now.as_deref());
                    // The start of the step has the old content.
                    changes.push(FileChange {
                        old: None,
                        ..change
                    });
                    "has changed"
                }
            };
            states.push(format!("'{path}' {state}"));
        }
        Ok((changes, states))
    });
    let failed = |error: ToolError| (vec![], vec![error.message]);
    compared.await.unwrap_or_else(failed)
}

/// Reports a step that began and has no recorded end, and whose files cannot be looked at.
pub fn unknown(started: &StepStarted) -> StepFinished {
    let why = format!("{INTERRUPTED}; the state of its files is not known");
    StepFinished {
        in_doubt: true,
        ..StepFinished::new(&started.step_id, &started.tool, Some(why))
    }
}

/// Reports a step of an execution that a process with another workspace took over after a crash.
pub fn elsewhere(run: &RunContext, step_id: &str, tool: &str) -> StepFinished {
    match run.recorded(&step::tool_started(step_id)) {
        Some(started) => unknown(&started),
        None => {
            let why = format!("Precondition failed: {ELSEWHERE}");
            StepFinished::new(step_id, tool, Some(why))
        }
    }
}

/// Reports a step that began and has no recorded end, with the state of its files.
pub async fn doubted(step: &Step, before: Vec<FileBefore>) -> StepFinished {
    let files = before.clone();
    // Another execution may be writing in the same folder.
    let lock = step.call.toolbox.lock_workspace().await;
    let cleaned = step.call.blocking(move |call| {
        for FileBefore { path, content } in &files {
            for text in content.iter().chain(call.arguments.get("contents")) {
                call.workspace().remove_unfinished(path, text);
            }
        }
        Ok(())
    });
    // What is left of a write is no content of the step.
    let _ = cleaned.await;
    drop(lock);
    let (changed, mut states) = compared(step, before, false).await;
    if states.is_empty() {
        states.push("it changes no file by name".to_owned());
    }
    StepFinished {
        in_doubt: true,
        changed,
        ..step.ended(Some(format!(
            "{INTERRUPTED}; it was not repeated: {}",
            states.join(", ")
        )))
    }
}
