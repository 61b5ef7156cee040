//! The journal in SQLite: the embedded default. WAL, `synchronous = FULL`, one writing connection.

mod archive;
mod owners;
mod rows;
mod spending;
mod tokens;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{SqlSafeStr, Sqlite, SqliteConnection, Transaction};

use super::store::{
    Acceptance, Annotated, Asker, CancelOutcome, Claim, Entry, Error, Held, Lease, NewRun, Restored, RunFilter, RunRow,
    RunState, SpendingLimit, Store, TokenRow,
};
use super::{Archive, ArchivedEntry, CallResult, Ending, Event, VERSION, chain};
use crate::domain::{Mode, Outcome, RunId, Usd};
use owners::Owners;

/// Every schema change, in order. A released migration is never edited.
const MIGRATIONS: [(i64, &str, &str); 2] = [
    (1, "journal", include_str!("../../../migrations/sqlite/0001_journal.sql")),
    (2, "tokens", include_str!("../../../migrations/sqlite/0002_tokens.sql")),
];

/// How long a statement waits for another process's write.
const BUSY: Duration = Duration::from_secs(10);

/// The journal in one SQLite file.
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    owners: Owners,
}

impl SqliteStore {
    /// Opens the file, makes it and its folder if they are missing, and brings its schema up to date. `owner` is this
    /// process's unique name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the file cannot be opened, [`Error::Migration`] when its schema is not ours.
    pub async fn open(path: &Path, owner: &str) -> Result<Self, Error> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|e| Error::Unavailable(format!("cannot make the folder of the database: {}", e.kind())))?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY)
            .foreign_keys(true);
        let writer = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        let mut migrator = Migrator::with_migrations(
            MIGRATIONS
                .map(|(version, name, sql)| {
                    Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
                })
                .to_vec(),
        );
        migrator.set_locking(false);
        migrator.run(&writer).await.map_err(|e| Error::Migration(format!("the database's schema: {e}")))?;
        let readers = SqlitePoolOptions::new().max_connections(4).connect_with(options.read_only(true)).await?;
        Ok(Self { writer, readers, owners: Owners::register(path, owner)? })
    }

    async fn begin(&self) -> Result<Transaction<'_, Sqlite>, Error> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let text = match &error {
            sqlx::Error::Database(db) => match db.code().as_deref() {
                Some("5" | "6" | "261" | "517") => "it is locked by another process".to_owned(),
                Some("13") => "the disk is full".to_owned(),
                Some("8" | "1032" | "14") => "the file cannot be written".to_owned(),
                code => format!("SQLite error {}", code.unwrap_or("unknown")),
            },
            sqlx::Error::PoolTimedOut => "every connection is busy".to_owned(),
            sqlx::Error::Io(e) => format!("input or output failed: {}", e.kind()),
            _ => "an unexpected answer".to_owned(),
        };
        tracing::debug!(error = %error, "the database refused");
        Error::Unavailable(text)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error> {
        let mut tx = self.begin().await?;
        if let Some(key) = &run.idempotency_key {
            let same: Option<(String, String)> =
                sqlx::query_as("SELECT id, body_hash FROM runs WHERE idempotency_key = ?")
                    .bind(key)
                    .fetch_optional(&mut *tx)
                    .await?;
            if let Some((id, body_hash)) = same {
                let id = rows::run_id(&id)?;
                return Ok(if body_hash == run.body_hash { Acceptance::Joined(id) } else { Acceptance::KeyReused(id) });
            }
        }
        if let Some(continues) = &run.accepted.continues
            && let Some(twin) = live_twin(&mut tx, continues).await?
        {
            return Ok(Acceptance::Joined(twin));
        }
        for limit in &run.limits {
            let left = limit.most - spending::exposure(&mut tx, limit).await?;
            if run.accepted.cap > left {
                return Ok(Acceptance::OverLimit { scope: limit.scope.clone(), left });
            }
        }
        insert(&mut tx, &run).await?;
        append(&mut tx, run.id, run.at, &[Event::Accepted(Box::new(run.accepted))]).await?;
        tx.commit().await?;
        Ok(Acceptance::New)
    }

    async fn by_key(&self, key: &str) -> Result<Option<(RunId, String)>, Error> {
        let found: Option<(String, String)> =
            sqlx::query_as("SELECT id, body_hash FROM runs WHERE idempotency_key = ?")
                .bind(key)
                .fetch_optional(&self.readers)
                .await?;
        found.map(|(id, body_hash)| Ok((rows::run_id(&id)?, body_hash))).transpose()
    }

    async fn claim(&self, which: Claim, owner: &str, lease: Duration, now: Timestamp) -> Result<Option<Lease>, Error> {
        let one = match which {
            Claim::Oldest => None,
            Claim::Run(id) => Some(id.to_string()),
        };
        let mut tx = self.begin().await?;
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
        let Some((id, epoch)) = claimed else { return Ok(None) };
        let run = rows::run_id(&id)?;
        let event = Event::Claimed(super::Claimed { epoch, owner: owner.to_owned() });
        append(&mut tx, run, now, &[event]).await?;
        tx.commit().await?;
        Ok(Some(Lease { run, owner: owner.to_owned(), epoch }))
    }

    async fn renew(&self, lease: &Lease, duration: Duration, now: Timestamp) -> Result<Held, Error> {
        let found: Option<(i64,)> = sqlx::query_as(
            "UPDATE runs SET lease_until_ms = ? WHERE id = ? AND epoch = ? AND owner = ? AND state = 'running'
             RETURNING cancel_requested",
        )
        .bind(until(now, duration))
        .bind(lease.run.to_string())
        .bind(lease.epoch)
        .bind(&lease.owner)
        .fetch_optional(&self.writer)
        .await?;
        Ok(match found {
            None => Held::Lost,
            Some((0,)) => Held::Yes,
            Some(_) => Held::CancelRequested,
        })
    }

    async fn append(&self, lease: &Lease, at: Timestamp, events: &[Event]) -> Result<i64, Error> {
        let mut tx = self.begin().await?;
        let held: Option<(i64,)> = sqlx::query_as(
            "SELECT cancel_requested FROM runs
             WHERE id = ? AND epoch = ? AND owner = ? AND state = 'running' AND lease_until_ms >= ?",
        )
        .bind(lease.run.to_string())
        .bind(lease.epoch)
        .bind(&lease.owner)
        .bind(at.as_millisecond())
        .fetch_optional(&mut *tx)
        .await?;
        let Some((cancel,)) = held else { return Err(Error::LeaseLost) };
        if cancel != 0 && events.iter().any(|e| matches!(e, Event::CallSent(_))) {
            return Err(Error::CancelRequested);
        }
        let seq = append(&mut tx, lease.run, at, events).await?;
        tx.commit().await?;
        Ok(seq)
    }

    async fn annotate(&self, run: RunId, at: Timestamp, event: &Event) -> Result<Annotated, Error> {
        let mut tx = self.begin().await?;
        let found: Option<(String, i64)> = sqlx::query_as("SELECT state, head_seq FROM runs WHERE id = $1")
            .bind(run.to_string())
            .fetch_optional(&mut *tx)
            .await?;
        let Some((state, before)) = found else { return Ok(Annotated::Unknown) };
        if !rows::state(&state, run)?.is_terminal() {
            return Ok(Annotated::Unfinished);
        }
        if append(&mut tx, run, at, std::slice::from_ref(event)).await? == before {
            return Ok(Annotated::Taken);
        }
        tx.commit().await?;
        Ok(Annotated::Written)
    }

    async fn entries(&self, run: RunId, after: i64) -> Result<Vec<Entry>, Error> {
        let found = sqlx::query(
            "SELECT run, seq, at_ms, key, body, prev, hash FROM entries WHERE run = ? AND seq > ? ORDER BY seq",
        )
        .bind(run.to_string())
        .bind(after)
        .fetch_all(&self.readers)
        .await?;
        found.iter().map(rows::entry).collect()
    }

    async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        let found =
            sqlx::query("SELECT * FROM runs WHERE id = ?").bind(id.to_string()).fetch_optional(&self.readers).await?;
        found.as_ref().map(rows::run).transpose()
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
        let found = sqlx::query(
            "SELECT * FROM runs
             WHERE (?1 IS NULL OR mode = ?1) AND (?2 IS NULL OR user_id = ?2) AND (?3 IS NULL OR state = ?3)
               AND (?4 IS NULL OR accepted_ms >= ?4) AND (?5 IS NULL OR id < ?5)
             ORDER BY id DESC LIMIT ?6",
        )
        .bind(filter.mode.map(Mode::as_str))
        .bind(&filter.user_id)
        .bind(filter.state.map(RunState::as_str))
        .bind(filter.since.map(Timestamp::as_millisecond))
        .bind(filter.before.map(|id| id.to_string()))
        .bind(i64::from(filter.limit))
        .fetch_all(&self.readers)
        .await?;
        found.iter().map(rows::run).collect()
    }

    async fn in_flight(&self) -> Result<u64, Error> {
        let (count,): (i64,) = sqlx::query_as("SELECT COUNT(*) FROM runs WHERE state IN ('queued', 'running')")
            .fetch_one(&self.readers)
            .await?;
        Ok(count.unsigned_abs())
    }

    async fn cancel(&self, id: RunId) -> Result<CancelOutcome, Error> {
        let mut tx = self.begin().await?;
        let found: Option<(String,)> =
            sqlx::query_as("SELECT state FROM runs WHERE id = ?").bind(id.to_string()).fetch_optional(&mut *tx).await?;
        let Some((state,)) = found else { return Ok(CancelOutcome::Unknown) };
        let state = rows::state(&state, id)?;
        if state.is_terminal() {
            return Ok(CancelOutcome::AlreadyFinished(state));
        }
        sqlx::query("UPDATE runs SET cancel_requested = 1 WHERE id = ?").bind(id.to_string()).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(CancelOutcome::Requested)
    }

    async fn last_reply(&self, asker: &Asker, since: Timestamp) -> Result<Option<RunRow>, Error> {
        let found = sqlx::query(
            "SELECT * FROM runs
             WHERE user_id = ? AND source = ? AND guild_id = ? AND channel_id = ?
               AND state IN ('answered', 'clarification') AND finished_ms >= ?
             ORDER BY finished_ms DESC, id DESC LIMIT 1",
        )
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
            let released = sqlx::query("UPDATE runs SET lease_until_ms = 0 WHERE owner = ? AND state = 'running'")
                .bind(&owner)
                .execute(&self.writer)
                .await?;
            if released.rows_affected() > 0 {
                tracing::info!(owner, runs = released.rows_affected(), "a process died: its runs are taken over");
            }
            self.owners.forget(&owner);
        }
        Ok(())
    }

    async fn ready(&self) -> Result<(), Error> {
        let latest = MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or(0);
        let (version,): (Option<i64>,) =
            sqlx::query_as("SELECT MAX(version) FROM _sqlx_migrations WHERE success").fetch_one(&self.readers).await?;
        if version == Some(latest) {
            Ok(())
        } else {
            Err(Error::Migration(format!("schema version {version:?}, expected {latest}")))
        }
    }

    async fn exposure(&self, limit: &SpendingLimit) -> Result<Usd, Error> {
        spending::exposure(&mut *self.readers.acquire().await?, limit).await
    }

    async fn add_token(&self, token: &TokenRow) -> Result<(), Error> {
        tokens::add(&self.writer, token).await
    }

    async fn token(&self, id: &str) -> Result<Option<TokenRow>, Error> {
        tokens::one(&self.readers, id).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        tokens::all(&self.readers).await
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, Error> {
        tokens::revoke(&self.writer, id, at).await
    }

    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error> {
        archive::read(&self.readers, run).await
    }

    async fn restore(&self, archived: &Archive) -> Result<Restored, Error> {
        let mut tx = self.begin().await?;
        let restored = archive::write(&mut tx, archived).await?;
        tx.commit().await?;
        Ok(restored)
    }

    async fn prunable(&self, before: Timestamp) -> Result<u64, Error> {
        archive::prunable(&self.readers, before).await
    }

    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error> {
        archive::prune(&self.writer, before, most).await
    }

    async fn backup(&self, to: &Path) -> Result<(), Error> {
        archive::backup(&self.readers, to).await
    }
}

