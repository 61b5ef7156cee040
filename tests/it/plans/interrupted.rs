//! Executions that are killed, cancelled or authorized twice.

use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::Event;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::project::{MANIFEST, programs};
use super::{ada, asks, authorizes, create, folder, plan, step};
use crate::support::process::{Home, Service};
use crate::support::{Fault, MockProvider, client, status_of, until};

/// A build script that lasts a minute.
const SLEEPS: &str =
    "fn main() {\n    std::thread::sleep(std::time::Duration::from_secs(60));\n}\n";

/// A service of its own process, whose model proposes a file, a slow check and another file.
struct Running {
    folder: TempDir,
    home: Home,
    service: Service,
    provider: MockProvider,
    variables: Vec<(String, String)>,
}

impl Running {
    async fn start() -> Self {
        let files = [
            ("Cargo.toml", MANIFEST),
            ("src/lib.rs", "pub fn one() {}\n"),
            ("build.rs", SLEEPS),
        ];
        let (folder, provider) = (folder(&files), MockProvider::start().await);
        let check = step("step_2", "lsp_check", &json!({ "path": "src/lib.rs" }));
        let steps = [create("step_1", "a.txt"), check, create("step_3", "b.txt")];
        provider.reply_with("tool_plan", plan("MUTATE", &steps, &[]));
        let text = json!({ "explanation": "a.txt was created." });
        provider.reply_with("tool_explain", text);
        let mut variables = programs();
        let root = folder.path().to_str().unwrap().to_owned();
        variables.push(("TOOLS_WORKSPACE".into(), root));
        let home = Home::sqlite();
        let service = serve(&home, &provider, &variables).await;
        Self {
            folder,
            home,
            service,
            provider,
            variables,
        }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = client().post(format!("{}{path}", self.service.url));
        let response = request.json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let request = client().get(format!("{}{path}", self.service.url));
        request.send().await.unwrap().json().await.unwrap()
    }

    /// How often the second step of an execution began.
    async fn begun(&self, execution: &str) -> usize {
        let entries = self.home.entries(execution.parse::<RunId>().unwrap()).await;
        let is_second =
            |event: &Event| matches!(event, Event::StepStarted(s) if s.step_id == "step_2");
        entries
            .iter()
            .filter(|entry| is_second(&entry.event))
            .count()
    }

    /// Proposes the plan, authorizes it without waiting, and waits until its second step runs.
    /// Returns the paths of plan and execution.
    async fn until_the_check_runs(&self) -> (String, String) {
        let (_, plan) = self.post("/api/plans", &asks("Check it")).await;
        let plan = format!("/api/plans/{}", plan["planId"].as_str().unwrap());
        let request = client().post(format!("{}{plan}/authorize", self.service.url));
        let request = request
            .json(&authorizes("plan"))
            .timeout(Duration::from_secs(2));
        assert!(request.send().await.is_err(), "the client does not wait");
        let view = self.get(&plan).await;
        let execution = view["executions"][0]["executionId"]
            .as_str()
            .unwrap()
            .to_owned();
        until(async || self.begun(&execution).await > 0).await;
        (plan, execution)
    }

