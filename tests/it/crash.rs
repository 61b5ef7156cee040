//! kill -9 on the real binary: no accepted run is lost, no settled call is bought twice.

use std::collections::BTreeMap;
use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::{self, CallResult, Event, SqliteStore, Store as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::cli::conclave;
use crate::support::{Fault, MockProvider, chat, client};

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

/// A service as a process of its own.
pub struct Service {
    child: Child,
    pub url: String,
}

impl Service {
    async fn start(folder: &TempDir, provider: &MockProvider) -> Self {
        Self::start_with(folder, provider, &[]).await
    }

    /// With further variables in its environment.
    pub async fn start_with(folder: &TempDir, provider: &MockProvider, more: &[(&str, &str)]) -> Self {
        let url = provider.url();
        // Every call in doubt is paid for: a cap with room for many kills, so that money is not what ends a run here.
        let variables = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("CONCLAVE_BIND", "127.0.0.1:0"),
            ("NORMAL_MAX_USD", "20"),
        ];
        let mut command: Command = conclave(folder.path(), &["serve"], &variables);
        command.envs(more.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut url = None;
        while url.is_none() {
            let line = lines.next_line().await.unwrap().expect("the service says where it listens");
            url = line.split("listening on ").nth(1).and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        }
        // Somebody must go on reading, or the process blocks on a full pipe.
        #[allow(clippy::disallowed_methods, reason = "it ends with the process whose output it reads")]
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, url: url.unwrap() }
    }

    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    async fn accept(&self, number: usize) -> Option<RunId> {
        let mut body = chat("ask", QUESTION);
        body["user"]["id"] = json!(format!("u{number}"));
        body["context"]["messageId"] = json!(format!("m{number}"));
        let request = client().post(format!("{}/api/chat", self.url)).json(&body).header("prefer", "respond-async");
        let response = request.send().await.ok()?;
        assert_eq!(response.status(), 202);
        response.headers()["x-request-id"].to_str().unwrap().parse().ok()
    }

    async fn state(&self, run: RunId) -> String {
        let response = client().get(format!("{}/api/runs/{run}", self.url)).send().await.unwrap();
        let body: Value = response.json().await.unwrap();
        body["state"].as_str().unwrap_or("lost").to_owned()
    }
}

/// Calls by their idempotent key that the provider answered whole more than once.
fn bought_twice(provider: &MockProvider) -> Vec<String> {
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for call in provider.calls() {
        *answered.entry(call.full_key).or_default() += 1;
    }
    answered.into_iter().filter(|(_, times)| *times > 1).map(|(key, _)| key).collect()
}

#[tokio::test]
async fn a_killed_service_completes_its_run_after_the_restart() {
    let provider = MockProvider::start().await;
    provider.on("r1/verifier", Fault::Latency(Duration::from_secs(60))).once();
    let folder = TempDir::new().unwrap();
    let service = Service::start(&folder, &provider).await;
    let run = service.accept(1).await.unwrap();
    // The solver and the critic are settled, the verifier is in flight.
    loop {
        let (_, entries) = (service.state(run).await, entries(&folder, run).await);
        let settled = entries.iter().filter(|e| matches!(e.event, Event::CallSettled(_))).count();
        if settled == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    service.kill().await;
    let service = Service::start(&folder, &provider).await;
    let mut state = service.state(run).await;
    let patience = std::time::Instant::now() + Duration::from_secs(20);
    while state == "running" && std::time::Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(50)).await;
        state = service.state(run).await;
    }
    assert_eq!(state, "answered");
    assert_eq!(bought_twice(&provider), Vec::<String>::new());
    assert_eq!(provider.count_step("r1/solver"), 1, "what was settled is not bought again");
    assert_eq!(provider.count_step("r1/verifier"), 2, "what was in flight is asked again, under a key of its own");
    let entries = entries(&folder, run).await;
    let doubt = entries.iter().any(|e| {
        matches!(&e.event, Event::CallSettled(s) if s.call == "r1/verifier" && matches!(s.result, CallResult::InDoubt))
    });
    assert!(doubt, "the call in flight was settled at its reservation");
    service.kill().await;
}

#[tokio::test]
async fn kills_at_random_moments_lose_nothing() {
    let kills: usize = if cfg!(feature = "long-chaos") { 200 } else { 8 };
    let provider = MockProvider::start().await;
    provider.latency(Duration::from_millis(25));
    let folder = TempDir::new().unwrap();
    let mut accepted = vec![];
    for number in 0..kills {
        let service = Service::start(&folder, &provider).await;
        for i in 0..3 {
            accepted.extend(service.accept(number * 3 + i).await);
        }
        // Spread over the whole length of a run, without a random source: every kill hits another moment.
        tokio::time::sleep(Duration::from_millis((number as u64 * 37) % 160)).await;
        service.kill().await;
    }
    let service = Service::start(&folder, &provider).await;
    for run in &accepted {
        let patience = std::time::Instant::now() + Duration::from_secs(60);
        let mut state = service.state(*run).await;
        while matches!(state.as_str(), "running" | "queued") && std::time::Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
            state = service.state(*run).await;
        }
        assert!(matches!(state.as_str(), "answered" | "clarification"), "run {run} is {state}");
    }
    service.kill().await;
    assert_eq!(bought_twice(&provider), Vec::<String>::new());
    let store = SqliteStore::open(&folder.path().join("data/conclave.db"), "test").await.unwrap();
    for run in accepted {
        let row = store.run(run).await.unwrap().unwrap();
        let entries = store.entries(run, 0).await.unwrap();
        assert_eq!(journal::verify(run, &entries, &row.head_hash), Ok(()));
        assert!(row.spent <= row.cap);
    }
}

async fn entries(folder: &TempDir, run: RunId) -> Vec<journal::Entry> {
    let store = SqliteStore::open(&folder.path().join("data/conclave.db"), "reader").await.unwrap();
    store.entries(run, 0).await.unwrap()
}

#[tokio::test]
async fn a_service_that_drains_still_answers_and_finishes_its_runs() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_millis(1500)));
    let folder = TempDir::new().unwrap();
    let mut service = Service::start(&folder, &provider).await;
    let run = service.accept(1).await.unwrap();
    let pid = service.child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let health = client().get(format!("{}/health", service.url)).send().await.unwrap();
    assert_eq!(health.status(), 200);
    let refused = client().post(format!("{}/api/chat", service.url)).json(&chat("ask", "More?")).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let status = tokio::time::timeout(Duration::from_secs(20), service.child.wait()).await.unwrap().unwrap();
    assert!(status.success());
    let last = entries(&folder, run).await.pop().unwrap();
    assert!(matches!(last.event, Event::Finished(_)));
}
