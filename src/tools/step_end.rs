//! The recorded end of a step: what it returned, what it changed, and what is not known of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::output::{Change, MAX_TEXT_BYTES, ToolError, ToolOutput, bounded};
use super::tool::Tool;
use super::validate::CheckedStep;
use super::workspace::{Workspace, hash};
use crate::committee::Deps;
use crate::journal::{FileChange, StepFinished, StepStarted};
use crate::llm::without_secrets;

/// Returns the end of a step that ran.
pub fn ended(
    step: &CheckedStep,
    started: &StepStarted,
    result: Result<ToolOutput, ToolError>,
) -> StepFinished {
    let (changed, finished) = match result {
        Ok(output) => {
            let changed = changes(started, &output.changed);
            let finished = StepFinished {
                ok: true,
                output: output.text,
                error: None,
                codes: codes(&output.value),
                value: output.value,
                ..failed(step, "")
            };
            (changed, finished)
        }
        Err(error) => {
            let changed = changes(started, error.changed());
            (changed, failed(step, &error.to_string()))
        }
    };
    StepFinished {
        files: files(step, &changed),
        changed,
        ..finished
    }
}

/// Returns changes as the journal has them. The old content stands in the start of the step; it is
/// repeated if another one was replaced.
pub fn changes(started: &StepStarted, changed: &[Change]) -> Vec<FileChange> {
    let kept = |change: &Change| {
        let file = started.before.iter().find(|file| file.path == change.path);
        file.is_some_and(|file| file.content.as_deref().map(hash) == change.before_hash)
    };
    let of = |change: &Change| FileChange {
        path: change.path.clone(),
        before: change.before_hash.clone(),
        after: change.after_hash.clone(),
        old: change.before.clone().filter(|_| !kept(change)),
    };
    changed.iter().map(of).collect()
}

/// Returns the end of a step that failed, with its error word for word.
pub fn failed(step: &CheckedStep, error: &str) -> StepFinished {
    StepFinished {
        files: files(step, &[]),
        ..unfinished(&step.step_id, step.tool.name(), error)
    }
}

/// Returns the end of a step without output.
pub fn unfinished(step_id: &str, tool: &str, error: &str) -> StepFinished {
    StepFinished {
        step_id: step_id.to_owned(),
        tool: tool.to_owned(),
        ok: false,
        output: String::new(),
        value: Value::Null,
        error: Some(bounded(error.to_owned(), MAX_TEXT_BYTES)),
        in_doubt: false,
        files: vec![],
        changed: vec![],
        codes: vec![],
    }
}

/// Returns the codes of the diagnostics in an output, once for each.
fn codes(value: &Value) -> Vec<String> {
    let listed = value.get("diagnostics").and_then(Value::as_array);
    let codes = listed.into_iter().flatten().filter_map(|diagnostic| {
        let code = diagnostic.get("code")?.as_str()?;
        Some(code.to_owned())
    });
    let codes: BTreeSet<String> = codes.collect();
    codes.into_iter().collect()
}

/// Reports a step that began and has no recorded end, with the state of its files. Reads files, so
/// call it where blocking is allowed.
pub fn in_doubt(workspace: &Workspace, step: &CheckedStep, started: &StepStarted) -> StepFinished {
    // What the step would write is known for these two. Other content was written by another program.
    let written = match step.tool {
        Tool::FileWrite | Tool::FileCreate => step.arguments.get("contents").map(hash),
        _ => None,
    };
    let mut changed = vec![];
    let mut states = vec![];
    for file in &started.before {
        let path = &file.path;
        let Ok(now) = workspace.content_before(path) else {
            states.push(format!("'{path}' cannot be read"));
            continue;
        };
        if now == file.content {
            states.push(format!("'{path}' is unchanged"));
            continue;
        }
        let after = now.as_deref().map(hash);
        if written.is_some() && after != written {
            states.push(format!(
                "'{path}' has other content than before and than was to be written"
            ));
            continue;
        }
        states.push(format!("'{path}' has changed"));
        changed.push(FileChange {
            path: path.clone(),
            before: file.content.as_deref().map(hash),
            after,
            old: None,
        });
    }
    let states = if states.is_empty() {
        "it changes no file by name".to_owned()
    } else {
        states.join(", ")
    };
    let error =
        format!("The step was interrupted while it was under way; it was not repeated: {states}");
    StepFinished {
        in_doubt: true,
        changed,
        ..failed(step, &error)
    }
}

/// Returns the files of a step: those in its arguments, and those that it changed.
fn files(step: &CheckedStep, changed: &[FileChange]) -> Vec<String> {
    let name = match step.tool {
        Tool::FileRead | Tool::FileWrite | Tool::FileCreate => Some("path"),
        Tool::SplicePatch | Tool::SplicePlan | Tool::ReferencesFromFileToSymbolName => Some("file"),
        Tool::FileSearch
        | Tool::FileGlob
        | Tool::SymbolsInFile
        | Tool::ReferencesToSymbolName
        | Tool::LspCheck => None,
    };
    let own = name.and_then(|name| step.arguments.get(name));
    let mut files: Vec<String> = own.map(str::to_owned).into_iter().collect();
    files.extend(changed.iter().map(|change| change.path.clone()));
    files.sort();
    files.dedup();
    files
}

/// Returns the end without secrets of the service, and without NUL, which not every database can
/// store.
pub fn cleaned(finished: StepFinished, deps: &Deps) -> StepFinished {
    let clean = |text: &str| without_secrets(text, &deps.secrets).replace('\0', "\u{fffd}");
    let has_secret = |text: &String| without_secrets(text, &deps.secrets) != text.as_str();
    StepFinished {
        output: clean(&finished.output),
        error: finished.error.as_deref().map(clean),
        value: cleaned_value(finished.value, &clean),
        changed: finished
            .changed
            .into_iter()
            .map(|change| FileChange {
                old: change.old.filter(|old| !has_secret(old)),
                ..change
            })
            .collect(),
        ..finished
    }
}

fn cleaned_value(value: Value, clean: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| cleaned_value(item, clean));
            Value::Array(items.collect())
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(name, value)| (clean(&name), cleaned_value(value, clean)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}
