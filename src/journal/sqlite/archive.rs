//! Export, import, pruning and backup of finished runs.

use std::path::Path;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use crate::domain::RunId;
use crate::journal::{Archive, Error, Restored, rows, statements};

pub(super) async fn read(pool: &SqlitePool, run: RunId) -> Result<Option<Archive>, Error> {
    let found: Option<(Option<String>, String)> = sqlx::query_as(statements::ARCHIVED_RUN)
        .bind(run.to_string())
        .fetch_optional(pool)
        .await?;
    let Some((idempotency_key, body_hash)) = found else {
        return Ok(None);
    };
    let found = sqlx::query(statements::ENTRIES)
        .bind(run.to_string())
        .bind(0)
        .fetch_all(pool)
        .await?;
    let entries = found.iter().map(rows::archived).collect::<Result<_, _>>()?;
    Ok(Some(Archive {
        version: Archive::VERSION,
        run,
        idempotency_key,
        body_hash,
        entries,
    }))
}

pub(super) async fn write(tx: &mut SqliteConnection, archive: &Archive) -> Result<Restored, Error> {
    let mut sound = archive.check()?;
    let known: Vec<(String,)> = sqlx::query_as(statements::KNOWN)
        .bind(archive.run.to_string())
        .bind(&archive.idempotency_key)
        .fetch_all(&mut *tx)
        .await?;
    if known.iter().any(|(id,)| *id == archive.run.to_string()) {
        return Ok(Restored::Known);
    }
    if !known.is_empty() {
        // Another run in this database has the key, and keeps it.
        sound.run.idempotency_key = None;
    }
    super::insert(tx, &sound.run).await?;
    let id = archive.run.to_string();
    for (entry, (at, event)) in archive.entries.iter().zip(&sound.events) {
        super::write(tx, &id, entry).await?;
        super::project(tx, &id, *at, event).await?;
    }
    super::set_head(
        tx,
        &id,
        archive.entries.len().try_into().unwrap_or(i64::MAX),
        &sound.head,
    )
    .await?;
    Ok(Restored::New)
}

pub(super) async fn prunable(pool: &SqlitePool, before: Timestamp) -> Result<u64, Error> {
    let (count,): (i64,) = sqlx::query_as(statements::PRUNABLE)
        .bind(before.as_millisecond())
        .fetch_one(pool)
        .await?;
    Ok(count.unsigned_abs())
}

pub(super) async fn prune(
    tx: &mut SqliteConnection,
    before: Timestamp,
    most: u32,
) -> Result<u64, Error> {
    let done = sqlx::query(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE finished_ms < $1 ORDER BY finished_ms LIMIT $2)",
    )
    .bind(before.as_millisecond())
    .bind(i64::from(most))
    .execute(tx)
    .await?;
    Ok(done.rows_affected())
}

pub(super) async fn backup(pool: &SqlitePool, to: &Path) -> Result<(), Error> {
    let name = to
        .to_str()
        .ok_or(Error::Unsupported("the name of a backup must be UTF-8"))?;
    sqlx::query("VACUUM INTO $1")
        .bind(name)
        .execute(pool)
        .await?;
    Ok(())
}