/// Writes the row of a run that has no entries yet.
async fn insert(tx: &mut SqliteConnection, run: &NewRun) -> Result<(), Error> {
    let question = &run.accepted.question;
    let parent = run.accepted.continues.as_ref().map(|c| c.parent.to_string());
    sqlx::query(
        "INSERT INTO runs (id, state, mode, source, user_id, guild_id, channel_id, message, parent, cap_nanos,
                           accepted_ms, idempotency_key, body_hash, head_seq, head_hash)
         VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
    )
    .bind(run.id.to_string())
    .bind(question.mode.as_str())
    .bind(question.source.as_str())
    .bind(&question.user.id)
    .bind(question.context.guild_id.as_deref().unwrap_or(""))
    .bind(question.context.channel_id.as_deref().unwrap_or(""))
    .bind(&question.message)
    .bind(parent)
    .bind(run.accepted.cap.nanos().cast_signed())
    .bind(run.at.as_millisecond())
    .bind(&run.idempotency_key)
    .bind(&run.body_hash)
    .bind(chain::GENESIS)
    .execute(&mut *tx)
    .await?;
    Ok(())
}

/// A run in flight that continues the same run in the same way: the same answer, sent twice.
async fn live_twin(tx: &mut SqliteConnection, continues: &super::Continues) -> Result<Option<RunId>, Error> {
    let live: Vec<(String, String)> = sqlx::query_as(
        "SELECT runs.id, entries.body FROM runs JOIN entries ON entries.run = runs.id AND entries.key = 'accepted'
         WHERE runs.parent = ? AND runs.state IN ('queued', 'running')",
    )
    .bind(continues.parent.to_string())
    .fetch_all(&mut *tx)
    .await?;
    let same = live.into_iter().find(|(_, body)| {
        matches!(serde_json::from_str(body), Ok(Event::Accepted(a)) if a.continues.as_ref() == Some(continues))
    });
    same.map(|(id, _)| rows::run_id(&id)).transpose()
}

