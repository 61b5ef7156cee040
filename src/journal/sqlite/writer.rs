//! The one connection that writes, and how long its commits wait.
//!
//! What costs money or is promised to somebody waits for the disk (`synchronous = FULL`); an action that ends at once does
//! not (`NORMAL`): see docs/actions.md. The level belongs to the connection, so each transaction says which it wants.

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{Sqlite, Transaction};

use super::Error;

const WAITS: &str = "PRAGMA synchronous = FULL; BEGIN IMMEDIATE";
const DOES_NOT_WAIT: &str = "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE";

pub(super) struct Writer(SqlitePool);

impl Writer {
    pub async fn open(options: SqliteConnectOptions) -> Result<Self, Error> {
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            // There is nothing between this process and its file that could have gone away: asking costs each statement a
            // way to the database's thread and back.
            .test_before_acquire(false)
            // When the disk is full SQLite rolls back by itself, and the driver, which knows nothing of that, would take
            // the connection for one inside a transaction for good.
            .before_acquire(|connection, _| {
                Box::pin(async move { Ok(!sqlx::Connection::is_in_transaction(connection)) })
            })
            .connect_with(options)
            .await?;
        Ok(Self(pool))
    }

    /// A transaction whose commit waits for the disk.
    pub async fn transaction(&self) -> Result<Transaction<'static, Sqlite>, Error> {
        Ok(self.0.begin_with(WAITS).await?)
    }

    /// A transaction that survives the end of the process, however that comes, but may be lost when the machine itself stops.
    pub async fn free_transaction(&self) -> Result<Transaction<'static, Sqlite>, Error> {
        Ok(self.0.begin_with(DOES_NOT_WAIT).await?)
    }

    /// The connection itself, for changes of the schema before anybody writes.
    pub fn pool(&self) -> &SqlitePool {
        &self.0
    }
}
