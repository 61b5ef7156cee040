//! Claims of leases, and appends under a lease. Leases are judged by the server's clock.

use std::time::Duration;

use jiff::Timestamp;

use super::PostgresStore;
use crate::journal::database::{Connection as _, Database as _, Failure, millis};
use crate::journal::{Claim, Error, Event, Lease, LeaseState, writes};

pub(super) async fn claim(
    store: &PostgresStore,
    which: Claim,
    owner: &str,
    lease: Duration,
    now: Timestamp,
) -> Result<Option<Lease>, Failure> {
    // Skips a run that another process is claiming or writing to at this moment.
    let statement = "
        UPDATE runs SET state = 'running', owner = $1, epoch = epoch + 1,
                        lease_until = clock_timestamp() + $2 * INTERVAL '1 millisecond'
        WHERE id = (SELECT id FROM runs
                    WHERE (state = 'queued' OR (state = 'running' AND lease_until < clock_timestamp()))
                      AND ($3 IS NULL OR id = $3)
                    ORDER BY accepted_ms LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING id, epoch, head_seq, head_hash";
    let values = vec![owner.into(), millis(lease).into(), which.one().into()];
    let mut tx = store.transaction().await?;
    let found = tx.row(statement, values).await?;
    let claimed = writes::claimed(&mut *tx, found, owner, now).await?;
    tx.commit().await?;
    Ok(claimed)
}

pub(super) async fn renew(
    store: &PostgresStore,
    lease: &Lease,
    duration: Duration,
) -> Result<LeaseState, Error> {
    let statement = "
        UPDATE runs SET lease_until = clock_timestamp() + $4 * INTERVAL '1 millisecond'
        WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running'
        RETURNING cancel_requested";
    let mut connection = store.reader().await?;
    let found = connection
        .row(statement, lease.values(millis(duration)))
        .await?;
    writes::renewed(found.as_ref())
}

pub(super) async fn append(
    store: &PostgresStore,
    lease: &Lease,
    at: Timestamp,
    events: &[Event],
) -> Result<i64, Failure> {
    // The fence. It locks the row until the end of the transaction, so no other process can claim
    // the run or append in between.
    let statement = "
        SELECT cancel_requested, head_seq, head_hash FROM runs
        WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running' AND lease_until >= clock_timestamp()
        FOR UPDATE";
    let mut tx = store.transaction().await?;
    let found = tx.row(statement, lease.values(None)).await?;
    let head = writes::fenced(found.as_ref(), events)?;
    let seq = writes::append(&mut *tx, lease.run, at, events, head).await?;
    tx.commit().await?;
    Ok(seq)
}
