//! What the models of 2026 refuse, and how much they think, as documented by their providers
//! (2026-11-22). Kept apart from the data that the service ships, so that the tests find a mistake
//! there.

use std::sync::LazyLock;

use jsonschema::Validator;
use regex::Regex;
use serde_json::Value;

use super::call::Call;
use super::wire::{self, Tokens, Wire};

/// System prompts with fewer tokens are not cached.
const CACHED_FROM_TOKENS: i64 = 1024;
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

/// Returns the status and the reason with which the provider would reject the request.
pub(super) fn complaint(call: &Call) -> Option<(u16, String)> {
    let has = |name: &str| call.headers.contains_key(name);
    if call.wire == Wire::Anthropic && !has("x-api-key") && !has("authorization") {
        return Some((401, "x-api-key header is required".to_owned()));
    }
    let rules = match call.wire {
        Wire::Anthropic => &ANTHROPIC,
        Wire::OpenAi => &OPENAI,
    };
    let is_strict = call.body["response_format"]["json_schema"]["strict"] == true;
    let kind = call.headers.get("content-type");
    let reason = if kind.is_none_or(|kind| kind != "application/json") {
        "content-type must be application/json".to_owned()
    } else if call.wire == Wire::Anthropic && !has("anthropic-version") {
        "anthropic-version: header is required".to_owned()
    } else if let Some(error) = rules.iter_errors(&call.body).next() {
        format!("{}: {error}", error.instance_path())
    } else if call.wire == Wire::Anthropic && !ends_with_user(&call.body["messages"]) {
        "messages: the last must be the user's".to_owned()
    } else if is_strict && !requires_all(wire::schema(call)) {
        "'required' must list every property".to_owned()
    } else {
        return None;
    };
    Some((400, reason))
}

fn ends_with_user(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|all| all.last());
    last.is_some_and(|last| last["role"] == "user")
}

/// True if every object of a schema requires all its properties.
fn requires_all(schema: &Value) -> bool {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut properties = schema["properties"].as_object().into_iter().flatten();
    let items = schema.as_array().into_iter().flatten();
    let fields = schema
        .as_object()
        .into_iter()
        .flat_map(|object| object.values());
    properties.all(|(name, _)| required.iter().any(|known| known == name))
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
    wire::max_tokens(call) * percent / 100
}

/// Returns one token for every four bytes, rounded down.
pub(super) fn tokens(text: &str) -> i64 {
    (text.len() / 4) as i64
}

/// Returns the tokens that are billed for a reply, if the system prompt is in the cache or not.
pub(super) fn bill(call: &Call, reply: &str, thinking: i64, is_cached: bool) -> Tokens {
    let schema = Some(wire::schema(call)).filter(|schema| !schema.is_null());
    let schema = schema.map_or(0, |schema| tokens(&schema.to_string()));
    let system = tokens(&call.system());
    let rest = tokens(&call.prompt()) + schema + call.images() as i64 * IMAGE_TOKENS;
    let is_openai = call.wire == Wire::OpenAi;
    let asked = is_openai || call.body.to_string().contains("cache_control");
    let uses_cache = asked && system >= CACHED_FROM_TOKENS;
    let (input, cache_read, cache_write) = match (uses_cache, is_cached) {
        (true, true) => (rest, system, 0),
        (true, false) if !is_openai => (rest, 0, system),
        // These models write the whole prompt into a cache, and bill the write.
        (true, false) if WRITES_CACHE.is_match(&call.model) => (0, 0, system + rest),
        _ => (system + rest, 0, 0),
    };
    let is_on_top = is_openai && call.model.contains("grok-4");
    Tokens {
        input,
        cache_read,
        cache_write,
        output: tokens(reply).max(1) + thinking,
        thinking,
        on_top: if is_on_top { thinking } else { 0 },
    }
}
