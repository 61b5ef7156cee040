//! What the two databases have in common for `reads.rs` and `writes.rs`: connections, the values of
//! a statement, and the columns of a row.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgRow;
use sqlx::{Row as _, SqlSafeStr as _, SqlStr};

use super::{DataStamp, Error, NewRun, Owner, RunFilter};

/// A database that stores journals.
pub(super) trait Database: Send + Sync {
    /// A connection for statements that change nothing.
    type Reading: Connection;

    /// The connection inside a transaction that writes.
    type Writing: Connection;

    /// All schema changes, in order: version with name, SQL. A released migration is never edited.
    const MIGRATIONS: &'static [(&'static str, &'static str)];

    fn reader(&self) -> impl Future<Output = Result<Self::Reading, Error>> + Send;

    /// Returns the rows of a query that every request makes, and that an index answers in
    /// microseconds. It may be made on the calling thread.
    fn read_inline(
        &self,
        statement: &'static str,
        values: Vec<Bound>,
    ) -> impl Future<Output = Result<Vec<impl Columns + Send>, Error>> + Send;

    /// Does `work` with `input` in one transaction, which is rolled back if `work` fails. The work
    /// may be attempted again after a conflict with another transaction.
    fn write<I, T, W>(
        &self,
        durability: Durability,
        input: I,
        work: W,
    ) -> impl Future<Output = Result<T, Error>> + Send
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        W: for<'a> Fn(&'a mut Self::Writing, &'a I) -> Work<'a, T> + Send + Sync + 'static;

    /// Fails if the database was replaced while the service runs.
    fn in_place(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if the database has no space for a new run.
    fn has_reserve(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Records whether a write failed for lack of space. Returns its result.
    fn noted<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        written
    }

    /// Locks everything that decides whether a run is accepted, until the transaction ends.
    fn lock(
        connection: &mut Self::Writing,
        run: &NewRun,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Locks a user's sheets and memories until the transaction ends.
    fn lock_data(
        connection: &mut Self::Writing,
        stamp: &DataStamp,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns a run's row, which no other transaction can change until this one ends.
    const LOCK_RUN: &'static str;

    /// Claims a run. `$1`: owner, `$2`: [`Database::lease`], `$3`: the one run, or null for the
    /// oldest; then [`Database::now`].
    const CLAIM: &'static str;

    /// Claims a run that was just accepted. Parameters: [`Lease::values`], with
    /// [`Database::lease`] as the last.
    const HOLD: &'static str;

    /// Renews a lease. Parameters as for [`Database::HOLD`].
    const RENEW: &'static str;

    /// Returns the head of a run if no later claim ended a lease, and whether the run is being
    /// cancelled. Parameters: [`Lease::values`].
    const FENCE: &'static str;

    /// Returns a lease that begins now, as the statements take it.
    fn lease(now: Timestamp, duration: Duration) -> i64;

    /// Returns the process's time if leases are judged by it.
    fn now(at: Timestamp) -> Option<i64>;

    /// Counts the runs of which [`is_old`] is true.
    const PRUNABLE: &'static str;

    /// Deletes such runs, the oldest ones, at most `$2`.
    const PRUNE: &'static str;

    /// Searches memories. `$1` to `$3`: the owner, `$4`: [`Database::memory_query`], `$5`: how many.
    const MEMORIES: &'static str;

    /// Searches learned answers. Parameters as for [`Database::MEMORIES`]; `$6`: the words of a
    /// question that comes first. The rank alone does not put it there.
    const LEARNED: &'static str;

    /// Returns the full-text query for one term of each word; `None` for no terms.
    fn memory_query(owner: &Owner, words: &[Vec<String>]) -> Option<String>;

    /// Returns the table of runs as the statement for a list of one kind names it.
    fn listed(filter: &RunFilter) -> &'static str;

    /// Returns the schema version of this program.
    fn latest() -> i64 {
        Self::MIGRATIONS.last().map_or(0, |(file, _)| split(file).0)
    }

    fn migrator() -> Migrator {
        let migrations = Self::MIGRATIONS.iter().map(|(file, sql)| {
            let (version, name) = split(file);
            let simple = MigrationType::Simple;
            Migration::new(version, name.into(), simple, sql.into_sql_str(), false)
        });
        Migrator::with_migrations(migrations.collect())
    }
}

/// Returns the version and the name of a migration: `0001_journal`.
fn split(file: &'static str) -> (i64, &'static str) {
    let (version, name) = file.split_once('_').unwrap_or_default();
    (version.parse().unwrap_or(0), name)
}

/// The files of a folder of `migrations/`, with their SQL.
macro_rules! migrations {
    ($folder:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../migrations/", $folder, "/", $file, ".sql")))),+]
    };
}
pub(super) use migrations;

/// The condition of runs that may be deleted: they finished before `$1`, and so did all executions of
/// the same tool plan. A plan without one of its executions would execute that one's steps again.
macro_rules! is_old {
    ($hint:literal) => {
        concat!(
            "finished_ms < $1 AND NOT EXISTS (SELECT 1 FROM runs AS related ",
            $hint,
            " WHERE related.kind = 'execution' AND related.parent IN (runs.id, runs.parent)
                AND (related.finished_ms IS NULL OR related.finished_ms >= $1))"
        )
    };
}
pub(super) use is_old;

/// How long a transaction is attempted that must survive an outage, from its begin on. An append is
/// refused once another process has claimed the run.
pub(super) const OUTAGE: Duration = Duration::from_secs(60);

/// The time between two attempts.
pub(super) const RETRY: Duration = Duration::from_millis(250);

/// What a transaction must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// An outage too, such as a failover of the server or a full disk: the transaction is attempted
    /// for a minute.
    Outage,
    /// A crash of the machine. The commit waits for the disk.
    Machine,
    /// The end of the process. A crash of the machine may lose the transaction.
    Process,
}

/// The work of one transaction, under way.
pub(super) type Work<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// A connection to either database, for statements that both understand.
pub(super) trait Connection: Send {
    type Row: Columns + Send + Sync;

