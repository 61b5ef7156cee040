//! The record that the mock provider keeps of a call.

use axum::http::HeaderMap;
use serde_json::Value;

use super::wire::Wire;

#[derive(Debug, Clone)]
pub struct Call {
    /// The `Idempotency-Key`: `<run id>/<step>`, where a segment of the step may end in
    /// `#<attempt>`.
    pub full_key: String,
    /// The run's id. Empty if the caller sent no key.
    pub run: String,
    /// The step as sent: `r1/solver#2`.
    pub key: String,
    /// The step without attempt numbers: `r1/solver`, `r1/solver/repair`.
    pub step: String,
    pub(super) wire: Wire,
    pub model: String,
    pub path: String,
    pub body: Value,
    pub headers: HeaderMap,
    /// Why a real provider would have rejected the request, if it would have.
    pub complaint: Option<String>,
}

impl Call {
    pub(super) fn new(wire: Wire, path: &str, headers: HeaderMap, body: Value) -> Self {
        let full_key = headers.get("idempotency-key");
        let full_key = full_key.map_or("", |key| key.to_str().unwrap());
        let (run, key) = full_key.split_once('/').unwrap_or(("", full_key));
        Self {
            full_key: full_key.to_owned(),
            run: run.to_owned(),
            key: key.to_owned(),
            step: step_of(key),
            wire,
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            path: path.to_owned(),
            body,
            headers,
            complaint: None,
        }
    }

    /// True if the pattern matches. A pattern is an exact step (`r1/critic`: every attempt, but not
    /// its repair), a step with one `*` (`r1/critic*`, `*/critic`), or with `#` the key of one
    /// attempt (`r1/critic#2`).
    pub(super) fn is_at(&self, pattern: &str) -> bool {
        let is_attempt = pattern.contains('#');
        let wanted = if is_attempt { &self.key } else { &self.step };
        let Some((head, tail)) = pattern.split_once('*') else {
            return wanted == pattern;
        };
        let rest = wanted.strip_prefix(head);
        rest.is_some_and(|rest| rest.ends_with(tail))
    }

    /// Returns everything that the model reads, system prompt first.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.system(), self.prompt())
    }

    /// Returns the system prompt.
    pub fn system(&self) -> String {
        texts(&self.body["system"]) + &self.messages(true)
    }

    /// Returns the messages after the system prompt.
    pub fn prompt(&self) -> String {
        self.messages(false)
    }

    fn messages(&self, system: bool) -> String {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        let is_wanted = |message: &&Value| (message["role"] == "system") == system;
        let wanted = messages.filter(is_wanted);
        let texts: Vec<String> = wanted.map(|message| texts(&message["content"])).collect();
        texts.join("\n")
    }

    pub fn images(&self) -> usize {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        let parts = messages.filter_map(|message| message["content"].as_array());
        let is_image = |part: &&Value| part["type"] == "image" || part["type"] == "image_url";
        parts.flatten().filter(is_image).count()
    }

    /// Returns the schema of the reply, or null if the caller wants plain text.
    pub fn schema(&self) -> &Value {
        match self.wire {
            Wire::Anthropic => &self.body["output_config"]["format"]["schema"],
            Wire::OpenAi => &self.body["response_format"]["json_schema"]["schema"],
        }
    }

    /// Returns the maximum of output tokens that the caller allows.
    pub(super) fn max_tokens(&self) -> i64 {
        let limits = ["max_completion_tokens", "max_tokens"];
        let mut limits = limits.iter().filter_map(|name| self.body[name].as_i64());
        limits.next().unwrap_or(i64::MAX / 4)
    }
}

/// Returns a step without the numbers of attempts.
pub fn step_of(key: &str) -> String {
    let name = |segment: &str| segment.split('#').next().unwrap().to_owned();
    key.split('/').map(name).collect::<Vec<String>>().join("/")
}

/// Returns a plain string, or the text parts of a list.
fn texts(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let mut texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    texts.extend(content.as_str());
    texts.join("\n")
}
