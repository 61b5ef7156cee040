//! Runs the real binary: a command, or the service as a process that can be killed.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use conclave::app::open_store;
use conclave::config::Database;
use conclave::domain::RunId;
use conclave::journal::{Entry, Store};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
use tokio::process::{Child, Command};

use super::{MockProvider, chat, client, postgres, run_of, until};

pub const DEFAULT_CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.json");

/// Returns the binary's command in a folder, with only the given environment. Its variable `LIMIT` has
/// options of the shell's `ulimit`, and `PROGRAM` the path of another copy of the binary.
pub fn conclave(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let script = r#"eval "ulimit ${LIMIT:--v unlimited}"; exec "${PROGRAM:-$0}" "$@""#;
    let mut command = Command::new("/bin/bash");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_conclave")])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("CONCLAVE_CONFIG", DEFAULT_CONFIG)
        .env("USER", "ada")
        .env("LLVM_PROFILE_FILE", "/dev/null")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A running `conclave serve`. It is killed when dropped.
pub struct Service {
    pub child: Child,
    pub url: String,
    log: NamedTempFile,
}

impl Service {
    pub async fn start(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let variables = [&[("CONCLAVE_BIND", "127.0.0.1:0")], variables].concat();
        Self::of(conclave(folder, &["serve"], &variables)).await
    }

    /// Starts the service by this command and waits until it listens.
    pub async fn of(mut command: Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        let child = command.stderr(log.reopen().unwrap()).spawn().unwrap();
        let url = String::new();
        let mut service = Self { child, url, log };
        let log = service.logged("listening on http").await;
        let (_, address) = log.split_once("listening on ").unwrap();
        let mut words = address.split(|c: char| c.is_whitespace() || c == '"');
        service.url = words.next().unwrap().to_owned();
        service
    }

    /// Waits until the log contains a text, and returns the log.
    pub async fn logged(&mut self, text: &str) -> String {
        loop {
            let ended = self.child.try_wait().unwrap();
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            assert_eq!(ended, None, "{text} is not in the log: {log}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    /// Sends SIGTERM.
    pub async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(status.unwrap().success());
    }

    /// Stops the service as a supervisor does, and returns its whole log.
    pub async fn stop(mut self) -> String {
        self.terminate().await;
        self.child.wait().await.unwrap();
        self.log()
    }

    /// Sends SIGKILL.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Submits a question for a new user. Returns `None` if the service died meanwhile.
    pub async fn accept(&self, mode: &str, message: &str, number: usize) -> Option<RunId> {
        let mut body = chat(mode, message);
        body["user"]["id"] = json!(format!("u{number}"));
        body["context"]["messageId"] = json!(format!("m{number}"));
        let request = client().post(format!("{}/api/chat", self.url)).json(&body);
        let request = request.header("prefer", "respond-async");
        let response = request.send().await.ok()?;
        assert_eq!(response.status(), 202);
        Some(run_of(&response))
    }
}

/// What the services of a test share: a database and a config.
pub struct Home {
    pub folder: TempDir,
    pub database: String,
}

impl Home {
    /// Uses the path that a service without settings uses.
    pub fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("data/conclave.db");
        Self::with(folder, format!("sqlite://{}", file.display()), 30)
    }

    pub async fn postgres(lease_seconds: u64) -> Self {
        let database = postgres::fresh().await;
        Self::with(TempDir::new().unwrap(), database, lease_seconds)
    }

    fn with(folder: TempDir, database: String, lease_seconds: u64) -> Self {
        let mut config: Value = serde_json::from_str(super::SHIPPED).unwrap();
        config["policy"]["leaseSeconds"] = json!(lease_seconds);
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        Self { folder, database }
    }

    /// Starts a service, with more variables in its environment.
    pub async fn serve(&self, provider: &MockProvider, more: &[(&str, &str)]) -> Service {
        let url = provider.url();
        // Calls in doubt are paid for. The cap leaves room for many kills, so that a run does not
        // end for lack of money.
        let variables = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("CONCLAVE_CONFIG", "config.json"),
            ("DATABASE_URL", self.database.as_str()),
            ("NORMAL_MAX_USD", "20"),
            ("DEEP_MAX_USD", "20"),
        ];
        Service::start(self.folder.path(), &[&variables, more].concat()).await
    }

    /// Opens the journal for reading, separately from the services.
    pub async fn store(&self) -> Arc<dyn Store> {
        let database = Database::at(&self.database).unwrap();
        open_store(&database, "reader").await.unwrap()
    }

    pub async fn entries(&self, run: RunId) -> Vec<Entry> {
        self.store().await.entries(run, 0).await.unwrap()
    }

    /// Waits until the journal of a run is as described, and returns it.
    pub async fn entries_once(&self, run: RunId, wanted: impl Fn(&[Entry]) -> bool) -> Vec<Entry> {
        let store = self.store().await;
        until(async || wanted(&store.entries(run, 0).await.unwrap())).await;
        store.entries(run, 0).await.unwrap()
    }
}
