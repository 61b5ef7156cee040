//! Schemas that several responses share and that the types alone cannot express.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::journal::RunState;

/// The schema of a run's id.
pub(in crate::http) fn run_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "uuid" })
}

pub(in crate::http) fn run_id_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "uuid" })
}

/// The schema of an RFC 3339 time.
pub(in crate::http) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

pub(in crate::http) fn time_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "date-time" })
}

/// The schema of a run's state.
pub(in crate::http) fn state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": RunState::ALL.map(|state| state.into_str()) })
}

/// The schema of a hash: 64 hexadecimal digits.
pub(in crate::http) fn hash(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

/// The schema of the audit appendix. A part that the run did not reach is null.
pub(in crate::http) fn audit(_: &mut SchemaGenerator) -> Schema {
    let objects = |about: &str| json!({ "type": ["array", "null"], "items": { "type": "object" }, "description": about });
    let object = |about: &str| json!({ "type": ["object", "null"], "description": about });
    let text = |about: &str| json!({ "type": "string", "description": about });
    let texts = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let disagreements = closed(
        &json!({ "detected": objects("By the engine."), "summary": objects("By the master.") }),
        &[],
    );
    let disagreements_about =
        "By the engine and by the master. Texts and unit ids of discarded outputs are left out.";
    let schema = closed(
        &json!({
            "runId": { "type": "string", "format": "uuid", "description": "The run." },
            "continues": object("The earlier run, and what the user said to it."),
            "version": text("The service's version."),
            "configHash": text("Hash of the config."),
            "promptsHash": text("Hash of the prompts."),
            "hints": object("Task types that rules guessed."),
            "plan": object("The plan as it was run."),
            "planObtained": { "type": ["string", "null"], "description": "How the plan came out of the model's text." },
            "planCorrections": texts("What the service changed in the plan."),
            "leftOut": texts("What the cap had no room for."),
            "agents": { "type": "array", "items": audited_agent(), "description": "The latest outcome of each agent." },
            "rounds": { "type": "array", "items": audited_round(), "description": "Later rounds also have `resolutions`." },
            "crossCheck": object("What the cross-check found, pass by pass, or why there is none."),
            "answerGroups": objects("Final answers that are equal, with their agents."),
            "disagreements": with(disagreements, "description", disagreements_about),
            "coverage": object("The parts of the request, and whether each is covered."),
            "confidence": object("The terms of c_final, each as estimated, measured and applied, and the threshold."),
            "gate": { "enum": ["ship", "ask", null], "description": "Whether the reply shipped." },
            "synthesis": object("How it was obtained, corrections, units used, and the rules that the master's own text \
                                 broke (`brokenRules`)."),
            "quarantineJustifications": objects("Why quarantined material was used."),
            "executionEstimate": object("O, M, P, E and the totals, unrounded but for the noise of their sums."),
            "budget": with(audited_budget(), "description", "The money of the run and of each call."),
        }),
        &[],
    );
    Schema::try_from(with(schema, "title", "Audit")).unwrap_or_default()
}

fn audited_agent() -> Value {
    let text = |about: &str| json!({ "type": ["string", "null"], "description": about });
    let count = |about: &str| json!({ "type": "integer", "minimum": 0, "description": about });
    let truth = |about: &str| json!({ "type": "boolean", "description": about });
    closed(
        &json!({
            "agent": { "type": "string", "description": "Its role." },
            "outcome": { "enum": ["answered", "failed"] },
            "cause": text("Why it failed."),
            "round": { "type": "integer", "minimum": 1, "description": "The round of this outcome." },
            "provider": text("Of its last call."),
            "model": text("The model asked for in its last call."),
            "servedModel": text(SERVED_MODEL),
            "modelReplaced": truth(MODEL_REPLACED),
            "attempts": count("Calls in all rounds."),
            "latencyMs": count("The sum over all calls."),
            "inputTokens": count("Of all calls."),
            "outputTokens": count("Of all calls, thinking included."),
            "thinkingTokens": count("Of the output, as far as providers say it."),
            "costUsd": { "type": "number", "minimum": 0, "description": "Of all calls." },
            "obtained": text("How the report came out of the model's text."),
            "truncated": truth("The output ended at its token limit."),
            "reusedFrom": text("The run whose report was used again."),
            "status": { "enum": ["DISCARD", "QUARANTINE", "VALID"], "description": "A failed agent is DISCARD." },
            "cred": { "type": ["number", "null"], "minimum": 0, "maximum": 1,
                      "description": "The sum of the axes divided by 125." },
            "axes": { "type": ["object", "null"], "description": "Points and features of each axis." },
            "fromCode": { "type": ["number", "null"], "minimum": 0, "maximum": 125,
                          "description": "Points of all axes that come from checks of the text." },
            "fromPeers": { "type": ["number", "null"],
                           "description": "Points of all axes that come from other agents; may be negative." },
        }),
        &[],
    )
}

const SERVED_MODEL: &str = "The model that the provider says it used; null where it says none.";
const MODEL_REPLACED: &str = "Another model than the one asked for answered.";

fn audited_round() -> Value {
    json!({
        "type": "object",
        "properties": {
            "round": { "type": "integer", "minimum": 1 },
            "state": { "enum": ["run", "skipped"] },
            "why": { "type": "string" },
        },
        "required": ["round", "state", "why"],
    })
}

fn audited_budget() -> Value {
    let money =
        |about: &str| json!({ "type": ["number", "null"], "minimum": 0, "description": about });
    let count =
        |about: &str| json!({ "type": ["integer", "null"], "minimum": 0, "description": about });
    let text = |about: &str| json!({ "type": "string", "description": about });
    let calls = closed(
        &json!({
            "call": text("The step, such as `r1/solver`; later attempts are `r1/solver#2`."),
            "role": { "type": "string" },
            "provider": { "type": "string" },
            "model": text("The model asked for."),
            "servedModel": { "type": ["string", "null"], "description": SERVED_MODEL },
            "modelReplaced": { "type": "boolean", "description": MODEL_REPLACED },
            "effort": { "enum": ["none", "low", "medium", "high", null],
                        "description": "Null where the setting is left out." },
            "state": text("`answered`, `failed: CAUSE`, `in doubt` or `in flight`."),
            "reservedUsd": money("The worst case set aside; null for a free call."),
            "reservedInputTokens": count("The bound of the input in it."),
            "maxTokens": count("The output tokens in it."),
            "costUsd": money("What was settled."),
            "inputTokens": { "type": ["integer", "null"], "minimum": 0 },
            "outputTokens": count("Thinking included."),
            "thinkingTokens": count("Of the output, as far as the provider says it."),
            "latencyMs": { "type": ["integer", "null"], "minimum": 0 },
            "promptHash": { "type": "string" },
        }),
        &[],
    );
    closed(
        &json!({
            "capUsd": { "type": "number", "minimum": 0, "description": "The most that the run may cost." },
            "spentUsd": { "type": "number", "minimum": 0, "description": "What was settled." },
            "modeCapExceeded": { "type": "boolean",
                                 "description": "A provider billed more for some call than was reserved." },
            "calls": { "type": "array", "items": calls, "description": "In the order in which they were sent." },
        }),
        &[],
    )
}

/// Adds a text to a schema.
pub(in crate::http) fn with(mut schema: Value, key: &str, value: impl Into<Value>) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.insert(key.to_owned(), value.into());
    }
    schema
}

/// Returns the schema of an object with exactly these properties, of which some are optional.
pub(in crate::http) fn closed(properties: &Value, optional: &[&str]) -> Value {
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    let required: Vec<&String> = names
        .filter(|name| !optional.contains(&name.as_str()))
        .collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
