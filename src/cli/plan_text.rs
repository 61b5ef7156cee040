//! Plans and executions as text for a terminal.

use serde_json::Value;

use crate::domain::{PlanStep, ToolPlan, is_invisible};
use crate::journal::{Rejection, StepChanges, StepFinished};
use crate::text::one_line;
use crate::tools::answers::{ExecutionState, ExecutionView, PlanState, PlanView};
use crate::tools::{QUERIES, is_empty};

const RULE: &str = "─────────────────────────────────────────";

/// The most lines of a new file's content that a step shows.
const MAX_LINES: usize = 400;

/// Draws a plan.
pub(super) fn plan(view: &PlanView) -> String {
    let plan = &view.plan;
    let mut lines = vec!["Proposed Plan:".to_owned(), RULE.to_owned()];
    lines.extend(steps(plan, &view.changes));
    lines.push(RULE.to_owned());
    lines.extend(evidence(plan, &view.evidence));
    let confirms = if plan.steps.iter().any(|step| step.requires_confirmation) {
        "Yes (modifies files)"
    } else {
        "No"
    };
    lines.push(format!("Requires confirmation: {confirms}"));
    if let Some(modified) = &view.modified {
        lines.push(format!("Executed instead, as changed by {}:", modified.by));
        lines.extend(steps(&modified.plan, &modified.changes));
    }
    if view.state == PlanState::Cancelled {
        lines.push("The plan was cancelled.".to_owned());
    }
    for execution in &view.executions {
        let (id, state) = (&execution.execution_id, words(execution.state));
        lines.push(format!("Execution: {id} ({state})"));
    }
    lines.push(format!("Plan: {}", view.plan_id));
    lines.join("\n")
}

/// Draws a plan that the user changed.
pub(super) fn changed(plan: &ToolPlan, changes: &[StepChanges]) -> String {
    let mut lines = vec!["\nYour Plan:".to_owned(), RULE.to_owned()];
    lines.extend(steps(plan, changes));
    lines.push(RULE.to_owned());
    lines.join("\n")
}

/// Draws the question whether a step, by its number from 0, is to be executed.
pub(super) fn asked(number: usize, step: &PlanStep, view: &PlanView) -> String {
    let (number, all) = (number + 1, view.plan.steps.len());
    let mut lines = vec![format!(
        "\nStep {number} of {all}: {}",
        one_line(&step.tool)
    )];
    lines.extend(arguments(step));
    lines.extend(changes(step, &view.changes).map(|paths| format!("\nThis will MODIFY {paths}.")));
    lines.join("\n")
}

/// Draws an execution: what each step returned, and the explanation.
pub(super) fn execution(view: &ExecutionView) -> String {
    let mut lines = vec![format!("Result: {}", words(view.state)), RULE.to_owned()];
    for step in &view.steps {
        let (id, tool) = (&step.step_id, &step.tool);
        lines.push(match &step.error {
            Some(error) => format!("{id} failed:\n{error}"),
            None => format!("{id} ({tool}):\n{}", step.output.trim_end()),
        });
        let changed = step.changed.iter();
        lines.extend(changed.map(|change| format!("  changed: {}", change.path)));
    }
    if let Some(explanation) = &view.explanation {
        lines.extend([RULE.to_owned(), explanation.text.clone()]);
    }
    lines.push(RULE.to_owned());
    lines.push(format!("Execution: {}", view.execution_id));
    lines.join("\n")
}

/// Names the steps of an execution that did not come to its end, and what can be done with it.
pub(super) fn interrupted(view: &ExecutionView) -> String {
    let id = &view.execution_id;
    let step = |step: &StepFinished| {
        let end = match (step.ok, step.in_doubt) {
            (true, _) => "was executed",
            (_, true) => "is in doubt",
            _ => "failed",
        };
        format!("{} {end}", step.step_id)
    };
    let steps: Vec<String> = view.steps.iter().map(step).collect();
    let steps = match steps.as_slice() {
        [] => "no step was executed".to_owned(),
        steps => steps.join(", "),
    };
    let is_changed = view.steps.iter().any(|step| !step.changed.is_empty());
    let undo = if is_changed {
        format!("\nUndo it: conclave plan --undo {id}")
    } else {
        String::new()
    };
    format!("{steps}\nSee it: conclave show {id}{undo}")
}

