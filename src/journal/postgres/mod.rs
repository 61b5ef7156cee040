//! The journal in PostgreSQL: one database, any number of replicas.
//!
//! Transactions are READ COMMITTED, independent of the server's default. An append first locks the
//! run's row, so entries of one run never interleave. An acceptance locks everything that it
//! depends on, in a fixed order.

mod actions;
mod address;
mod claims;
mod news;
mod transact;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Postgres, SqlStr, Transaction};

use super::database::{Bound, Connection, Database, Statement};
use super::store::{
    Acceptance, ActionStart, ActionStore, AdminStore, AfterAction, Annotated, CancelOutcome, Claim,
    Error, JournalStore, Lease, LeaseState, MemoryRow, NewRun, Owner, Requester, Restored,
    RunFilter, SceneLine, SheetRow,
};
use super::{Archive, Event, reads, writes};
use crate::domain::RunId;
use transact::{plain, retried};

/// Connections of one process, besides the one that listens for notifications.
const MAX_CONNECTIONS: u32 = 16;

/// How long a statement waits for a connection, before the database counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

/// Settings of each connection. A statement waits for a lock as long as on SQLite. A replica that
/// vanishes in the middle of a transaction keeps its locks no longer than this.
const SESSION: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'";

/// The journal in a PostgreSQL database.
pub struct PostgresStore {
    pool: PgPool,
    options: PgConnectOptions,
    /// This process's unique name.
    owner: String,
}

impl PostgresStore {
    /// Connects, and brings the schema up to date. If several replicas start at once, one changes
    /// the schema and the others wait.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database cannot be reached or the address is invalid,
    /// [`Error::Migration`] if its schema is unknown. No error contains the address.
    pub async fn open(url: &str, owner: &str) -> Result<Self, Error> {
        let options = address::read(url)?;
        // Uses a connection of its own. The pool would retry until its timeout and then report only
        // that. Also, a schema change may take longer than the timeouts of the pool's sessions.
        let mut connection = match tokio::time::timeout(PATIENCE, options.connect()).await {
            Ok(connection) => connection?,
            Err(_) => return Err(Error::Unavailable("it does not answer".into())),
        };
        Self::migrator().run(&mut connection).await?;
        connection.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    connection.execute(SESSION).await?;
                    Ok(())
                })
            })
            .connect_with(options.clone())
            .await?;
        Ok(Self {
            pool,
            options,
            owner: owner.to_owned(),
        })
    }
}

impl Database for PostgresStore {
    type Driver = Postgres;

    const MIGRATIONS: &'static [(i64, &'static str, &'static str)] = &[
        (
            1,
            "journal",
            include_str!("../../../migrations/postgres/0001_journal.sql"),
        ),
        (
            2,
            "actions",
            include_str!("../../../migrations/postgres/0002_actions.sql"),
        ),
        (
            3,
            "lists",
            include_str!("../../../migrations/postgres/0003_lists.sql"),
        ),
    ];

    async fn reader(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        self.pool.acquire().await
    }

    /// Each statement sees what was committed before it, independent of the server's default.
    async fn transaction(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
        self.pool.begin_with(begin).await
    }

    fn in_place(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The server chooses the index from its statistics.
    fn listed(_filter: &RunFilter) -> &'static str {
        "runs"
    }
}

fn bind(
    mut query: Query<'_, Postgres, PgArguments>,
    values: Vec<Bound>,
) -> Query<'_, Postgres, PgArguments> {
    for value in values {
        query = match value {
            Bound::Text(text) => query.bind(text.map(plain)),
            Bound::Whole(whole) => query.bind(whole),
            Bound::Real(real) => query.bind(real),
        };
    }
    query
}

impl Connection for PgConnection {
    type Row = PgRow;

    const LOCK_RUN: &'static str = "SELECT * FROM runs WHERE id = $1 FOR UPDATE";

