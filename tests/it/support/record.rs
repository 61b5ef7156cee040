//! The records that the mock provider keeps of calls.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde_json::Value;

use super::script::StepKey;
use super::wire::Wire;

/// The headers that are kept.
const KEPT: [&str; 8] = [
    "idempotency-key",
    "content-type",
    "anthropic-version",
    "anthropic-beta",
    "x-api-key",
    "authorization",
    "user-agent",
    "accept",
];

/// How a call ended for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No reply was sent yet.
    NotYet,
    Answered,
    /// The caller disconnected first.
    Abandoned,
    /// The mock closed the connection because of a fault.
    Broken,
}

/// One recorded call.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) serial: u64,
    /// The run's id. Empty if the caller sent no key.
    pub run: String,
    /// The step key as sent, without the run: `r1/solver#2`.
    pub key: String,
    /// The step without attempt numbers: `r1/solver`, `r1/solver/repair`.
    pub step: String,
    pub attempt: u32,
    pub full_key: String,
    pub wire: Wire,
    pub model: String,
    pub path: String,
    pub body: Value,
    pub headers: BTreeMap<String, String>,
    pub ended: Ended,
    /// Why a real provider would have rejected the request, if it would have.
    pub complaint: Option<String>,
}

impl Call {
    pub(super) fn new(
        serial: u64,
        wire: Wire,
        path: &str,
        headers: &HeaderMap,
        body: Value,
    ) -> Self {
        let headers: BTreeMap<String, String> = KEPT
            .iter()
            .filter_map(|name| {
                Some((
                    (*name).to_owned(),
                    headers.get(*name)?.to_str().ok()?.to_owned(),
                ))
            })
            .collect();
        let full_key = headers.get("idempotency-key").cloned().unwrap_or_default();
        let StepKey {
            run,
            key,
            step,
            attempt,
        } = StepKey::parse(&full_key);
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let path = path.to_owned();
        Self {
            serial,
            run,
            key,
            step,
            attempt,
            full_key,
            wire,
            model,
            path,
            body,
            headers,
            ended: Ended::NotYet,
            complaint: None,
        }
    }

    pub(super) fn step_key(&self) -> StepKey {
        StepKey {
            run: self.run.clone(),
            key: self.key.clone(),
            step: self.step.clone(),
            attempt: self.attempt,
        }
    }

    /// Returns everything that the model reads, system prompt first.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.system(), self.prompt())
    }

    /// Returns the system prompt.
    pub fn system(&self) -> String {
        match self.wire {
            Wire::Anthropic => texts(&self.body["system"]),
            Wire::OpenAi => self.messages(|role| matches!(role, "system" | "developer")),
        }
    }

    /// Returns the messages after the system prompt.
    pub fn prompt(&self) -> String {
        self.messages(|role| !matches!(role, "system" | "developer"))
    }

    fn messages(&self, wanted: impl Fn(&str) -> bool) -> String {
        let messages = self.body["messages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let of_role = messages
            .iter()
            .filter(|message| wanted(message["role"].as_str().unwrap_or_default()));
        of_role
            .map(|message| texts(&message["content"]))
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub fn images(&self) -> usize {
        let messages = self.body["messages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let parts = messages
            .iter()
            .filter_map(|message| message["content"].as_array())
            .flatten();
        parts
            .filter(|part| matches!(part["type"].as_str(), Some("image" | "image_url")))
            .count()
    }
}

/// Returns a plain string, or the text parts of a list.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}
