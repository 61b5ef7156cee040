//! The spending of a scope's runs.

use sqlx::SqliteConnection;

use crate::domain::Usd;
use crate::journal::{Error, SpendingLimit, statements};

/// Sums up the spending of finished runs and the caps of runs in flight, accepted at or after the
/// limit's moment.
pub(super) async fn exposure(
    connection: &mut SqliteConnection,
    limit: &SpendingLimit,
) -> Result<Usd, Error> {
    let (user, guild) = limit.scope.ids();
    let (nanos,): (i64,) = sqlx::query_as(statements::EXPOSURE)
        .bind(limit.since.as_millisecond())
        .bind(user)
        .bind(guild)
        .fetch_one(connection)
        .await?;
    Ok(Usd::from_nanos(nanos.unsigned_abs()))
}
