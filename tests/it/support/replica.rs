//! Runs the service as separate processes that can be killed: one service, or several replicas on
//! one database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave::app::open_store;
use conclave::domain::RunId;
use conclave::journal::{self, Entry, RunState, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use super::program::limited;
use super::{MockProvider, chat, client, postgres};

pub const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

/// What replicas share: a database and a config.
pub struct Home {
    pub folder: TempDir,
    database: String,
}

impl Home {
    /// Uses the path that a service without settings uses.
    pub fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let database = format!(
            "sqlite://{}",
            folder.path().join("data/conclave.db").display()
        );
        Self::with(folder, database, 30)
    }

    pub async fn postgres(lease_seconds: u64) -> Self {
        Self::with(
            TempDir::new().unwrap(),
            postgres::fresh().await,
            lease_seconds,
        )
    }

    fn with(folder: TempDir, database: String, lease_seconds: u64) -> Self {
        let mut config: Value =
            serde_json::from_str(include_str!("../../../llm.config.json")).unwrap();
        config["policy"]["leaseSeconds"] = json!(lease_seconds);
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        Self { folder, database }
    }

    /// Opens the journal for reading, separately from the replicas.
    pub async fn store(&self) -> Arc<dyn Store> {
        open_store(&self.database, "reader").await.unwrap()
    }

    pub async fn entries(&self, run: RunId) -> Vec<Entry> {
        self.store().await.entries(run, 0).await.unwrap()
    }

    /// Starts a replica and waits until it listens.
    pub async fn serve(&self, provider: &MockProvider) -> Replica {
        self.serve_with(provider, &[]).await
    }

    /// Starts a replica with further variables in its environment.
    pub async fn serve_with(&self, provider: &MockProvider, more: &[(&str, &str)]) -> Replica {
        self.serve_limited("-v unlimited", provider, more).await
    }

    /// Starts a replica under a resource limit: the options of the shell's `ulimit`.
    pub async fn serve_limited(
        &self,
        limit: &str,
        provider: &MockProvider,
        more: &[(&str, &str)],
    ) -> Replica {
        let url = provider.url();
        // Calls in doubt are paid for. The cap leaves room for many kills, so that a run does not
        // end for lack of money.
        let variables = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("CONCLAVE_BIND", "127.0.0.1:0"),
            ("CONCLAVE_CONFIG", "config.json"),
            ("DATABASE_URL", self.database.as_str()),
            ("NORMAL_MAX_USD", "20"),
            ("DEEP_MAX_USD", "20"),
        ];
        let mut command = limited(limit, self.folder.path(), &["serve"], &variables);
        command.envs(more.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut url = None;
        while url.is_none() {
            let line = lines
                .next_line()
                .await
                .unwrap()
                .expect("the service says where it listens");
            url = line
                .split("listening on ")
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next())
                .map(str::to_owned);
        }
        // The log must be read all the time, or the process blocks on a full pipe.
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with the process whose output it reads"
        )]
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Replica {
            child,
            url: url.unwrap(),
        }
    }

    /// Waits for every run, and counts the damage by the kills.
    pub async fn toll(&self, runs: &[RunId], provider: &MockProvider) -> Toll {
        let store = self.store().await;
        let patience = Instant::now() + Duration::from_secs(90);
        let mut toll = Toll::none(runs.len());
        for run in runs {
            let row = loop {
                match store.run(*run).await.unwrap() {
                    Some(row) if !row.state.is_terminal() && Instant::now() < patience => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    row => break row,
                }
            };
            let Some(row) = row else {
                toll.lost.push(*run);
                continue;
            };
            if !matches!(row.state, RunState::Answered | RunState::Clarification) {
                toll.without_reply.push((*run, row.state));
            }
            let entries = store.entries(*run, 0).await.unwrap();
            if journal::verify(*run, &entries, &row.head_hash) != Ok(()) {
                toll.broken_chains.push(*run);
            }
            if row.spent > row.cap {
                toll.overspent.push(*run);
            }
        }
        toll.bought_twice = bought_twice(provider);
        toll
    }
}

/// The damage by kills. Only `accepted` should be above zero.
#[derive(Debug, PartialEq, Eq)]
pub struct Toll {
    pub accepted: usize,
    pub lost: Vec<RunId>,
    pub without_reply: Vec<(RunId, RunState)>,
    /// Idempotency keys under which the provider was called more than once.
    pub bought_twice: Vec<String>,
    pub broken_chains: Vec<RunId>,
    pub overspent: Vec<RunId>,
}

impl Toll {
    pub fn none(accepted: usize) -> Self {
        let (lost, without_reply, bought_twice, broken_chains, overspent) = Default::default();
        Self {
            accepted,
            lost,
            without_reply,
            bought_twice,
            broken_chains,
            overspent,
        }
    }

    /// Prints a row of the crash table of `make bench`.
    pub fn print(&self, what: &str, kills: usize) {
        let Self {
            accepted,
            lost,
            without_reply,
            bought_twice,
            broken_chains,
            overspent,
        } = self;
        println!(
            "| {what} | {kills} | {accepted} | {} | {} | {} | {} | {} |",
            lost.len(),
            bought_twice.len(),
            without_reply.len(),
            broken_chains.len(),
            overspent.len()
        );
    }
}

pub struct Replica {
    pub child: Child,
    pub url: String,
}

impl Replica {
    /// Sends SIGKILL.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Submits a question for a new user. Returns `None` if the replica died meanwhile.
    pub async fn accept(&self, number: usize) -> Option<RunId> {
        self.accept_in("ask", QUESTION, number).await
    }

    pub async fn accept_in(&self, mode: &str, message: &str, number: usize) -> Option<RunId> {
        let mut body = chat(mode, message);
        body["user"]["id"] = json!(format!("u{number}"));
        body["context"]["messageId"] = json!(format!("m{number}"));
        let request = client()
            .post(format!("{}/api/chat", self.url))
            .json(&body)
            .header("prefer", "respond-async");
        let response = request.send().await.ok()?;
        assert_eq!(response.status(), 202);
        response.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .parse()
            .ok()
    }
}

/// Returns the idempotency keys under which more than one call was made.
pub fn bought_twice(provider: &MockProvider) -> Vec<String> {
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for call in provider.calls() {
        *made.entry(call.full_key).or_default() += 1;
    }
    made.into_iter()
        .filter(|(_, times)| *times > 1)
        .map(|(key, _)| key)
        .collect()
}
