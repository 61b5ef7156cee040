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

/// The content of `src/lib.rs` in a new workspace.
pub const LIB: &str = "pub fn one() -> u32 {\n    1\n}\n";

/// A service with a scripted model, and its workspace with one source file.
pub struct Bench {
    pub provider: MockProvider,
    pub folder: TempDir,
    pub app: TestApp,
}

impl Bench {
    pub async fn new() -> Self {
        Self::with(folder(&[("src/lib.rs", LIB)]), &[]).await
    }

    /// With this workspace, and with variables of the environment.
    pub async fn with(folder: TempDir, variables: &[(String, String)]) -> Self {
        let root = folder.path().to_str().unwrap();
        let mut setup = Setup::default().env("TOOLS_WORKSPACE", root);
        setup.variables.extend(variables.iter().cloned());
        Self::of(folder, setup).await
    }

    /// Without tools.
    pub async fn off() -> Self {
        Self::of(folder(&[]), Setup::default()).await
    }

    async fn of(folder: TempDir, setup: Setup) -> Self {
        let provider = MockProvider::start().await;
        let app = TestApp::with(&provider, setup).await;
        Self {
            provider,
            folder,
            app,
        }
    }

    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}{path}", self.app.url);
        let response = self.app.client.post(url).json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Has a model that proposes these steps.
    pub fn proposes(&self, intent: &str, steps: &[Value], evidence: &[&str]) {
        let plan = plan(intent, steps, evidence);
        self.provider.reply_with("tool_plan", plan);
    }

    pub fn explains(&self, step: &str, text: &str) {
        self.provider
            .reply_with(step, json!({ "explanation": text }));
    }

    pub async fn planned(&self, message: &str) -> Value {
        self.post("/api/plans", &asks(message)).await.1
    }

    pub async fn authorized(&self, plan: &Value, body: &Value) -> (u16, Value) {
        let path = format!("/api/plans/{}/authorize", plan["planId"].as_str().unwrap());
        self.post(&path, body).await
    }

    /// Has a plan proposed and executed as a whole. Returns the plan and the execution.
    pub async fn executed(&self, message: &str) -> (Value, Value) {
        let plan = self.planned(message).await;
        assert_eq!(plan["state"], "proposed", "{plan}");
        let (status, done) = self.authorized(&plan, &authorizes("plan")).await;
        assert_eq!(status, 200, "{done}");
        (plan, done["execution"].clone())
    }

    pub async fn undone(&self, execution: &Value) -> Value {
        let id = execution["executionId"].as_str().unwrap();
        let (status, undone) = self
            .post(&format!("/api/executions/{id}/undo"), &ada())
            .await;
        assert_eq!(status, 200, "{undone}");
        undone
    }

    /// The content of a file; empty if there is none.
    pub fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }
}

/// Holds the status of an answer and one of its fields, and returns it.
pub fn hold(
    (status, answer): (u16, Value),
    expected: u16,
    field: &str,
    value: impl Into<Value>,
) -> Value {
    let found = (status, answer.pointer(field));
    assert_eq!(found, (expected, Some(&value.into())), "{answer}");
    answer
}

pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    folder
}

pub fn put(folder: &Path, path: &str, text: &str) {
    let file = folder.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

pub fn step(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({ "step_id": id, "tool": tool, "arguments": arguments, "precondition": "", "requires_confirmation": false })
}

pub fn read(path: &str) -> Value {
    step("s", "file_read", &json!({ "path": path }))
}

pub fn create(id: &str, path: &str) -> Value {
    let arguments = json!({ "path": path, "contents": "new\n" });
    step(id, "file_create", &arguments)
}

pub fn plan(intent: &str, steps: &[Value], evidence: &[&str]) -> Value {
    json!({ "intent": intent, "steps": steps, "evidence_referenced": evidence })
}

fn ada() -> Value {
    json!({ "source": "http", "user": { "id": "u1", "name": "Ada" } })
}

pub fn asks(message: &str) -> Value {
    json!({ "source": "http", "user": { "id": "u1", "name": "Ada" }, "context": {}, "message": message })
}

pub fn authorizes(mode: &str) -> Value {
    json!({ "source": "http", "user": { "id": "u1", "name": "Ada" }, "mode": mode })
}
