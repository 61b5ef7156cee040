//! What the runs of a scope have spent, or may still spend.

use sqlx::SqliteConnection;

use crate::domain::Usd;
use crate::journal::{Error, SpendingLimit, SpendingScope};

/// The spending of finished runs plus the caps of those in flight, accepted at or after the limit's moment.
pub(super) async fn exposure(connection: &mut SqliteConnection, limit: &SpendingLimit) -> Result<Usd, Error> {
    let (user, guild) = match &limit.scope {
        SpendingScope::User(id) => (Some(id), None),
        SpendingScope::Guild(id) => (None, Some(id)),
        SpendingScope::Everyone => (None, None),
    };
    let (nanos,): (i64,) = sqlx::query_as(
        "SELECT COALESCE(SUM(CASE WHEN state IN ('queued', 'running') THEN MAX(cap_nanos, spent_nanos)
                                  ELSE spent_nanos END), 0)
         FROM runs WHERE accepted_ms >= $1 AND ($2 IS NULL OR user_id = $2) AND ($3 IS NULL OR guild_id = $3)",
    )
    .bind(limit.since.as_millisecond())
    .bind(user)
    .bind(guild)
    .fetch_one(connection)
    .await?;
    Ok(Usd::from_nanos(nanos.unsigned_abs()))
}
