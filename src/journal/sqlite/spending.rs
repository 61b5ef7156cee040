//! What the runs of a scope have spent, or may still spend.

use sqlx::SqliteConnection;

use crate::domain::Usd;
use crate::journal::{Error, SpendingLimit, statements};

/// The spending of finished runs plus the caps of those in flight, accepted at or after the limit's moment.
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
