//! The two formats of providers, as documented by them: replies, event streams and errors.

use serde_json::{Value, json};

use super::call::Call;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// `.../messages`
    Anthropic,
    /// `.../chat/completions`
    OpenAi,
}

/// A model's answer, independent of a provider.
pub(super) struct Answer {
    pub text: String,
    pub stop: Stop,
    pub tokens: Option<Tokens>,
    /// The model that answered.
    pub model: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    End,
    /// Stopped at `max_tokens`.
    Cut,
    Refused,
}

/// Billed tokens. `input` excludes cache reads and cache writes. Signed, because a mock may report
/// false counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Tokens {
    pub input: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    /// Includes thinking.
    pub output: i64,
    pub thinking: i64,
    /// The thinking that is reported in addition to the completion tokens, not as a part of them.
    pub on_top: i64,
}

impl Wire {
    pub fn of_path(path: &str) -> Option<Self> {
        match path.rsplit('/').next()? {
            "messages" => Some(Wire::Anthropic),
            "completions" => Some(Wire::OpenAi),
            _ => None,
        }
    }

    /// Returns the header with the provider's id of a request.
    pub fn request_id_header(self) -> &'static str {
        match self {
            Wire::Anthropic => "request-id",
            Wire::OpenAi => "x-request-id",
        }
    }

    /// Returns the body of an error.
    pub fn error(self, status: u16, message: &str) -> String {
        let kind = match (self, status) {
            (Wire::OpenAi, 429) => "requests",
            (Wire::OpenAi, 500..) => "server_error",
            (_, 401) => "authentication_error",
            (_, 429) => "rate_limit_error",
            (_, 529) => "overloaded_error",
            (_, 500..) => "api_error",
            _ => "invalid_request_error",
        };
        let error = json!({ "type": kind, "message": message, "param": null, "code": null });
        json!({ "type": "error", "error": error, "request_id": "req_mock" }).to_string()
    }
}

/// Returns the schema of the reply, or null if the caller wants plain text.
pub(super) fn schema(call: &Call) -> &Value {
    match call.wire {
        Wire::Anthropic => &call.body["output_config"]["format"]["schema"],
        Wire::OpenAi => &call.body["response_format"]["json_schema"]["schema"],
    }
}

/// Returns the maximum of output tokens that the caller allows.
pub(super) fn max_tokens(call: &Call) -> i64 {
    let max = call.body["max_completion_tokens"].as_i64();
    max.or_else(|| call.body["max_tokens"].as_i64())
        .unwrap_or(i64::MAX / 4)
}

/// Returns the content type and the body of an answer.
pub(super) fn render(call: &Call, answer: &Answer) -> (&'static str, String) {
    let reply = match call.wire {
        Wire::Anthropic => anthropic(answer),
        Wire::OpenAi => openai(answer),
    };
    if call.body["stream"] != true {
        return ("application/json", reply.to_string());
    }
    let events = match call.wire {
        Wire::Anthropic => anthropic_events(&reply),
        Wire::OpenAi => openai_chunks(&reply, &call.body["stream_options"]),
    };
    ("text/event-stream; charset=utf-8", events)
}

fn anthropic(answer: &Answer) -> Value {
    let text = json!({ "type": "text", "text": answer.text });
    let stop_reason = match answer.stop {
        Stop::End => "end_turn",
        Stop::Cut => "max_tokens",
        Stop::Refused => "refusal",
    };
    let mut reply = json!({
        "id": "msg_mock", "type": "message", "role": "assistant", "model": answer.model,
        "content": if answer.text.is_empty() { json!([]) } else { json!([text]) },
        "stop_reason": stop_reason, "stop_sequence": null,
    });
    if let Some(tokens) = answer.tokens {
        reply["usage"] = json!({
            "input_tokens": tokens.input, "output_tokens": tokens.output,
            "cache_creation_input_tokens": tokens.cache_write,
            "cache_read_input_tokens": tokens.cache_read,
            "output_tokens_details": { "thinking_tokens": tokens.thinking },
        });
    }
    reply
}

fn openai(answer: &Answer) -> Value {
    let (content, refusal) = match answer.stop {
        Stop::Refused => (Value::Null, json!("I'm sorry, but I can't help with that.")),
        _ => (json!(answer.text), Value::Null),
    };
    let is_cut = answer.stop == Stop::Cut;
    let finish = if is_cut { "length" } else { "stop" };
    let message = json!({ "role": "assistant", "content": content, "refusal": refusal });
    let choice =
        json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish });
    let mut reply = json!({
        "id": "chatcmpl-mock", "object": "chat.completion", "created": 1_750_000_000,
        "model": answer.model, "choices": [choice],
    });
    if let Some(tokens) = answer.tokens {
        // The prompt tokens include cache reads and cache writes.
        let prompt = tokens.input + tokens.cache_read + tokens.cache_write;
        let (read, write) = (tokens.cache_read, tokens.cache_write);
        reply["usage"] = json!({
            "prompt_tokens": prompt, "completion_tokens": tokens.output - tokens.on_top,
            "total_tokens": prompt + tokens.output,
            "prompt_tokens_details": { "cached_tokens": read, "cache_write_tokens": write },
            "completion_tokens_details": { "reasoning_tokens": tokens.thinking },
        });
    }
    reply
}

fn anthropic_events(reply: &Value) -> String {
    let mut start = reply.clone();
    start["content"] = json!([]);
    start["usage"]["output_tokens"] = json!(1);
    let block = json!({ "type": "text", "text": "" });
    let mut events = vec![
        json!({ "type": "message_start", "message": start }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
    ];
    let text = reply["content"][0]["text"].as_str().unwrap_or_default();
    events.extend(text.split_inclusive(' ').map(|piece| {
        let delta = json!({ "type": "text_delta", "text": piece });
        json!({ "type": "content_block_delta", "index": 0, "delta": delta })
    }));
    let usage = json!({ "output_tokens": reply["usage"]["output_tokens"] });
    let delta = json!({ "stop_reason": reply["stop_reason"], "stop_sequence": null });
    events.extend([
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": delta, "usage": usage }),
        json!({ "type": "message_stop" }),
    ]);
    let line = |event: &Value| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

fn openai_chunks(reply: &Value, options: &Value) -> String {
    let chunk = |choices: Value, usage: &Value| {
        json!({
            "id": reply["id"], "object": "chat.completion.chunk", "created": reply["created"],
            "model": reply["model"], "choices": choices, "usage": usage,
        })
    };
    let choice = &reply["choices"][0];
    let delta = |delta: Value, finish: &Value| {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        chunk(choice, &Value::Null)
    };
    let text = choice["message"]["content"].as_str().unwrap_or_default();
    let mut chunks: Vec<Value> = text
        .split_inclusive(' ')
        .map(|piece| delta(json!({ "content": piece }), &Value::Null))
        .collect();
    chunks.push(delta(json!({}), &choice["finish_reason"]));
    if options["include_usage"] == true {
        chunks.push(chunk(json!([]), &reply["usage"]));
    }
    let chunks = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    chunks.chain(["data: [DONE]\n\n".to_owned()]).collect()
}
