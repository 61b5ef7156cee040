//! The two wire formats as documented by their vendors: replies, event streams and errors.

use serde_json::{Value, json};

use super::record::Call;

/// The vendor's format of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// `.../messages`
    Anthropic,
    /// `.../chat/completions`
    OpenAi,
}

/// A model's answer, independent of a vendor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub text: String,
    pub stop: Stop,
    pub tokens: Option<Tokens>,
    /// The model that answered.
    pub model: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    End,
    /// Stopped at `max_tokens`.
    Cut,
    Refused,
}

/// Billed tokens. `input` excludes cache reads and cache writes. Signed, because a mock may report
/// false counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub input: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    /// Includes thinking.
    pub output: i64,
    pub thinking: i64,
}

/// The form of reply that the caller wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    Text,
    /// JSON text that fits this schema (null for plain JSON mode).
    Json(Value),
    /// A forced call of the named tool.
    Tool(String, Value),
}

/// A body ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    pub content_type: &'static str,
    pub text: String,
}

impl Wire {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        if path.ends_with("/chat/completions") {
            Some(Wire::OpenAi)
        } else {
            path.ends_with("/messages").then_some(Wire::Anthropic)
        }
    }

    /// Returns the header with the provider's id of a request.
    pub(super) fn request_id_header(self) -> &'static str {
        match self {
            Wire::Anthropic => "request-id",
            Wire::OpenAi => "x-request-id",
        }
    }
}

pub(super) fn wanted(call: &Call) -> Wanted {
    let body = &call.body;
    match call.wire {
        Wire::Anthropic => {
            let format = &body["output_config"]["format"];
            let forced = body["tool_choice"]["name"]
                .as_str()
                .filter(|_| body["tool_choice"]["type"] == "tool");
            if format["type"] == "json_schema" {
                Wanted::Json(format["schema"].clone())
            } else if let Some(name) = forced {
                let tools = body["tools"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let tool = tools
                    .iter()
                    .find(|tool| tool["name"] == name)
                    .unwrap_or(&Value::Null);
                Wanted::Tool(name.to_owned(), tool["input_schema"].clone())
            } else {
                Wanted::Text
            }
        }
        Wire::OpenAi => match body["response_format"]["type"].as_str() {
            Some("json_schema") => {
                Wanted::Json(body["response_format"]["json_schema"]["schema"].clone())
            }
            Some("json_object") => Wanted::Json(Value::Null),
            _ => Wanted::Text,
        },
    }
}

/// Returns the maximum of output tokens that the caller allows.
pub(super) fn max_tokens(call: &Call) -> Option<usize> {
    let max = call.body["max_completion_tokens"]
        .as_u64()
        .or_else(|| call.body["max_tokens"].as_u64());
    max.and_then(|max| usize::try_from(max).ok())
}

pub(super) fn render(call: &Call, answer: &Answer) -> Payload {
    let reply = match call.wire {
        Wire::Anthropic => anthropic(call, answer),
        Wire::OpenAi => openai(call, answer),
    };
    if call.body["stream"] != true {
        return Payload {
            content_type: "application/json",
            text: reply.to_string(),
        };
    }
    let text = match call.wire {
        Wire::Anthropic => anthropic_events(&reply),
        Wire::OpenAi => openai_chunks(&reply, call.body["stream_options"]["include_usage"] == true),
    };
    Payload {
        content_type: "text/event-stream; charset=utf-8",
        text,
    }
}

fn anthropic(call: &Call, answer: &Answer) -> Value {
    let text_block = || {
        if answer.text.is_empty() {
            json!([])
        } else {
            json!([{"type": "text", "text": answer.text}])
        }
    };
    let tool_id = format!("toolu_mock{:06}", call.serial);
    let tool_block = |name: &str, input: Value| json!([{"type": "tool_use", "id": tool_id, "name": name, "input": input}]);
    let (content, ended) = match (wanted(call), serde_json::from_str::<Value>(&answer.text)) {
        (Wanted::Tool(name, _), Ok(input @ Value::Object(_))) => {
            (tool_block(&name, input), "tool_use")
        }
        (Wanted::Tool(name, _), _) if answer.stop == Stop::Cut => {
            (tool_block(&name, json!({})), "tool_use")
        }
        _ => (text_block(), "end_turn"),
    };
    let stop_reason = match answer.stop {
        Stop::End => ended,
        Stop::Cut => "max_tokens",
        Stop::Refused => "refusal",
    };
    let mut reply = json!({
        "id": format!("msg_mock{:06}", call.serial), "type": "message", "role": "assistant", "model": answer.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
    });
    if let Some(tokens) = answer.tokens {
        reply["usage"] = json!({
            "input_tokens": tokens.input, "cache_creation_input_tokens": tokens.cache_write,
            "cache_read_input_tokens": tokens.cache_read, "output_tokens": tokens.output, "service_tier": "standard",
            "output_tokens_details": {"thinking_tokens": tokens.thinking},
        });
    }
    reply
}

fn openai(call: &Call, answer: &Answer) -> Value {
    let (content, refusal, finish) = match answer.stop {
        Stop::End => (json!(answer.text), Value::Null, "stop"),
        Stop::Cut => (json!(answer.text), Value::Null, "length"),
        Stop::Refused => (
            Value::Null,
            json!("I'm sorry, but I can't help with that."),
            "stop",
        ),
    };
    let mut reply = json!({
        "id": format!("chatcmpl-mock{:06}", call.serial), "object": "chat.completion", "created": 1_750_000_000,
        "model": answer.model, "system_fingerprint": "fp_mock",
        "choices": [{
            "index": 0, "message": {"role": "assistant", "content": content, "refusal": refusal},
            "logprobs": null, "finish_reason": finish,
        }],
    });
    if let Some(tokens) = answer.tokens {
        // OpenAI's prompt tokens include cache reads and cache writes.
        let prompt = tokens.input + tokens.cache_read + tokens.cache_write;
        let beside = if super::thinking::is_on_top(call) {
            tokens.thinking
        } else {
            0
        };
        reply["usage"] = json!({
            "prompt_tokens": prompt, "completion_tokens": tokens.output - beside,
            "total_tokens": prompt + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write},
            "completion_tokens_details": {"reasoning_tokens": tokens.thinking},
        });
    }
    reply
}

