//! Asks a model for a plan, and checks it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use conclave_lenient_json::{Schema, strict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::call::Toolbox;
use super::planner_input::input;
use super::tool::Tool;
use super::validate::validate;
use super::view;
use crate::committee::{CallError, Deps, Failure, SingleCall, call_with_retries};
use crate::domain::{CallStep, PlanIntent, PlanStep, Role, ToolPlan};
use crate::journal::{ActionOutcome, Ending, Event, RunContext, ToolPlanned, ToolSubmission};

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
static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
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
    Arc::new(Schema::new(schema))
});

/// Returns the ending of a run that proposes a plan.
///
/// # Errors
/// [`Failure`] if the model gives no plan, tools are off, or the run must stop.
pub async fn propose(
    run: &RunContext,
    deps: &Deps,
    toolbox: Option<&Toolbox>,
    deadline: Duration,
) -> Result<Ending, Failure> {
    let toolbox = Toolbox::required(toolbox)?;
    let Some(ToolSubmission::Plan {
        focus, evidence, ..
    }) = run.accepted().tools.clone()
    else {
        return Err(Failure::internal("the run asks for no plan"));
    };
    let request = &run.accepted().question.message;
    let question = input(request, &focus, &evidence);
    let asked = single_call(&question, Instant::now() + deadline);
    let draft = match call_with_retries::<Draft>(run, deps, asked).await {
        Ok(draft) => draft,
        Err(CallError::NoOutput(failed)) => return Err(Failure::master("plan", &failed)),
        Err(CallError::Stopped(failure)) => return Err(failure),
    };
    let plan = completed(ToolPlan {
        plan_id: run.id().to_string(),
        intent: draft.intent,
        steps: draft.steps,
        evidence_referenced: draft.evidence_referenced,
    });
    let check = || validate(&plan, &evidence, &toolbox);
    let checked = run.compute(check).await?;
    let (outcome, changes, rejection) = match checked {
        Ok(changes) => (ActionOutcome::Offered, changes, None),
        Err(rejection) => (ActionOutcome::Declined, vec![], Some(*rejection)),
    };
    let planned = ToolPlanned {
        plan,
        changes,
        rejection,
    };
    run.record(Event::ToolPlanned(Box::new(planned)))?;
    let view = view::plan_view(run.id(), &run.events().to_vec(), &[]);
    Ok(Ending::Acted {
        outcome,
        response: json!(view),
    })
}

/// Returns the call that writes the plan.
pub fn single_call(question: &str, until: Instant) -> SingleCall<'_> {
    SingleCall {
        step: CallStep::ToolPlan,
        role: Role::Master,
        prompt: "tool_plan",
        appendix: tools(),
        question,
        schema: Arc::clone(&SCHEMA),
        max_tokens: MAX_TOKENS,
        until,
    }
}

/// Returns a plan without null arguments, and with the confirmation that every step needs which
/// changes files.
pub fn completed(mut plan: ToolPlan) -> ToolPlan {
    for step in &mut plan.steps {
        let tool = step.tool.parse::<Tool>();
        step.requires_confirmation |= tool.is_ok_and(|tool| tool.spec().is_mutating);
        step.arguments.retain(|_, value| !value.is_null());
    }
    plan
}

/// Returns the catalog of the tools, which ends the stable part of the prompt.
fn tools() -> String {
    let line = |tool: &Tool| {
        let (what, schema) = (tool.described(""), &tool.schema());
        let properties = &schema["properties"];
        format!("- {tool}: {what} Arguments: {properties}")
    };
    Tool::ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}
