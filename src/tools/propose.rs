//! Asks a model for a plan, and checks it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::run as tools_run;
use super::tool::Tool;
use super::toolbox::Toolbox;
use super::validate::{QUERIES, validate};
use super::view;
use crate::committee::{CallError, Consultation, Deps, Failure, consult};
use crate::domain::{EvidenceFocus, PlanIntent, PlanStep, Role, ToolPlan};
use crate::journal::{ActionOutcome, Ending, Event, RunContext, ToolIntake, ToolPlanned};

/// The step of the call that writes the plan, and its prompt.
pub const STEP: &str = "tool_plan";

/// The longest plan, in output tokens.
const MAX_TOKENS: u32 = 2000;

/// A plan as the model writes it. The service names it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Draft {
    /// What the user wants: read files, change them, search, or understand something.
    intent: PlanIntent,
    /// The calls of tools, in order.
    steps: Vec<PlanStep>,
    /// The evidence queries that the plan refers to, `Q1` to `Q8`.
    evidence_referenced: Vec<String>,
}

/// Returns the ending of a run that proposes a plan.
///
/// # Errors
/// [`Failure`] if the model gives no plan, or the run must stop.
pub async fn propose(
    run: &RunContext,
    deps: &Deps,
    toolbox: &Toolbox,
    deadline: Duration,
) -> Result<Ending, Failure> {
    let Some(ToolIntake::Plan { focus, evidence }) = run.accepted().tools.clone() else {
        return Err(Failure::internal("the run asks for no plan"));
    };
    let request = &run.accepted().question.message;
    let question = input(request, &focus, &evidence);
    let asked = Consultation {
        step: STEP,
        role: Role::Master,
        prompt: STEP,
        appendix: tools(),
        question: &question,
        schema: schemars::schema_for!(Draft).to_value(),
        max_tokens: MAX_TOKENS,
        until: Instant::now() + deadline,
    };
    let draft = match consult::<Draft>(run, deps, asked).await {
        Ok((draft, _)) => draft,
        Err(CallError::NoOutput(failed)) => return Err(Failure::master("plan", &failed)),
        Err(CallError::Stopped(failure)) => return Err(failure),
    };
    let plan = named(draft, run.id().to_string());
    let checked = run
        .compute("checking a plan", || validate(&plan, &evidence, toolbox))
        .await?;
    let mut changes = vec![];
    for step in checked
        .iter()
        .flatten()
        .filter(|step| step.tool.is_mutating())
    {
        // A splice plan that an earlier step writes cannot be read yet.
        let paths = tools_run::changes(step.tool, &step.arguments, &toolbox.workspace).await;
        changes.push((step.step_id.clone(), paths.unwrap_or_default()));
    }
    let planned = ToolPlanned {
        plan,
        changes,
        rejection: checked.err().map(|rejection| *rejection),
    };
    run.record(Event::ToolPlanned(Box::new(planned))).await?;
    let events = run.events();
    let outcome = match view::planned(&events) {
        Some(ToolPlanned {
            rejection: None, ..
        }) => ActionOutcome::Offered,
        _ => ActionOutcome::Declined,
    };
    Ok(Ending::Acted {
        outcome,
        response: view::plan(run.id(), &events, &[]),
    })
}

/// Reads a plan from a model's reply.
pub(super) fn parse(reply: &str) -> Option<ToolPlan> {
    let schema = schemars::schema_for!(Draft).to_value();
    let parsed = conclave_lenient_json::parse::<Draft>(reply, &schema).ok()?;
    Some(named(parsed.value, String::new()))
}

/// Returns the plan with its id. A step that changes files always needs a confirmation.
fn named(draft: Draft, plan_id: String) -> ToolPlan {
    let mut steps = draft.steps;
    for step in &mut steps {
        let is_mutating = step.tool.parse().is_ok_and(Tool::is_mutating);
        step.requires_confirmation |= is_mutating;
    }
    ToolPlan {
        plan_id,
        intent: draft.intent,
        steps,
        evidence_referenced: draft.evidence_referenced,
    }
}

/// Returns what the model reads: the request, its context and the summaries of the evidence.
pub fn input(request: &str, focus: &EvidenceFocus, evidence: &Value) -> String {
    let none = || "none".to_owned();
    let file = focus.file.clone().unwrap_or_else(none);
    let diagnostic = focus.diagnostic.clone().unwrap_or_else(none);
    let mut text = format!(
        "User request: {request}\n\nContext:\n- Current file: {file}\n- Current diagnostic: {diagnostic}\n\n\
         Evidence summary (read-only):\n"
    );
    for (query, what) in QUERIES {
        let rows = evidence.get(query).cloned().unwrap_or(json!([]));
        let shown = if rows.as_array().is_none_or(Vec::is_empty) {
            "no evidence found".to_owned()
        } else {
            rows.to_string()
        };
        text.push_str(&format!("- {query} ({what}): {shown}\n"));
    }
    text
}

/// Returns the catalog of the tools, which ends the stable part of the prompt.
fn tools() -> String {
    let line = |tool: &Tool| {
        let schema = tool.schema();
        format!(
            "- {tool}: {} Arguments: {}",
            tool.description(),
            schema.get("properties").unwrap_or(&Value::Null)
        )
    };
    Tool::ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}
