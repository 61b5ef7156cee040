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
    json_schema!({ "type": "string", "enum": RunState::ALL.map(RunState::as_str) })
}

/// The schema of a hash: 64 hexadecimal digits.
pub(in crate::http) fn hash(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

/// The schema of the audit appendix. A part that the run did not reach is null.
pub(in crate::http) fn audit(_: &mut SchemaGenerator) -> Schema {
    let object = json!({ "type": ["object", "null"] });
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let objects = json!({ "type": ["array", "null"], "items": { "type": "object" } });
    let disagreements = closed(&[
        ("detected", objects.clone(), "By the engine."),
        ("summary", objects.clone(), "By the master."),
    ]);
    let parts = [
        (
            "runId",
            json!({ "type": "string", "format": "uuid" }),
            "The run.",
        ),
        (
            "continues",
            object.clone(),
            "The earlier run, and what the user said to it.",
        ),
        ("version", text.clone(), "The service's version."),
        ("configHash", text.clone(), "Hash of the config."),
        ("promptsHash", text, "Hash of the prompts."),
        ("hints", object.clone(), "Task types that rules guessed."),
        ("plan", object.clone(), "The plan as it was run."),
        (
            "planObtained",
            json!({ "type": ["string", "null"] }),
            "How the plan came out of the model's text.",
        ),
        (
            "planCorrections",
            texts.clone(),
            "What the service changed in the plan.",
        ),
        ("leftOut", texts, "What the cap had no room for."),
        (
            "agents",
            json!({ "type": "array", "items": audited_agent() }),
            "The latest outcome of each agent.",
        ),
        (
            "rounds",
            json!({ "type": "array", "items": audited_round() }),
            "Later rounds also have `resolutions`.",
        ),
        (
            "crossCheck",
            object.clone(),
            "What the cross-check found, pass by pass, or why there is none.",
        ),
        (
            "answerGroups",
            objects.clone(),
            "Final answers that are equal, with their agents.",
        ),
        (
            "disagreements",
            disagreements,
            "By the engine and by the master. Texts and unit ids of discarded outputs are left out.",
        ),
        (
            "coverage",
            object.clone(),
            "The parts of the request, and whether each is covered.",
        ),
        (
            "confidence",
            object.clone(),
            "The terms of c_final, each as estimated, measured and applied, and the threshold.",
        ),
        (
            "gate",
            json!({ "enum": ["ship", "ask", null] }),
            "Whether the reply shipped.",
        ),
        (
            "synthesis",
            object.clone(),
            "How it was obtained, corrections, units used, and the rules that the master's own text broke (`brokenRules`).",
        ),
        (
            "quarantineJustifications",
            objects,
            "Why quarantined material was used.",
        ),
        (
            "executionEstimate",
            object,
            "O, M, P, E and the totals, unrounded.",
        ),
        (
            "budget",
            audited_budget(),
            "The money of the run and of each call.",
        ),
    ];
    let mut schema = closed(&parts);
    if let Value::Object(schema) = &mut schema {
        schema.insert("title".into(), json!("Audit"));
    }
    Schema::try_from(schema).unwrap_or_default()
}

fn audited_agent() -> Value {
    let text = json!({ "type": ["string", "null"] });
    let count = json!({ "type": "integer", "minimum": 0 });
    closed(&[
        ("agent", json!({ "type": "string" }), "Its role."),
        ("outcome", json!({ "enum": ["answered", "failed"] }), ""),
        ("cause", text.clone(), "Why it failed."),
        (
            "round",
            json!({ "type": "integer", "minimum": 1 }),
            "The round of this outcome.",
        ),
        ("provider", text.clone(), "Of its last call."),
        (
            "model",
            text.clone(),
            "The model asked for in its last call.",
        ),
        (
            "servedModel",
            text.clone(),
            "The model that the provider says it used; null where it says none.",
        ),
        (
            "modelReplaced",
            json!({ "type": "boolean" }),
            "Another model than the one asked for answered.",
        ),
        ("attempts", count.clone(), "Calls in all rounds."),
        ("latencyMs", count.clone(), "Of all calls."),
        ("inputTokens", count.clone(), "Of all calls."),
        (
            "outputTokens",
            count.clone(),
            "Of all calls, thinking included.",
        ),
        (
            "thinkingTokens",
            count,
            "Of the output, as far as providers say it.",
        ),
        (
            "costUsd",
            json!({ "type": "number", "minimum": 0 }),
            "Of all calls.",
        ),
        (
            "obtained",
            text.clone(),
            "How the report came out of the model's text.",
        ),
        (
            "truncated",
            json!({ "type": "boolean" }),
            "The output ended at its token limit.",
        ),
        ("reusedFrom", text, "The run whose report was used again."),
        (
            "status",
            json!({ "enum": ["DISCARD", "QUARANTINE", "VALID"] }),
            "A failed agent is DISCARD.",
        ),
        (
            "cred",
            json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 }),
            "The sum of the axes divided by 125.",
        ),
        (
            "axes",
            json!({ "type": ["object", "null"] }),
            "Points and features of each axis.",
        ),
        (
            "fromCode",
            json!({ "type": ["number", "null"], "minimum": 0, "maximum": 125 }),
            "Points of all axes that come from checks of the text.",
        ),
        (
            "fromPeers",
            json!({ "type": ["number", "null"] }),
            "Points of all axes that come from other agents; may be negative.",
        ),
    ])
}

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
    let money = json!({ "type": ["number", "null"], "minimum": 0 });
    let count = json!({ "type": ["integer", "null"], "minimum": 0 });
    let text = json!({ "type": "string" });
    let call = closed(&[
        (
            "call",
            text.clone(),
            "The step, such as `r1/solver`; later attempts are `r1/solver#2`.",
        ),
        ("role", text.clone(), ""),
        ("provider", text.clone(), ""),
        ("model", text.clone(), "The model asked for."),
        (
            "servedModel",
            json!({ "type": ["string", "null"] }),
            "The model that the provider says it used; null where it says none.",
        ),
        (
            "modelReplaced",
            json!({ "type": "boolean" }),
            "Another model than the one asked for answered.",
        ),
        (
            "effort",
            json!({ "enum": ["none", "low", "medium", "high", null] }),
            "Null where the setting is left out.",
        ),
        (
            "state",
            text.clone(),
            "`answered`, `failed: CAUSE`, `in doubt` or `in flight`.",
        ),
        (
            "reservedUsd",
            money.clone(),
            "The worst case set aside; null for a free call.",
        ),
        (
            "reservedInputTokens",
            count.clone(),
            "The bound of the input in it.",
        ),
        ("maxTokens", count.clone(), "The output tokens in it."),
        ("costUsd", money, "What was settled."),
        ("inputTokens", count.clone(), ""),
        ("outputTokens", count.clone(), "Thinking included."),
        (
            "thinkingTokens",
            count.clone(),
            "Of the output, as far as the provider says it.",
        ),
        ("latencyMs", count, ""),
        ("promptHash", text, ""),
    ]);
    closed(&[
        (
            "capUsd",
            json!({ "type": "number", "minimum": 0 }),
            "The most that the run may cost.",
        ),
        (
            "spentUsd",
            json!({ "type": "number", "minimum": 0 }),
            "What was settled.",
        ),
        (
            "modeCapExceeded",
            json!({ "type": "boolean" }),
            "A provider billed more for some call than was reserved.",
        ),
        (
            "calls",
            json!({ "type": "array", "items": call }),
            "In the order in which they were sent.",
        ),
    ])
}

/// Returns the schema of an object with exactly these fields. Each has a name, a schema, and a
/// description where the name is not enough.
fn closed(fields: &[(&str, Value, &str)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _, _)| *name).collect();
    let described = |schema: &Value, about: &str| {
        let mut schema = schema.clone();
        if let Value::Object(schema) = &mut schema
            && !about.is_empty()
        {
            schema.insert("description".into(), json!(about));
        }
        schema
    };
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema, about)| ((*name).to_owned(), described(schema, about)))
        .collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}
