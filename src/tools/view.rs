//! Builds what clients see of plans and executions from the journals of their runs.

use serde_json::{Value, json};

use super::answers::{
    AuthorizationView, BudgetView, CallLine, ChangeView, ExecutionBrief, ExecutionState,
    ExecutionView, ExplanationView, ModifiedPlan, PlanState, PlanView, PromptView, StepChanges,
    StepView,
};
use super::propose;
use crate::domain::{RunId, Usd, User};
use crate::journal::{
    Accepted, AuthorizationMode, Authorized, CallView, Ending, Event, Explained, FileChange,
    RunRow, RunState, StepFinished, StepStarted, ToolIntake, ToolPlanned, Transcript,
};

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

/// Returns the step that began and has no recorded end.
pub fn open_step(events: &[Event]) -> Option<&StepStarted> {
    let finished = finished_steps(events);
    events.iter().find_map(|event| match event {
        Event::StepStarted(started)
            if !finished.iter().any(|step| step.step_id == started.step_id) =>
        {
            Some(started)
        }
        _ => None,
    })
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
        changes: step_changes(changes),
        modified: forward.iter().find_map(|(_, events)| modified(events)),
        budget: budget(events),
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

fn budget(events: &[Event]) -> BudgetView {
    let transcript = Transcript::of(events);
    let line = |view: &CallView<'_>| {
        let settled = view.settled;
        let usage = settled.and_then(|settled| settled.usage);
        CallLine {
            call: view.sent.call.clone(),
            model: view.sent.model.clone(),
            state: view.state(),
            prompt_hash: view.sent.prompt_hash.clone(),
            input_tokens: usage.map_or(0, |usage| usage.all_input()),
            output_tokens: usage.map_or(0, |usage| usage.output),
            latency_ms: settled.map_or(0, |settled| settled.latency_ms),
            cost_usd: settled.map_or(0.0, |settled| settled.cost.dollars()),
        }
    };
    let calls: Vec<CallLine> = transcript.calls.iter().map(line).collect();
    let spent: Usd = transcript
        .calls
        .iter()
        .filter_map(|view| Some(view.settled?.cost))
        .sum();
    BudgetView {
        cap_usd: accepted(events).map_or(0.0, |accepted| accepted.cap.dollars()),
        spent_usd: spent.dollars(),
        calls,
    }
}

fn step_changes(changes: &[(String, Vec<String>)]) -> Vec<StepChanges> {
    let of_step = |(step, paths): &(String, Vec<String>)| StepChanges {
        step_id: step.clone(),
        paths: paths.clone(),
    };
    changes.iter().map(of_step).collect()
}

/// Returns the plan that the user of an execution changed; `None` if it was not changed.
fn modified(events: &[Event]) -> Option<ModifiedPlan> {
    let authorized = authorized(events).filter(|a| a.mode == AuthorizationMode::Modified)?;
    Some(ModifiedPlan {
        by: named(&accepted(events)?.question.user),
        plan: authorized.content.clone(),
        changes: step_changes(&authorized.changes),
    })
}

fn named(user: &User) -> String {
    let User { id, name } = user;
    if name.is_empty() {
        id.clone()
    } else {
        format!("{name} ({id})")
    }
}

/// Returns how far an execution is.
pub fn execution_state(events: &[Event]) -> ExecutionState {
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
            by: named(&own.question.user),
            steps: authorized.steps.clone(),
            undoes: authorized.undoes.map(|undone| undone.to_string()),
        },
        budget: budget(events),
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
