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
    /// The tokens of thinking.
    pub thinking: i64,
    /// The model that answered.
    pub model: String,
    /// The billed tokens, as the format reports them.
    pub usage: Value,
}

#[derive(PartialEq)]
pub(super) enum Stop {
    End,
    /// Stopped at `max_tokens`.
    Cut,
    Refused,
}

impl Wire {
    pub fn of_path(path: &str) -> Option<Self> {
        match path.rsplit('/').next()? {
            "messages" => Some(Wire::Anthropic),
            "completions" => Some(Wire::OpenAi),
            _ => None,
        }
    }
}

/// Returns the body of an error, in the form that both formats have in common.
pub(super) fn error(message: &str) -> String {
    let error = json!({ "type": "api_error", "message": message, "param": null, "code": null });
    json!({ "type": "error", "error": error, "request_id": "req_mock" }).to_string()
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
    json!({
        "id": "msg_mock", "type": "message", "role": "assistant", "model": answer.model,
        "content": if answer.text.is_empty() { json!([]) } else { json!([text]) },
        "stop_reason": stop_reason, "stop_sequence": null, "usage": answer.usage,
    })
}

fn openai(answer: &Answer) -> Value {
    let (content, refusal, finish) = match answer.stop {
        Stop::Refused => (None, Some("I'm sorry, but I can't help with that."), "stop"),
        Stop::Cut => (Some(&answer.text), None, "length"),
        Stop::End => (Some(&answer.text), None, "stop"),
    };
    let message = json!({ "role": "assistant", "content": content, "refusal": refusal });
    json!({
        "id": "chatcmpl-mock", "object": "chat.completion", "created": 1_750_000_000,
        "model": answer.model, "usage": answer.usage,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish }],
    })
}

fn anthropic_events(reply: &Value) -> String {
    let mut start = reply.clone();
    start["content"] = json!([]);
    start["usage"]["output_tokens"] = json!(1);
    let text = reply["content"][0]["text"].as_str().unwrap_or_default();
    let ended = json!({ "stop_reason": reply["stop_reason"], "stop_sequence": null });
    let usage = json!({ "output_tokens": reply["usage"]["output_tokens"] });
    let block = json!({ "type": "text", "text": "" });
    let delta = json!({ "type": "text_delta", "text": text });
    let events = [
        json!({ "type": "message_start", "message": start }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": ended, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    let line = |event: Value| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.map(line).concat()
}

fn openai_chunks(reply: &Value, options: &Value) -> String {
    let chunk = |choices: Value, usage: &Value| {
        let mut chunk = reply.clone();
        (chunk["choices"], chunk["usage"]) = (choices, usage.clone());
        format!("data: {chunk}\n\n")
    };
    let choice = &reply["choices"][0];
    let delta = json!({ "content": choice["message"]["content"] });
    let piece = json!({ "index": 0, "delta": delta, "finish_reason": choice["finish_reason"] });
    let mut chunks = chunk(json!([piece]), &Value::Null);
    if options["include_usage"] == true {
        chunks += &chunk(json!([]), &reply["usage"]);
    }
    chunks + "data: [DONE]\n\n"
}
