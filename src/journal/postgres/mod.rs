//! The journal in PostgreSQL: one database, any number of replicas.
//!
//! Transactions are READ COMMITTED, independent of the server's default. An append first locks the
//! run's row, so entries of one run never interleave. An acceptance locks everything that it
//! depends on, in a fixed order.

mod accept;
mod actions;
mod address;
mod append;
mod archive;
mod effects;
mod news;
mod tokens;
mod transact;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::{
    ConnectOptions as _, Connection as _, Executor as _, Postgres, QueryBuilder, Row as _,
    SqlSafeStr,
};

use super::rows::{self, Bound, Columns, Condition};
use super::store::{
    Acceptance, ActionStart, AfterAction, Annotated, CancelOutcome, Claim, Entry, Error, Lease,
    LeaseState, MemoryRow, NewRun, Owner, Requester, Restored, RunFilter, RunRow, SceneLine,
    SheetRow, SpendingLimit, Store, TokenRow,
};
use super::{Archive, Event, statements};
use crate::domain::{RunId, Usd};
use transact::{begin, plain};

/// All schema changes, in order. A released migration is never edited.
const MIGRATIONS: [(i64, &str, &str); 3] = [
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
        let migrator = Migrator::with_migrations(
            MIGRATIONS
                .map(|(version, name, sql)| {
                    Migration::new(
                        version,
                        name.into(),
                        MigrationType::Simple,
                        sql.into_sql_str(),
                        false,
                    )
                })
                .to_vec(),
        );
        migrator.run(&mut connection).await?;
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

impl Columns for PgRow {
    fn text(&self, column: &str) -> Result<String, Error> {
        Ok(self.try_get(column)?)
    }

    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        Ok(self.try_get(column)?)
    }

    fn whole(&self, column: &str) -> Result<i64, Error> {
        Ok(self.try_get(column)?)
    }

    fn whole_or_null(&self, column: &str) -> Result<Option<i64>, Error> {
        Ok(self.try_get(column)?)
    }

    fn real_or_null(&self, column: &str) -> Result<Option<f64>, Error> {
        Ok(self.try_get(column)?)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error> {
        let mut tries = 0;
        loop {
            match accept::once(&self.pool, &run).await {
                Ok(acceptance) => return Ok(acceptance),
                Err(broken) => tries = broken.again(tries).await?,
            }
        }
    }

    async fn begin(&self, run: NewRun, then: AfterAction) -> Result<ActionStart, Error> {
        let mut tries = 0;
        loop {
            match actions::begin(&self.pool, &run, &then).await {
                Ok(begun) => return Ok(begun),
                Err(broken) => tries = broken.again(tries).await?,
            }
        }
    }

    async fn sheets(&self, owner: &Owner) -> Result<Vec<SheetRow>, Error> {
        actions::sheets(&self.pool, owner).await
    }

    async fn memories(
        &self,
        owner: &Owner,
        terms: &[String],
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error> {
        actions::memories(&self.pool, owner, terms, most).await
    }

    async fn memory_count(&self, owner: &Owner) -> Result<u64, Error> {
        actions::memory_count(&self.pool, owner).await
    }

    async fn recent_lines(&self, scene: &Requester, most: u32) -> Result<Vec<SceneLine>, Error> {
        actions::scene(&self.pool, scene, most).await
    }

    async fn by_key(&self, key: &str) -> Result<Option<(RunId, String)>, Error> {
        let found: Option<(String, String)> = sqlx::query_as(statements::BY_KEY)
            .bind(plain(key))
            .fetch_optional(&self.pool)
            .await?;
        found
            .map(|(id, body_hash)| Ok((rows::run_id(&id)?, body_hash)))
            .transpose()
    }

    async fn claim(
        &self,
        which: Claim,
        owner: &str,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error> {
        let mut tries = 0;
        loop {
            match append::claim(&self.pool, which, owner, lease, now).await {
                Ok(claimed) => return Ok(claimed),
                Err(broken) => tries = broken.again(tries).await?,
            }
        }
    }

    async fn renew(
        &self,
        lease: &Lease,
        duration: Duration,
        _now: Timestamp,
    ) -> Result<LeaseState, Error> {
        let found: Option<(i64,)> = sqlx::query_as(
            "UPDATE runs SET lease_until = clock_timestamp() + $1 * INTERVAL '1 millisecond'
             WHERE id = $2 AND epoch = $3 AND owner = $4 AND state = 'running'
             RETURNING cancel_requested",
        )
        .bind(transact::millis(duration))
        .bind(lease.run.to_string())
        .bind(lease.epoch)
        .bind(&lease.owner)
        .fetch_optional(&self.pool)
        .await?;
        Ok(match found {
            None => LeaseState::Lost,
            Some((0,)) => LeaseState::Yes,
            Some(_) => LeaseState::CancelRequested,
        })
    }

    async fn append(&self, lease: &Lease, at: Timestamp, events: &[Event]) -> Result<i64, Error> {
        let mut tries = 0;
        loop {
            match append::once(&self.pool, lease, at, events).await {
                Ok(seq) => return Ok(seq),
                Err(broken) => tries = broken.again(tries).await?,
            }
        }
    }

    async fn annotate(&self, run: RunId, at: Timestamp, event: &Event) -> Result<Annotated, Error> {
        let mut tries = 0;
        loop {
            match append::annotate(&self.pool, run, at, event).await {
                Ok(annotated) => return Ok(annotated),
                Err(broken) => tries = broken.again(tries).await?,
            }
        }
    }

    async fn entries(&self, run: RunId, after: i64) -> Result<Vec<Entry>, Error> {
        let found = sqlx::query(statements::ENTRIES)
            .bind(run.to_string())
            .bind(after)
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(rows::entry).collect()
    }

    async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        let found = sqlx::query(statements::RUN)
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await?;
        found.as_ref().map(rows::run).transpose()
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
        let mut listed = vec![];
        for filter in rows::by_kind(filter) {
            let found = list(&filter).build().fetch_all(&self.pool).await?;
            listed.extend(found.iter().map(rows::run).collect::<Result<Vec<_>, _>>()?);
        }
        rows::merge(&mut listed, filter.limit);
        Ok(listed)
    }

    async fn in_flight(&self) -> Result<u64, Error> {
        let (count,): (i64,) = sqlx::query_as(statements::IN_FLIGHT)
            .fetch_one(&self.pool)
            .await?;
        Ok(count.unsigned_abs())
    }

    async fn cancel(&self, id: RunId) -> Result<CancelOutcome, Error> {
        let mut tx = begin(&self.pool).await?;
        let found = sqlx::query("SELECT * FROM runs WHERE id = $1 FOR UPDATE")
            .bind(id.to_string())
            .fetch_optional(&mut *tx)
            .await?;
        let Some(row) = found else {
            return Ok(CancelOutcome::Unknown);
        };
        let state = rows::run(&row)?.state;
        if state.is_terminal() {
            return Ok(CancelOutcome::AlreadyFinished(state));
        }
        sqlx::query(statements::CANCEL)
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(CancelOutcome::Requested)
    }

    async fn last_reply(
        &self,
        asker: &Requester,
        since: Timestamp,
    ) -> Result<Option<RunRow>, Error> {
        let found = sqlx::query(statements::LAST_REPLY)
            .bind(plain(&asker.user_id))
            .bind(asker.source.as_str())
            .bind(plain(asker.guild_id.as_deref().unwrap_or("")))
            .bind(plain(asker.channel_id.as_deref().unwrap_or("")))
            .bind(since.as_millisecond())
            .fetch_optional(&self.pool)
            .await?;
        found.as_ref().map(rows::run).transpose()
    }

    async fn announce(&self, runs: &[RunId]) -> Result<(), Error> {
        news::announce(&self.pool, &self.owner, runs).await
    }

    async fn news(&self) -> Result<BoxStream<'static, RunId>, Error> {
        news::listen(&self.options, &self.owner).await
    }

    async fn ready(&self) -> Result<(), Error> {
        let latest = MIGRATIONS
            .iter()
            .map(|(version, ..)| *version)
            .max()
            .unwrap_or(0);
        let (version,): (Option<i64>,) = sqlx::query_as(statements::SCHEMA)
            .fetch_one(&self.pool)
            .await?;
        if version == Some(latest) {
            Ok(())
        } else {
            let found = version.map_or("none".to_owned(), |version| version.to_string());
            Err(Error::Migration(format!(
                "schema version {found}, expected {latest}"
            )))
        }
    }

    async fn exposure(&self, limit: &SpendingLimit) -> Result<Usd, Error> {
        accept::exposure(&mut *self.pool.acquire().await?, limit).await
    }

    async fn add_token(&self, token: &TokenRow) -> Result<(), Error> {
        tokens::add(&self.pool, token).await
    }

    async fn token(&self, id: &str) -> Result<Option<TokenRow>, Error> {
        tokens::one(&self.pool, id).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        tokens::all(&self.pool).await
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, Error> {
        tokens::revoke(&self.pool, id, at).await
    }

    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error> {
        archive::read(&self.pool, run).await
    }

    async fn restore(&self, archived: &Archive) -> Result<Restored, Error> {
        let mut tries = 0;
        loop {
            match archive::write(&self.pool, archived).await {
                Ok(restored) => return Ok(restored),
                Err(broken) => tries = broken.again(tries).await?,
            }
        }
    }

    async fn prunable(&self, before: Timestamp) -> Result<u64, Error> {
        archive::prunable(&self.pool, before).await
    }

    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error> {
        archive::prune(&self.pool, before, most).await
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

/// Builds the statement for a list of runs of one kind. The server chooses the index from its
/// statistics.
fn list(filter: &RunFilter) -> QueryBuilder<Postgres> {
    let mut statement = QueryBuilder::new("SELECT * FROM runs WHERE TRUE");
    for Condition {
        column,
        operator,
        bound,
    } in rows::conditions(filter)
    {
        statement.push(" AND ").push(column).push(operator);
        match bound {
            Bound::Text(text) => statement.push_bind(plain(&text).into_owned()),
            Bound::Whole(whole) => statement.push_bind(whole),
        };
    }
    if let Some(since) = filter.since {
        statement
            .push(rows::FLOOR)
            .push_bind(rows::floor(since))
            .push(rows::FLOOR_END);
    }
    statement
        .push(" ORDER BY id DESC LIMIT ")
        .push_bind(i64::from(filter.limit));
    statement
}
