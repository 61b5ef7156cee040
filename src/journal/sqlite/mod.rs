//! The journal in SQLite, the embedded default: WAL, `synchronous = FULL`, one writing connection.

mod connection;
mod file;
mod migrate;
mod owners;
mod readers;
mod restore;
mod writer;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{ErrorCode, OpenFlags};

use super::database::{
    Bound, Columns, Connection as _, Database, Durability, Failure, OUTAGE, RETRY, Work, is_old,
    migrations, millis,
};
use super::records::{DataStamp, NewRun, Owner, RunFilter};
use super::store::BackendStore;
use super::{Error, reads, writes};
use connection::SqliteConnection;
use file::DatabaseFile;
use owners::{LockFile, Owners};
use readers::{Readers, blocking};
use writer::Writer;

pub use file::{folder_of, leave_to_folder_owner};
pub use restore::{Existing, RestoreError, restore};

/// How long a read on the calling thread waits for a lock. Readers of this log wait for no writer, but
/// another program can lock the whole file, and the service must go on meanwhile.
const MAX_INLINE_WAIT: Duration = Duration::from_millis(100);

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
    readers: Readers,
    /// Reads single rows, on the calling thread.
    inline_reader: Mutex<SqliteConnection>,
    /// Moves pages from the write-ahead log into the file, so that no writer has to stop for it.
    keeper: Arc<Mutex<SqliteConnection>>,
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
        refuse_foreign(path)?;
        file::refuse_orphan(path)?;
        file::prepare(path)?;
        let lock = LockFile::of(path)?;
        let mut keeper = rusqlite::Connection::open(path)?;
        keeper.busy_timeout(bounds.patience)?;
        keeper.pragma_update(None, "journal_mode", "WAL")?;
        // The first commit of a run makes the disk take the schema too: both are in the same log.
        keeper.pragma_update(None, "synchronous", "NORMAL")?;
        keeper.pragma_update(None, "foreign_keys", true)?;
        if let Some(pages) = bounds.most_pages {
            keeper.pragma_update(None, "max_page_count", pages)?;
        }
        migrate::run(&mut keeper)?;
        let writer = Writer::open(path, bounds)?;
        let owners = Owners::register(lock, owner)?;
        let patience = bounds.patience.min(MAX_INLINE_WAIT);
        let inline_reader = SqliteConnection::reading(path, patience)?;
        Ok(Self {
            file: DatabaseFile::opened(path)?,
            writer,
            readers: Readers::new(path, bounds.patience),
            inline_reader: Mutex::new(inline_reader),
            keeper: Arc::new(Mutex::new(SqliteConnection(keeper))),
            owners,
        })
    }
}

/// Fails if the path names something else than a database of this program, so that a mistyped path
/// changes nothing, not even the mode of a file. Other problems are left to the connections that
/// follow.
fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let refused = |why: &'static str| Err(Error::Unavailable(why.into()));
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return refused("it is a folder: name a file in it"),
        Ok(meta) if !meta.is_file() => return refused("it is no file"),
        Ok(_) => {}
        Err(_) => return Ok(()),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(connection) = rusqlite::Connection::open_with_flags(path, flags) else {
        return Ok(());
    };
    let statement = "
        SELECT COUNT(*) > 0 AND SUM(name = '_sqlx_migrations') = 0 FROM sqlite_schema
        WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'";
    match connection.query_row(statement, [], |row| row.get(0)) {
        Ok(true) => refused("the file is the database of another program"),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            refused("the file is no SQLite database")
        }
        _ => Ok(()),
    }
}

impl Database for SqliteStore {
    type Reading = Readers;
    type Writing = SqliteConnection;

