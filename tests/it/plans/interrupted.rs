//! Executions that are killed, cancelled or authorized twice.

use std::path::Path;
use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::Event;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::project::programs;
use super::{asks, authorizes, explains, proposes, step};
use crate::support::process::{Home, Service};
use crate::support::{MockProvider, client, until};

/// A crate whose check lasts a minute, because its build script sleeps.
fn slow_crate() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let manifest =
        "[package]\nname = \"slow\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), "pub fn one() {}\n").unwrap();
    let sleeps = "fn main() {\n    std::thread::sleep(std::time::Duration::from_secs(60));\n}\n";
    std::fs::write(folder.path().join("build.rs"), sleeps).unwrap();
    folder
}

struct Running {
    home: Home,
    service: Service,
    provider: MockProvider,
    variables: Vec<(String, String)>,
}

impl Running {
    /// Starts a service whose model proposes a file, a slow check and another file.
    async fn start(root: &Path) -> Self {
        let provider = MockProvider::start().await;
        let create = |id: &str, path: &str| {
            step(
                id,
                "file_create",
                &json!({ "path": path, "contents": "new\n" }),
            )
        };
        let steps = [
            create("step_1", "a.txt"),
            step("step_2", "lsp_check", &json!({ "path": "src/lib.rs" })),
            create("step_3", "b.txt"),
        ];
        proposes(&provider, "MUTATE", &steps, &[]);
        explains(&provider, "a.txt was created.");
        let mut variables = programs();
        variables.push(("TOOLS_WORKSPACE".into(), root.to_str().unwrap().into()));
        let home = Home::sqlite();
        let service = serve(&home, &provider, &variables).await;
        Self {
            home,
            service,
            provider,
            variables,
        }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = client()
            .post(format!("{}{path}", self.service.url))
            .json(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let request = client().get(format!("{}{path}", self.service.url));
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Proposes the plan, authorizes it without waiting, and waits until its second step runs.
    async fn until_the_check_runs(&self) -> (String, String) {
        let (_, plan) = self.post("/api/plans", &asks("Check it")).await;
        let plan_id = plan["planId"].as_str().unwrap().to_owned();
        let path = format!("/api/plans/{plan_id}/authorize");
        let request = client().post(format!("{}{path}", self.service.url));
        let request = request
            .json(&authorizes("plan"))
            .timeout(Duration::from_secs(2));
        assert!(request.send().await.is_err(), "the client does not wait");
        let view = self.get(&format!("/api/plans/{plan_id}")).await;
        let execution = view["executions"][0]["executionId"]
            .as_str()
            .unwrap()
            .to_owned();
        let run: RunId = execution.parse().unwrap();
        let is_second =
            |event: &Event| matches!(event, Event::StepStarted(s) if s.step_id == "step_2");
        let has_begun = async || {
            let entries = self.home.entries(run).await;
            entries.iter().any(|entry| is_second(&entry.event))
        };
        until(has_begun).await;
        (plan_id, execution)
    }

    async fn ended(&self, execution: &str) -> Value {
        let path = format!("/api/executions/{execution}");
        until(async || self.get(&path).await["state"] != "running").await;
        self.get(&path).await
    }
}

async fn serve(home: &Home, provider: &MockProvider, variables: &[(String, String)]) -> Service {
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    home.serve(provider, &variables).await
}

fn hold_the_doubt(execution: &Value, folder: &Path) {
    assert_eq!(execution["state"], "halted", "{execution}");
    let steps = execution["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "step_3 did not run: {execution}");
    assert_eq!(
        (&steps[0]["ok"], &steps[1]["inDoubt"]),
        (&json!(true), &json!(true))
    );
    assert!(folder.join("a.txt").exists() && !folder.join("b.txt").exists());
}

#[tokio::test]
async fn a_step_under_way_at_a_kill_is_in_doubt_and_not_run_again() {
    let folder = slow_crate();
    let running = Running::start(folder.path()).await;
    let (_, execution) = running.until_the_check_runs().await;
    let Running {
        home,
        service,
        provider,
        variables,
    } = running;
    service.kill().await;
    let service = serve(&home, &provider, &variables).await;
    let running = Running {
        home,
        service,
        provider,
        variables,
    };
    let ended = running.ended(&execution).await;
    hold_the_doubt(&ended, folder.path());
    let run: RunId = execution.parse().unwrap();
    let entries = running.home.entries(run).await;
    let begun = entries
        .iter()
        .filter(|entry| matches!(&entry.event, Event::StepStarted(s) if s.step_id == "step_2"));
    assert_eq!(begun.count(), 1);
}

#[tokio::test]
async fn a_cancelled_execution_says_which_step_is_in_doubt_and_can_be_taken_back() {
    let folder = slow_crate();
    let running = Running::start(folder.path()).await;
    let (plan, execution) = running.until_the_check_runs().await;
    let path = format!("/api/plans/{plan}/authorize");
    for body in [authorizes("plan"), authorizes("step")] {
        let (status, refused) = running.post(&path, &body).await;
        let detail = refused["detail"].as_str();
        assert_eq!(
            (status, detail),
            (409, Some("an execution of the plan is under way"))
        );
    }
    let request = client().delete(format!("{}/api/runs/{execution}", running.service.url));
    assert_eq!(request.send().await.unwrap().status(), 202);
    let ended = running.ended(&execution).await;
    hold_the_doubt(&ended, folder.path());
    let user = json!({ "source": "http", "user": { "id": "u1", "name": "Ada" } });
    let undo = format!("/api/executions/{execution}/undo");
    let (_, undone) = running.post(&undo, &user).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert!(!folder.path().join("a.txt").exists());
}
