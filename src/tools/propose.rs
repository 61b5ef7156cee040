//! Asks a model for a plan, and checks it.

use std::sync::LazyLock;
use std::time::Duration;

use conclave_lenient_json::{Schema, strict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::run as tools_run;
use super::tool::Tool;
use super::toolbox::Toolbox;
use super::validate::{CheckedStep, QUERIES, is_empty, validate};
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

/// The schema of a plan. A step's arguments are those of all tools together, because the strict
/// output of providers allows no property that the schema does not list. Unused ones are null.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = strict::inlined(&schemars::schema_for!(Draft).to_value());
    let names = Tool::ALL.iter().flat_map(|tool| tool.parameters());
    let properties: Map<String, Value> = names
        .map(|it| (it.name.to_owned(), json!({ "type": ["string", "null"] })))
        .collect();
    if let Some(arguments) = schema.pointer_mut("/properties/steps/items/properties/arguments") {
        *arguments = json!({
            "description": "The arguments of the tool by name; null for those of other tools.",
            "type": "object", "properties": properties, "additionalProperties": false,
        });
    }
    schema
});

/// The same schema, for replies.
static READER: LazyLock<Schema> = LazyLock::new(|| Schema::new(SCHEMA.clone()));

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
    let asked = consultation(&question, Instant::now() + deadline);
    let draft = match consult::<Draft>(run, deps, asked).await {
        Ok((draft, _)) => draft,
        Err(CallError::NoOutput(failed)) => return Err(Failure::master("plan", &failed)),
        Err(CallError::Stopped(failure)) => return Err(failure),
    };
    let plan = named(draft, run.id().to_string());
    let checked = run
        .compute("checking a plan", || validate(&plan, &evidence, toolbox))
        .await?;
    let changes = match &checked {
        Ok(steps) => changes(steps, toolbox).await,
        Err(_) => vec![],
    };
    let planned = ToolPlanned {
        plan,
        changes,
        rejection: checked.err().map(|rejection| *rejection),
    };
    run.record(Event::ToolPlanned(Box::new(planned))).await?;
    let events = run.events().to_vec();
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

/// Returns the call that writes the plan.
pub fn consultation(question: &str, until: Instant) -> Consultation<'_> {
    Consultation {
        step: STEP,
        role: Role::Master,
        prompt: STEP,
        appendix: tools(),
        question,
        schema: SCHEMA.clone(),
        max_tokens: MAX_TOKENS,
        until,
    }
}

/// Returns the steps that change files, with the paths.
pub async fn changes(steps: &[CheckedStep], toolbox: &Toolbox) -> Vec<(String, Vec<String>)> {
    let mut changes = vec![];
    for step in steps.iter().filter(|step| step.tool.is_mutating()) {
        // A splice plan that an earlier step writes cannot be read yet.
        let paths = tools_run::changes(step.tool, &step.arguments, &toolbox.workspace).await;
        changes.push((step.step_id.clone(), paths.unwrap_or_default()));
    }
    changes
}

/// Reads a plan from a model's reply.
pub(super) fn parse(reply: &str) -> Option<ToolPlan> {
    let parsed = conclave_lenient_json::parse::<Draft>(reply, &READER).ok()?;
    Some(named(parsed.value, String::new()))
}

/// Returns the plan with its id.
fn named(draft: Draft, plan_id: String) -> ToolPlan {
    completed(ToolPlan {
        plan_id,
        intent: draft.intent,
        steps: draft.steps,
        evidence_referenced: draft.evidence_referenced,
    })
}

/// Returns a plan without null arguments, and with the confirmation that every step needs which
/// changes files.
pub fn completed(mut plan: ToolPlan) -> ToolPlan {
    for step in &mut plan.steps {
        let is_mutating = step.tool.parse().is_ok_and(Tool::is_mutating);
        step.requires_confirmation |= is_mutating;
        step.arguments.retain(|_, value| !value.is_null());
    }
    plan
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
    text.push_str(&summaries(evidence));
    text
}

/// Returns the summaries of the evidence, one line for each query.
pub fn summaries(evidence: &Value) -> String {
    let mut text = String::new();
    for (query, what) in QUERIES {
        let shown = match evidence.get(query) {
            Some(rows) if !is_empty(evidence, query) => rows.to_string(),
            _ => "no evidence found".to_owned(),
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
