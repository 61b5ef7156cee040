//! Connections that only read, for queries that take too long for the calling thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::SqlStr;
use tokio::sync::Semaphore;

use super::connection::{OwnedRow, SqliteConnection};
use crate::journal::Error;
use crate::journal::database::{Bound, Connection, Failure, Statement};

/// The most queries at the same time.
const MAX_READERS: usize = 4;

/// Opens connections as they are needed, and keeps them. Each query runs on a thread for blocking work.
#[derive(Clone)]
pub struct Readers(Arc<Shared>);

struct Shared {
    path: PathBuf,
    patience: Duration,
    idle: Mutex<Vec<SqliteConnection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    /// `patience` is how long a query waits for a lock of another program.
    pub fn new(path: &Path, patience: Duration) -> Self {
        Self(Arc::new(Shared {
            path: path.to_owned(),
            patience,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_READERS)),
        }))
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let permits = Arc::clone(&self.0.permits);
        // The semaphore is never closed.
        let permit = permits.acquire_owned().await.map_err(|_| ended())?;
        let shared = Arc::clone(&self.0);
        let done = blocking(move || {
            // Held until the query ends, even if its caller does not wait any more.
            let _permit = permit;
            let idle = || shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = idle().pop();
            let connection = match kept {
                Some(connection) => connection,
                None => SqliteConnection::reading(&shared.path, shared.patience)?,
            };
            let result = work(&connection);
            idle().push(connection);
            result
        });
        done.await
    }
}

impl Connection for Readers {
    type Row = OwnedRow;

    async fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> Result<Vec<OwnedRow>, Failure> {
        self.with(move |connection| connection.query_now(statement.as_str(), &values))
            .await
    }

    async fn change(&mut self, (statement, values): Statement) -> Result<u64, Failure> {
        self.with(move |connection| connection.change_now(statement, &values))
            .await
    }
}

/// Does work that blocks, on a thread for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| ended())??)
}

fn ended() -> Failure {
    Error::Unavailable("its reader has ended".into()).into()
}