/// Draws an execution with all that led to it.
pub(super) fn reconstructed(view: &ExecutionView) -> String {
    let (prompt, authorization) = (&view.prompt, &view.authorization);
    let model = prompt.model.as_deref().unwrap_or("none");
    let what = match &authorization.undoes {
        Some(undone) => format!("the undo of {undone}"),
        None if authorization.steps.is_empty() => authorization.mode.clone(),
        None => format!(
            "{} ({})",
            authorization.mode,
            authorization.steps.join(", ")
        ),
    };
    let mut lines = vec![
        format!("Plan: {}\nWhat the model read:\n{RULE}", view.plan_id),
        format!("{}\n{RULE}", prompt.input.trim_end()),
        format!("Prompts: {}; model: {model}", prompt.prompts_hash),
    ];
    if let Some(proposed) = &view.proposed {
        lines.push(format!("\nProposed Plan, which the user changed:\n{RULE}"));
        lines.extend(steps(proposed, &[]));
        lines.push(RULE.to_owned());
    }
    lines.push(format!("\nAuthorized Plan:\n{RULE}"));
    lines.extend(steps(&view.plan, &[]));
    lines.push(RULE.to_owned());
    lines.extend(evidence(&view.plan, &view.evidence));
    lines.push(format!("Authorized: {what} by {}\n", authorization.by));
    lines.push(execution(view));
    let rejected = view.explanation.iter().flat_map(|it| &it.rejected);
    lines.extend(rejected.map(|why| format!("Rejected explanation: {why}")));
    lines.join("\n")
}

/// Returns the rejection with what helps to mend the plan.
pub(super) fn rejection(rejection: &Rejection) -> String {
    let Rejection { message, help, .. } = rejection;
    let tools = help["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let tools: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
    match help.get("schema") {
        Some(schema) => format!("{message}\nSchema: {schema}"),
        None if tools.is_empty() => message.clone(),
        None => format!("{message}\nAvailable tools: {}", tools.join(", ")),
    }
}

fn steps(plan: &ToolPlan, all: &[StepChanges]) -> Vec<String> {
    let mut lines = vec![];
    for (number, step) in plan.steps.iter().enumerate() {
        lines.push(format!("Step {}: {}", number + 1, one_line(&step.tool)));
        lines.extend(arguments(step));
        if !step.precondition.is_empty() {
            let precondition = one_line(&step.precondition);
            lines.push(format!("  Precondition: {precondition}"));
        }
        lines.extend(changes(step, all).map(|paths| format!("  This will MODIFY {paths}")));
    }
    lines
}

/// Names the files that a step changes. Plans of earlier versions may not name those of a plan file.
fn changes(step: &PlanStep, all: &[StepChanges]) -> Option<String> {
    let changes = all.iter().find(|it| it.step_id == step.step_id)?;
    Some(match changes.paths.as_slice() {
        [] => "the files that its plan file will name".to_owned(),
        paths => {
            let paths: Vec<String> = paths.iter().map(|path| one_line(path)).collect();
            paths.join(", ")
        }
    })
}

/// Returns a text in which what a terminal does not show is escaped: all of it is authorized.
fn escaped(text: &str) -> String {
    let is_hidden = |c: char| !matches!(c, '\n' | '\t') && is_invisible(c);
    let shown = |c: char| {
        if is_hidden(c) {
            c.escape_unicode().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(shown).collect()
}

fn evidence(plan: &ToolPlan, evidence: &Value) -> Vec<String> {
    let cited = &plan.evidence_referenced;
    if cited.is_empty() {
        return vec!["Evidence cited: none".to_owned()];
    }
    let mut lines = vec![format!("Evidence cited: {}", one_line(&cited.join(", ")))];
    for (name, what) in QUERIES {
        if cited.iter().any(|it| it == name) && !is_empty(evidence, name) {
            lines.push(format!("  {name} ({what}): {}", evidence[name]));
        }
    }
    lines
}

/// Draws the arguments of a step, so that a content is seen before it is authorized.
fn arguments(step: &PlanStep) -> Vec<String> {
    let mut lines = vec![];
    for (name, value) in &step.arguments {
        let text = value.as_str().map_or(value.to_string(), str::to_owned);
        let text = escaped(&text);
        if !text.contains('\n') {
            lines.push(format!("  {name}: {text}"));
            continue;
        }
        lines.push(format!("  {name}:"));
        let shown = text.lines().take(MAX_LINES);
        lines.extend(shown.map(|line| format!("    | {line}")));
        let more = text.lines().count().saturating_sub(MAX_LINES);
        if more > 0 {
            let bytes = text.len();
            lines.push(format!(
                "    and {more} more lines ({bytes} bytes in all): \"conclave show\" with --json has all of it"
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
        ExecutionState::Closed => "CLOSED, nothing was executed",
    }
}