fn anthropic_events(reply: &Value) -> String {
    let mut start = reply.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut billed = json!({});
    if let Some(usage) = reply.get("usage") {
        start["usage"]["output_tokens"] = json!(1);
        billed = json!({"output_tokens": usage["output_tokens"]});
    }
    let mut events = vec![
        json!({"type": "message_start", "message": start}),
        json!({"type": "ping"}),
    ];
    for (index, block) in reply["content"].as_array().unwrap().iter().enumerate() {
        let is_text = block["type"] == "text";
        let whole = if is_text {
            block["text"].as_str().unwrap().to_owned()
        } else {
            block["input"].to_string()
        };
        let mut empty = block.clone();
        empty[if is_text { "text" } else { "input" }] = if is_text { json!("") } else { json!({}) };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.extend(pieces(&whole).map(|piece| {
            let delta = if is_text {
                json!({"type": "text_delta", "text": piece})
            } else {
                json!({"type": "input_json_delta", "partial_json": piece})
            };
            json!({"type": "content_block_delta", "index": index, "delta": delta})
        }));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": reply["stop_reason"], "stop_sequence": null});
    let mut last = json!({"type": "message_delta", "delta": delta});
    if reply.get("usage").is_some() {
        last["usage"] = billed;
    }
    events.extend([last, json!({"type": "message_stop"})]);
    events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn openai_chunks(reply: &Value, with_usage: bool) -> String {
    let chunk = |choices: Value| {
        let mut chunk = json!({"object": "chat.completion.chunk", "choices": choices});
        for key in ["id", "created", "model", "system_fingerprint"] {
            chunk[key] = reply[key].clone();
        }
        chunk
    };
    let delta = |delta: Value, finish: &Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]))
    };
    let message = &reply["choices"][0]["message"];
    let mut chunks = vec![delta(
        json!({"role": "assistant", "content": "", "refusal": null}),
        &Value::Null,
    )];
    for key in ["content", "refusal"] {
        let text = message[key].as_str().unwrap_or_default();
        chunks.extend(pieces(text).map(|piece| delta(json!({ key: piece }), &Value::Null)));
    }
    chunks.push(delta(json!({}), &reply["choices"][0]["finish_reason"]));
    if let Some(usage) = reply.get("usage").filter(|_| with_usage) {
        let mut last = chunk(json!([]));
        last["usage"] = usage.clone();
        chunks.push(last);
    }
    chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .chain(["data: [DONE]\n\n".to_owned()])
        .collect()
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(40)
        .map(|piece| piece.iter().collect())
        .collect::<Vec<String>>()
        .into_iter()
}

/// Returns the body of an error.
pub(super) fn error(wire: Wire, status: u16, message: &str) -> Payload {
    let text = match wire {
        Wire::Anthropic => {
            let kind = match status {
                400 | 422 => "invalid_request_error",
                401 => "authentication_error",
                402 => "billing_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                504 => "timeout_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            let detail = json!({"type": kind, "message": message});
            json!({"type": "error", "error": detail, "request_id": "req_mock"})
        }
        Wire::OpenAi => {
            let (kind, code) = match status {
                401 => ("invalid_request_error", json!("invalid_api_key")),
                429 => ("requests", json!("rate_limit_exceeded")),
                400..=499 => ("invalid_request_error", Value::Null),
                _ => ("server_error", Value::Null),
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
    };
    Payload {
        content_type: "application/json",
        text: text.to_string(),
    }
}