    /// Returns all rows of a query.
    fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Failure>> + Send;

    /// Executes a statement and returns the number of changed rows.
    fn change(&mut self, statement: Statement)
    -> impl Future<Output = Result<u64, Failure>> + Send;

    /// As [`Connection::query`], for a statement that is always the same.
    fn rows(
        &mut self,
        statement: &'static str,
        values: Vec<Bound>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Failure>> + Send {
        self.query(statement.into_sql_str(), values)
    }

    /// Returns the first row of a query.
    fn row(
        &mut self,
        statement: &'static str,
        values: Vec<Bound>,
    ) -> impl Future<Output = Result<Option<Self::Row>, Failure>> + Send {
        async move { Ok(self.rows(statement, values).await?.into_iter().next()) }
    }

    /// Returns the column `n` of the first row.
    fn number(
        &mut self,
        statement: &'static str,
        values: Vec<Bound>,
    ) -> impl Future<Output = Result<u64, Failure>> + Send {
        async move {
            let row = self.row(statement, values).await?;
            let number = row.map_or(Ok(0), |row| row.whole("n"))?;
            Ok(number.unsigned_abs())
        }
    }
}

/// A statement with the values of its parameters.
pub(super) type Statement = (&'static str, Vec<Bound>);

/// The value of a statement's parameter.
#[derive(Debug, Clone)]
pub(super) enum Bound {
    Text(Option<String>),
    Whole(Option<i64>),
    Real(Option<f64>),
    Bytes(Option<Vec<u8>>),
}

impl From<&str> for Bound {
    fn from(text: &str) -> Self {
        Bound::Text(Some(text.to_owned()))
    }
}

impl From<String> for Bound {
    fn from(text: String) -> Self {
        Bound::Text(Some(text))
    }
}

impl From<Option<String>> for Bound {
    fn from(text: Option<String>) -> Self {
        Bound::Text(text)
    }
}

impl From<i64> for Bound {
    fn from(whole: i64) -> Self {
        Bound::Whole(Some(whole))
    }
}

impl From<Option<i64>> for Bound {
    fn from(whole: Option<i64>) -> Self {
        Bound::Whole(whole)
    }
}

impl From<Option<f64>> for Bound {
    fn from(real: Option<f64>) -> Self {
        Bound::Real(real)
    }
}

impl From<Option<Vec<u8>>> for Bound {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Bound::Bytes(bytes)
    }
}

/// Reads the columns of a row by name.
pub(super) trait Columns {
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error>;
    fn whole_or_null(&self, column: &str) -> Result<Option<i64>, Error>;
    fn real_or_null(&self, column: &str) -> Result<Option<f64>, Error>;
    fn bytes_or_null(&self, column: &str) -> Result<Option<Vec<u8>>, Error>;

    fn text(&self, column: &str) -> Result<String, Error> {
        self.text_or_null(column)?.ok_or_else(unexpected)
    }

    fn whole(&self, column: &str) -> Result<i64, Error> {
        self.whole_or_null(column)?.ok_or_else(unexpected)
    }

    fn real(&self, column: &str) -> Result<f64, Error> {
        self.real_or_null(column)?.ok_or_else(unexpected)
    }
}

/// The error of a column that has no value of its type.
pub(super) fn unexpected() -> Error {
    Error::Unavailable("an unexpected answer".into())
}

impl Columns for PgRow {
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        Ok(self.try_get(column)?)
    }

    fn whole_or_null(&self, column: &str) -> Result<Option<i64>, Error> {
        Ok(self.try_get(column)?)
    }

    fn real_or_null(&self, column: &str) -> Result<Option<f64>, Error> {
        Ok(self.try_get(column)?)
    }

    fn bytes_or_null(&self, column: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.try_get(column)?)
    }
}

/// Why a transaction failed. Keeps the database's own error, which shows whether a retry may
/// succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => error.into(),
            Failure::Sqlite(error) => error.into(),
            Failure::Store(error) => error,
        }
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
