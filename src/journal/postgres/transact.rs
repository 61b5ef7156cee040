//! Transactions, and what every statement needs.

use std::borrow::Cow;
use std::time::Duration;

use sqlx::postgres::{PgDatabaseError, PgPool};
use sqlx::{Postgres, Transaction};

use crate::journal::Error;

/// How often a transaction that the database broke off is tried again.
const MAX_TRIES: u32 = 5;

/// Begins a transaction in which each statement sees what was committed before it, whatever the server's default is.
pub(super) async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        .await
}

/// Why a transaction has not happened.
pub(super) enum TransactionFailure {
    /// The database broke it off in favour of another one: the same again may succeed.
    RetryableConflict(Error),
    ForGood(Error),
}

impl TransactionFailure {
    /// Waits for a moment before the next try. Returns how many there were then.
    ///
    /// # Errors
    /// What broke the transaction, when another try is of no use.
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
        // Serialization failure, deadlock, and a unique key that another transaction took in the meantime.
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

/// A text as a column can hold it: PostgreSQL has no U+0000. The journal's JSON, where it stands escaped, keeps it.
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
