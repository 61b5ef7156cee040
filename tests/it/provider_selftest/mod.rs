//! Tests the mock provider itself, on which other tests rely.

mod calls;
mod faults;
mod formats;
mod scenarios;

use reqwest::Response;
use serde_json::{Value, json};

use crate::support::{MockProvider, client};

const RUN: &str = "01980000-0000-7000-8000-000000000001";

fn schema() -> Value {
    let list = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object", "properties": {"question": {"type": "string"}, "options": list},
        "required": ["question", "options"], "additionalProperties": false,
    })
}

fn messages(prompt: &str) -> Value {
    json!({
        "model": "claude-mock", "max_tokens": 4000, "system": "You sit on a committee.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
        "output_config": {"format": {"type": "json_schema", "schema": schema()}},
    })
}

fn forced_tool(prompt: &str) -> Value {
    json!({
        "model": "claude-mock", "max_tokens": 4000, "messages": [{"role": "user", "content": prompt}],
        "tools": [{"name": "report", "input_schema": schema()}], "tool_choice": {"type": "tool", "name": "report"},
    })
}

fn completions(prompt: &str) -> Value {
    let format = json!({"name": "report", "strict": true, "schema": schema()});
    json!({
        "model": "gpt-mock", "max_completion_tokens": 4000,
        "messages": [{"role": "system", "content": "You sit on a committee."}, {"role": "user", "content": prompt}],
        "response_format": {"type": "json_schema", "json_schema": format},
    })
}

fn request(mock: &MockProvider, step: &str, body: &Value) -> reqwest::RequestBuilder {
    let path = if body["response_format"].is_null() {
        "/v1/messages"
    } else {
        "/v1/chat/completions"
    };
    client()
        .post(format!("{}{path}", mock.url()))
        .header("idempotency-key", format!("{RUN}/{step}"))
        .header("x-api-key", "k")
        .header("anthropic-version", "2023-06-01")
        .json(body)
}

async fn send(mock: &MockProvider, step: &str, body: &Value) -> Response {
    request(mock, step, body).send().await.unwrap()
}

async fn send_json(mock: &MockProvider, step: &str, body: &Value) -> Value {
    send(mock, step, body).await.json().await.unwrap()
}

fn text_of(reply: &Value) -> String {
    let text = reply["content"][0]["text"]
        .as_str()
        .or_else(|| reply["choices"][0]["message"]["content"].as_str());
    text.unwrap_or_default().to_owned()
}