fn until(now: Timestamp, lease: Duration) -> i64 {
    now.as_millisecond().saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}

/// Appends to the chain within the caller's transaction and keeps the projection in step. Returns the last seq.
async fn append(tx: &mut SqliteConnection, run: RunId, at: Timestamp, events: &[Event]) -> Result<i64, Error> {
    let id = run.to_string();
    let (mut seq, mut prev): (i64, String) =
        sqlx::query_as("SELECT head_seq, head_hash FROM runs WHERE id = ?").bind(&id).fetch_one(&mut *tx).await?;
    for event in events {
        let key = event.key();
        let known: Option<(i64,)> = sqlx::query_as("SELECT seq FROM entries WHERE run = ? AND key = ?")
            .bind(&id)
            .bind(&key)
            .fetch_optional(&mut *tx)
            .await?;
        if known.is_some() {
            continue;
        }
        seq += 1;
        let body = rows::body(event, VERSION)?;
        let hash = chain::link(run, seq, at.as_millisecond(), &key, &body, &prev);
        let entry = ArchivedEntry { seq, at_ms: at.as_millisecond(), key, body, prev, hash };
        write(tx, &id, &entry).await?;
        prev = entry.hash;
        project(tx, &id, at, event).await?;
    }
    set_head(tx, &id, seq, &prev).await?;
    Ok(seq)
}

