//! Accepts a run: once per idempotency key, once per answer, and within its spending limits, also
//! under concurrent submissions.

use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use sqlx::postgres::PgPool;

use super::append;
use super::transact::{TransactionFailure, begin, plain};
use crate::domain::Usd;
use crate::journal::{
    Acceptance, Error, Event, NewRun, SpendingLimit, SpendingScope, chain, rows, statements,
};

pub(super) async fn once(pool: &PgPool, run: &NewRun) -> Result<Acceptance, TransactionFailure> {
    let mut tx = begin(pool).await?;
    if let Some(not) = refusal(&mut tx, run).await? {
        return Ok(not);
    }
    insert(&mut tx, run).await?;
    let accepted = Event::Accepted(Box::new(run.accepted.clone()));
    append::write(
        &mut tx,
        run.id,
        run.at,
        &[accepted],
        (0, chain::GENESIS.to_owned()),
    )
    .await?;
    tx.commit().await?;
    Ok(Acceptance::New)
}

/// Returns why a run is not accepted, or `None` if it is. Locks everything that this decision
/// depends on until the end of the transaction.
pub(super) async fn refusal(
    tx: &mut PgConnection,
    run: &NewRun,
) -> Result<Option<Acceptance>, TransactionFailure> {
    // One statement takes all locks in ascending order, so two acceptances cannot deadlock.
    sqlx::query("SELECT pg_advisory_xact_lock(lock) FROM unnest($1::BIGINT[]) AS lock")
        .bind(locks(run))
        .execute(&mut *tx)
        .await?;
    if let Some(key) = &run.idempotency_key {
        let same = sqlx::query_as(statements::BY_KEY).bind(plain(key));
        if let Some(other) = rows::same_key(same.fetch_optional(&mut *tx).await?, run)? {
            return Ok(Some(other));
        }
    }
    if let Some(continues) = &run.accepted.continues {
        let live =
            sqlx::query_as(statements::LIVE_CONTINUATIONS).bind(continues.parent.to_string());
        if let Some(twin) = rows::twin(live.fetch_all(&mut *tx).await?, continues)? {
            return Ok(Some(Acceptance::Joined(twin)));
        }
    }
    for limit in &run.limits {
        let left = limit.most - exposure(tx, limit).await?;
        if run.accepted.cap > left {
            return Ok(Some(Acceptance::OverLimit {
                scope: limit.scope.clone(),
                left,
            }));
        }
    }
    Ok(None)
}

/// Returns the advisory locks of everything that decides about an acceptance: its key, the run that
/// it continues, and the scopes of its limits.
fn locks(run: &NewRun) -> Vec<i64> {
    let key = run.idempotency_key.iter().map(|key| format!("key {key}"));
    let parent = run
        .accepted
        .continues
        .iter()
        .map(|continues| format!("parent {}", continues.parent));
    let scopes = run.limits.iter().map(|limit| match &limit.scope {
        SpendingScope::User(id) => format!("user {id}"),
        SpendingScope::Guild(id) => format!("guild {id}"),
        SpendingScope::Everyone => "everyone".to_owned(),
    });
    let mut locks: Vec<i64> = key
        .chain(parent)
        .chain(scopes)
        .map(|name| number(&name))
        .collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// Returns the lock number of a name. If two names collide, they only wait for each other
/// needlessly.
fn number(name: &str) -> i64 {
    let hash = Sha256::digest(format!("conclave {name}"));
    let bytes = hash.first_chunk::<8>().copied().unwrap_or_default();
    i64::from_be_bytes(bytes)
}

/// Inserts the row of a run that has no entries yet.
pub(super) async fn insert(tx: &mut PgConnection, run: &NewRun) -> Result<(), sqlx::Error> {
    let question = &run.accepted.question;
    sqlx::query(statements::INSERT_RUN)
        .bind(run.id.to_string())
        .bind(question.mode.as_str())
        .bind(question.source.as_str())
        .bind(plain(&question.user.id))
        .bind(plain(question.context.guild_id.as_deref().unwrap_or("")))
        .bind(plain(question.context.channel_id.as_deref().unwrap_or("")))
        .bind(plain(&rows::listed_message(&run.accepted)).into_owned())
        .bind(run.accepted.parent().map(|parent| parent.to_string()))
        .bind(run.accepted.cap.nanos().cast_signed())
        .bind(run.at.as_millisecond())
        .bind(run.idempotency_key.as_deref().map(plain))
        .bind(plain(&run.body_hash))
        .bind(chain::GENESIS)
        .bind(run.accepted.kind().as_str())
        .execute(tx)
        .await?;
    Ok(())
}

/// Sums up the spending of finished runs and the caps of runs in flight, accepted at or after the
/// limit's moment.
pub(super) async fn exposure(
    connection: &mut PgConnection,
    limit: &SpendingLimit,
) -> Result<Usd, Error> {
    let (user, guild) = limit.scope.ids();
    let (nanos,): (i64,) = sqlx::query_as(statements::EXPOSURE)
        .bind(limit.since.as_millisecond())
        .bind(user.map(plain))
        .bind(guild.map(plain))
        .fetch_one(connection)
        .await?;
    Ok(Usd::from_nanos(nanos.unsigned_abs()))
}
