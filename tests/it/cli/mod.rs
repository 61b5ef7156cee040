//! Tests the real binary: its commands, exit codes and output.

mod asking;
mod printed;
mod recorded;
mod setup;

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::app::PLANTED_KEY;
use crate::support::process::conclave;
use crate::support::{MockProvider, QUESTION, SHIPPED, Scenario};

/// Runs a command. Returns its exit code, standard output and standard error.
pub async fn run(mut command: Command) -> (i32, String, String) {
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

/// The command line in a folder of its own, with a mock provider.
pub struct CommandLine {
    pub folder: TempDir,
    pub provider: MockProvider,
}

impl CommandLine {
    pub async fn new() -> Self {
        Self::playing(Scenario::agreeing()).await
    }

    pub async fn playing(scenario: Scenario) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            provider: MockProvider::playing(scenario).await,
        }
    }

    /// Returns a command with the provider's address and key, and more variables.
    pub fn command(&self, arguments: &[&str], more: &[(&str, &str)]) -> Command {
        let url = self.provider.url();
        let variables = [
            ("ANTHROPIC_API_KEY", PLANTED_KEY),
            ("ANTHROPIC_BASE_URL", url.as_str()),
        ];
        let variables = [&variables, more].concat();
        conclave(self.folder.path(), arguments, &variables)
    }

    pub async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let (code, out, error) = run(self.command(arguments, &[])).await;
        assert!(
            !out.contains(PLANTED_KEY) && !error.contains(PLANTED_KEY),
            "the key is shown: {out}{error}"
        );
        (code, out, error)
    }

    pub async fn json(&self, arguments: &[&str]) -> Value {
        let (code, output, error) = self.run(arguments).await;
        assert_eq!(code, 0, "{error}");
        serde_json::from_str(&output).unwrap()
    }

    /// Returns the id of the newest run.
    pub async fn newest(&self) -> String {
        let run = self.json(&["runs", "--json", "--limit", "1"]).await;
        run["id"].as_str().unwrap().to_owned()
    }

    /// Writes the shipped config with one value changed, and returns its path.
    pub fn config(&self, pointer: &str, value: Value) -> String {
        let mut file: Value = serde_json::from_str(SHIPPED).unwrap();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value;
        let path = self.path("other.json");
        std::fs::write(&path, file.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the database.
    pub fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path("data/conclave.db")).unwrap()
    }
}
