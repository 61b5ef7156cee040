//! The journal in SQLite, the embedded default: WAL, `synchronous = FULL`, one writing connection.

mod actions;
mod append;
mod archive;
mod batch;
mod effects;
mod file;
mod lists;
mod owners;
mod restore;
mod spending;
mod tokens;
mod writer;

use append::{append, insert, project, set_head, until, write};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Executor as _, Row as _, SqlSafeStr, Sqlite, Transaction};

use super::rows::{self, Columns};
use super::store::{
    Acceptance, ActionStart, AfterAction, Annotated, CancelOutcome, Claim, Entry, Error, Lease,
    LeaseState, MemoryRow, NewRun, Owner, Requester, Restored, RunFilter, RunRow, SceneLine,
    SheetRow, SpendingLimit, Store, TokenRow,
};
use super::{Archive, Event, chain, statements};
use crate::domain::{RunId, Usd};
use batch::Batch;
use file::DatabaseFile;
use owners::{LockFile, Owners};
use writer::Writer;

pub use restore::{Existing, Restoration, RestoreError, restore};

/// All schema changes, in order. A released migration is never edited.
const MIGRATIONS: [(i64, &str, &str); 5] = [
    (
        1,
        "journal",
        include_str!("../../../migrations/sqlite/0001_journal.sql"),
    ),
    (
        2,
        "tokens",
        include_str!("../../../migrations/sqlite/0002_tokens.sql"),
    ),
    (
        3,
        "actions",
        include_str!("../../../migrations/sqlite/0003_actions.sql"),
    ),
    (
        4,
        "memory_owners",
        include_str!("../../../migrations/sqlite/0004_memory_owners.sql"),
    ),
    (
        5,
        "lists",
        include_str!("../../../migrations/sqlite/0005_lists.sql"),
    ),
];

/// Returns the migrations. The caller must keep other processes away while they run.
fn migrator() -> Migrator {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(
            version,
            name.into(),
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    });
    let mut migrator = Migrator::with_migrations(migrations.to_vec());
    migrator.set_locking(false);
    migrator
}

/// Returns the schema version of this program.
fn latest() -> i64 {
    MIGRATIONS
        .iter()
        .map(|(version, ..)| *version)
        .max()
        .unwrap_or(0)
}

/// Size of the write-ahead log, in pages of 4 KiB, at which a commit has to move them into the
/// file.
const LOG_PAGES: u32 = 8000;

/// Limits of a store in a SQLite file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteBounds {
    /// How long a statement waits for another process's write, before the database counts as
    /// locked.
    pub patience: Duration,
    /// Maximum size of the file in pages of 4 KiB. At this size the disk counts as full.
    pub most_pages: Option<u32>,
}

impl Default for SqliteBounds {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            most_pages: None,
        }
    }
}

/// The journal in one SQLite file.
pub struct SqliteStore {
    file: DatabaseFile,
    writer: Writer,
    readers: SqlitePool,
    /// Moves pages from the write-ahead log into the file, so that no writer has to stop for it.
    keeper: SqlitePool,
    batch: Batch,
    owners: Owners,
}

impl SqliteStore {
    /// Opens the file and brings its schema up to date. Creates the file and its folder if they are
    /// missing. `owner` is this process's unique name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be opened, [`Error::Migration`] if its schema is
    /// unknown.
    pub async fn open(path: &Path, owner: &str) -> Result<Self, Error> {
        Self::open_within(path, owner, SqliteBounds::default()).await
    }

    /// As [`SqliteStore::open`], with other bounds.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_within(
        path: &Path,
        owner: &str,
        bounds: SqliteBounds,
    ) -> Result<Self, Error> {
        file::prepare(path)?;
        let door = LockFile::of(path)?;
        let mut options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(bounds.patience)
            // If `vacuum` is not called, a commit moves the pages once the log has this size.
            .pragma("wal_autocheckpoint", LOG_PAGES.to_string())
            .foreign_keys(true);
        if let Some(pages) = bounds.most_pages {
            options = options.pragma("max_page_count", pages.to_string());
        }
        let writer = Writer::open(options.clone()).await?;
        migrator().run(writer.pool()).await?;
        let keeper = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_lazy_with(options.clone());
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .test_before_acquire(false)
            .connect_with(options.read_only(true))
            .await?;
        let owners = Owners::register(door, owner)?;
        Ok(Self {
            file: DatabaseFile::opened(path)?,
            writer,
            readers,
            keeper,
            batch: Batch::default(),
            owners,
        })
    }

    async fn transaction(&self) -> Result<Transaction<'static, Sqlite>, Error> {
        self.writer.transaction().await
    }

    async fn accepted(&self, run: NewRun) -> Result<Acceptance, Error> {
        let mut tx = self.transaction().await?;
        if let Some(not) = actions::refusal(&mut tx, &run).await? {
            return Ok(not);
        }
        insert(&mut tx, &run).await?;
        append(
            &mut tx,
            run.id,
            run.at,
            &[Event::Accepted(Box::new(run.accepted))],
        )
        .await?;
        tx.commit().await?;
        Ok(Acceptance::New)
    }
}

