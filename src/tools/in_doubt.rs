//! The state of the files of a step before it, and when it was interrupted.

use super::tool::Step;
use super::workspace::{changed, hash};
use crate::journal::{FileBefore, StepFinished};

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

/// Reports a step that began and has no recorded end, with the state of its files.
pub async fn doubted(step: &Step, before: Vec<FileBefore>) -> (Vec<FileBefore>, StepFinished) {
    // What a step with contents writes is known. Other content was written by another program.
    let contents = step.call.arguments.get("contents").cloned();
    let files = before.clone();
    let compared = step.call.blocking(move |call| {
        let (mut states, mut changes) = (vec![], vec![]);
        let written = contents.as_deref().map(hash);
        for FileBefore { path, content } in files {
            let state = match call.workspace().content_before(&path) {
                Err(_) => "cannot be read",
                Ok(now) if now == content => "is unchanged",
                Ok(now) if written.is_some() && now.as_deref().map(hash) != written => {
                    "has other content than before and than was to be written"
                }
                Ok(now) => {
                    changes.push(changed(&path, content, now.as_deref()));
                    "has changed"
                }
            };
            states.push(format!("'{path}' {state}"));
        }
        Ok((states, changes))
    });
    let (mut states, changed) = compared
        .await
        .unwrap_or_else(|error| (vec![error.message], vec![]));
    if states.is_empty() {
        states.push("it changes no file by name".to_owned());
    }
    let what = "The step was interrupted while it was under way; it was not repeated";
    let finished = StepFinished {
        in_doubt: true,
        changed,
        ..step.ended(Some(format!("{what}: {}", states.join(", "))))
    };
    (before, finished)
}
