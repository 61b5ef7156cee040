//! What the models of 2026 refuse, and how much they think, as documented by their providers
//! (2026-11-22). Kept apart from the data that the service ships, so that the tests find a mistake
//! there.

use std::sync::LazyLock;

use jsonschema::Validator;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::call::Call;
use super::script::Fault;
use super::wire::{Answer, Wire};

/// System prompts with fewer tokens are not cached.
const CACHED_FROM_TOKENS: i64 = 1024;
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

static WRITES_CACHE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(claude-\w+-5[.-]5|gpt-6-luna|gpt-6\.1-sol)$").unwrap());

/// Returns the reason with which the provider would reject the request.
pub(super) fn complaint(call: &Call) -> Option<String> {
    let is_anthropic = call.wire == Wire::Anthropic;
    let rules = if is_anthropic { &ANTHROPIC } else { &OPENAI };
    let has = |name: &&str| call.headers.contains_key(*name);
    let is_json = call
        .headers
        .get("content-type")
        .is_some_and(|kind| kind == "application/json");
    let is_strict = call.body["response_format"]["json_schema"]["strict"] == true;
    if !is_json {
        Some("content-type must be application/json".to_owned())
    } else if is_anthropic && !["x-api-key", "authorization"].iter().any(has) {
        Some("x-api-key header is required".to_owned())
    } else if is_anthropic && !has(&"anthropic-version") {
        Some("anthropic-version: header is required".to_owned())
    } else if let Some(error) = rules.iter_errors(&call.body).next() {
        Some(format!("{}: {error}", error.instance_path()))
    } else if is_anthropic && !ends_with_user(&call.body["messages"]) {
        Some("messages: the last must be the user's".to_owned())
    } else if is_anthropic && unions(call.schema()) > MAX_UNIONS {
        Some("Schemas contains too many parameters with union types".to_owned())
    } else if is_strict && !requires_all(call.schema()) {
        Some("'required' must list every property".to_owned())
    } else {
        None
    }
}

/// Returns the number of values in a schema that may have several types.
fn unions(schema: &Value) -> usize {
    let is_union = schema["anyOf"].is_array() || schema["type"].is_array();
    let items = schema.as_array().into_iter().flatten();
    let fields = schema.as_object().into_iter().flat_map(Map::values);
    usize::from(is_union) + items.chain(fields).map(unions).sum::<usize>()
}

fn ends_with_user(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|all| all.last());
    last.is_some_and(|last| last["role"] == "user")
}

/// True if every object of a schema requires all its properties.
fn requires_all(schema: &Value) -> bool {
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let mut properties = schema["properties"].as_object().into_iter().flatten();
    let items = schema.as_array().into_iter().flatten();
    let fields = schema.as_object().into_iter().flat_map(Map::values);
    properties.all(|(name, _)| required.contains(&name.as_str()))
        && items.chain(fields).all(requires_all)
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

/// Returns the usage that is reported for a reply, if the system prompt is in the cache or not.
pub(super) fn usage(call: &Call, answer: &Answer, is_cached: bool, fault: Option<&Fault>) -> Value {
    let schema = Some(call.schema()).filter(|schema| !schema.is_null());
    let schema = schema.map_or(0, |schema| tokens(&schema.to_string()));
    let system = tokens(&call.system());
    let rest = tokens(&call.prompt()) + schema + call.images() as i64 * IMAGE_TOKENS;
    let is_openai = call.wire == Wire::OpenAi;
    let asked = is_openai || call.body.to_string().contains("cache_control");
    let uses_cache = asked && system >= CACHED_FROM_TOKENS;
    let (input, read, written) = match (uses_cache, is_cached) {
        (true, true) => (rest, system, 0),
        (true, false) if !is_openai => (rest, 0, system),
        // These models write the whole prompt into a cache, and bill the write.
        (true, false) if WRITES_CACHE.is_match(&call.model) => (0, 0, system + rest),
        _ => (system + rest, 0, 0),
    };
    let thinking = answer.thinking;
    let (input, output) = match fault {
        Some(Fault::NoUsage) => return Value::Null,
        Some(Fault::NegativeUsage) => (-1, -5),
        Some(Fault::HugeUsage(output)) => (input, *output),
        _ => (input, tokens(&answer.text).max(1) + thinking),
    };
    if !is_openai {
        return json!({
            "input_tokens": input, "output_tokens": output,
            "cache_creation_input_tokens": written, "cache_read_input_tokens": read,
            "output_tokens_details": { "thinking_tokens": thinking },
        });
    }
    // The prompt tokens include cache reads and cache writes. These models report their thinking in
    // addition to the completion tokens, not as a part of them.
    let prompt = input + read + written;
    let on_top = if call.model.contains("grok-4") {
        thinking
    } else {
        0
    };
    json!({
        "prompt_tokens": prompt, "completion_tokens": output - on_top,
        "total_tokens": prompt + output,
        "prompt_tokens_details": { "cached_tokens": read, "cache_write_tokens": written },
        "completion_tokens_details": { "reasoning_tokens": thinking },
    })
}
