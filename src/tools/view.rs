//! Builds what clients see of plans and executions from the journals of their runs.

use serde_json::json;

use super::answers::{
    AuthorizationView, BudgetView, CallLine, ExecutionBrief, ExecutionEnd, ExecutionState,
    ExecutionView, ModifiedPlan, PlanState, PlanView, PromptView,
};
use super::planner_input;
use crate::domain::{RunId, Usd, User};
use crate::journal::{
    Accepted, AuthorizationMode, Authorized, CallView, Ending, Event, RunRow, StepFinished,
    StepStarted, ToolSubmission, Transcript,
};

/// The name of a step that puts a file back.
pub const UNDO: &str = "undo";

/// Returns the authorization of an execution.
pub fn authorized(events: &[Event]) -> Option<&Authorized> {
    authorization(&Transcript::of(events))
}

fn authorization<'a>(run: &Transcript<'a>) -> Option<&'a Authorized> {
    match &run.accepted?.tools {
        Some(ToolSubmission::Execution(authorized)) => Some(authorized),
        Some(ToolSubmission::Plan { .. }) | None => None,
    }
}

/// Returns the path of the workspace that a plan is for; empty if its journal does not have it.
pub fn workspace(events: &[Event]) -> &str {
    let accepted = Transcript::of(events).accepted;
    match accepted.and_then(|accepted| accepted.tools.as_ref()) {
        Some(ToolSubmission::Plan { workspace, .. }) => workspace,
        Some(ToolSubmission::Execution(_)) | None => "",
    }
}

/// Returns the step that began and has no recorded end.
pub fn open_step(events: &[Event]) -> Option<&StepStarted> {
    let run = Transcript::of(events);
    let is_ended = |id: &str| run.steps_finished.iter().any(|step| step.step_id == id);
    let mut started = run.steps_started.into_iter();
    started.find(|step| !is_ended(&step.step_id))
}

