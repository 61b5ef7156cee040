use proptest::prelude::*;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::*;

#[derive(JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Report {
    /// What was found.
    #[schemars(length(max = 5))]
    summary: Vec<String>,
    kind: Kind,
    #[schemars(range(min = 0.0, max = 1.0))]
    confidence: f64,
    note: Option<String>,
    units: Vec<Unit>,
    question: Option<Question>,
    rounds: u8,
}

#[derive(JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Unit {
    #[schemars(length(min = 1, max = 8))]
    id: String,
    origin: Origin,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Origin {
    source: String,
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Question {
    text: String,
}

#[derive(JsonSchema, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(dead_code)]
enum Kind {
    /// Words about pictures.
    VisualAnalysis,
    /// Everything else.
    General,
    Other,
}

#[derive(JsonSchema, Deserialize)]
#[allow(dead_code)]
struct Tree {
    branches: Vec<Tree>,
}

fn report() -> Value {
    schema_for!(Report).to_value()
}

#[test]
fn a_rust_type_becomes_what_both_vendors_take() {
    assert_eq!(
        for_vendor(&report()),
        json!({
            "type": "object",
            "properties": {
                "summary": {"type": "array", "items": {"type": "string"}, "description": "What was found. At most 5 items."},
                "kind": {
                    "type": "string",
                    "enum": ["OTHER", "VISUAL_ANALYSIS", "GENERAL"],
                    "description": "VISUAL_ANALYSIS: Words about pictures.; GENERAL: Everything else.",
                },
                "confidence": {"type": "number", "description": "0.0 to 1.0."},
                "note": {"type": ["string", "null"]},
                "units": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "description": "1 to 8 characters."},
                        "origin": {
                            "type": "object",
                            "properties": {"source": {"type": "string"}},
                            "required": ["source"],
                            "additionalProperties": false,
                        },
                        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
                    },
                    "required": ["id", "origin", "tags"],
                    "additionalProperties": false,
                }},
                "question": {"anyOf": [
                    {
                        "type": "object",
                        "properties": {"text": {"type": "string"}},
                        "required": ["text"],
                        "additionalProperties": false,
                    },
                    {"type": "null"},
                ]},
                "rounds": {"type": "integer", "description": "0 to 255."},
            },
            "required": ["summary", "kind", "confidence", "note", "units", "question", "rounds"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn inlining_keeps_the_bounds_and_drops_the_references() {
    let schema = inlined(&report());
    let text = schema.to_string();
    assert!(!text.contains("$ref") && !text.contains("$defs"), "{text}");
    assert_eq!(
        schema.pointer("/properties/units/items/properties/id/maxLength"),
        Some(&json!(8))
    );
    assert_eq!(
        schema.pointer("/properties/confidence/maximum"),
        Some(&json!(1.0))
    );
}

#[test]
fn a_recursive_type_ends() {
    let schema = schema_for!(Tree).to_value();
    assert!(!for_vendor(&schema).to_string().contains("$ref"));
}

#[test]
fn a_union_of_types_stays_a_union() {
    let schema = json!({
        "type": "object",
        "properties": {"b": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 2}]}},
    });
    assert_eq!(
        for_vendor(&schema).pointer("/properties/b"),
        Some(&json!({"anyOf": [
            {"type": "string"},
            {"type": "integer", "description": "At least 2."},
            {"type": "null"},
        ]}))
    );
}

#[test]
fn a_property_may_be_named_like_a_keyword() {
    let schema = json!({
        "$defs": {"Text": {"type": "string"}},
        "type": "object",
        "properties": {"title": {"$ref": "#/$defs/Text"}, "format": {"$ref": "#/$defs/Text"}},
        "required": ["title", "format"],
    });
    assert_eq!(
        for_vendor(&schema)["properties"],
        json!({"title": {"type": "string"}, "format": {"type": "string"}})
    );
}

#[test]
fn it_is_idempotent() {
    let once = for_vendor(&report());
    assert_eq!(for_vendor(&once), once);
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = "type properties items anyOf oneOf enum const $ref $defs required minimum a";
    let keys: Vec<&str> = keys.split(' ').collect();
    let leaves = [json!(null), json!("object"), json!("#/$defs/a"), json!(7)];
    prop::sample::select(leaves.to_vec()).prop_recursive(5, 40, 5, move |inner| {
        let member = (prop::sample::select(keys.clone()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            prop::collection::vec(member, 0..4).prop_map(|members| {
                let members = members.into_iter();
                members
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_makes_it_panic(schema in any_json()) {
        let _ = for_vendor(&schema);
    }
}
