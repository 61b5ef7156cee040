//! How the models of 2026 think and what their APIs refuse, as documented by the vendors
//! (2026-11-22). Kept apart from the data that the service ships, so that the tests find a mistake
//! there.

use super::record::Call;
use super::wire::{Wire, max_tokens};

/// The behaviour of a family of models. An unknown model does not think and refuses nothing.
#[derive(Debug, Clone, Copy)]
struct Model {
    efforts: &'static [&'static str],
    /// The effort without a setting.
    default: &'static str,
    temperature: When,
    forced_tool: When,
    /// Reasoning is reported in addition to the completion tokens, not as a part of them.
    on_top: bool,
    /// The prompt is written into a cache automatically, and the write is billed.
    writes_cache: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    WithoutThinking,
    Never,
}

const ALL: &[&str] = &["none", "low", "medium", "high", "xhigh", "max"];
const NO_NONE: &[&str] = &["low", "medium", "high", "xhigh", "max"];

fn known(id: &str) -> Option<Model> {
    let name = id.rsplit('/').next().unwrap_or(id).replace('.', "-");
    let anthropic = Model {
        efforts: ALL,
        default: "high",
        temperature: When::Never,
        forced_tool: When::WithoutThinking,
        on_top: false,
        writes_cache: false,
    };
    let openai = Model {
        temperature: When::WithoutThinking,
        writes_cache: true,
        ..anthropic
    };
    let xai = Model {
        temperature: When::Always,
        forced_tool: When::Always,
        on_top: true,
        ..anthropic
    };
    Some(match name.as_str() {
        "claude-sonnet-5-5" | "claude-opus-5-5" => Model {
            efforts: NO_NONE,
            forced_tool: When::Never,
            ..anthropic
        },
        "claude-haiku-5-5" => anthropic,
        "gpt-6-1-sol" => Model {
            efforts: NO_NONE,
            forced_tool: When::Never,
            temperature: When::Never,
            ..openai
        },
        "gpt-6-luna" => openai,
        "grok-4-6" => Model {
            efforts: NO_NONE,
            ..xai
        },
        "grok-4-3" => xai,
        "gemma4:e4b" => Model {
            temperature: When::Always,
            forced_tool: When::Never,
            ..anthropic
        },
        _ => return None,
    })
}

/// Returns the effort of a call, or the model's default.
fn effort<'a>(call: &'a Call, model: &Model) -> &'a str {
    let default = model.default;
    match call.wire {
        Wire::Anthropic if call.body["thinking"]["type"] == "disabled" => "none",
        Wire::Anthropic => call.body["output_config"]["effort"]
            .as_str()
            .unwrap_or(default),
        Wire::OpenAi => call.body["reasoning_effort"].as_str().unwrap_or(default),
    }
}

/// Returns the reason for which the vendor would answer 400.
pub(super) fn complaint(call: &Call) -> Option<String> {
    let model = known(&call.model)?;
    let body = &call.body;
    let effort = effort(call, &model);
    if !model.efforts.contains(&effort) {
        return Some(match call.wire {
            Wire::Anthropic => format!(
                "\"thinking.type.disabled\" is not supported for {}",
                call.model
            ),
            Wire::OpenAi => format!(
                "Unsupported value: '{effort}' is not supported with the '{}' model.",
                call.model
            ),
        });
    }
    let refuses =
        |when: When| when == When::Never || (when == When::WithoutThinking && effort != "none");
    if !body["temperature"].is_null() && refuses(model.temperature) {
        return Some(
            "Unsupported value: 'temperature' does not support 0.2 with this model.".to_owned(),
        );
    }
    let forced = matches!(
        body["tool_choice"]["type"].as_str(),
        Some("tool" | "any" | "function")
    );
    if forced && refuses(model.forced_tool) {
        return Some(
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.".to_owned(),
        );
    }
    if call.wire == Wire::OpenAi && call.model.starts_with("gpt-") && !body["max_tokens"].is_null()
    {
        return Some(
            "Unsupported parameter: 'max_tokens' is not supported with this model.".to_owned(),
        );
    }
    None
}

/// Returns the thinking tokens of a call: the largest share of its limit that the effort allows.
pub(super) fn tokens(call: &Call) -> i64 {
    let (Some(model), Some(max)) = (known(&call.model), max_tokens(call)) else {
        return 0;
    };
    let percent = match effort(call, &model) {
        "none" => 0,
        "low" => 30,
        "medium" => 50,
        "high" => 80,
        _ => 100,
    };
    // Without a setting these models think until a small limit is used up.
    let is_told =
        !call.body["output_config"]["effort"].is_null() || !call.body["reasoning_effort"].is_null();
    let percent = if is_told || percent == 0 {
        percent
    } else {
        100
    };
    (max * percent / 100) as i64
}

/// True if reasoning is reported in addition to the completion tokens.
pub(super) fn is_on_top(call: &Call) -> bool {
    known(&call.model).is_some_and(|model| model.on_top) && call.wire == Wire::OpenAi
}

/// True if a first prompt is billed as a cache write.
pub(super) fn writes_cache(call: &Call) -> bool {
    known(&call.model).is_some_and(|model| model.writes_cache) && call.wire == Wire::OpenAi
}
