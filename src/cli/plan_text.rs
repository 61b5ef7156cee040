//! Plans and executions as text for a terminal.

use serde_json::Value;

use crate::domain::{PlanStep, ToolPlan};
use crate::journal::Rejection;
use crate::tools::answers::{ExecutionState, ExecutionView, PlanView, StepChanges};
use crate::tools::validate::{QUERIES, is_empty};

const RULE: &str = "─────────────────────────────────────────";

/// The most lines of a new file's content that a step shows.
const MAX_LINES: usize = 40;

/// Draws a plan.
pub(super) fn plan(view: &PlanView) -> String {
    let mut lines = vec!["Proposed Plan:".to_owned(), RULE.to_owned()];
    lines.extend(steps(&view.plan, &view.changes));
    lines.push(RULE.to_owned());
    lines.extend(evidence(&view.plan, &view.evidence));
    let steps = &view.plan.steps;
    let confirms = if steps.iter().any(|step| step.requires_confirmation) {
        "Yes (modifies files)"
    } else {
        "No"
    };
    lines.push(format!("Requires confirmation: {confirms}"));
    if let Some(modified) = &view.modified {
        lines.push(format!("Executed instead, as changed by {}:", modified.by));
        lines.extend(self::steps(&modified.plan, &modified.changes));
    }
    for execution in &view.executions {
        let state = words(execution.state);
        lines.push(format!("Execution: {} ({state})", execution.execution_id));
    }
    lines.push(format!("Plan: {}", view.plan_id));
    lines.join("\n")
}

/// Draws the question whether a step is to be executed.
pub(super) fn asked(step: &PlanStep, view: &PlanView) -> String {
    let steps = &view.plan.steps;
    let before = steps.iter().take_while(|it| it.step_id != step.step_id);
    let number = before.count() + 1;
    let mut lines = vec![
        String::new(),
        format!("Step {number} of {}: {}", steps.len(), step.tool),
    ];
    lines.extend(arguments(step));
    lines.extend(changes(step, &view.changes).map(|paths| format!("\nThis will MODIFY {paths}.")));
    lines.join("\n")
}

/// Draws an execution: what each step returned, and the explanation.
pub(super) fn execution(view: &ExecutionView) -> String {
    let mut lines = vec![format!("Result: {}", words(view.state)), RULE.to_owned()];
    for step in &view.steps {
        match &step.error {
            Some(error) => lines.push(format!("{} failed:\n{error}", step.step_id)),
            None => lines.push(format!(
                "{} ({}):\n{}",
                step.step_id,
                step.tool,
                step.output.trim_end()
            )),
        }
        for change in &step.changed {
            lines.push(format!("  changed: {}", change.path));
        }
    }
    if let Some(explanation) = &view.explanation {
        lines.push(RULE.to_owned());
        lines.push(explanation.text.clone());
    }
    lines.push(RULE.to_owned());
    lines.push(format!("Execution: {}", view.execution_id));
    lines.join("\n")
}

/// Draws an execution with all that led to it.
pub(super) fn reconstructed(view: &ExecutionView) -> String {
    let mut lines = vec![
        format!("Plan: {}", view.plan_id),
        "What the model read:".to_owned(),
        RULE.to_owned(),
        view.prompt.input.trim_end().to_owned(),
        RULE.to_owned(),
        format!(
            "Prompts: {}; model: {}",
            view.prompt.prompts_hash,
            view.prompt.model.as_deref().unwrap_or("none")
        ),
        String::new(),
        "Authorized Plan:".to_owned(),
        RULE.to_owned(),
    ];
    lines.extend(steps(&view.plan, &[]));
    lines.push(RULE.to_owned());
    lines.extend(evidence(&view.plan, &view.evidence));
    let authorization = &view.authorization;
    let steps = authorization.steps.join(", ");
    let what = match &authorization.undoes {
        Some(undone) => format!("the undo of {undone}"),
        None => format!("{} ({steps})", authorization.mode),
    };
    lines.push(format!("Authorized: {what} by {}", authorization.by));
    lines.push(String::new());
    lines.push(execution(view));
    if let Some(explanation) = &view.explanation {
        let rejected = explanation.rejected.iter();
        lines.extend(rejected.map(|why| format!("Rejected explanation: {why}")));
    }
    lines.join("\n")
}

/// Returns the rejection with what helps to mend the plan.
pub(super) fn rejection(rejection: &Rejection) -> String {
    let Rejection { message, help, .. } = rejection;
    if let Some(tools) = help.get("tools").and_then(Value::as_array) {
        let tools: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
        return format!("{message}\nAvailable tools: {}", tools.join(", "));
    }
    match help.get("schema") {
        Some(schema) => format!("{message}\nSchema: {schema}"),
        None => message.clone(),
    }
}

fn steps(plan: &ToolPlan, all: &[StepChanges]) -> Vec<String> {
    let mut lines = vec![];
    for (number, step) in plan.steps.iter().enumerate() {
        lines.push(format!("Step {}: {}", number + 1, step.tool));
        lines.extend(arguments(step));
        if !step.precondition.is_empty() {
            lines.push(format!("  Precondition: {}", step.precondition));
        }
        lines.extend(changes(step, all).map(|paths| format!("  This will MODIFY {paths}")));
    }
    lines
}

/// Names the files that a step changes. Those of a plan file that an earlier step writes are not
/// known before that step.
fn changes(step: &PlanStep, all: &[StepChanges]) -> Option<String> {
    let changes = all.iter().find(|it| it.step_id == step.step_id)?;
    Some(match changes.paths.as_slice() {
        [] => "the files that its plan file will name".to_owned(),
        paths => paths.join(", "),
    })
}

fn evidence(plan: &ToolPlan, evidence: &Value) -> Vec<String> {
    let cited = &plan.evidence_referenced;
    if cited.is_empty() {
        return vec!["Evidence cited: none".to_owned()];
    }
    let mut lines = vec![format!("Evidence cited: {}", cited.join(", "))];
    for (name, what) in QUERIES {
        if cited.iter().any(|it| it == name) && !is_empty(evidence, name) {
            let rows = evidence.get(name).unwrap_or(&Value::Null);
            lines.push(format!("  {name} ({what}): {rows}"));
        }
    }
    lines
}

/// Draws the arguments of a step, so that a content is seen before it is authorized.
fn arguments(step: &PlanStep) -> Vec<String> {
    let mut lines = vec![];
    for (name, value) in &step.arguments {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if !text.contains('\n') {
            lines.push(format!("  {name}: {text}"));
            continue;
        }
        lines.push(format!("  {name}:"));
        lines.extend(
            text.lines()
                .take(MAX_LINES)
                .map(|line| format!("    | {line}")),
        );
        let more = text.lines().count().saturating_sub(MAX_LINES);
        if more > 0 {
            lines.push(format!(
                "    and {more} more lines ({} bytes in all)",
                text.len()
            ));
        }
    }
    lines
}

fn words(state: ExecutionState) -> &'static str {
    match state {
        ExecutionState::Completed => "SUCCESS",
        ExecutionState::Halted | ExecutionState::Failed => "FAILURE",
        ExecutionState::Running => "RUNNING",
    }
}