/// Returns the plan of a run with its executions, each with its events, oldest first.
pub fn plan_view(
    run: RunId,
    events: &[Event],
    executions: &[(RunRow, Vec<Event>)],
) -> Option<PlanView> {
    let own = Transcript::of(events);
    let (accepted, planned) = (own.accepted?, own.tool_planned?);
    let executions = executions
        .iter()
        .map(|(row, events)| (row.id, Transcript::of(events)));
    let executions: Vec<(RunId, Transcript<'_>)> = executions.collect();
    // Those that took changes back do not count.
    let counted: Vec<(&Transcript<'_>, &Authorized)> = executions
        .iter()
        .filter_map(|(_, run)| Some((run, authorization(run)?)))
        .filter(|(_, authorized)| authorized.undoes.is_none())
        .collect();
    let mut changed = counted.iter().rev();
    let changed = changed.find(|(_, it)| it.mode == AuthorizationMode::Modified);
    let modified = changed.map(|(run, authorized)| ModifiedPlan {
        by: by(run),
        plan: authorized.content.clone(),
        changes: authorized.changes.clone(),
    });
    // What the user changed counts from then on.
    let content = modified.as_ref().map_or(&planned.plan, |it| &it.plan);
    let is_done = |id: &str| {
        let mut done = counted.iter().flat_map(|(run, _)| &run.steps_finished);
        done.any(|step| step.step_id == id)
    };
    let next = content.steps.iter().find(|step| !is_done(&step.step_id));
    let state = match next {
        _ if planned.rejection.is_some() => PlanState::Rejected,
        _ if counted
            .iter()
            .any(|(_, it)| it.mode == AuthorizationMode::Cancel) =>
        {
            PlanState::Cancelled
        }
        _ if counted.iter().any(|(run, _)| has_failed(run)) => PlanState::Halted,
        None => PlanState::Completed,
        Some(_) if counted.is_empty() => PlanState::Proposed,
        Some(_) => PlanState::Underway,
    };
    let is_open = matches!(state, PlanState::Proposed | PlanState::Underway);
    let next_step = next.filter(|_| is_open).map(|step| step.step_id.clone());
    let evidence = match &accepted.tools {
        Some(ToolSubmission::Plan { evidence, .. }) => evidence.clone(),
        Some(ToolSubmission::Execution(_)) | None => json!({}),
    };
    let brief = |(id, run): &(RunId, Transcript<'_>)| ExecutionBrief {
        execution_id: id.to_string(),
        state: state_of(run),
        steps: authorization(run).map_or(vec![], |authorized| authorized.steps.clone()),
    };
    Some(PlanView {
        plan_id: run.to_string(),
        state,
        plan: planned.plan.clone(),
        rejection: planned.rejection.clone(),
        changes: planned.changes.clone(),
        modified,
        budget: budget(accepted, &own),
        evidence,
        executions: executions.iter().map(brief).collect(),
        next_step,
    })
}

fn budget(accepted: &Accepted, run: &Transcript<'_>) -> BudgetView {
    let costs = run.calls.iter().filter_map(|call| Some(call.settled?.cost));
    let spent: Usd = costs.sum();
    let line = |call: &CallView<'_>| {
        let settled = call.settled;
        let usage = settled.and_then(|settled| settled.usage);
        CallLine {
            call: call.sent.call.clone(),
            model: call.sent.model.clone(),
            state: call.state(),
            prompt_hash: call.sent.prompt_hash.clone(),
            input_tokens: usage.map_or(0, |usage| usage.all_input()),
            output_tokens: usage.map_or(0, |usage| usage.output),
            latency_ms: settled.map_or(0, |settled| settled.latency_ms),
            cost_usd: settled.map_or(0.0, |settled| settled.cost.dollars()),
        }
    };
    BudgetView {
        cap_usd: accepted.cap.dollars(),
        spent_usd: spent.dollars(),
        calls: run.calls.iter().map(line).collect(),
    }
}

/// Names the user of a run.
fn by(run: &Transcript<'_>) -> String {
    match run.accepted.map(|accepted| &accepted.question.user) {
        Some(User { id, name }) if !name.is_empty() => format!("{name} ({id})"),
        user => user.map_or(String::new(), |user| user.id.clone()),
    }
}

fn has_failed(run: &Transcript<'_>) -> bool {
    let state = state_of(run);
    matches!(state, ExecutionState::Halted | ExecutionState::Failed)
}

/// Returns how far an execution is. One that ended during the explanation has all its steps.
pub fn execution_state(events: &[Event]) -> ExecutionState {
    state_of(&Transcript::of(events))
}

fn state_of(run: &Transcript<'_>) -> ExecutionState {
    let steps = &run.steps_finished;
    let authorized = authorization(run);
    let closes = authorized.is_some_and(|it| it.mode == AuthorizationMode::Cancel);
    let due = authorized.map(|it| it.steps.len() + it.restores.len());
    match run.finished.map(|finished| &finished.ending) {
        _ if steps.iter().any(|step| !step.ok) => ExecutionState::Halted,
        None => ExecutionState::Running,
        Some(Ending::Acted { .. }) if closes => ExecutionState::Closed,
        Some(Ending::Acted { .. }) => ExecutionState::Completed,
        Some(_) if due.is_some_and(|due| steps.len() == due) => ExecutionState::Completed,
        Some(_) => ExecutionState::Failed,
    }
}

/// Returns what the end of an execution's run holds.
pub fn execution_end(run: RunId, events: &[Event]) -> ExecutionEnd {
    let steps = Transcript::of(events).steps_finished;
    ExecutionEnd {
        execution_id: run.to_string(),
        completed: steps.iter().all(|step| step.ok),
        steps: steps.iter().map(|step| step.step_id.clone()).collect(),
    }
}

/// Returns an execution with its plan, from the journals of both. `None` if one of them is no such
/// run.
pub fn execution_view(id: RunId, events: &[Event], plan_events: &[Event]) -> Option<ExecutionView> {
    let (run, planned) = (Transcript::of(events), Transcript::of(plan_events));
    let (own, of_plan) = (run.accepted?, planned.accepted?);
    let authorized = authorization(&run)?;
    let Some(ToolSubmission::Plan {
        focus, evidence, ..
    }) = &of_plan.tools
    else {
        return None;
    };
    // The last one gave the plan.
    let answered = planned.calls.iter().rfind(|call| call.is_answered());
    let is_modified = authorized.mode == AuthorizationMode::Modified;
    let proposed = planned.tool_planned.filter(|_| is_modified);
    Some(ExecutionView {
        execution_id: id.to_string(),
        plan_id: authorized.plan.to_string(),
        state: state_of(&run),
        request: of_plan.question.message.clone(),
        prompt: PromptView {
            input: planner_input::input(&of_plan.question.message, focus, evidence),
            prompts_hash: of_plan.prompts_hash.clone(),
            model: answered.map(|call| call.sent.model.clone()),
        },
        evidence: evidence.clone(),
        plan: authorized.content.clone(),
        proposed: proposed.map(|planned| planned.plan.clone()),
        authorization: AuthorizationView {
            mode: authorized.mode.into_str().to_owned(),
            by: by(&run),
            steps: authorized.steps.clone(),
            undoes: authorized.undoes.map(|undone| undone.to_string()),
        },
        budget: budget(own, &run),
        steps: run.steps_finished.into_iter().map(shown).collect(),
        explanation: run.explained.cloned(),
    })
}

/// Returns a step without what only the journal needs.
fn shown(step: &StepFinished) -> StepFinished {
    let mut shown = step.clone();
    shown.files.clear();
    shown.codes.clear();
    for change in &mut shown.changed {
        change.old = None;
    }
    shown
}
