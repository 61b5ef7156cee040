//! What clients see of plans and executions, from the journals of their runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::propose;
use crate::domain::{RunId, ToolPlan, User};
use crate::journal::{
    Accepted, Authorized, Ending, Event, Explained, ExplanationSource, FileChange, Rejection,
    Restore, RunRow, RunState, StepFinished, ToolIntake, ToolPlanned,
};

/// A plan, as a model proposed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// The run that proposed the plan.
    pub plan_id: String,
    pub state: PlanState,
    pub plan: ToolPlan,
    pub rejection: Option<Rejection>,
    /// What each step will change.
    pub changes: Vec<StepChanges>,
    /// The summaries that the model was shown, by query.
    #[schemars(with = "std::collections::BTreeMap<String, Vec<Value>>")]
    pub evidence: Value,
    pub executions: Vec<ExecutionBrief>,
    /// The step that a step-by-step authorization runs next. Null if none is left, or a step failed.
    pub next_step: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// It waits for an authorization.
    Proposed,
    Rejected,
    /// Some steps are executed.
    Underway,
    Completed,
    /// A step failed. The rest is not executed.
    Halted,
}

/// The files that a step will change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepChanges {
    pub step_id: String,
    pub paths: Vec<String>,
}

/// An execution in the list of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionBrief {
    pub execution_id: String,
    pub state: ExecutionState,
    pub steps: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    Running,
    Completed,
    /// A step failed, or is in doubt.
    Halted,
    /// The run ended without its steps, for example because it was cancelled.
    Failed,
}

/// An execution with all that led to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionView {
    pub execution_id: String,
    pub plan_id: String,
    pub state: ExecutionState,
    /// The request of the plan.
    pub request: String,
    /// What the model read for the plan, and the hash of the prompts around it.
    pub prompt: PromptView,
    #[schemars(with = "std::collections::BTreeMap<String, Vec<Value>>")]
    pub evidence: Value,
    /// The plan as it was authorized.
    pub plan: ToolPlan,
    pub authorization: AuthorizationView,
    pub steps: Vec<StepView>,
    pub explanation: Option<ExplanationView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptView {
    pub input: String,
    pub prompts_hash: String,
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationView {
    /// `step`, `plan`, `modified` or `undo`.
    pub mode: String,
    pub by: String,
    pub steps: Vec<String>,
    /// The execution that this one takes back.
    pub undoes: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    pub step_id: String,
    pub tool: String,
    pub ok: bool,
    pub output: String,
    /// The tool's error, word for word.
    pub error: Option<String>,
    /// True if the process died while the step was under way.
    pub in_doubt: bool,
    pub changed: Vec<ChangeView>,
    /// The output as data.
    pub value: Value,
}

/// A changed file, by the SHA-256 of its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeView {
    pub path: String,
    /// Null if the file was created.
    pub before: Option<String>,
    /// Null if the file is gone.
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationView {
    pub text: String,
    pub source: ExplanationSource,
    /// What was wrong with the model's texts.
    pub rejected: Vec<String>,
}

pub(super) fn started_key(step: &str) -> String {
    format!("step/{step}/started")
}

pub(super) fn finished_key(step: &str) -> String {
    format!("step/{step}/finished")
}

/// Returns the plan that a run recorded.
pub fn planned(events: &[Event]) -> Option<&ToolPlanned> {
    events.iter().find_map(|event| match event {
        Event::ToolPlanned(planned) => Some(&**planned),
        _ => None,
    })
}

fn accepted(events: &[Event]) -> Option<&Accepted> {
    events.iter().find_map(|event| match event {
        Event::Accepted(accepted) => Some(&**accepted),
        _ => None,
    })
}

/// Returns the authorization of an execution.
pub fn authorized(events: &[Event]) -> Option<&Authorized> {
    match &accepted(events)?.tools {
        Some(ToolIntake::Execution(authorized)) => Some(authorized),
        Some(ToolIntake::Plan { .. }) | None => None,
    }
}

/// Returns the evidence that the model was shown for a plan.
pub fn evidence(events: &[Event]) -> Value {
    match accepted(events).and_then(|accepted| accepted.tools.as_ref()) {
        Some(ToolIntake::Plan { evidence, .. }) => evidence.clone(),
        Some(ToolIntake::Execution(_)) | None => json!({}),
    }
}

/// Returns the ended steps of an execution, in order.
pub fn finished_steps(events: &[Event]) -> Vec<&StepFinished> {
    let finished = events.iter().filter_map(|event| match event {
        Event::StepFinished(finished) => Some(&**finished),
        _ => None,
    });
    finished.collect()
}

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
    for finished in finished_steps(events).into_iter().rev() {
        for change in finished.changed.iter().rev() {
            let old = match &change.old {
                Some(old) => Some(old.clone()),
                None => kept(&finished.step_id, &change.path).flatten(),
            };
            restores.push(Restore {
                path: change.path.clone(),
                expected: change.after.clone(),
                old,
            });
        }
    }
    restores
}

/// Returns the plan of a run with its executions, as JSON of [`PlanView`]; null without a plan.
pub fn plan(run: RunId, events: &[Event], executions: &[(RunRow, Vec<Event>)]) -> Value {
    plan_view(run, events, executions).map_or(Value::Null, |view| json!(view))
}

