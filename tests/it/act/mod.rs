//! Tests actions over HTTP and on the command line. The functions here send actions as a client does
//! and return each answer with its journal.

mod command_line;
mod commands;
mod own_data;
mod proposals;

use conclave::domain::RunId;
use conclave::journal::{self, Event};
use serde_json::{Value, json};

use crate::support::app::PLANTED_KEY;
use crate::support::{MockProvider, Setup, TestApp};

/// Returns the body of an action of `user` in the guild `g1`.
pub fn said(user: &str, message: &str) -> Value {
    json!({
        "source": "http", "user": { "id": user, "name": user }, "context": { "channelId": "c1", "guildId": "g1" },
        "message": message,
    })
}

/// An answer with its run and the run's journal, whose chain was verified.
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub run: Option<RunId>,
    pub keys: Vec<String>,
    pub events: Vec<Event>,
}

impl Answer {
    pub fn text(&self) -> &str {
        self.body["actions"][0]["result"]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{:#}", self.body))
    }

    /// Returns the gates that were checked. Those that failed end in `!`.
    pub fn gates(&self) -> Vec<String> {
        let gate = |event: &Event| match event {
            Event::GateChecked(g) => Some(format!(
                "{}{}",
                g.gate.into_str(),
                if g.passed { "" } else { "!" }
            )),
            _ => None,
        };
        self.events.iter().filter_map(gate).collect()
    }
}

pub async fn post(app: &TestApp, path: &str, body: &Value) -> Answer {
    post_with_key(app, path, body, None).await
}

/// Like [`post`], with an idempotency key.
pub async fn post_with_key(app: &TestApp, path: &str, body: &Value, key: Option<&str>) -> Answer {
    let mut request = app.client.post(format!("{}{path}", app.url)).json(body);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let run: Option<RunId> = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .parse()
        .ok();
    let body: Value = response.json().await.unwrap();
    let entries = match run {
        Some(run) => app.entries(run).await,
        None => vec![],
    };
    if let Some(run) = run
        && let Some(row) = app.app.run(run).await.unwrap()
    {
        assert_eq!(journal::verify(run, &entries, &row.head_hash), Ok(()));
        assert!(row.spent <= row.cap, "{} of {}", row.spent, row.cap);
        assert!(!entries.iter().any(|entry| entry.body.contains(PLANTED_KEY)));
    }
    let keys = entries.iter().map(|entry| entry.key.clone()).collect();
    let events = entries.into_iter().map(|entry| entry.event).collect();
    Answer {
        status,
        body,
        run,
        keys,
        events,
    }
}

pub async fn act(app: &TestApp, user: &str, message: &str) -> Answer {
    let answer = post(app, "/api/act", &said(user, message)).await;
    assert_eq!(answer.status, 200, "{:#}", answer.body);
    answer
}

pub async fn confirm(app: &TestApp, user: &str, answer: &Answer) -> Answer {
    confirm_with_key(app, user, answer, None).await
}

/// Like [`confirm`], with an idempotency key.
pub async fn confirm_with_key(
    app: &TestApp,
    user: &str,
    answer: &Answer,
    key: Option<&str>,
) -> Answer {
    let id = answer.body["proposal"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{:#}", answer.body));
    let mut body = said(user, "");
    body.as_object_mut().unwrap().remove("message");
    let path = format!("/api/act/proposals/{id}/confirm");
    post_with_key(app, &path, &body, key).await
}

/// Enables the proposer on the mock provider.
pub fn proposing() -> Setup {
    Setup::default()
        .env("PROPOSER_ENABLED", "true")
        .env("PROPOSER_PROVIDER", "anthropic")
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "reads better where it is called"
)]
pub fn proposal(action: &str, args: Value, confidence: f64) -> Value {
    json!({ "ok": true, "confidence": confidence, "action": action, "args": args, "reason": "it sounds like it", "alternatives": [] })
}

/// Lets the model propose this command.
pub fn proposes(provider: &MockProvider, action: &str, args: Value, confidence: f64) {
    provider.reply_with("proposal", proposal(action, args, confidence));
}

/// Returns the names of an object's fields, in order.
pub fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}
