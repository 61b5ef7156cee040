//! Statements that append to a journal and update the run's row.

use crate::domain::RunId;
use crate::journal::rows::{self, Change};
use crate::journal::store::{Error, NewRun};
use crate::journal::{ArchivedEntry, Event, chain, statements};
use jiff::Timestamp;
use sqlx::SqliteConnection;
use std::time::Duration;

/// Inserts the row of a run that has no entries yet.
pub(super) async fn insert(tx: &mut SqliteConnection, run: &NewRun) -> Result<(), Error> {
    let question = &run.accepted.question;
    let parent = run.accepted.parent().map(|parent| parent.to_string());
    sqlx::query(statements::INSERT_RUN)
        .bind(run.id.to_string())
        .bind(question.mode.as_str())
        .bind(question.source.as_str())
        .bind(&question.user.id)
        .bind(question.context.guild_id.as_deref().unwrap_or(""))
        .bind(question.context.channel_id.as_deref().unwrap_or(""))
        .bind(rows::listed_message(&run.accepted))
        .bind(parent)
        .bind(run.accepted.cap.nanos().cast_signed())
        .bind(run.at.as_millisecond())
        .bind(&run.idempotency_key)
        .bind(&run.body_hash)
        .bind(chain::GENESIS)
        .bind(run.accepted.kind().as_str())
        .execute(&mut *tx)
        .await?;
    Ok(())
}

pub(super) fn until(now: Timestamp, lease: Duration) -> i64 {
    now.as_millisecond()
        .saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}

/// Appends to the chain within the caller's transaction, and updates the projection. Returns the
/// last sequence number.
pub(super) async fn append(
    tx: &mut SqliteConnection,
    run: RunId,
    at: Timestamp,
    events: &[Event],
) -> Result<i64, Error> {
    let id = run.to_string();
    let (mut seq, mut prev): (i64, String) =
        sqlx::query_as("SELECT head_seq, head_hash FROM runs WHERE id = $1")
            .bind(&id)
            .fetch_one(&mut *tx)
            .await?;
    for event in events {
        let line = rows::line(run, at, event, seq, &prev)?;
        if write(tx, &id, &line).await? {
            (seq, prev) = (line.seq, line.hash);
            project(tx, &id, at, event).await?;
        }
    }
    set_head(tx, &id, seq, &prev).await?;
    Ok(seq)
}

pub(super) async fn set_head(
    tx: &mut SqliteConnection,
    run: &str,
    seq: i64,
    hash: &str,
) -> Result<(), Error> {
    sqlx::query(statements::SET_HEAD)
        .bind(seq)
        .bind(hash)
        .bind(run)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

/// Inserts one entry. False if the run already has its key.
pub(super) async fn write(
    tx: &mut SqliteConnection,
    run: &str,
    entry: &ArchivedEntry,
) -> Result<bool, Error> {
    let done = sqlx::query(statements::INSERT_ENTRY)
        .bind(run)
        .bind(entry.seq)
        .bind(entry.at_ms)
        .bind(&entry.key)
        .bind(&entry.body)
        .bind(&entry.prev)
        .bind(&entry.hash)
        .execute(&mut *tx)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(super) async fn project(
    tx: &mut SqliteConnection,
    id: &str,
    at: Timestamp,
    event: &Event,
) -> Result<(), Error> {
    let query = match rows::change(event) {
        None => return Ok(()),
        Some(Change::Spent(nanos)) => sqlx::query(statements::ADD_SPENT).bind(nanos).bind(id),
        Some(Change::Ended {
            state,
            cause,
            c_final,
        }) => sqlx::query(statements::END)
            .bind(state.as_str())
            .bind(cause)
            .bind(c_final)
            .bind(at.as_millisecond())
            .bind(id),
        Some(Change::Changed(effect)) => return super::effects::apply(tx, id, at, &effect).await,
    };
    query.execute(&mut *tx).await?;
    Ok(())
}
