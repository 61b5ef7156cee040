//! Checks of a plan. The same plan on the same files gives the same rejection, word for word.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::call::Toolbox;
use super::citations::{self, QUERIES, is_empty};
use super::output::{FailureKind, ToolError};
use super::tool::{Step, Tool};
use crate::domain::{PlanIntent, PlanStep, ToolPlan};
use crate::journal::{Rejection, RejectionKind, StepChanges};

/// The most steps of a plan.
const MAX_STEPS: usize = 20;

/// The most characters of the id of a step.
const MAX_ID_CHARS: usize = 40;

/// Checks a plan: its shape, tools and arguments, the evidence that it cites, and what has to hold
/// before its first steps. The conditions of a step after one that changes files are checked only
/// when it is executed, as are those of all others again. A splice plan must name its files now,
/// because the user authorizes them. Returns the ids of the steps that change files, with the paths.
///
/// # Errors
/// The first [`Rejection`].
pub fn validate(
    plan: &ToolPlan,
    evidence: &Value,
    toolbox: &Toolbox,
) -> Result<Vec<StepChanges>, Box<Rejection>> {
    let steps = parse(plan, toolbox)?;
    for query in &plan.evidence_referenced {
        let Some((name, what)) = QUERIES.iter().find(|(name, _)| name == query) else {
            return Err(invalid(format!("Evidence query '{query}' does not exist")));
        };
        if is_empty(evidence, name) {
            let message = format!("Plan references '{what}' but {name} returns empty results");
            let kind = RejectionKind::InsufficientEvidence;
            return Err(rejection(kind, message, None));
        }
    }
    for step in &plan.steps {
        let named = citations::queries_of(&step.precondition);
        let is_uncited = |query: &String| !plan.evidence_referenced.contains(query);
        if let Some(query) = named.into_iter().find(is_uncited) {
            let claim = format!("Plan states a claim from {query} without citing it");
            let message = claim + ": insufficient evidence";
            let kind = RejectionKind::InsufficientEvidence;
            return Err(rejection(kind, message, Some(&step.step_id)));
        }
    }
    let mut changes: Vec<StepChanges> = vec![];
    for step in &steps {
        let refused = |error: ToolError| {
            let kind = match error.kind {
                FailureKind::Forbidden => RejectionKind::ForbiddenOperation,
                _ => RejectionKind::PreconditionFailed,
            };
            let message = error.of("Precondition failed");
            rejection(kind, message, Some(&step.step_id))
        };
        if changes.is_empty() {
            step.check().map_err(refused)?;
        }
        if !step.tool.spec().is_mutating {
            continue;
        }
        let plan_file = step.call.argument("file").to_owned();
        let is_written = changes.iter().any(|it| it.paths.contains(&plan_file));
        if step.tool == Tool::SplicePlan && is_written {
            let does =
                "is changed by an earlier step, so the files that it names cannot be authorized";
            return Err(refused(ToolError::forbidden(&plan_file, does)));
        }
        changes.push(StepChanges {
            step_id: step.step_id.clone(),
            paths: step.changes().map_err(refused)?,
        });
    }
    Ok(changes)
}

/// Checks the shape of a plan, its tools and their arguments.
///
/// # Errors
/// The first [`Rejection`].
pub fn parse(plan: &ToolPlan, toolbox: &Toolbox) -> Result<Vec<Step>, Box<Rejection>> {
    let count = plan.steps.len();
    if count == 0 {
        return Err(invalid("Plan has no steps".to_owned()));
    }
    if count > MAX_STEPS {
        let message = format!("Plan has {count} steps; at most {MAX_STEPS} are allowed");
        return Err(invalid(message));
    }
    let mut ids = BTreeSet::new();
    for step in &plan.steps {
        let id = &step.step_id;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if id.is_empty() || id.chars().count() > MAX_ID_CHARS || !id.chars().all(is_plain) {
            return Err(invalid(format!(
                "Step id {id:?} must have 1 to {MAX_ID_CHARS} letters, digits, '_' or '-'"
            )));
        }
        if !ids.insert(id) {
            return Err(invalid(format!("Step id '{id}' occurs twice")));
        }
    }
    let steps = plan.steps.iter();
    let steps = steps.map(|step| checked(step, plan.intent, toolbox));
    steps.collect()
}

fn checked(step: &PlanStep, intent: PlanIntent, toolbox: &Toolbox) -> Result<Step, Box<Rejection>> {
    let refused = |kind, message, help| {
        let rejection = *rejection(kind, message, Some(&step.step_id));
        Box::new(Rejection { help, ..rejection })
    };
    let Ok(tool) = step.tool.parse::<Tool>() else {
        let message = format!("Tool '{}' not found in available tools", step.tool);
        let help = json!({ "tools": Tool::ALL });
        return Err(refused(RejectionKind::UnknownTool, message, help));
    };
    let checked = Step::new(&step.step_id, tool, &step.arguments, toolbox);
    let forbidden = RejectionKind::ForbiddenOperation;
    let checked = checked.map_err(|error| match error.kind {
        FailureKind::Forbidden => refused(forbidden, error.message, Value::Null),
        _ => {
            let help = json!({ "schema": tool.schema() });
            refused(RejectionKind::InvalidArguments, error.message, help)
        }
    })?;
    if tool.spec().is_mutating && intent != PlanIntent::Mutate {
        let intent = intent.into_str();
        let message = format!(
            "Operation not allowed: '{tool}' changes files, and the intent of the plan is {intent}"
        );
        return Err(refused(forbidden, message, Value::Null));
    }
    Ok(checked)
}

/// Rejects a plan that now changes other files than its user was shown.
pub fn changes_others(now: &[StepChanges]) -> Box<Rejection> {
    let now = now.iter().flat_map(|it| &it.paths).cloned();
    let now = now.collect::<Vec<_>>().join(", ");
    let message =
        format!("Precondition failed: the plan now changes other files than were shown: {now}");
    rejection(RejectionKind::PreconditionFailed, message, None)
}

fn invalid(message: String) -> Box<Rejection> {
    rejection(RejectionKind::InvalidPlan, message, None)
}

fn rejection(kind: RejectionKind, message: String, step: Option<&str>) -> Box<Rejection> {
    Box::new(Rejection {
        kind,
        step_id: step.map(str::to_owned),
        message,
        help: Value::Null,
    })
}