    const MIGRATIONS: &'static [(&'static str, &'static str)] = migrations!(
        "sqlite":
        "0001_journal",
        "0002_tokens",
        "0003_actions",
        "0004_memory_owners",
        "0005_lists",
        "0006_tool_steps",
        "0007_undo_is_no_evidence",
        "0008_learned_answers",
        "0009_last_reply",
        "0010_memory_words",
        "0011_fewer_indexes",
        "0012_step_diagnostics",
        "0013_packed_entries",
        "0014_learned_words",
        "0015_one_index_of_entries",
        "0016_joined_keys",
        "0017_deleted_records",
        "0018_secure_deletion",
    );

    async fn reader(&self) -> Result<Readers, Error> {
        Ok(self.readers.clone())
    }

    async fn read_inline(
        &self,
        statement: &'static str,
        values: Vec<Bound>,
    ) -> Result<Vec<impl Columns + Send>, Error> {
        let connection = self
            .inline_reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(connection.query_now(statement, &values)?)
    }

    async fn write<I, T, W>(&self, durability: Durability, input: I, work: W) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        W: for<'a> Fn(&'a mut SqliteConnection, &'a I) -> Work<'a, T> + Send + Sync + 'static,
    {
        let job = Arc::new((input, work));
        let give_up = Instant::now() + OUTAGE;
        loop {
            let job = Arc::clone(&job);
            let written = self
                .writer
                .write(durability, job, |tx, job| (job.1)(tx, &job.0))
                .await;
            let is_full = matches!(&written, Err(error) if error.is_disk_full());
            if durability != Durability::Outage || !is_full || Instant::now() >= give_up {
                return written;
            }
            let _ = self.file.noted(written);
            tokio::time::sleep(RETRY).await;
        }
    }

    fn in_place(&self) -> Result<(), Error> {
        self.file.in_place()
    }

    fn has_reserve(&self) -> Result<(), Error> {
        self.file.has_reserve()
    }

    fn noted<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        self.file.noted(written)
    }

    // The one writing connection is the lock.
    async fn lock(_: &mut SqliteConnection, _: &NewRun) -> Result<(), Failure> {
        Ok(())
    }

    async fn lock_data(_: &mut SqliteConnection, _: &DataStamp) -> Result<(), Failure> {
        Ok(())
    }

    const LOCK_RUN: &'static str = reads::RUN;

    const CLAIM: &'static str = "
        UPDATE runs SET state = 'running', owner = $1, epoch = epoch + 1, lease_until_ms = $2
        WHERE id = COALESCE($3, (SELECT id FROM runs
                                 WHERE (state = 'queued' OR state = 'running')
                                   AND (state = 'queued' OR lease_until_ms < $4)
                                 ORDER BY accepted_ms LIMIT 1))
          AND (state = 'queued' OR (state = 'running' AND lease_until_ms < $4))
        RETURNING id, epoch, head_seq, head_hash";

    const HOLD: &'static str = "
        UPDATE runs SET state = 'running', epoch = $2, owner = $3, lease_until_ms = $4 WHERE id = $1";

    const RENEW: &'static str = "
        UPDATE runs SET lease_until_ms = $4 WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running'
        RETURNING cancel_requested";

    const FENCE: &'static str = "
        SELECT cancel_requested, head_seq, head_hash FROM runs
        WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running'";

    fn lease(now: Timestamp, duration: Duration) -> i64 {
        now.as_millisecond().saturating_add(millis(duration))
    }

    fn now(at: Timestamp) -> Option<i64> {
        Some(at.as_millisecond())
    }

    const PRUNABLE: &'static str = concat!(
        "SELECT COUNT(*) AS n FROM runs WHERE ",
        is_old!("INDEXED BY executions_by_plan")
    );

    const PRUNE: &'static str = concat!(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE ",
        is_old!("INDEXED BY executions_by_plan"),
        " ORDER BY finished_ms LIMIT $2)"
    );

    const MEMORIES: &'static str = "
        SELECT memories.run, memories.content, memories.created_ms
        FROM memory_words JOIN memories ON memories.id = memory_words.rowid
        WHERE memory_words MATCH $4 AND memories.source = $1 AND memories.guild_id = $2 AND memories.user_id = $3
        ORDER BY bm25(memory_words, 0.0, 1.0), memories.id DESC LIMIT $5";

    const LEARNED: &'static str = "
        SELECT learned_answers.*
        FROM learned_words JOIN learned_answers ON learned_answers.id = learned_words.rowid
        WHERE learned_words MATCH $4 AND learned_answers.source = $1 AND learned_answers.guild_id = $2
          AND learned_answers.user_id = $3 AND learned_answers.revoked = 0
        ORDER BY learned_answers.words_of = $6 DESC, bm25(learned_words, 0.0, 1.0), learned_answers.id DESC
        LIMIT $5";

    fn memory_query(owner: &Owner, words: &[Vec<String>]) -> Option<String> {
        // In quotes, a term is a word and never an operator of the query language.
        let quoted = |term: &String| format!("\"{}\"", term.replace('"', ""));
        let words = words.iter().filter(|terms| !terms.is_empty()).map(|terms| {
            let terms: Vec<String> = terms.iter().map(quoted).collect();
            format!("({})", terms.join(" OR "))
        });
        let words: Vec<String> = words.collect();
        let (owner, words) = (owner_word(owner), words.join(" AND "));
        (!words.is_empty()).then(|| format!("owner : \"{owner}\" AND - owner : ({words})"))
    }

    /// Each list reads one index in its order: the index of the user, or that of kind, mode and
    /// state. SQLite has no statistics here and would have to guess.
    fn listed(filter: &RunFilter) -> &'static str {
        match (&filter.user_id, filter.state) {
            (Some(_), _) => "runs INDEXED BY runs_by_user",
            (None, Some(_)) => "runs INDEXED BY runs_by_mode_and_state",
            (None, None) => "runs INDEXED BY runs_by_mode",
        }
    }
}

