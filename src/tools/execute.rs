//! Executes the steps that a user authorized, in order. A failure halts. Nothing is tried again.

use std::time::Duration;

use super::explain;
use super::output::ToolError;
use super::run::{blocking, changes, run as run_tool};
use super::step_end::{cleaned, ended, failed, in_doubt, unfinished};
use super::toolbox::Toolbox;
use super::undo::undo;
use super::validate::{CheckedStep, parse, precondition};
use super::view;
use crate::committee::{Deps, Failure};
use crate::journal::{
    ActionOutcome, Authorized, Ending, Event, FileBefore, RunContext, StepFinished, StepStarted,
    Stop, ToolIntake, step_finished_key, step_started_key,
};
use crate::llm::without_secrets;

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
    let authorized = authorized(run)?;
    let all_ok = if authorized.undoes.is_some() {
        undo(run, deps, toolbox, &authorized).await?
    } else {
        let all_ok = perform_all(run, deps, toolbox, &authorized).await?;
        explain::explain(run, deps, deadline).await?;
        all_ok
    };
    Ok(Ending::Acted {
        outcome: if all_ok {
            ActionOutcome::Executed
        } else {
            ActionOutcome::Declined
        },
        response: view::execution(run.id(), &run.events().to_vec()),
    })
}

fn authorized(run: &RunContext) -> Result<Authorized, Failure> {
    match run.accepted().tools.clone() {
        Some(ToolIntake::Execution(authorized)) => Ok(*authorized),
        Some(ToolIntake::Plan { .. }) | None => Err(Failure::internal("the run executes no plan")),
    }
}

/// Performs the authorized steps until one fails. Returns true if all are done.
async fn perform_all(
    run: &RunContext,
    deps: &Deps,
    toolbox: &Toolbox,
    authorized: &Authorized,
) -> Result<bool, Failure> {
    // The authorization checked the plan. Its conditions are checked again before each step.
    for step in checked(authorized).map_err(|why| Failure::internal(&why))? {
        if !perform(run, deps, toolbox, &step).await?.ok {
            return Ok(false);
        }
    }
    Ok(true)
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
    deps: &Deps,
    toolbox: &Toolbox,
    step: &CheckedStep,
) -> Result<StepFinished, Failure> {
    if let Some(Event::StepFinished(finished)) = run.recall(&step_finished_key(&step.step_id)) {
        return Ok(*finished);
    }
    let known = run.recall(&step_started_key(&step.step_id));
    let finished = if let Some(Event::StepStarted(started)) = known {
        doubted(toolbox, step, &started).await
    } else if let Err(why) = prepared(toolbox, step).await {
        failed(step, &why)
    } else {
        let before = before(toolbox, step).await;
        if let Some(file) = before.iter().find(|file| has_secret(file, deps)) {
            let why = format!(
                "{} failed: '{}' contains a secret of this service, which the journal must not keep",
                step.tool, file.path
            );
            failed(step, &why)
        } else {
            let started = StepStarted {
                step_id: step.step_id.clone(),
                tool: step.tool.name().to_owned(),
                before,
            };
            run.store(Event::StepStarted(started.clone())).await?;
            let (workspace, programs) = (&toolbox.workspace, &toolbox.programs);
            match run_tool(step.tool, &step.arguments, workspace, programs).await {
                // It may still take effect.
                Err(error @ ToolError::Unfinished { .. }) => StepFinished {
                    error: Some(error.to_string()),
                    ..doubted(toolbox, step, &started).await
                },
                result => ended(step, &started, result),
            }
        }
    };
    let finished = Event::StepFinished(Box::new(cleaned(finished, deps)));
    match run.store(finished).await? {
        Event::StepFinished(finished) => Ok(*finished),
        _ => Err(Failure::internal(
            "the journal has another event of the step",
        )),
    }
}

fn has_secret(file: &FileBefore, deps: &Deps) -> bool {
    let is_secret = |text: &String| without_secrets(text, &deps.secrets) != text.as_str();
    file.content.as_ref().is_some_and(is_secret)
}

/// Checks what has to hold before a step, where blocking is allowed.
async fn prepared(toolbox: &Toolbox, step: &CheckedStep) -> Result<(), String> {
    let (own, programs) = (step.clone(), toolbox.programs.clone());
    let checked = blocking(step.tool, &toolbox.workspace, move |workspace| {
        Ok(precondition(&own, workspace, &programs).map_err(|failed| failed.to_string()))
    });
    checked.await.map_err(|error| error.to_string())?
}

/// Reads the files that a step will change. One that cannot be read is left out.
async fn before(toolbox: &Toolbox, step: &CheckedStep) -> Vec<FileBefore> {
    let paths = changes(step.tool, &step.arguments, &toolbox.workspace).await;
    let paths = paths.unwrap_or_default();
    let read = blocking(step.tool, &toolbox.workspace, move |workspace| {
        let files = paths.into_iter().filter_map(|path| {
            let content = workspace.content_before(&path).ok()?;
            Some(FileBefore { path, content })
        });
        Ok(files.collect())
    });
    read.await.unwrap_or_default()
}

/// Reports a step that began and has no recorded end.
async fn doubted(toolbox: &Toolbox, step: &CheckedStep, started: &StepStarted) -> StepFinished {
    let (own, owned) = (step.clone(), started.clone());
    let checked = blocking(step.tool, &toolbox.workspace, move |workspace| {
        Ok(in_doubt(workspace, &own, &owned))
    });
    checked.await.unwrap_or_else(|error| StepFinished {
        in_doubt: true,
        ..failed(step, &error.to_string())
    })
}

/// Records an end for a step that is under way when its run is stopped, for example by a user or a
/// deadline: it is in doubt.
///
/// # Errors
/// [`Stop`] if the journal cannot be written.
pub async fn settle(run: &RunContext, deps: &Deps, toolbox: Option<&Toolbox>) -> Result<(), Stop> {
    let events = run.events().to_vec();
    let Some(started) = view::open_step(&events) else {
        return Ok(());
    };
    let steps = authorized(run).map(|authorized| checked(&authorized).unwrap_or_default());
    let steps = steps.unwrap_or_default();
    let step = steps.iter().find(|step| step.step_id == started.step_id);
    let finished = match (step, toolbox) {
        (Some(step), Some(toolbox)) => doubted(toolbox, step, started).await,
        _ => StepFinished {
            in_doubt: true,
            ..unfinished(
                &started.step_id,
                &started.tool,
                "The step was interrupted while it was under way; the state of its files is not known",
            )
        },
    };
    let finished = Event::StepFinished(Box::new(cleaned(finished, deps)));
    run.store(finished).await?;
    Ok(())
}
