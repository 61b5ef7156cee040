//! The one connection that writes, and the durability of its commits.
//!
//! Commits wait for the disk (`synchronous = FULL`) if they cost money or are promised to a client.
//! An action that ends at once does not wait (`NORMAL`): see docs/actions.md. The level is a
//! setting of the connection, so each transaction sets the one that it needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, QueryBuilder, SqlSafeStr as _, Sqlite, Transaction};

use super::{Error, SqliteRow, bind};
use crate::journal::database::{Bound, Connection as _, Statement};

const WAITS: &str = "PRAGMA synchronous = FULL; BEGIN IMMEDIATE";
const DOES_NOT_WAIT: &str = "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE";

#[derive(Clone)]
pub(super) struct Writer {
    pool: SqlitePool,
    /// True while a transaction may be open that the driver does not know of.
    half_done: Arc<AtomicBool>,
    /// True if the last transaction that has ended was one that waits for the disk. Each use of the
    /// connection sets it to false first.
    waits: Arc<AtomicBool>,
    /// The value of `waits` when the connection was last taken from the pool.
    waited: Arc<AtomicBool>,
}

/// A transaction that waits for the disk, of which the driver does not know. It is rolled back if it
/// is dropped before its end.
pub(super) struct Open {
    connection: PoolConnection<Sqlite>,
    half_done: Arc<AtomicBool>,
}

impl Open {
    /// Executes one statement.
    pub async fn change(&mut self, statement: Statement) -> Result<(), sqlx::Error> {
        (*self.connection).change(statement).await.map(|_| ())
    }

    /// Returns the first row of a query.
    pub async fn row(
        &mut self,
        query: &'static str,
        values: Vec<Bound>,
    ) -> Result<Option<SqliteRow>, sqlx::Error> {
        (*self.connection).row(query, values).await
    }

    /// Executes statements of which the last commits.
    pub async fn finish(&mut self, script: String, values: Vec<Bound>) -> Result<(), sqlx::Error> {
        let script = AssertSqlSafe(script).into_sql_str();
        bind(sqlx::query(script), values)
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// Returns the connection to the pool. Rolls back if the transaction was not committed.
    pub async fn end(mut self, is_committed: bool) {
        let is_over = is_committed || {
            let rolled_back = sqlx::query("ROLLBACK").execute(&mut *self.connection);
            rolled_back.await.is_ok()
        };
        if is_over {
            self.half_done.store(false, Ordering::SeqCst);
        }
    }
}

impl Writer {
    pub async fn open(options: SqliteConnectOptions) -> Result<Self, Error> {
        let half_done = Arc::new(AtomicBool::new(false));
        let before = Arc::clone(&half_done);
        let (waits, waited) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (level, last_level) = (Arc::clone(&waits), Arc::clone(&waited));
        let (new_level, new_last_level) = (Arc::clone(&waits), Arc::clone(&waited));
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            // A connection to a local file cannot break, and the test would cost each statement a
            // round trip to the database's thread.
            .test_before_acquire(false)
            .after_connect(move |_, _| {
                new_level.store(false, Ordering::SeqCst);
                new_last_level.store(false, Ordering::SeqCst);
                Box::pin(async { Ok(()) })
            })
            // When the disk is full, SQLite rolls back by itself. The driver does not notice, and
            // would consider the connection to be inside a transaction for ever. So such a
            // connection is closed, which rolls back.
            .before_acquire(move |connection, _| {
                last_level.store(level.swap(false, Ordering::SeqCst), Ordering::SeqCst);
                let sound =
                    !before.swap(false, Ordering::SeqCst) && !connection.is_in_transaction();
                Box::pin(async move { Ok(sound) })
            })
            .connect_with(options)
            .await?;
        Ok(Self {
            pool,
            half_done,
            waits,
            waited,
        })
    }

    /// Begins a transaction whose commit waits for the disk.
    pub async fn transaction(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        let begun = self.pool.begin_with(WAITS).await?;
        self.waits.store(true, Ordering::SeqCst);
        Ok(begun)
    }

