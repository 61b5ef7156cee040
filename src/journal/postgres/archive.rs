//! Export, import and pruning of finished runs.

use jiff::Timestamp;
use sqlx::postgres::PgPool;

use super::transact::{TransactionFailure, begin, plain};
use super::{accept, append};
use crate::domain::RunId;
use crate::journal::{Archive, Error, Restored, rows, statements};

pub(super) async fn read(pool: &PgPool, run: RunId) -> Result<Option<Archive>, Error> {
    let found: Option<(Option<String>, String)> = sqlx::query_as(statements::ARCHIVED_RUN)
        .bind(run.to_string())
        .fetch_optional(pool)
        .await?;
    let Some((idempotency_key, body_hash)) = found else {
        return Ok(None);
    };
    let found = sqlx::query(statements::ENTRIES)
        .bind(run.to_string())
        .bind(0_i64)
        .fetch_all(pool)
        .await?;
    let entries = found
        .iter()
        .map(rows::archived)
        .collect::<Result<Vec<_>, _>>()?;
    if entries.is_empty() {
        // Another process pruned the run between the two statements.
        return Ok(None);
    }
    Ok(Some(Archive {
        version: Archive::VERSION,
        run,
        idempotency_key,
        body_hash,
        entries,
    }))
}

pub(super) async fn write(
    pool: &PgPool,
    archive: &Archive,
) -> Result<Restored, TransactionFailure> {
    let mut sound = archive.check()?;
    let id = archive.run.to_string();
    let mut tx = begin(pool).await?;
    let known: Vec<(String,)> = sqlx::query_as(statements::KNOWN)
        .bind(&id)
        .bind(archive.idempotency_key.as_deref().map(plain))
        .fetch_all(&mut *tx)
        .await?;
    if known.iter().any(|(known,)| *known == id) {
        return Ok(Restored::Known);
    }
    if !known.is_empty() {
        // Another run in this database has the key, and keeps it.
        sound.run.idempotency_key = None;
    }
    accept::insert(&mut tx, &sound.run).await?;
    for (entry, (at, event)) in archive.entries.iter().zip(&sound.events) {
        append::insert(&mut tx, &id, entry).await?;
        append::project(&mut tx, &id, *at, event).await?;
    }
    append::set_head(
        &mut tx,
        &id,
        archive.entries.len().try_into().unwrap_or(i64::MAX),
        &sound.head,
    )
    .await?;
    tx.commit().await?;
    Ok(Restored::New)
}

pub(super) async fn prunable(pool: &PgPool, before: Timestamp) -> Result<u64, Error> {
    let (count,): (i64,) = sqlx::query_as(statements::PRUNABLE)
        .bind(before.as_millisecond())
        .fetch_one(pool)
        .await?;
    Ok(count.unsigned_abs())
}

pub(super) async fn prune(pool: &PgPool, before: Timestamp, most: u32) -> Result<u64, Error> {
    // Replicas that prune at the same time skip each other's rows.
    let done = sqlx::query(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE finished_ms < $1
                                       ORDER BY finished_ms LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .bind(before.as_millisecond())
    .bind(i64::from(most))
    .execute(pool)
    .await?;
    Ok(done.rows_affected())
}
