//! Schemas of what several answers have in common, beyond what a type can say.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::journal::RunState;

/// A run's id.
pub(in crate::http) fn run_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "uuid" })
}

pub(in crate::http) fn run_id_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "uuid" })
}

/// An RFC 3339 time.
pub(in crate::http) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

pub(in crate::http) fn time_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "date-time" })
}

/// Where a run stands.
pub(in crate::http) fn state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": RunState::ALL.map(RunState::as_str) })
}

/// 64 hexadecimal digits.
pub(in crate::http) fn hash(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

/// The audit appendix: its parts are named here, and what they hold in docs/api.md. A part that a run did not come to is
/// null.
pub(in crate::http) fn audit(_: &mut SchemaGenerator) -> Schema {
    let object = json!({ "type": ["object", "null"] });
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let objects = json!({ "type": ["array", "null"], "items": { "type": "object" } });
    let disagreements = closed(&[("detected", objects.clone()), ("summary", objects.clone())]);
    let parts = [
        ("runId", json!({ "type": "string", "format": "uuid" })),
        ("continues", object.clone()),
        ("version", text.clone()),
        ("configHash", text.clone()),
        ("promptsHash", text),
        ("hints", object.clone()),
        ("plan", object.clone()),
        ("planObtained", json!({ "type": ["string", "null"] })),
        ("planCorrections", texts.clone()),
        ("leftOut", texts),
        ("agents", json!({ "type": "array", "items": audited_agent() })),
        ("rounds", json!({ "type": "array", "items": audited_round() })),
        ("answerGroups", objects.clone()),
        ("disagreements", disagreements),
        ("coverage", object.clone()),
        ("confidence", object.clone()),
        ("gate", json!({ "enum": ["ship", "ask", null] })),
        ("synthesis", object.clone()),
        ("quarantineJustifications", objects),
        ("executionEstimate", object),
        ("budget", audited_budget()),
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
        ("agent", json!({ "type": "string" })),
        ("outcome", json!({ "enum": ["answered", "failed"] })),
        ("cause", text.clone()),
        ("round", json!({ "type": "integer", "minimum": 1 })),
        ("provider", text.clone()),
        ("model", text.clone()),
        ("attempts", count.clone()),
        ("latencyMs", count.clone()),
        ("inputTokens", count.clone()),
        ("outputTokens", count),
        ("costUsd", json!({ "type": "number", "minimum": 0 })),
        ("obtained", text.clone()),
        ("truncated", json!({ "type": "boolean" })),
        ("reusedFrom", text),
        ("status", json!({ "enum": ["DISCARD", "QUARANTINE", "VALID"] })),
        ("cred", json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 })),
        ("axes", json!({ "type": ["object", "null"] })),
        ("fromCode", json!({ "type": ["number", "null"], "minimum": 0, "maximum": 125 })),
        ("fromPeers", json!({ "type": ["number", "null"] })),
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
        ("call", text.clone()),
        ("role", text.clone()),
        ("provider", text.clone()),
        ("model", text.clone()),
        ("state", text.clone()),
        ("reservedUsd", money.clone()),
        ("reservedInputTokens", count.clone()),
        ("maxTokens", count.clone()),
        ("costUsd", money),
        ("inputTokens", count.clone()),
        ("outputTokens", count.clone()),
        ("latencyMs", count),
        ("promptHash", text),
    ]);
    closed(&[
        ("capUsd", json!({ "type": "number", "minimum": 0 })),
        ("spentUsd", json!({ "type": "number", "minimum": 0 })),
        ("modeCapExceeded", json!({ "type": "boolean" })),
        ("calls", json!({ "type": "array", "items": call })),
    ])
}

/// An object with exactly these fields.
fn closed(fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}