    async fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        bind(sqlx::query(statement), values).fetch_all(self).await
    }

    async fn change(&mut self, (statement, values): Statement) -> Result<u64, sqlx::Error> {
        let done = bind(sqlx::query(statement), values).execute(self).await?;
        Ok(done.rows_affected())
    }
}

#[async_trait]
impl JournalStore for PostgresStore {
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error> {
        retried(|| actions::accept(self, &run)).await
    }

    async fn claim(
        &self,
        which: Claim,
        owner: &str,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error> {
        retried(|| claims::claim(self, which, owner, lease, now)).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        duration: Duration,
        _now: Timestamp,
    ) -> Result<LeaseState, Error> {
        claims::renew(self, lease, duration).await
    }

    async fn append(&self, lease: &Lease, at: Timestamp, events: &[Event]) -> Result<i64, Error> {
        retried(|| claims::append(self, lease, at, events)).await
    }

    async fn annotate(&self, run: RunId, at: Timestamp, event: &Event) -> Result<Annotated, Error> {
        retried(|| async {
            let mut tx = self.transaction().await?;
            let annotated = writes::annotate(&mut *tx, run, at, event).await?;
            tx.commit().await?;
            Ok(annotated)
        })
        .await
    }

    async fn cancel(&self, id: RunId) -> Result<CancelOutcome, Error> {
        let mut tx = self.transaction().await?;
        let cancelled = writes::cancel(&mut *tx, id).await?;
        tx.commit().await?;
        Ok(cancelled)
    }

    async fn announce(&self, runs: &[RunId]) -> Result<(), Error> {
        news::announce(&self.pool, &self.owner, runs).await
    }

    async fn news(&self) -> Result<BoxStream<'static, RunId>, Error> {
        news::listen(&self.options, &self.owner).await
    }

    async fn ready(&self) -> Result<(), Error> {
        reads::schema(self).await
    }
}

#[async_trait]
impl ActionStore for PostgresStore {
    async fn begin(&self, run: NewRun, then: AfterAction) -> Result<ActionStart, Error> {
        retried(|| actions::begin(self, &run, &then)).await
    }

    async fn sheets(&self, owner: &Owner) -> Result<Vec<SheetRow>, Error> {
        reads::sheets(self, owner).await
    }

    async fn memories(
        &self,
        owner: &Owner,
        terms: &[String],
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error> {
        actions::memories(self, owner, terms, most).await
    }

    async fn memory_count(&self, owner: &Owner) -> Result<u64, Error> {
        reads::memory_count(self, owner).await
    }

    async fn recent_lines(&self, scene: &Requester, most: u32) -> Result<Vec<SceneLine>, Error> {
        reads::recent_lines(self, scene, most).await
    }
}

#[async_trait]
impl AdminStore for PostgresStore {
    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error> {
        reads::archive(self, run).await
    }

    async fn restore(&self, archived: &Archive) -> Result<Restored, Error> {
        retried(|| async {
            let mut tx = self.transaction().await?;
            let restored = writes::restore(&mut *tx, archived).await?;
            tx.commit().await?;
            Ok(restored)
        })
        .await
    }

    async fn prunable(&self, before: Timestamp) -> Result<u64, Error> {
        reads::prunable(self, before).await
    }

    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error> {
        // Replicas that prune at the same time skip each other's rows.
        let statement = "
            DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE finished_ms < $1
                                          ORDER BY finished_ms LIMIT $2 FOR UPDATE SKIP LOCKED)";
        let values = vec![before.as_millisecond().into(), i64::from(most).into()];
        Ok(self.reader().await?.change((statement, values)).await?)
    }

    async fn vacuum(&self) -> Result<(), Error> {
        // The server vacuums by itself.
        Ok(())
    }

    async fn backup(&self, _to: &Path) -> Result<(), Error> {
        Err(Error::Unsupported(
            "PostgreSQL has its own tools for a backup: use pg_dump",
        ))
    }
}