impl Columns for SqliteRow {
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
impl Store for SqliteStore {
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error> {
        self.file.in_place()?;
        self.file.noted(self.accepted(run).await)
    }

    async fn begin(&self, run: NewRun, then: AfterAction) -> Result<ActionStart, Error> {
        self.file.in_place()?;
        self.file
            .noted(actions::begin(&self.writer, run, then).await)
    }

    async fn sheets(&self, owner: &Owner) -> Result<Vec<SheetRow>, Error> {
        actions::sheets(&self.readers, owner).await
    }

    async fn memories(
        &self,
        owner: &Owner,
        terms: &[String],
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error> {
        actions::memories(&self.readers, owner, terms, most).await
    }

    async fn memory_count(&self, owner: &Owner) -> Result<u64, Error> {
        actions::memory_count(&self.readers, owner).await
    }

    async fn recent_lines(&self, scene: &Requester, most: u32) -> Result<Vec<SceneLine>, Error> {
        actions::scene(&self.readers, scene, most).await
    }

    async fn by_key(&self, key: &str) -> Result<Option<(RunId, String)>, Error> {
        self.file.in_place()?;
        let found: Option<(String, String)> = sqlx::query_as(statements::BY_KEY)
            .bind(key)
            .fetch_optional(&self.readers)
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
        let one = match which {
            Claim::Oldest => None,
            Claim::Run(id) => Some(id.to_string()),
        };
        let mut tx = self.transaction().await?;
        let claimed: Option<(String, i64)> = sqlx::query_as(
            "UPDATE runs SET state = 'running', owner = ?, epoch = epoch + 1, lease_until_ms = ?
             WHERE id = (SELECT id FROM runs
                         WHERE (state = 'queued' OR (state = 'running' AND lease_until_ms < ?))
                           AND (? IS NULL OR id = ?)
                         ORDER BY accepted_ms LIMIT 1)
             RETURNING id, epoch",
        )
        .bind(owner)
        .bind(until(now, lease))
        .bind(now.as_millisecond())
        .bind(&one)
        .bind(&one)
        .fetch_optional(&mut *tx)
        .await?;
        let Some((id, epoch)) = claimed else {
            return Ok(None);
        };
        let run = rows::run_id(&id)?;
        let event = Event::Claimed(super::Claimed {
            epoch,
            owner: owner.to_owned(),
        });
        append(&mut tx, run, now, &[event]).await?;
        tx.commit().await?;
        Ok(Some(Lease {
            run,
            owner: owner.to_owned(),
            epoch,
        }))
    }

    async fn renew(
        &self,
        lease: &Lease,
        duration: Duration,
        now: Timestamp,
    ) -> Result<LeaseState, Error> {
        // A crash of the machine may lose this renewal, but it also ends the process that has the
        // lease.
        let mut tx = self.writer.free_transaction().await?;
        let found: Option<(i64,)> = sqlx::query_as(
            "UPDATE runs SET lease_until_ms = ? WHERE id = ? AND epoch = ? AND owner = ? AND state = 'running'
             RETURNING cancel_requested",
        )
        .bind(until(now, duration))
        .bind(lease.run.to_string())
        .bind(lease.epoch)
        .bind(&lease.owner)
        .fetch_optional(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(match found {
            None => LeaseState::Lost,
            Some((0,)) => LeaseState::Yes,
            Some(_) => LeaseState::CancelRequested,
        })
    }

    async fn append(&self, lease: &Lease, at: Timestamp, events: &[Event]) -> Result<i64, Error> {
        self.file.noted(
            self.batch
                .append(lease, at, events, || self.transaction())
                .await,
        )
    }

    async fn annotate(&self, run: RunId, at: Timestamp, event: &Event) -> Result<Annotated, Error> {
        let mut tx = self.transaction().await?;
        let found = sqlx::query(statements::RUN)
            .bind(run.to_string())
            .fetch_optional(&mut *tx)
            .await?;
        let Some(row) = found.as_ref().map(rows::run).transpose()? else {
            return Ok(Annotated::Unknown);
        };
        if !row.state.is_terminal() {
            return Ok(Annotated::Unfinished);
        }
        if append(&mut tx, run, at, std::slice::from_ref(event)).await? == row.head_seq {
            return Ok(Annotated::Taken);
        }
        tx.commit().await?;
        Ok(Annotated::Written)
    }

    async fn entries(&self, run: RunId, after: i64) -> Result<Vec<Entry>, Error> {
        let found = sqlx::query(statements::ENTRIES)
            .bind(run.to_string())
            .bind(after)
            .fetch_all(&self.readers)
            .await?;
        found.iter().map(rows::entry).collect()
    }

    async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        let found = sqlx::query(statements::RUN)
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await?;
        found.as_ref().map(rows::run).transpose()
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
        lists::runs(&self.readers, filter).await
    }

    async fn in_flight(&self) -> Result<u64, Error> {
        let (count,): (i64,) = sqlx::query_as(statements::IN_FLIGHT)
            .fetch_one(&self.readers)
            .await?;
        Ok(count.unsigned_abs())
    }

    async fn cancel(&self, id: RunId) -> Result<CancelOutcome, Error> {
        let mut tx = self.transaction().await?;
        let found = sqlx::query(statements::RUN)
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
        self.file.in_place()?;
        let found = sqlx::query(statements::LAST_REPLY)
            .bind(&asker.user_id)
            .bind(asker.source.as_str())
            .bind(asker.guild_id.as_deref().unwrap_or(""))
            .bind(asker.channel_id.as_deref().unwrap_or(""))
            .bind(since.as_millisecond())
            .fetch_optional(&self.readers)
            .await?;
        found.as_ref().map(rows::run).transpose()
    }

    async fn release_dead(&self) -> Result<(), Error> {
        for owner in self.owners.dead() {
            let mut tx = self.transaction().await?;
            let released = sqlx::query(
                "UPDATE runs SET lease_until_ms = 0 WHERE owner = ? AND state = 'running'",
            )
            .bind(&owner)
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            if released.rows_affected() > 0 {
                tracing::info!(
                    owner,
                    runs = released.rows_affected(),
                    "a process died: its runs are taken over"
                );
            }
            self.owners.forget(&owner);
        }
        Ok(())
    }

    async fn ready(&self) -> Result<(), Error> {
        self.file.in_place()?;
        self.file.has_room()?;
        let latest = latest();
        let (version,): (Option<i64>,) = sqlx::query_as(statements::SCHEMA)
            .fetch_one(&self.readers)
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
        spending::exposure(&mut *self.readers.acquire().await?, limit).await
    }

    async fn add_token(&self, token: &TokenRow) -> Result<(), Error> {
        let mut tx = self.transaction().await?;
        tokens::add(&mut tx, token).await?;
        Ok(tx.commit().await?)
    }

    async fn token(&self, id: &str) -> Result<Option<TokenRow>, Error> {
        tokens::one(&self.readers, id).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        self.file.in_place()?;
        tokens::all(&self.readers).await
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, Error> {
        let mut tx = self.transaction().await?;
        let revoked = tokens::revoke(&mut tx, id, at).await?;
        tx.commit().await?;
        Ok(revoked)
    }

    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error> {
        archive::read(&self.readers, run).await
    }

    async fn restore(&self, archived: &Archive) -> Result<Restored, Error> {
        let mut tx = self.transaction().await?;
        let restored = archive::write(&mut tx, archived).await?;
        tx.commit().await?;
        Ok(restored)
    }

    async fn prunable(&self, before: Timestamp) -> Result<u64, Error> {
        archive::prunable(&self.readers, before).await
    }

    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error> {
        let mut tx = self.transaction().await?;
        let pruned = archive::prune(&mut tx, before, most).await?;
        tx.commit().await?;
        Ok(pruned)
    }

    async fn vacuum(&self) -> Result<(), Error> {
        self.keeper
            .execute("PRAGMA wal_checkpoint(PASSIVE)")
            .await?;
        Ok(())
    }

    async fn backup(&self, to: &Path) -> Result<(), Error> {
        archive::backup(&self.readers, to).await
    }
}
