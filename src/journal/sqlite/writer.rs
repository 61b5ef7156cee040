//! The one connection that writes, on a thread of its own.
//!
//! Transactions that arrive during another one share the next: a commit waits for the disk, and a
//! run makes about five. While commits are shared, each waits a moment for more. Each transaction is
//! written completely or not at all: if one fails after it has changed something, all are rolled back
//! and written one by one. A transaction is not begun if its caller does not wait any more when its
//! turn comes.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt as _;
use rusqlite::OpenFlags;
use tokio::sync::oneshot;

use super::connection::SqliteConnection;
use super::{LOG_PAGES, SqliteBounds};
use crate::journal::Error;
use crate::journal::database::{Durability, Work};
use crate::journal::error::{Unavailable, reason};

/// The most transactions that share a commit.
const MAX_SHARED: usize = 256;

/// How long a commit waits for more transactions, if the one before it was shared: while many runs
/// write, a shared commit costs less of the disk and of the processor than each by itself.
const GATHER: Duration = Duration::from_millis(1);

/// Statements that the connection keeps compiled.
const COMPILED: usize = 64;

/// The thread ends, and closes its connection, when the writer is dropped.
pub(super) struct Writer {
    queue: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Opens the file, whose schema must be up to date.
    pub fn open(path: &Path, bounds: SqliteBounds) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(bounds.patience)?;
        connection.set_prepared_statement_cache_capacity(COMPILED);
        connection.pragma_update(None, "foreign_keys", true)?;
        // What is deleted is overwritten.
        connection.pragma_update(None, "secure_delete", true)?;
        // If `vacuum` is not called, a commit moves the pages once the log has this size.
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        if let Some(pages) = bounds.most_pages {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        let (queue, jobs) = channel();
        let thread = WriterThread {
            connection: SqliteConnection(connection),
            durability: None,
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || thread.work(&jobs))
            .map_err(|error| {
                Error::Unavailable(format!("no thread for it: {}", error.kind()).into())
            })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Does `work` with `input` in one transaction, which is rolled back if `work` fails.
    pub async fn write<I, T, W>(
        &self,
        durability: Durability,
        input: I,
        work: W,
    ) -> Result<T, Error>
    where
        I: Send + 'static,
        T: Send + 'static,
        W: for<'a> Fn(&'a mut SqliteConnection, &'a I) -> Work<'a, T> + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        let job = Transaction {
            durability,
            input,
            work,
            result: None,
            done,
        };
        let ended = || Error::Unavailable("its writer has ended".into());
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.send(Box::new(job)).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // The thread has no result.
            let _ = thread.join();
        }
    }
}

/// A transaction that waits to be written.
trait Job: Send {
    fn durability(&self) -> Durability;

    /// True if the caller no longer waits.
    fn is_abandoned(&self) -> bool;

    /// Does the work. Returns true if it succeeded.
    fn attempt(&mut self, connection: &mut SqliteConnection) -> bool;

    /// Forgets the result, because the work was undone.
    fn forget(&mut self);

    /// Tells the caller the result, or why nothing was committed.
    fn end(self: Box<Self>, uncommitted: Option<Error>);
}

struct Transaction<I, T, W> {
    durability: Durability,
    input: I,
    work: W,
    result: Option<Result<T, Error>>,
    done: oneshot::Sender<Result<T, Error>>,
}

