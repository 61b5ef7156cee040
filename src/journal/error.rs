//! Errors of the store. Database errors are described without statement, value or address, so that
//! the text can be shown and logged.

use std::borrow::Cow;
use std::io::ErrorKind;

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

use crate::domain::RunId;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be reached, is locked, or its disk is full.
    #[error("the database is not available: {0}")]
    Unavailable(Unavailable),
    /// A stored value is invalid.
    #[error("corrupt data in {table}.{column} of {id}")]
    Corrupt {
        table: &'static str,
        column: &'static str,
        id: String,
    },
    /// The serialized event could not be parsed back.
    #[error("an event cannot be serialized: {0}")]
    Unwritable(String),
    #[error("the run was taken over by another process")]
    LeaseLost,
    #[error("the run is being cancelled")]
    CancelRequested,
    #[error("{0}")]
    Migration(String),
    /// The archive is not a complete, unaltered, finished run.
    #[error("the archive of run {run} cannot be restored: {why}")]
    InvalidArchive { run: RunId, why: String },
    /// This kind of database has its own tool for the operation.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Why the database cannot be used, without statement, value or address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("the disk is full")]
    DiskFull,
    /// The system refused a write, for example at a limit of the file size.
    #[error("its file cannot grow")]
    FileLimit,
    #[error("the file is damaged: restore a backup (conclave restore)")]
    Damaged,
    #[error("it is read-only")]
    ReadOnly,
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl From<&'static str> for Unavailable {
    fn from(why: &'static str) -> Self {
        Self::Other(why.into())
    }
}

impl From<String> for Unavailable {
    fn from(why: String) -> Self {
        Self::Other(why.into())
    }
}

/// How the standard library begins its error if a host name has no address.
const NO_ADDRESS: &str = "failed to lookup address";

/// Said if no TLS connection could be made.
const TLS: &str = "it offers no TLS, or a certificate or key cannot be used";

/// Said of a connection that was made and then closed.
const BROKEN: &str = "the connection to it broke";

/// The SQLSTATE of a write in a read-only transaction, such as on a standby.
const READ_ONLY: &str = "25006";

impl Error {
    /// True if a write failed because the disk is full or the file cannot grow.
    pub(super) fn is_disk_full(&self) -> bool {
        use Unavailable::{DiskFull, FileLimit};
        matches!(self, Error::Unavailable(DiskFull | FileLimit))
    }

    /// True if the database file is damaged.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Error::Unavailable(Unavailable::Damaged))
    }
}

/// Returns the SQLSTATE of an error of PostgreSQL.
pub(super) fn postgres_code(error: &sqlx::Error) -> Option<&str> {
    let error = error.as_database_error()?;
    Some(error.try_downcast_ref::<PgDatabaseError>()?.code())
}

/// True if the database could not be reached, was stopping, or could only be read: the same
/// transaction may succeed after a failover. If the connection broke during the commit, the
/// transaction may also have taken place.
pub(super) fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
        other => postgres_code(other).is_some_and(|code| {
            code.starts_with("08")
                || matches!(code, READ_ONLY | "57P01" | "57P02" | "57P03" | "53300")
        }),
    }
}

/// True if the database could only be read, as a standby.
pub(super) fn is_read_only(error: &sqlx::Error) -> bool {
    postgres_code(error) == Some(READ_ONLY)
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let why = match &error {
            sqlx::Error::Database(_) => of_postgres(postgres_code(&error).unwrap_or("unknown")),
            sqlx::Error::PoolTimedOut => "no connection to it could be had in time".into(),
            sqlx::Error::Io(e) if e.kind() == ErrorKind::ConnectionRefused => {
                "no server listens there".into()
            }
            // The driver wraps an error of the TLS library as one of input or output.
            sqlx::Error::Io(e) if e.kind() == ErrorKind::InvalidData => TLS.into(),
            // The standard library has no kind for it.
            sqlx::Error::Io(e) if e.to_string().starts_with(NO_ADDRESS) => {
                "the name of its host cannot be resolved".into()
            }
            // A balancer that finds no primary accepts connections and closes them.
            sqlx::Error::Io(e)
                if matches!(
                    e.kind(),
                    ErrorKind::UnexpectedEof
                        | ErrorKind::ConnectionReset
                        | ErrorKind::ConnectionAborted
                        | ErrorKind::BrokenPipe
                ) =>
            {
                BROKEN.into()
            }
            sqlx::Error::Io(e) => format!("input or output failed: {}", e.kind()).into(),
            sqlx::Error::Tls(_) => TLS.into(),
            sqlx::Error::Configuration(_) => "its address or its key cannot be used".into(),
            sqlx::Error::Protocol(_) => "it does not speak its protocol".into(),
            _ => "an unexpected answer".into(),
        };
        tracing::debug!(reason = %why, "the database rejected the statement");
        Error::Unavailable(why)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Error::Unavailable(reason(&error))
    }
}