async fn set_head(tx: &mut SqliteConnection, run: &str, seq: i64, hash: &str) -> Result<(), Error> {
    sqlx::query("UPDATE runs SET head_seq = ?, head_hash = ? WHERE id = ?")
        .bind(seq)
        .bind(hash)
        .bind(run)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

/// Writes one line of a journal.
async fn write(tx: &mut SqliteConnection, run: &str, entry: &ArchivedEntry) -> Result<(), Error> {
    sqlx::query("INSERT INTO entries (run, seq, at_ms, key, body, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .bind(run)
        .bind(entry.seq)
        .bind(entry.at_ms)
        .bind(&entry.key)
        .bind(&entry.body)
        .bind(&entry.prev)
        .bind(&entry.hash)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

/// What an event changes in its run's row.
async fn project(tx: &mut SqliteConnection, id: &str, at: Timestamp, event: &Event) -> Result<(), Error> {
    match event {
        Event::CallSettled(settled) => {
            debug_assert!(!matches!(settled.result, CallResult::InDoubt) || settled.usage.is_none());
            sqlx::query("UPDATE runs SET spent_nanos = spent_nanos + ? WHERE id = ?")
                .bind(settled.cost.nanos().cast_signed())
                .bind(id)
                .execute(&mut *tx)
                .await?;
        }
        Event::Finished(finished) => {
            let (state, cause, c_final) = match &finished.ending {
                Ending::Replied { reply } => {
                    let state = match reply.outcome {
                        Outcome::Clarification => RunState::Clarification,
                        Outcome::Answered | Outcome::Heuristic => RunState::Answered,
                    };
                    (state, None, Some(reply.meta.c_final))
                }
                Ending::Failed { cause, detail } => {
                    (RunState::Failed, Some(format!("{}: {detail}", cause.as_str())), None)
                }
                Ending::Cancelled => (RunState::Cancelled, None, None),
            };
            sqlx::query(
                "UPDATE runs SET state = ?, cause = ?, c_final = ?, finished_ms = ?, owner = NULL WHERE id = ?",
            )
            .bind(state.as_str())
            .bind(cause)
            .bind(c_final)
            .bind(at.as_millisecond())
            .bind(id)
            .execute(&mut *tx)
            .await?;
        }
        Event::Accepted(_)
        | Event::Claimed(_)
        | Event::Hinted(_)
        | Event::Planned(_)
        | Event::Trimmed(_)
        | Event::RoundStarted(_)
        | Event::RoundSkipped(_)
        | Event::CallSent(_)
        | Event::AgentFinished(_)
        | Event::Scored(_)
        | Event::Synthesized(_)
        | Event::Gated(_)
        | Event::Feedback(_) => {}
    }
    Ok(())
}