    /// As [`Writer::transaction`], with the rows of a first query, in one round trip to the
    /// database's thread.
    pub async fn begin_and_read(
        &self,
        query: &'static str,
        values: Vec<Bound>,
    ) -> Result<(Open, Vec<SqliteRow>), sqlx::Error> {
        let mut open = Open {
            connection: self.pool.acquire().await?,
            half_done: Arc::clone(&self.half_done),
        };
        let waited = self.waited.load(Ordering::SeqCst);
        let begin = if waited { "BEGIN IMMEDIATE" } else { WAITS };
        let statements = AssertSqlSafe(format!("{begin};{query}")).into_sql_str();
        self.half_done.store(true, Ordering::SeqCst);
        // The PRAGMA takes effect when it is compiled, so a statement with it is not cached.
        let begun = bind(sqlx::query(statements), values).persistent(waited);
        match begun.fetch_all(&mut *open.connection).await {
            Ok(rows) => {
                self.waits.store(true, Ordering::SeqCst);
                Ok((open, rows))
            }
            Err(error) => {
                open.end(false).await;
                Err(error)
            }
        }
    }

    /// Begins a transaction that survives any end of the process, but may be lost when the machine
    /// crashes.
    pub async fn free_transaction(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.pool.begin_with(DOES_NOT_WAIT).await
    }

    /// As [`Writer::free_transaction`], for statements that are known beforehand. Needs one round
    /// trip to the database's thread in all, instead of one for each statement. `write` adds the
    /// statements, each followed by a semicolon.
    pub async fn at_once(
        &self,
        write: impl FnOnce(&mut QueryBuilder<Sqlite>),
    ) -> Result<(), sqlx::Error> {
        let mut statements = QueryBuilder::new(DOES_NOT_WAIT);
        statements.push(";");
        write(&mut statements);
        statements.push("COMMIT");
        let mut connection = self.pool.acquire().await?;
        self.half_done.store(true, Ordering::SeqCst);
        // SQLite applies this PRAGMA when it compiles the statement, so a cached statement would
        // not set the level again.
        statements
            .build()
            .persistent(false)
            .execute(&mut *connection)
            .await?;
        self.half_done.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// The connection itself, for schema changes before the first write.
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    async fn writer(folder: &TempDir) -> Writer {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("w.db"))
            .create_if_missing(true);
        let writer = Writer::open(options).await.unwrap();
        sqlx::raw_sql("CREATE TABLE notes (text TEXT NOT NULL UNIQUE)")
            .execute(writer.pool())
            .await
            .unwrap();
        writer
    }

    async fn notes(writer: &Writer) -> Vec<String> {
        let mut tx = writer.transaction().await.unwrap();
        sqlx::query_scalar("SELECT text FROM notes ORDER BY text")
            .fetch_all(&mut *tx)
            .await
            .unwrap()
    }

    fn note(statements: &mut QueryBuilder<Sqlite>, text: &str) {
        statements
            .push("INSERT INTO notes VALUES (")
            .push_bind(text.to_owned())
            .push(");");
    }

    #[tokio::test]
    async fn statements_at_once_are_written_together_or_not_at_all() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder).await;
        writer
            .at_once(|statements| {
                ["a", "b"]
                    .into_iter()
                    .for_each(|text| note(statements, text));
            })
            .await
            .unwrap();
        let failed = writer
            .at_once(|statements| {
                ["c", "a"]
                    .into_iter()
                    .for_each(|text| note(statements, text));
            })
            .await;
        assert!(matches!(failed, Err(sqlx::Error::Database(error)) if error.is_unique_violation()));
        assert_eq!(notes(&writer).await, ["a", "b"]);
        writer
            .at_once(|statements| note(statements, "d"))
            .await
            .unwrap();
        assert_eq!(notes(&writer).await, ["a", "b", "d"]);
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_leaves_nothing_half_done() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder).await;
        for case in 0..50 {
            let own = (format!("{case} first"), format!("{case} second"));
            let writing = writer.at_once(|statements| {
                note(statements, &own.0);
                note(statements, &own.1);
            });
            let _ = tokio::time::timeout(Duration::from_micros(case * 20), writing).await;
            let written = notes(&writer).await;
            assert_eq!(written.contains(&own.0), written.contains(&own.1), "{case}");
        }
        writer
            .at_once(|statements| note(statements, "last"))
            .await
            .unwrap();
        assert!(notes(&writer).await.contains(&"last".to_owned()));
    }
}