/// Describes an error of SQLite.
pub(super) fn reason(error: &rusqlite::Error) -> Unavailable {
    let reason = match error.sqlite_error() {
        Some(code) => of_sqlite(&code.extended_code.to_string()),
        None => "an unexpected answer".into(),
    };
    tracing::debug!(%reason, "the database rejected the statement");
    reason
}

impl From<MigrateError> for Error {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            MigrateError::VersionMissing(version) => Error::Migration(format!(
                "the database has schema {version} of a newer release: use that release or a newer one"
            )),
            other => Error::Migration(format!("the database's schema: {other}")),
        }
    }
}

/// Describes a SQLite result code, <https://www.sqlite.org/rescode.html>.
fn of_sqlite(code: &str) -> Unavailable {
    match code {
        "5" | "6" | "261" | "517" => "it is locked by another process".into(),
        // The second one: the index of the log could not grow (SQLITE_IOERR_SHMSIZE).
        "13" | "4874" => Unavailable::DiskFull,
        "778" => Unavailable::FileLimit,
        "8" | "264" | "520" | "776" | "1032" | "14" => "the file cannot be written".into(),
        "1544" => "the folder of its file cannot be written".into(),
        "26" => "the file is no SQLite database".into(),
        "11" | "267" | "523" | "779" => Unavailable::Damaged,
        code => format!("SQLite error {code}").into(),
    }
}

/// Describes an SQLSTATE code, <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_postgres(code: &str) -> Unavailable {
    match code {
        "53100" => Unavailable::DiskFull,
        "53300" => "it has no connection left".into(),
        code if code.starts_with("08") => BROKEN.into(),
        "57P01" | "57P02" | "57P03" => "it is starting or stopping".into(),
        "28000" | "28P01" => {
            "it refuses the user, the password or a connection of this kind".into()
        }
        "3D000" => "it has no database of this name".into(),
        "3F000" => "the user's search_path names no schema to write to".into(),
        "42501" => "the user lacks a right: it must own its schema and tables".into(),
        "42P07" => "a table of this name exists that is not the service's".into(),
        READ_ONLY => Unavailable::ReadOnly,
        "40001" | "40P01" => "too many others write at the same time".into(),
        "25P03" => "it ended a transaction that waited too long".into(),
        "55P03" | "57014" => "it is locked by another process".into(),
        code => format!("PostgreSQL error {code}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_the_log_that_cannot_grow_means_a_full_disk() {
        assert_eq!(of_sqlite("4874"), Unavailable::DiskFull);
    }

    #[test]
    fn codes_of_postgres_are_put_in_words() {
        for (code, said) in [
            ("3F000", "search_path"),
            ("42501", "lacks a right"),
            ("42P07", "table of this name"),
            ("XX000", "PostgreSQL error XX000"),
        ] {
            assert!(of_postgres(code).to_string().contains(said), "{code}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_nothing_of_the_address() {
        let refused = std::io::Error::new(ErrorKind::ConnectionRefused, "10.0.0.7:5432");
        let configuration = sqlx::Error::Configuration("postgres://ada:planted-secret@db".into());
        let closed = std::io::Error::new(ErrorKind::UnexpectedEof, "10.0.0.7:5432");
        let said = [
            sqlx::Error::Io(refused),
            sqlx::Error::Io(closed),
            sqlx::Error::PoolTimedOut,
            configuration,
        ]
        .map(|e| Error::from(e).to_string());
        assert_eq!(
            said,
            [
                "the database is not available: no server listens there",
                "the database is not available: the connection to it broke",
                "the database is not available: no connection to it could be had in time",
                "the database is not available: its address or its key cannot be used",
            ]
        );
    }
}