    /// Waits for the end of an execution, whose second step is in doubt.
    async fn hold_the_doubt(&self, execution: &str) {
        let path = format!("/api/executions/{execution}");
        until(async || self.get(&path).await["state"] != "running").await;
        let ended = self.get(&path).await;
        assert_eq!(ended["state"], "halted", "{ended}");
        let steps = ended["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 2, "step_3 did not run: {ended}");
        assert_eq!(
            (&steps[0]["ok"], &steps[1]["inDoubt"]),
            (&json!(true), &json!(true))
        );
        let what = "it was not repeated: 'Cargo.lock' ";
        let error = steps[1]["error"].as_str().unwrap();
        assert!(error.contains(what), "{error}");
        let folder = self.folder.path();
        assert!(folder.join("a.txt").exists() && !folder.join("b.txt").exists());
    }
}

async fn serve(home: &Home, provider: &MockProvider, variables: &[(String, String)]) -> Service {
    let variables = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    home.serve(provider, &variables.collect::<Vec<_>>()).await
}

#[tokio::test]
async fn a_step_under_way_at_a_kill_is_in_doubt_and_not_run_again() {
    let mut running = Running::start().await;
    let (_, execution) = running.until_the_check_runs().await;
    running.service.kill().await;
    running.service = serve(&running.home, &running.provider, &running.variables).await;
    running.hold_the_doubt(&execution).await;
    assert_eq!(running.begun(&execution).await, 1);
}

#[tokio::test]
async fn an_execution_does_not_go_on_in_another_workspace() {
    let mut running = Running::start().await;
    let (_, execution) = running.until_the_check_runs().await;
    running.service.kill().await;
    let other = folder(&[("Cargo.toml", MANIFEST)]);
    let mut elsewhere = running.variables.clone();
    let root = other.path().to_str().unwrap().to_owned();
    elsewhere.push(("TOOLS_WORKSPACE".into(), root));
    running.service = serve(&running.home, &running.provider, &elsewhere).await;
    let path = format!("/api/executions/{execution}");
    until(async || running.get(&path).await["state"] != "running").await;
    let ended = running.get(&path).await;
    assert_eq!(ended["state"], "halted", "{ended}");
    let doubted = &ended["steps"][1];
    let error = doubted["error"].as_str().unwrap();
    assert!(
        doubted["inDoubt"] == true && error.ends_with("the state of its files is not known"),
        "{error}"
    );
    let files = std::fs::read_dir(other.path()).unwrap();
    assert_eq!(files.count(), 1, "nothing was made in the other workspace");
    let undo = format!("{path}/undo");
    let (status, refused) = running.post(&undo, &ada()).await;
    assert_eq!(status, 409, "{refused}");
    running.service.stop().await;
    running.service = serve(&running.home, &running.provider, &running.variables).await;
    let (_, undone) = running.post(&undo, &ada()).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert!(!running.folder.path().join("a.txt").exists());
}

#[tokio::test]
async fn a_plan_whose_call_died_with_the_process_is_asked_for_again() {
    let mut running = Running::start().await;
    let late = Fault::Latency(Duration::from_secs(20));
    running.provider.on("tool_plan", late);
    let request = client().post(format!("{}/api/plans", running.service.url));
    let request = request.json(&asks("Check it"));
    let request = request.timeout(Duration::from_secs(2));
    assert!(request.send().await.is_err(), "the client does not wait");
    until(async || running.provider.state().in_flight > 0).await;
    running.service.kill().await;
    running
        .provider
        .on("tool_plan", Fault::Latency(Duration::ZERO));
    running.service = serve(&running.home, &running.provider, &running.variables).await;
    let (status, plan) = running.post("/api/plans", &asks("Check it")).await;
    assert_eq!(
        (status, &plan["state"]),
        (200, &json!("proposed")),
        "{plan}"
    );
    let calls = plan["budget"]["calls"].as_array().unwrap();
    assert_eq!(
        calls.len(),
        2,
        "the call in doubt, and its repetition: {plan}"
    );
}

#[tokio::test]
async fn a_cancelled_execution_says_which_step_is_in_doubt_and_can_be_taken_back() {
    let running = Running::start().await;
    let (plan, execution) = running.until_the_check_runs().await;
    for mode in ["plan", "step"] {
        let path = format!("{plan}/authorize");
        let (status, refused) = running.post(&path, &authorizes(mode)).await;
        let why = refused["detail"].as_str().unwrap();
        assert!(
            status == 409 && why.starts_with("an execution of the plan is under way"),
            "{why}"
        );
    }
    let request = client().delete(format!("{}/api/runs/{execution}", running.service.url));
    assert_eq!(status_of(request).await, 202);
    running.hold_the_doubt(&execution).await;
    let undo = format!("/api/executions/{execution}/undo");
    let (_, undone) = running.post(&undo, &ada()).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert!(!running.folder.path().join("a.txt").exists());
}
