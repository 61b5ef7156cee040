//! Executes the steps that a user authorized, in order. A failure halts. Nothing is tried again.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::explain;
use super::output::{Change, ToolError, ToolOutput};
use super::run::{changes, run as run_tool};
use super::tool::Tool;
use super::toolbox::Toolbox;
use super::validate::{CheckedStep, parse, precondition};
use super::view;
use crate::committee::{Deps, Failure};
use crate::journal::{
    ActionOutcome, Authorized, Ending, Event, FileBefore, FileChange, RunContext, StepFinished,
    StepStarted, ToolIntake,
};

/// The name of a step that puts a file back.
const UNDO: &str = "undo";

/// Returns the ending of an execution.
///
/// # Errors
/// [`Failure`] if the run must stop.
pub async fn execute(
    run: &RunContext,
    deps: &Deps,
    toolbox: &Toolbox,
    deadline: Duration,
) -> Result<Ending, Failure> {
    let Some(ToolIntake::Execution(authorized)) = run.accepted().tools.clone() else {
        return Err(Failure::internal("the run executes no plan"));
    };
    if authorized.undoes.is_some() {
        return undo(run, toolbox, &authorized).await;
    }
    // The authorization checked the plan. Its conditions are checked again before each step.
    let steps = match checked(&authorized) {
        Ok(steps) => steps,
        Err(why) => return Err(Failure::internal(&why)),
    };
    let mut all_ok = true;
    for step in steps {
        let finished = perform(run, toolbox, &step).await?;
        all_ok = finished.ok;
        if !all_ok {
            break;
        }
    }
    explain::explain(run, deps, deadline).await?;
    let outcome = if all_ok {
        ActionOutcome::Executed
    } else {
        ActionOutcome::Declined
    };
    Ok(Ending::Acted {
        outcome,
        response: view::execution(run.id(), &run.events()),
    })
}

/// Puts the files of an execution back, the last change first. A file that was changed since halts.
async fn undo(
    run: &RunContext,
    toolbox: &Toolbox,
    authorized: &Authorized,
) -> Result<Ending, Failure> {
    let mut all_ok = true;
    for (number, restore) in authorized.restores.iter().enumerate() {
        let step_id = format!("undo_{}", number + 1);
        if run.recall(&view::finished_key(&step_id)).is_some() {
            continue;
        }
        let started = StepStarted {
            step_id: step_id.clone(),
            tool: UNDO.to_owned(),
            before: vec![],
        };
        run.record(Event::StepStarted(started)).await?;
        let (expected, old) = (restore.expected.as_deref(), restore.old.as_deref());
        let done = toolbox.workspace.content_before(&restore.path);
        let is_back = done.is_ok_and(|now| now.as_deref() == old);
        let result = if is_back {
            Ok(Change::new(&restore.path, restore.old.clone(), old))
        } else {
            toolbox.workspace.restore(&restore.path, expected, old)
        };
        let (error, changed) = match result {
            Ok(change) => (None, vec![change]),
            Err(error) => (Some(format!("{UNDO} failed: {error}")), vec![]),
        };
        all_ok = error.is_none();
        let finished = StepFinished {
            step_id,
            tool: UNDO.to_owned(),
            ok: all_ok,
            output: format!("restored '{}'", restore.path),
            value: Value::Null,
            error,
            in_doubt: false,
            files: vec![restore.path.clone()],
            changed: changed
                .iter()
                .map(|change| FileChange {
                    path: change.path.clone(),
                    before: change.before_hash.clone(),
                    after: change.after_hash.clone(),
                    old: change.before.clone(),
                })
                .collect(),
            codes: vec![],
        };
        run.record(Event::StepFinished(Box::new(finished))).await?;
        if !all_ok {
            break;
        }
    }
    let outcome = if all_ok {
        ActionOutcome::Executed
    } else {
        ActionOutcome::Declined
    };
    Ok(Ending::Acted {
        outcome,
        response: view::execution(run.id(), &run.events()),
    })
}

/// Returns the authorized steps of the plan.
fn checked(authorized: &Authorized) -> Result<Vec<CheckedStep>, String> {
    let mut plan = authorized.content.clone();
    plan.steps
        .retain(|step| authorized.steps.contains(&step.step_id));
    parse(&plan).map_err(|rejection| rejection.message)
}

