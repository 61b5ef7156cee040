//! Runs the real binary as a service and collects its log.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use super::program::conclave;

/// A running `conclave serve`. It is killed when dropped.
pub struct Daemon {
    child: Child,
    pub url: String,
    log: Arc<Mutex<String>>,
    reader: tokio::task::JoinHandle<()>,
}

impl Daemon {
    /// Starts the service and waits until it listens.
    ///
    /// # Panics
    /// Panics if the service does not come up.
    pub async fn start(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = conclave(folder, &["serve"], &[("CONCLAVE_BIND", "127.0.0.1:0")]);
        let mut child = command.envs(variables.iter().copied()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let (kept, (found, url)) = (Arc::clone(&log), tokio::sync::oneshot::channel());
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with the process whose output it reads"
        )]
        let reader = tokio::spawn(async move {
            let mut found = Some(found);
            let mut line = vec![];
            while stderr
                .read_until(b'\n', &mut line)
                .await
                .is_ok_and(|bytes| bytes > 0)
            {
                let text = String::from_utf8_lossy(&line).into_owned();
                if let Some(rest) = text.split("listening on ").nth(1)
                    && let Some(found) = found.take()
                {
                    let end = rest
                        .find(|c: char| c.is_whitespace() || c == '"')
                        .unwrap_or(rest.len());
                    found.send(rest[..end].to_owned()).unwrap();
                }
                kept.lock().unwrap().push_str(&text);
                line.clear();
            }
        });
        let url = url
            .await
            .unwrap_or_else(|_| panic!("the service did not come up: {}", log.lock().unwrap()));
        Self {
            child,
            url,
            log,
            reader,
        }
    }

    /// Stops the service as a supervisor does, and returns its whole log.
    pub async fn stop(mut self) -> String {
        let id = self.child.id().unwrap().to_string();
        assert!(
            tokio::process::Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .await
                .unwrap()
                .success()
        );
        self.child.wait().await.unwrap();
        self.reader.await.unwrap();
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}