/// Returns the plan of a run with its executions.
pub fn plan_view(
    run: RunId,
    events: &[Event],
    executions: &[(RunRow, Vec<Event>)],
) -> Option<PlanView> {
    let ToolPlanned {
        plan,
        changes,
        rejection,
    } = planned(events)?;
    let changes = changes
        .iter()
        .map(|(step, paths)| StepChanges {
            step_id: step.clone(),
            paths: paths.clone(),
        })
        .collect();
    // What the user changed counts from then on.
    let forward: Vec<&(RunRow, Vec<Event>)> = executions
        .iter()
        .filter(|(_, events)| authorized(events).is_some_and(|a| a.undoes.is_none()))
        .collect();
    let last = forward.last().and_then(|(_, events)| authorized(events));
    let content = last.map_or(plan, |authorized| &authorized.content);
    let done: Vec<&StepFinished> = forward
        .iter()
        .flat_map(|(_, events)| finished_steps(events))
        .collect();
    let has_failed = done.iter().any(|step| !step.ok)
        || forward
            .iter()
            .any(|(row, _)| matches!(row.state, RunState::Failed | RunState::Cancelled));
    let is_open = |id: &String| !done.iter().any(|step| step.step_id == *id);
    let mut open = content
        .steps
        .iter()
        .map(|step| &step.step_id)
        .filter(|id| is_open(id));
    let next = open.next().cloned();
    let state = if rejection.is_some() {
        PlanState::Rejected
    } else if has_failed {
        PlanState::Halted
    } else if next.is_none() {
        PlanState::Completed
    } else if forward.is_empty() {
        PlanState::Proposed
    } else {
        PlanState::Underway
    };
    Some(PlanView {
        plan_id: run.to_string(),
        state,
        plan: plan.clone(),
        rejection: rejection.clone(),
        changes,
        evidence: evidence(events),
        executions: executions
            .iter()
            .map(|(row, events)| ExecutionBrief {
                execution_id: row.id.to_string(),
                state: execution_state(events),
                steps: authorized(events)
                    .map(|a| a.steps.clone())
                    .unwrap_or_default(),
            })
            .collect(),
        next_step: next.filter(|_| matches!(state, PlanState::Proposed | PlanState::Underway)),
    })
}

fn execution_state(events: &[Event]) -> ExecutionState {
    let ending = events.iter().find_map(|event| match event {
        Event::Finished(finished) => Some(&finished.ending),
        _ => None,
    });
    let steps = finished_steps(events);
    match ending {
        _ if steps.iter().any(|step| !step.ok) => ExecutionState::Halted,
        None => ExecutionState::Running,
        Some(Ending::Acted { .. }) => ExecutionState::Completed,
        Some(_) => ExecutionState::Failed,
    }
}

/// Returns the end of an execution as JSON; [`execution_view`] has the rest.
pub fn execution(run: RunId, events: &[Event]) -> Value {
    let steps: Vec<&str> = finished_steps(events)
        .iter()
        .map(|step| step.step_id.as_str())
        .collect();
    let ok = finished_steps(events).iter().all(|step| step.ok);
    json!({ "executionId": run.to_string(), "completed": ok, "steps": steps })
}

/// Returns an execution with its plan, from the journals of both. `None` if one of them is no such
/// run.
pub fn execution_view(
    run: RunId,
    events: &[Event],
    plan_events: &[Event],
) -> Option<ExecutionView> {
    let (own, of_plan) = (accepted(events)?, accepted(plan_events)?);
    let authorized = authorized(events)?;
    let Some(ToolIntake::Plan { focus, evidence }) = &of_plan.tools else {
        return None;
    };
    let User { id, name } = &own.question.user;
    let explained = events.iter().find_map(|event| match event {
        Event::Explained(explained) => Some(explained),
        _ => None,
    });
    let model = plan_events.iter().find_map(|event| match event {
        Event::CallSent(sent) => Some(sent.model.clone()),
        _ => None,
    });
    Some(ExecutionView {
        execution_id: run.to_string(),
        plan_id: authorized.plan.to_string(),
        state: execution_state(events),
        request: of_plan.question.message.clone(),
        prompt: PromptView {
            input: propose::input(&of_plan.question.message, focus, evidence),
            prompts_hash: of_plan.prompts_hash.clone(),
            model,
        },
        evidence: evidence.clone(),
        plan: authorized.content.clone(),
        authorization: AuthorizationView {
            mode: authorized.mode.into_str().to_owned(),
            by: if name.is_empty() {
                id.clone()
            } else {
                format!("{name} ({id})")
            },
            steps: authorized.steps.clone(),
            undoes: authorized.undoes.map(|undone| undone.to_string()),
        },
        steps: finished_steps(events).into_iter().map(step).collect(),
        explanation: explained.map(
            |Explained {
                 text,
                 source,
                 rejected,
             }| ExplanationView {
                text: text.clone(),
                source: *source,
                rejected: rejected.clone(),
            },
        ),
    })
}

fn step(finished: &StepFinished) -> StepView {
    StepView {
        step_id: finished.step_id.clone(),
        tool: finished.tool.clone(),
        ok: finished.ok,
        output: finished.output.clone(),
        error: finished.error.clone(),
        in_doubt: finished.in_doubt,
        changed: finished.changed.iter().map(change).collect(),
        value: finished.value.clone(),
    }
}

fn change(changed: &FileChange) -> ChangeView {
    ChangeView {
        path: changed.path.clone(),
        before: changed.before.clone(),
        after: changed.after.clone(),
    }
}
