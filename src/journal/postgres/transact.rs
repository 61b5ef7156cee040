//! Retries of transactions, and texts that PostgreSQL can store.

use std::time::Duration;

use sqlx::postgres::PgDatabaseError;

use crate::journal::Error;
use crate::journal::database::Failure;

/// How often a transaction that the database aborts is attempted in all.
const MAX_TRIES: u32 = 5;

/// Attempts a transaction again if the database aborts it because of a concurrent one.
pub(super) async fn retried<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(Failure::Database(error)) if is_conflict(&error) && tries < MAX_TRIES => {
                tokio::time::sleep(Duration::from_millis(5 << (tries - 1))).await;
                tries += 1;
            }
            done => return Ok(done?),
        }
    }
}

fn is_conflict(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(|e| e.try_downcast_ref())
        .map(PgDatabaseError::code);
    // Serialization failure, deadlock, or a unique key that another transaction has inserted
    // meanwhile.
    matches!(code, Some("40001" | "40P01" | "23505"))
}

/// Makes a text storable in a column, since PostgreSQL has no U+0000. The journal's JSON keeps the
/// character in its escaped form.
pub(super) fn plain(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}