impl<I, T, W> Job for Transaction<I, T, W>
where
    I: Send + 'static,
    T: Send + 'static,
    W: for<'a> Fn(&'a mut SqliteConnection, &'a I) -> Work<'a, T> + Send + 'static,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn is_abandoned(&self) -> bool {
        self.done.is_closed()
    }

    fn attempt(&mut self, connection: &mut SqliteConnection) -> bool {
        // This connection answers at once, so the work never waits.
        let result = (self.work)(connection, &self.input).now_or_never();
        let result = result.map(|done| done.map_err(Error::from));
        let succeeded = matches!(result, Some(Ok(_)));
        self.result = result;
        succeeded
    }

    fn forget(&mut self) {
        self.result = None;
    }

    fn end(self: Box<Self>, uncommitted: Option<Error>) {
        let result = match (self.result, uncommitted) {
            // The job's own error says more.
            (Some(Err(error)), _) | (_, Some(error)) => Err(error),
            (Some(Ok(done)), None) => Ok(done),
            (None, None) => Err(Error::Unavailable("the work was not done".into())),
        };
        // If the receiver is gone, its caller was dropped.
        let _ = self.done.send(result);
    }
}

struct WriterThread {
    connection: SqliteConnection,
    /// The durability that the connection is set to.
    durability: Option<Durability>,
}

/// Why no transaction was committed.
enum Uncommitted {
    /// None could begin.
    NotBegun(Unavailable),
    /// All were rolled back.
    RolledBack(Unavailable),
}

impl WriterThread {
    /// Writes until the queue is closed and empty.
    fn work(mut self, queue: &Receiver<Box<dyn Job>>) {
        let mut shared_last = false;
        while let Ok(first) = queue.recv() {
            if shared_last {
                std::thread::sleep(GATHER);
            }
            let shared = std::iter::once(first).chain(queue.try_iter());
            let waiting = shared.take(MAX_SHARED).filter(|job| !job.is_abandoned());
            let waiting: Vec<_> = waiting.collect();
            shared_last = waiting.len() > 1;
            self.commit(waiting);
        }
    }

    fn commit(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        if jobs.is_empty() {
            return;
        }
        let error = match self.attempt(&mut jobs) {
            Ok(()) => return jobs.into_iter().for_each(|job| job.end(None)),
            Err(error) => error,
        };
        if !self.connection.0.is_autocommit() {
            // If this fails too, the next transaction cannot begin and says why.
            let _ = self.connection.execute("ROLLBACK");
        }
        match error {
            // One failed after a change, or is too large for the disk, while the others are not.
            Uncommitted::RolledBack(_) if jobs.len() > 1 => {
                for mut job in jobs {
                    job.forget();
                    self.commit(vec![job]);
                }
            }
            Uncommitted::NotBegun(why) | Uncommitted::RolledBack(why) => {
                for job in jobs {
                    job.end(Some(Error::Unavailable(why.clone())));
                }
            }
        }
    }

    /// Writes all jobs and commits. The others are written if a job fails without a change.
    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Uncommitted> {
        let begun = self.begin(jobs);
        begun.map_err(|error| Uncommitted::NotBegun(reason(&error)))?;
        let written = self.write(jobs);
        let why = |error: Option<rusqlite::Error>| {
            error.map_or("a part of it failed".into(), |error| reason(&error))
        };
        written.map_err(|error| Uncommitted::RolledBack(why(error)))
    }

