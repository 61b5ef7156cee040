//! Transactions and their retries, with helpers for statements.

use std::borrow::Cow;
use std::time::Duration;

use sqlx::postgres::{PgDatabaseError, PgPool};
use sqlx::{Postgres, Transaction};

use crate::journal::Error;

/// How often a transaction that the database aborts is attempted in all.
const MAX_TRIES: u32 = 5;

/// Begins a transaction in which each statement sees what was committed before it, independent of
/// the server's default.
pub(super) async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        .await
}

/// Why a transaction failed.
pub(super) enum TransactionFailure {
    /// The database aborted it because of a concurrent one. A retry may succeed.
    RetryableConflict(Error),
    ForGood(Error),
}

impl TransactionFailure {
    /// Waits before the next attempt. Returns the number of failed attempts.
    ///
    /// # Errors
    /// The cause of the failure, if a retry is useless or the attempts are used up.
    pub async fn again(self, tries: u32) -> Result<u32, Error> {
        match self {
            TransactionFailure::RetryableConflict(_) if tries + 1 < MAX_TRIES => {
                tokio::time::sleep(Duration::from_millis(5 << tries)).await;
                Ok(tries + 1)
            }
            TransactionFailure::RetryableConflict(error) | TransactionFailure::ForGood(error) => {
                Err(error)
            }
        }
    }
}

impl From<sqlx::Error> for TransactionFailure {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(|e| e.try_downcast_ref())
            .map(PgDatabaseError::code);
        // Serialization failure, deadlock, or a unique key that another transaction has inserted
        // meanwhile.
        if matches!(code, Some("40001" | "40P01" | "23505")) {
            TransactionFailure::RetryableConflict(error.into())
        } else {
            TransactionFailure::ForGood(error.into())
        }
    }
}

impl From<Error> for TransactionFailure {
    fn from(error: Error) -> Self {
        TransactionFailure::ForGood(error)
    }
}

/// Makes a text storable in a column, since PostgreSQL has no U+0000. The journal's JSON keeps the
/// character in its escaped form.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
