//! Claims of leases, and appends under a lease.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgConnection;
use sqlx::postgres::PgPool;

use super::transact::{TransactionFailure, begin, millis, plain};
use crate::domain::RunId;
use crate::journal::rows::{self, Change};
use crate::journal::{Annotated, ArchivedEntry, Claim, Claimed, Error, Event, Lease, statements};

pub(super) async fn claim(
    pool: &PgPool,
    which: Claim,
    owner: &str,
    lease: Duration,
    now: Timestamp,
) -> Result<Option<Lease>, TransactionFailure> {
    let one = match which {
        Claim::Oldest => None,
        Claim::Run(id) => Some(id.to_string()),
    };
    let mut tx = begin(pool).await?;
    // Skips a run that another process is claiming or writing to at this moment.
    let claimed: Option<(String, i64, i64, String)> = sqlx::query_as(
        "UPDATE runs SET state = 'running', owner = $1, epoch = epoch + 1,
                         lease_until = clock_timestamp() + $2 * INTERVAL '1 millisecond'
         WHERE id = (SELECT id FROM runs
                     WHERE (state = 'queued' OR (state = 'running' AND lease_until < clock_timestamp()))
                       AND ($3 IS NULL OR id = $3)
                     ORDER BY accepted_ms LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, epoch, head_seq, head_hash",
    )
    .bind(owner)
    .bind(millis(lease))
    .bind(one)
    .fetch_optional(&mut *tx)
    .await?;
    let Some((id, epoch, seq, hash)) = claimed else {
        return Ok(None);
    };
    let run = rows::run_id(&id)?;
    let event = Event::Claimed(Claimed {
        epoch,
        owner: owner.to_owned(),
    });
    write(&mut tx, run, now, &[event], (seq, hash)).await?;
    tx.commit().await?;
    Ok(Some(Lease {
        run,
        owner: owner.to_owned(),
        epoch,
    }))
}

pub(super) async fn once(
    pool: &PgPool,
    lease: &Lease,
    at: Timestamp,
    events: &[Event],
) -> Result<i64, TransactionFailure> {
    let mut tx = begin(pool).await?;
    // The fence. It locks the row until the end of the transaction, so no other process can claim
    // the run or append in between.
    let held: Option<(i64, i64, String)> = sqlx::query_as(
        "SELECT cancel_requested, head_seq, head_hash FROM runs
         WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running' AND lease_until >= clock_timestamp()
         FOR UPDATE",
    )
    .bind(lease.run.to_string())
    .bind(lease.epoch)
    .bind(&lease.owner)
    .fetch_optional(&mut *tx)
    .await?;
    let Some((cancel, seq, hash)) = held else {
        return Err(Error::LeaseLost.into());
    };
    if cancel != 0
        && events
            .iter()
            .any(|event| matches!(event, Event::CallSent(_) | Event::Executed(_)))
    {
        return Err(Error::CancelRequested.into());
    }
    let seq = write(&mut tx, lease.run, at, events, (seq, hash)).await?;
    tx.commit().await?;
    Ok(seq)
}

/// Appends to a finished run. Locks its row until the end of the transaction.
pub(super) async fn annotate(
    pool: &PgPool,
    run: RunId,
    at: Timestamp,
    event: &Event,
) -> Result<Annotated, TransactionFailure> {
    let mut tx = begin(pool).await?;
    let found = sqlx::query("SELECT * FROM runs WHERE id = $1 FOR UPDATE")
        .bind(run.to_string())
        .fetch_optional(&mut *tx)
        .await?;
    let Some(row) = found.as_ref().map(rows::run).transpose()? else {
        return Ok(Annotated::Unknown);
    };
    if !row.state.is_terminal() {
        return Ok(Annotated::Unfinished);
    }
    let head = (row.head_seq, row.head_hash);
    if write(&mut tx, run, at, std::slice::from_ref(event), head).await? == row.head_seq {
        return Ok(Annotated::Taken);
    }
    tx.commit().await?;
    Ok(Annotated::Written)
}

/// Appends to the chain after `head` within the caller's transaction, and updates the row. Returns
/// the last sequence number.
pub(super) async fn write(
    tx: &mut PgConnection,
    run: RunId,
    at: Timestamp,
    events: &[Event],
    head: (i64, String),
) -> Result<i64, TransactionFailure> {
    let (mut seq, mut prev) = head;
    let id = run.to_string();
    for event in events {
        let line = rows::line(run, at, event, seq, &prev)?;
        if insert(tx, &id, &line).await? {
            (seq, prev) = (line.seq, line.hash);
            project(tx, &id, at, event).await?;
        }
    }
    set_head(tx, &id, seq, &prev).await?;
    Ok(seq)
}

pub(super) async fn set_head(
    tx: &mut PgConnection,
    run: &str,
    seq: i64,
    hash: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(statements::SET_HEAD)
        .bind(seq)
        .bind(hash)
        .bind(run)
        .execute(tx)
        .await?;
    Ok(())
}

/// Inserts one entry. False if the run already has its key.
pub(super) async fn insert(
    tx: &mut PgConnection,
    run: &str,
    line: &ArchivedEntry,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(statements::INSERT_ENTRY)
        .bind(run)
        .bind(line.seq)
        .bind(line.at_ms)
        .bind(&line.key)
        .bind(&line.body)
        .bind(&line.prev)
        .bind(&line.hash)
        .execute(tx)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(super) async fn project(
    tx: &mut PgConnection,
    id: &str,
    at: Timestamp,
    event: &Event,
) -> Result<(), sqlx::Error> {
    let query = match rows::change(event) {
        None => return Ok(()),
        Some(Change::Spent(nanos)) => sqlx::query(statements::ADD_SPENT).bind(nanos).bind(id),
        Some(Change::Ended {
            state,
            cause,
            c_final,
        }) => sqlx::query(statements::END)
            .bind(state.as_str())
            .bind(cause.as_deref().map(|cause| plain(cause).into_owned()))
            .bind(c_final)
            .bind(at.as_millisecond())
            .bind(id),
        Some(Change::Changed(effect)) => return super::effects::apply(tx, id, at, &effect).await,
    };
    query.execute(tx).await?;
    Ok(())
}
