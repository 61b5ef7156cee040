//! Checks of a plan. The same plan on the same files gives the same rejection, word for word.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::arguments::{Arguments, ArgumentsError};
use super::precondition::{self, PreconditionFailed};
use super::programs::Programs;
use super::tool::Tool;
use super::toolbox::Toolbox;
use super::workspace::Workspace;
use crate::domain::{PlanIntent, PlanStep, ToolPlan};
use crate::journal::{Rejection, RejectionKind};

/// The most steps of a plan.
pub const MAX_STEPS: usize = 20;

/// The most characters of the id of a step.
const MAX_ID_CHARS: usize = 40;

/// The evidence queries, with the words for what they count.
pub const QUERIES: [(&str, &str); 8] = [
    ("Q1", "tool executions"),
    ("Q2", "failures"),
    ("Q3", "diagnostic executions"),
    ("Q4", "file executions"),
    ("Q5", "execution details"),
    ("Q6", "latest outcome"),
    ("Q7", "recurring diagnostics"),
    ("Q8", "prior fixes"),
];

/// A step whose tool exists and whose arguments fit it.
#[derive(Debug, Clone)]
pub struct CheckedStep {
    pub step_id: String,
    pub tool: Tool,
    pub arguments: Arguments,
}

/// Checks a plan: its shape, tools and arguments, the evidence that it cites, and what has to hold
/// before its first steps. The conditions of a step behind one that changes files are checked only
/// when it is executed, as are those of all others again.
///
/// # Errors
/// The first [`Rejection`].
pub fn validate(
    plan: &ToolPlan,
    evidence: &Value,
    toolbox: &Toolbox,
) -> Result<Vec<CheckedStep>, Box<Rejection>> {
    let steps = parse(plan)?;
    cited(plan, evidence)?;
    for step in &steps {
        if let Err(failed) = precondition(step, &toolbox.workspace, &toolbox.programs) {
            let kind = match failed {
                PreconditionFailed::Forbidden(_) => RejectionKind::ForbiddenOperation,
                _ => RejectionKind::PreconditionFailed,
            };
            return Err(of_step(
                &step.step_id,
                kind,
                failed.to_string(),
                Value::Null,
            ));
        }
        if step.tool.is_mutating() {
            break;
        }
    }
    Ok(steps)
}

/// Checks the shape of a plan, its tools and their arguments.
///
/// # Errors
/// The first [`Rejection`].
pub fn parse(plan: &ToolPlan) -> Result<Vec<CheckedStep>, Box<Rejection>> {
    shape(plan)?;
    plan.steps
        .iter()
        .map(|step| checked(step, plan.intent))
        .collect()
}

/// Checks what has to hold before a step.
///
/// # Errors
/// What does not hold.
pub(super) fn precondition(
    step: &CheckedStep,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<(), PreconditionFailed> {
    precondition::check(step.tool, &step.arguments, workspace, programs)
}

fn shape(plan: &ToolPlan) -> Result<(), Box<Rejection>> {
    let invalid = |message: String| {
        Err(Box::new(Rejection {
            kind: RejectionKind::InvalidPlan,
            step_id: None,
            message,
            help: Value::Null,
        }))
    };
    if plan.steps.is_empty() {
        return invalid("Plan has no steps".to_owned());
    }
    if plan.steps.len() > MAX_STEPS {
        let count = plan.steps.len();
        return invalid(format!(
            "Plan has {count} steps; at most {MAX_STEPS} are allowed"
        ));
    }
    let mut ids = BTreeSet::new();
    for step in &plan.steps {
        let id = &step.step_id;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if id.is_empty() || id.chars().count() > MAX_ID_CHARS || !id.chars().all(is_plain) {
            return invalid(format!(
                "Step id {id:?} must have 1 to {MAX_ID_CHARS} letters, digits, '_' or '-'"
            ));
        }
        if !ids.insert(id) {
            return invalid(format!("Step id '{id}' occurs twice"));
        }
    }
    Ok(())
}

fn checked(step: &PlanStep, intent: PlanIntent) -> Result<CheckedStep, Box<Rejection>> {
    let id = &step.step_id;
    let Ok(tool) = step.tool.parse::<Tool>() else {
        let message = format!("Tool '{}' not found in available tools", step.tool);
        let tools: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
        return Err(of_step(
            id,
            RejectionKind::UnknownTool,
            message,
            json!({ "tools": tools }),
        ));
    };
    let arguments = Arguments::parse(tool, &step.arguments).map_err(|error| match error {
        ArgumentsError::Invalid(invalid) => {
            let help = json!({ "schema": tool.schema() });
            of_step(
                id,
                RejectionKind::InvalidArguments,
                invalid.to_string(),
                help,
            )
        }
        ArgumentsError::Forbidden(forbidden) => of_step(
            id,
            RejectionKind::ForbiddenOperation,
            forbidden.to_string(),
            Value::Null,
        ),
    })?;
    if tool.is_mutating() && intent != PlanIntent::Mutate {
        let message = format!(
            "Operation not allowed: '{tool}' changes files, and the intent of the plan is {}",
            intent.into_str()
        );
        return Err(of_step(
            id,
            RejectionKind::ForbiddenOperation,
            message,
            Value::Null,
        ));
    }
    Ok(CheckedStep {
        step_id: id.clone(),
        tool,
        arguments,
    })
}

/// Checks that each cited query exists and returned something.
fn cited(plan: &ToolPlan, evidence: &Value) -> Result<(), Box<Rejection>> {
    for query in &plan.evidence_referenced {
        let named = QUERIES.iter().find(|(name, _)| name == query);
        let (kind, message) = match named {
            None => (
                RejectionKind::InvalidPlan,
                format!("Evidence query '{query}' does not exist"),
            ),
            Some((name, what)) if is_empty(evidence, name) => (
                RejectionKind::InsufficientEvidence,
                format!("Plan references '{what}' but {name} returns empty results"),
            ),
            Some(_) => continue,
        };
        return Err(Box::new(Rejection {
            kind,
            step_id: None,
            message,
            help: Value::Null,
        }));
    }
    Ok(())
}

/// True if a query returned nothing.
pub fn is_empty(evidence: &Value, query: &str) -> bool {
    evidence
        .get(query)
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
}

fn of_step(step: &str, kind: RejectionKind, message: String, help: Value) -> Box<Rejection> {
    Box::new(Rejection {
        kind,
        step_id: Some(step.to_owned()),
        message,
        help,
    })
}
