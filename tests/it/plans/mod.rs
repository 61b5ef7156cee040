//! Tool plans from end to end: a scripted model proposes, the real tools act on a real folder.

mod acceptance;
mod api;
mod hostile;
mod interrupted;
mod project;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{MockProvider, Setup, TestApp};

/// A workspace with one source file.
pub fn workspace() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(
        folder.path().join("src/lib.rs"),
        "pub fn one() -> u32 {\n    1\n}\n",
    )
    .unwrap();
    folder
}

pub async fn app(provider: &MockProvider, root: &Path) -> TestApp {
    let root = root.to_str().unwrap();
    TestApp::with(provider, Setup::default().env("TOOLS_WORKSPACE", root)).await
}

pub fn step(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({ "step_id": id, "tool": tool, "arguments": arguments, "precondition": "", "requires_confirmation": false })
}

pub fn plan(intent: &str, steps: &[Value], evidence: &[&str]) -> Value {
    json!({ "intent": intent, "steps": steps, "evidence_referenced": evidence })
}

pub fn asks(message: &str) -> Value {
    json!({ "source": "http", "user": { "id": "u1", "name": "Ada" }, "context": {}, "message": message })
}

pub fn authorizes(mode: &str) -> Value {
    json!({ "source": "http", "user": { "id": "u1", "name": "Ada" }, "mode": mode })
}

pub async fn post(app: &TestApp, path: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}{path}", app.url);
    let response = app.client.post(url).json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Has a plan proposed and executed as a whole. Returns the plan and the execution.
pub async fn executed(app: &TestApp, message: &str) -> (Value, Value) {
    let (status, plan) = post(app, "/api/plans", &asks(message)).await;
    assert_eq!(
        (status, plan["state"].as_str()),
        (200, Some("proposed")),
        "{plan}"
    );
    let path = format!("/api/plans/{}/authorize", plan["planId"].as_str().unwrap());
    let (status, done) = post(app, &path, &authorizes("plan")).await;
    assert_eq!(status, 200, "{done}");
    (plan, done["execution"].clone())
}

pub fn explains(provider: &MockProvider, text: &str) {
    provider.reply_with("tool_explain", json!({ "explanation": text }));
}

/// Has a model that proposes these steps.
pub fn proposes(provider: &MockProvider, intent: &str, steps: &[Value], evidence: &[&str]) {
    provider.reply_with("tool_plan", plan(intent, steps, evidence));
}

/// Returns the path at which a plan is authorized.
pub fn authorize_path(plan: &Value) -> String {
    format!("/api/plans/{}/authorize", plan["planId"].as_str().unwrap())
}