/// Encodes an owner as one word of the full-text index. The migration computes the same from a
/// memory's columns.
fn owner_word(owner: &Owner) -> String {
    let whole = format!(
        "{}\u{1f}{}\u{1f}{}",
        owner.source.into_str(),
        owner.guild_id.as_deref().unwrap_or(""),
        owner.user_id
    );
    whole.bytes().fold(String::new(), |mut word, byte| {
        let _ = write!(word, "{byte:02X}");
        word
    })
}

const INTEGRITY: &str = "PRAGMA integrity_check(3)";

/// Returns what [`INTEGRITY`] found; `None` for a sound file.
fn faults(found: &[impl Columns]) -> Result<Option<String>, Error> {
    let lines = found.iter().map(|row| row.text("integrity_check"));
    let lines = lines.collect::<Result<Vec<String>, Error>>()?.join("; ");
    Ok((lines != "ok").then_some(lines))
}

#[async_trait]
impl BackendStore for SqliteStore {
    async fn ready(&self) -> Result<(), Error> {
        self.file.in_place()?;
        self.file.is_whole()?;
        self.file.has_room()?;
        let mut reader = self.reader().await?;
        reads::schema(&mut reader, Self::latest()).await
    }

    async fn release_dead(&self) -> Result<(), Error> {
        for owner in self.owners.dead() {
            let statement =
                "UPDATE runs SET lease_until_ms = 0 WHERE owner = $1 AND state = 'running'";
            let runs = writes::change(self, statement, vec![owner.as_str().into()]).await?;
            if runs > 0 {
                tracing::info!(owner, runs, "a process died: its runs are taken over");
            }
            self.owners.forget(&owner);
        }
        Ok(())
    }

    async fn vacuum(&self) -> Result<(), Error> {
        let keeper = Arc::clone(&self.keeper);
        let kept = blocking(move || {
            let keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
            keeper.query_now("PRAGMA wal_checkpoint(PASSIVE)", &[])
        });
        kept.await?;
        Ok(())
    }

    async fn backup(&self, to: &Path) -> Result<(), Error> {
        let name = to
            .to_str()
            .ok_or(Error::Unsupported("the name of a backup must be UTF-8"))?;
        let statement = ("VACUUM INTO $1", vec![name.into()]);
        self.reader().await?.change(statement).await?;
        Ok(())
    }

