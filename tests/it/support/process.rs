//! Runs the real binary: a command, or the service as a process that can be killed.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use conclave::app::open_store;
use conclave::domain::RunId;
use conclave::journal::{Entry, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{MockProvider, chat, client, postgres, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_conclave");

/// Returns the binary's command in a folder, with only the given environment.
pub fn conclave(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    set_up(Command::new(PROGRAM), folder, arguments, variables)
}

/// Returns the command under a resource limit: the options of the shell's `ulimit`.
pub fn limited(
    limit: &str,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let mut shell = Command::new("/bin/bash");
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script, PROGRAM]);
    set_up(shell, folder, arguments, variables)
}

fn set_up(
    mut command: Command,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.json");
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("CONCLAVE_CONFIG", config)
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
    log: watch::Receiver<String>,
    reader: JoinHandle<()>,
}

impl Service {
    pub async fn start(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let variables = [&[("CONCLAVE_BIND", "127.0.0.1:0")], variables].concat();
        Self::of(conclave(folder, &["serve"], &variables)).await
    }

    /// Starts the service by this command and waits until it listens.
    pub async fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).split(b'\n');
        let (sender, mut log) = watch::channel(String::new());
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with the process whose log it reads"
        )]
        let reader = tokio::spawn(async move {
            // The log must be read all the time, or the process blocks on a full pipe.
            while let Ok(Some(line)) = lines.next_segment().await {
                sender.send_modify(|log| *log += &(String::from_utf8_lossy(&line) + "\n"));
            }
        });
        let listens = log
            .wait_for(|log| log.contains("listening on "))
            .await
            .is_ok();
        let text = log.borrow().clone();
        assert!(listens, "the service did not come up: {text}");
        let address = text.split("listening on ").nth(1).unwrap();
        let mut words = address.split(|c: char| c.is_whitespace() || c == '"');
        Self {
            child,
            url: words.next().unwrap().to_owned(),
            log,
            reader,
        }
    }

    /// Waits until the log contains a text.
    pub async fn logged(&self, text: &str) {
        let mut log = self.log.clone();
        let found = log.wait_for(|log| log.contains(text)).await.is_ok();
        assert!(found, "not in the log: {text}");
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
        self.reader.await.unwrap();
        self.log.borrow().clone()
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
        let run = response.headers()["x-request-id"].to_str().unwrap();
        run.parse().ok()
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
        self.serve_limited("-v unlimited", provider, more).await
    }

    /// Starts a service under a resource limit.
    pub async fn serve_limited(
        &self,
        limit: &str,
        provider: &MockProvider,
        more: &[(&str, &str)],
    ) -> Service {
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
        let variables = [&variables, more].concat();
        Service::of(limited(limit, self.folder.path(), &["serve"], &variables)).await
    }

    /// Opens the journal for reading, separately from the services.
    pub async fn store(&self) -> Arc<dyn Store> {
        open_store(&self.database, "reader").await.unwrap()
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