    /// Writes all jobs and commits. The error is `None` if it is that of a job.
    fn write(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Option<rusqlite::Error>> {
        for job in jobs {
            // Also counts the changes that were rolled back.
            let changes = self.connection.0.total_changes();
            let succeeded = job.attempt(&mut self.connection);
            // On some errors, such as a full disk, SQLite has rolled back by itself.
            let is_undone = self.connection.0.is_autocommit();
            let has_changed = self.connection.0.total_changes() != changes;
            if is_undone || (!succeeded && has_changed) {
                return Err(None);
            }
        }
        self.connection.execute("COMMIT").map_err(Some)
    }

    fn begin(&mut self, jobs: &[Box<dyn Job>]) -> rusqlite::Result<()> {
        let waits = jobs
            .iter()
            .any(|job| job.durability() != Durability::Process);
        let (durability, level) = if waits {
            (Durability::Machine, "PRAGMA synchronous = FULL")
        } else {
            (Durability::Process, "PRAGMA synchronous = NORMAL")
        };
        if self.durability != Some(durability) {
            self.connection.execute(level)?;
            self.durability = Some(durability);
        }
        self.connection.execute("BEGIN IMMEDIATE")
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::journal::database::{Bound, Columns as _, Connection as _};

    fn writer(folder: &TempDir) -> Writer {
        let path = folder.path().join("w.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        let schema = "PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT NOT NULL UNIQUE)";
        connection.execute_batch(schema).unwrap();
        Writer::open(&path, SqliteBounds::default()).unwrap()
    }

    async fn notes(writer: &Writer) -> Vec<String> {
        let read = writer.write(Durability::Process, (), |tx, ()| {
            Box::pin(async move {
                tx.rows("SELECT text FROM notes ORDER BY text", vec![])
                    .await
            })
        });
        let rows = read.await.unwrap();
        rows.iter().map(|row| row.text("text").unwrap()).collect()
    }

    async fn note(writer: &Writer, texts: &[&str]) -> Result<(), Error> {
        let texts: Vec<Bound> = texts.iter().map(|text| Bound::from(*text)).collect();
        let write = writer.write(Durability::Process, texts, |tx, texts| {
            Box::pin(async move {
                for text in texts {
                    let statement = "INSERT INTO notes VALUES ($1)";
                    tx.change((statement, vec![text.clone()])).await?;
                }
                Ok(())
            })
        });
        write.await
    }

    #[tokio::test]
    async fn a_transaction_is_written_completely_or_not_at_all_and_others_beside_it_are() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder);
        note(&writer, &["a", "b"]).await.unwrap();
        let together = tokio::join!(
            note(&writer, &["c", "a"]),
            note(&writer, &["d"]),
            note(&writer, &["e", "b"]),
            note(&writer, &["f"])
        );
        assert!(matches!(together.0, Err(Error::Unavailable(_))));
        assert!(matches!(together.2, Err(Error::Unavailable(_))));
        together.1.unwrap();
        together.3.unwrap();
        assert_eq!(notes(&writer).await, ["a", "b", "d", "f"]);
    }

    #[tokio::test]
    async fn a_transaction_that_is_too_large_for_the_disk_fails_alone() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("w.db");
        drop(self::writer(&folder));
        let bounds = SqliteBounds {
            most_pages: Some(50),
            ..SqliteBounds::default()
        };
        let writer = Writer::open(&path, bounds).unwrap();
        let large = "x".repeat(400 * 1024);
        let large = [large.as_str()];
        let (before, failed, after) = tokio::join!(
            note(&writer, &["before"]),
            note(&writer, &large),
            note(&writer, &["after"])
        );
        assert_eq!(
            failed.unwrap_err().to_string(),
            "the database is not available: the disk is full"
        );
        before.unwrap();
        after.unwrap();
        assert_eq!(notes(&writer).await, ["after", "before"]);
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_leaves_nothing_half_done() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder);
        for case in 0..50 {
            let own = (format!("{case} first"), format!("{case} second"));
            let texts = [own.0.as_str(), own.1.as_str()];
            let writing = note(&writer, &texts);
            let _ = tokio::time::timeout(Duration::from_micros(case * 20), writing).await;
            let written = notes(&writer).await;
            assert_eq!(written.contains(&own.0), written.contains(&own.1), "{case}");
        }
        note(&writer, &["last"]).await.unwrap();
        assert!(notes(&writer).await.contains(&"last".to_owned()));
    }

    #[tokio::test]
    async fn what_costs_money_waits_for_the_disk_also_after_an_action_that_did_not() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder);
        let (full, normal) = (2, 1);
        let order = [
            (Durability::Machine, full),
            (Durability::Process, normal),
            (Durability::Machine, full),
        ];
        for (durability, level) in order {
            let read = writer.write(durability, (), |tx, ()| {
                Box::pin(async move { tx.row("PRAGMA synchronous", vec![]).await })
            });
            let row = read.await.unwrap().unwrap();
            assert_eq!(row.whole("synchronous").unwrap(), level);
        }
    }
}