    async fn damage(&self) -> Result<Option<String>, Error> {
        let check = self.reader().await?.rows(INTEGRITY, vec![]).await?;
        faults(&check)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::domain::{Mode, RunId, RunKind};
    use crate::journal::{RunState, tool_evidence};

    /// Returns SQLite's query plan for a statement.
    async fn explained(store: &SqliteStore, statement: String, values: Vec<Bound>) -> Vec<String> {
        let statement = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
        let statement = sqlx::SqlSafeStr::into_sql_str(statement);
        let mut reader = store.reader().await.unwrap();
        let rows = reader.query(statement, values).await.unwrap();
        rows.iter().map(|row| row.text("detail").unwrap()).collect()
    }

    #[tokio::test]
    async fn what_every_run_reads_is_found_by_an_index() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.db");
        let store = SqliteStore::open(&path, "o").await.unwrap();
        let none = || Bound::from("");
        let last_reply = vec![none(), none(), none(), none(), 5_i64.into()];
        let read = [
            (
                reads::LAST_REPLY,
                last_reply,
                "runs_by_asker (user_id=? AND source=? AND guild_id=? AND channel_id=? AND finished_ms>?)",
            ),
            (reads::BY_KEY, vec![none()], "(idempotency_key=?)"),
            (
                reads::ENTRIES,
                vec![none(), 0_i64.into()],
                "sqlite_autoindex_entries_1 (run=?)",
            ),
            (reads::RUN, vec![none()], "(id=?)"),
            (reads::IN_FLIGHT, vec![], "runs_by_state (state=?)"),
            (SqliteStore::LOCK_RUN, vec![none()], "(id=?)"),
            (
                SqliteStore::PRUNABLE,
                vec![5_i64.into()],
                "executions_by_plan (parent=?)",
            ),
        ];
        for (statement, values, index) in read {
            let plan = explained(&store, statement.to_owned(), values).await;
            let uses = plan.iter().any(|step| step.contains(index));
            assert!(uses, "{statement}: {plan:?}");
            // The entries of one run are few: they are sorted as they are read.
            let may_sort = statement == reads::ENTRIES;
            let is_slow = |step: &String| {
                step.starts_with("SCAN") || step.contains("B-TREE FOR ORDER BY") && !may_sort
            };
            assert!(!plan.iter().any(is_slow), "{statement}: {plan:?}");
        }
    }

    #[tokio::test]
    async fn evidence_of_fixes_reads_the_steps_a_fixed_number_of_times() {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), "o")
            .await
            .unwrap();
        let values = vec![10_i64.into(), None::<String>.into(), None::<String>.into()];
        let plan = explained(&store, tool_evidence::Q8.to_owned(), values).await;
        for read_once in ["MATERIALIZE fixes", "MATERIALIZE seen"] {
            assert!(plan.iter().any(|it| it == read_once), "{plan:?}");
        }
        let reads = plan.iter().filter(|it| it.contains("entries")).count();
        assert_eq!(reads, 3, "changes, their files, and diagnostics: {plan:?}");
    }

    #[tokio::test]
    async fn every_list_of_runs_is_read_from_an_index_in_its_order() {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), "o")
            .await
            .unwrap();
        let id = RunId::from_uuid(uuid::Uuid::from_u128(7));
        for bits in 0..64_u32 {
            let chosen = |bit: u32| bits >> bit & 1 == 1;
            let filter = RunFilter {
                kind: chosen(0).then_some(RunKind::Chat),
                mode: chosen(1).then_some(Mode::Deep),
                user_id: chosen(2).then(|| "u".to_owned()),
                state: chosen(3).then_some(RunState::Failed),
                since: chosen(4).then_some(Timestamp::UNIX_EPOCH),
                before: chosen(5).then_some(id),
                limit: 10,
            };
            for filter in reads::parts(&filter) {
                let (statement, values) = reads::list::<SqliteStore>(&filter);
                let plan = explained(&store, statement, values).await;
                let scans = plan
                    .iter()
                    .filter(|step| step.starts_with("SCAN") || step.contains("TEMP B-TREE"));
                assert_eq!(scans.collect::<Vec<_>>(), [""; 0], "{filter:?}: {plan:?}");
                let index = match (&filter.user_id, filter.state) {
                    (Some(_), _) => "runs_by_user (user_id=?",
                    (None, Some(_)) => "runs_by_mode_and_state (kind=? AND mode=? AND state=?",
                    (None, None) => "runs_by_mode (kind=? AND mode=?",
                };
                assert!(plan[0].contains(index), "{filter:?}: {plan:?}");
            }
        }
    }
}
