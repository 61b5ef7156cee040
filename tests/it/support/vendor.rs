//! What the models of 2026 refuse, and how much they think, as documented by their providers
//! (2026-11-22). Kept apart from the data that the service ships, so that the tests find a mistake
//! there.

use std::sync::LazyLock;

use jsonschema::Validator;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::call::Call;
use super::wire::{Answer, Wire};

/// The most parameters with union types in a schema of Anthropic's.
const MAX_UNIONS: usize = 16;
/// The billed tokens of an image.
const IMAGE_TOKENS: i64 = 1_500;

fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

static ANTHROPIC: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../data/anthropic-request.schema.json")));
static OPENAI: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../data/openai-request.schema.json")));

/// The models that think. All others do not.
static THINKING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(claude-\w+-5[.-]5|gpt-6-luna|gpt-6\.1-sol|grok-4\.[36]|gemma4:e4b)$").unwrap()
});

/// Returns the reason with which the provider would reject the request.
pub(super) fn complaint(call: &Call) -> Option<String> {
    let is_anthropic = call.wire == Wire::Anthropic;
    let rules = if is_anthropic { &ANTHROPIC } else { &OPENAI };
    let has = |name: &str| call.headers.contains_key(name);
    let has_key = has("x-api-key") || has("authorization");
    if !has("content-type") || is_anthropic && !(has_key && has("anthropic-version")) {
        return Some("a header is missing".to_owned());
    }
    if let Some(error) = rules.iter_errors(&call.body).next() {
        return Some(format!("{}: {error}", error.instance_path()));
    }
    let is_too_wide = is_anthropic && unions(call.schema()) > MAX_UNIONS;
    is_too_wide.then(|| "Schemas contains too many parameters with union types".to_owned())
}

/// Returns the number of values in a schema that may have several types.
fn unions(schema: &Value) -> usize {
    let is_union = schema["anyOf"].is_array() || schema["type"].is_array();
    let items = schema.as_array().into_iter().flatten();
    let fields = schema.as_object().into_iter().flat_map(Map::values);
    usize::from(is_union) + items.chain(fields).map(unions).sum::<usize>()
}

/// Returns the thinking tokens of a call: the largest share of its limit that the effort allows.
/// Without a setting a model thinks until its limit is used up.
pub(super) fn thinking(call: &Call) -> i64 {
    let effort = match call.wire {
        Wire::Anthropic if call.body["thinking"]["type"] == "disabled" => Some("none"),
        Wire::Anthropic => call.body["output_config"]["effort"].as_str(),
        Wire::OpenAi => call.body["reasoning_effort"].as_str(),
    };
    let percent = match effort {
        _ if !THINKING.is_match(&call.model) => return 0,
        Some("none") => 0,
        Some("low") => 30,
        Some("medium") => 50,
        Some("high") => 80,
        _ => 100,
    };
    call.max_tokens() * percent / 100
}

/// Returns one token for every four bytes, rounded down.
fn tokens(text: &str) -> i64 {
    (text.len() / 4) as i64
}

/// Returns the usage that is reported for a reply. `output` replaces the tokens of the output.
pub(super) fn usage(call: &Call, answer: &Answer, output: Option<i64>) -> Value {
    let schema = Some(call.schema()).filter(|schema| !schema.is_null());
    let schema = schema.map_or(0, |schema| tokens(&schema.to_string()));
    let input = tokens(&call.text()) + schema + call.images() as i64 * IMAGE_TOKENS;
    let output = output.unwrap_or(tokens(&answer.text).max(1) + answer.thinking);
    match call.wire {
        Wire::Anthropic => json!({
            "input_tokens": input, "output_tokens": output,
            "output_tokens_details": { "thinking_tokens": answer.thinking },
        }),
        Wire::OpenAi => json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "completion_tokens_details": { "reasoning_tokens": answer.thinking },
        }),
    }
}