/// Performs a step, or returns its recorded end. A step that was under way when the process died
/// is not repeated: it is in doubt.
async fn perform(
    run: &RunContext,
    toolbox: &Toolbox,
    step: &CheckedStep,
) -> Result<StepFinished, Failure> {
    let of_event = |event: Event| match event {
        Event::StepFinished(finished) => Some(*finished),
        _ => None,
    };
    if let Some(finished) = run
        .recall(&view::finished_key(&step.step_id))
        .and_then(of_event)
    {
        return Ok(finished);
    }
    let finished =
        if let Some(Event::StepStarted(started)) = run.recall(&view::started_key(&step.step_id)) {
            in_doubt(toolbox, step, &started)
        } else if let Err(why) = precondition(step, toolbox) {
            failed(step, &why.to_string())
        } else {
            let started = StepStarted {
                step_id: step.step_id.clone(),
                tool: step.tool.name().to_owned(),
                before: before(toolbox, step).await,
            };
            run.record(Event::StepStarted(started.clone())).await?;
            let result = run_tool(
                step.tool,
                &step.arguments,
                &toolbox.workspace,
                &toolbox.programs,
            )
            .await;
            ended(step, &started, result)
        };
    let recorded = run.record(Event::StepFinished(Box::new(finished))).await?;
    of_event(recorded).ok_or_else(|| Failure::internal("the journal has another event of the step"))
}

/// Reads the files that a step will change.
async fn before(toolbox: &Toolbox, step: &CheckedStep) -> Vec<FileBefore> {
    let paths = changes(step.tool, &step.arguments, &toolbox.workspace).await;
    paths
        .unwrap_or_default()
        .into_iter()
        .map(|path| FileBefore {
            content: toolbox.workspace.content_before(&path).unwrap_or_default(),
            path,
        })
        .collect()
}

/// Returns the end of a step that ran.
fn ended(
    step: &CheckedStep,
    started: &StepStarted,
    result: Result<ToolOutput, ToolError>,
) -> StepFinished {
    let kept = |path: &str| started.before.iter().any(|file| file.path == path);
    let changes = |changes: &[Change]| -> Vec<FileChange> {
        let change = |change: &Change| FileChange {
            path: change.path.clone(),
            before: change.before_hash.clone(),
            after: change.after_hash.clone(),
            old: change.before.clone().filter(|_| !kept(&change.path)),
        };
        changes.iter().map(change).collect()
    };
    match result {
        Ok(output) => {
            let changed = changes(&output.changed);
            StepFinished {
                ok: true,
                output: without_nul(&output.text),
                error: None,
                files: files(step, &changed),
                changed,
                codes: codes(&output.value),
                value: output.value,
                ..failed(step, "")
            }
        }
        Err(error) => {
            let changed = changes(error.changed());
            StepFinished {
                files: files(step, &changed),
                changed,
                ..failed(step, &error.to_string())
            }
        }
    }
}

/// Returns the end of a step that failed, with its error word for word.
fn failed(step: &CheckedStep, error: &str) -> StepFinished {
    StepFinished {
        step_id: step.step_id.clone(),
        tool: step.tool.name().to_owned(),
        ok: false,
        output: String::new(),
        value: Value::Null,
        error: Some(without_nul(error)),
        in_doubt: false,
        files: files(step, &[]),
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

/// Reports a step that was under way when its process died, with the state of its files.
fn in_doubt(toolbox: &Toolbox, step: &CheckedStep, started: &StepStarted) -> StepFinished {
    let mut changed = vec![];
    let mut states = vec![];
    for file in &started.before {
        let now = toolbox
            .workspace
            .content_before(&file.path)
            .unwrap_or_default();
        if now == file.content {
            states.push(format!("'{}' is unchanged", file.path));
        } else {
            states.push(format!("'{}' has changed", file.path));
            let hash = |content: &Option<String>| content.as_deref().map(super::workspace::hash);
            changed.push(FileChange {
                path: file.path.clone(),
                before: hash(&file.content),
                after: hash(&now),
                old: None,
            });
        }
    }
    let states = if states.is_empty() {
        "it changes no file by name".to_owned()
    } else {
        states.join(", ")
    };
    StepFinished {
        in_doubt: true,
        changed,
        ..failed(
            step,
            &format!(
                "The process ended while this step was under way; it was not repeated: {states}"
            ),
        )
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

/// Not every database can store this character.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
