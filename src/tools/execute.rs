//! Executes the steps that a user authorized, in order. A failure halts. Nothing is tried again.

use std::time::Duration;

use super::call::Toolbox;
use super::explain;
use super::in_doubt::{before, compared, doubted, elsewhere, put_back, unknown};
use super::output::{FailureKind, ToolError, quoted};
use super::record::{has_succeeded, leaks, record};
use super::tool::Step;
use super::undo::undo;
use super::validate::parse;
use super::view;
use crate::committee::{Deps, Failure};
use crate::journal::{
    ActionOutcome, AuthorizationMode, Authorized, Ending, Event, FileBefore, RunContext,
    StepFinished, StepStarted, Stop, ToolSubmission, step,
};

/// Returns the ending of an execution.
///
/// # Errors
/// [`Failure`] if tools are off, or the run must stop.
pub async fn execute(
    run: &RunContext,
    deps: &Deps,
    toolbox: Option<&Toolbox>,
    deadline: Duration,
) -> Result<Ending, Failure> {
    let toolbox = Toolbox::required(toolbox)?;
    let Some(authorized) = authorized(run) else {
        return Err(Failure::internal("the run executes no plan"));
    };
    let all_ok = match authorized.mode {
        AuthorizationMode::Undo => undo(run, deps, &toolbox, &authorized).await?,
        AuthorizationMode::Cancel => true,
        AuthorizationMode::Step | AuthorizationMode::Plan | AuthorizationMode::Modified => {
            let steps = steps(&authorized, &toolbox)?;
            let all_ok = perform_all(run, deps, &steps, &authorized).await?;
            explain::explain(run, deps, deadline).await?;
            all_ok
        }
    };
    let outcome = if all_ok {
        ActionOutcome::Executed
    } else {
        ActionOutcome::Declined
    };
    let response = serde_json::json!(view::execution_end(run.id(), &run.events().to_vec()));
    Ok(Ending::Acted { outcome, response })
}

fn authorized(run: &RunContext) -> Option<Authorized> {
    match run.accepted().tools.clone()? {
        ToolSubmission::Execution(authorized) => Some(*authorized),
        ToolSubmission::Plan { .. } => None,
    }
}

/// Returns the authorized steps. The authorization checked the plan; its conditions are checked
/// again before each step.
fn steps(authorized: &Authorized, toolbox: &Toolbox) -> Result<Vec<Step>, Failure> {
    let mut plan = authorized.content.clone();
    plan.steps
        .retain(|step| authorized.steps.contains(&step.step_id));
    parse(&plan, toolbox).map_err(|rejection| Failure::internal(&rejection.message))
}

/// Performs steps until one fails. Returns true if all are done. A step with a recorded end is not
/// performed; one that was under way when the process died is not repeated: it is in doubt.
async fn perform_all(
    run: &RunContext,
    deps: &Deps,
    steps: &[Step],
    authorized: &Authorized,
) -> Result<bool, Failure> {
    let named = |step: &Step| {
        let mut changes = authorized.changes.iter();
        let named = changes.find(|it| it.step_id == step.step_id);
        named.map(|it| it.paths.clone())
    };
    for step in steps {
        match has_succeeded(run, &step.step_id) {
            Some(true) => continue,
            Some(false) => return Ok(false),
            None => {}
        }
        let finished = match run.recorded(&step::tool_started(&step.step_id)) {
            _ if !step.call.toolbox.is_of(&authorized.workspace) => {
                elsewhere(run, &step.step_id, step.tool.name())
            }
            Some(started) => doubted(step, started.before).await,
            None => perform(run, deps, step, named(step)).await?,
        };
        if !record(run, deps, finished).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the end of a step. `named` are the files that the user saw, if the authorization has them.
async fn perform(
    run: &RunContext,
    deps: &Deps,
    step: &Step,
    named: Option<Vec<String>>,
) -> Result<StepFinished, Failure> {
    let tool = step.tool;
    let halted = |why| Ok(step.ended(Some(why)));
    let _lock = if step.may_change_files() {
        Some(step.call.toolbox.lock_workspace().await)
    } else {
        None
    };
    let own = step.clone();
    let checked = step.call.blocking(move |_| {
        own.check()?;
        require_named(&own, named)
    });
    if let Err(error) = checked.await {
        return halted(error.of("Precondition failed"));
    }
    let before = before(step).await;
    let has_secret = |file: &&FileBefore| file.content.as_ref().is_some_and(|it| leaks(it, deps));
    if let Some(FileBefore { path, .. }) = before.iter().find(has_secret) {
        return halted(format!(
            "{tool} failed: '{path}' contains a secret of this service, which the journal must not keep"
        ));
    }
    let started = StepStarted {
        step_id: step.step_id.clone(),
        tool: tool.name().to_owned(),
        before: before.clone(),
    };
    run.store(Event::StepStarted(started)).await?;
    let mut result = step.run(&before).await;
    // An operation that hangs may still take effect.
    let in_doubt = matches!(&result, Err(error) if error.kind == FailureKind::Unfinished);
    if let Err(error) = put_back(step, before.clone()).await {
        result = Err(error);
    }
    let (changed, _) = compared(step, before, result.is_ok()).await;
    let error = result.as_ref().err();
    let error = error.map(|error| error.of(&format!("{tool} failed")));
    let output = result.unwrap_or_default();
    let mut files = step.files();
    files.extend(output.files);
    files.extend(changed.iter().map(|change| change.path.clone()));
    files.sort();
    files.dedup();
    Ok(StepFinished {
        output: output.text,
        value: output.value,
        codes: output.codes,
        in_doubt,
        changed,
        files,
        ..step.ended(error)
    })
}

/// # Errors
/// If a splice plan now names other files than when the user authorized it.
fn require_named(step: &Step, named: Option<Vec<String>>) -> Result<(), ToolError> {
    let now = step.changes()?;
    match named {
        // A plan of an earlier version may have no names.
        Some(named) if !named.is_empty() && named != now => {
            let (file, now) = (quoted(step.call.argument("file")), now.join(", "));
            Err(format!("{file} now names other files than were authorized: {now}").into())
        }
        _ => Ok(()),
    }
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
    let authorized = authorized(run);
    let steps = authorized.and_then(|authorized| {
        let toolbox = toolbox?.current();
        let is_here = toolbox.is_of(&authorized.workspace);
        steps(&authorized, &toolbox).ok().filter(|_| is_here)
    });
    let mut steps = steps.unwrap_or_default().into_iter();
    let finished = match steps.find(|step| step.step_id == started.step_id) {
        Some(step) => doubted(&step, started.before.clone()).await,
        None => unknown(started),
    };
    record(run, deps, finished).await.map(drop)
}
