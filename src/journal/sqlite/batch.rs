//! Group commit: appends to several runs, their acceptances and claims, that arrive during one
//! transaction share the next one.
//!
//! A commit waits for the disk, and a run makes about twenty commits. With many runs in flight,
//! separate commits would take all of the service's time. There is no background task: the first
//! waiting append that gets the lock writes for all. An append whose caller was dropped is not
//! written.
//!
//! A transaction takes two round trips to the database's thread, for any number of appends: the
//! first begins it and reads the fences, the second writes and commits. An acceptance, a claim and an
//! end take one more each. The statements are always the same, so SQLite compiles them once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::writer::{Open, Writer};
use super::{Error, Event, Lease, NewRun, SqliteStore};
use crate::domain::RunId;
use crate::journal::ArchivedEntry;
use crate::journal::database::{Bound, Columns as _, Database as _, Failure, Statement};
use crate::journal::reads::BY_KEY;
use crate::journal::rows::{self, Change};
use crate::journal::writes::{self, Head};

/// The most entries of one transaction, if no single append has more.
const MAX_ENTRIES: usize = 256;

/// Reads the fence of each event: the head of its run if the lease is valid, and whether the run has
/// its key. `$1`: a list of run, key, epoch, owner and time of each event.
const FENCES: &str = "
    SELECT cancel_requested, head_seq, head_hash, entries.key AS known FROM json_each($1) AS new
    LEFT JOIN runs ON runs.id = new.value ->> 0 AND runs.epoch = new.value ->> 2 AND runs.owner = new.value ->> 3
                      AND runs.state = 'running' AND runs.lease_until_ms >= new.value ->> 4
    LEFT JOIN entries ON entries.run = new.value ->> 0 AND entries.key = new.value ->> 1
    ORDER BY new.key";

/// Updates the rows of the runs. `?1`: a list of run, sequence number, hash and spent amount.
const HEADS: &str = "
    UPDATE runs SET head_seq = new.value ->> 1, head_hash = new.value ->> 2,
                    spent_nanos = spent_nanos + (new.value ->> 3)
    FROM json_each(?1) AS new WHERE runs.id = new.value ->> 0;";

/// What waits to be written, and the lock of the one that writes.
#[derive(Clone, Default)]
pub(super) struct Batch(Arc<Inner>);

#[derive(Default)]
struct Inner {
    waiting: Mutex<VecDeque<Waiting>>,
    turn: tokio::sync::Mutex<()>,
    /// Acceptances. The task of a client that disconnects is dropped, and it may be writing for
    /// others.
    tasks: TaskTracker,
}

struct Waiting {
    work: Arc<Work>,
    done: oneshot::Sender<Result<i64, Error>>,
}

/// What is to be written. The result is a number.
enum Work {
    /// The result is the last sequence number.
    Append(Append),
    /// A run that depends on no other. The result is 1, or 0 if another run has its key.
    Accept(Box<NewRun>),
    /// Claims one run. The result is the epoch, or 0 if there is nothing to claim.
    Claim {
        run: RunId,
        owner: String,
        values: Vec<Bound>,
        at: Timestamp,
    },
}

struct Append {
    lease: Lease,
    at: Timestamp,
    events: Vec<Event>,
    /// The events as JSON text.
    bodies: Vec<String>,
}

impl Work {
    /// Returns the number of entries that are written at most.
    fn entries(&self) -> usize {
        match self {
            Work::Append(append) => append.events.len(),
            Work::Accept(_) | Work::Claim { .. } => 1,
        }
    }
}

impl Batch {
    /// Writes the events in one transaction, alone or with other appends.
    pub async fn append(
        &self,
        lease: &Lease,
        at: Timestamp,
        events: &[Event],
        writer: &Writer,
    ) -> Result<i64, Error> {
        let append = Append {
            lease: lease.clone(),
            at,
            events: events.to_vec(),
            bodies: events.iter().map(rows::body).collect::<Result<_, _>>()?,
        };
        self.write(Work::Append(append), writer).await
    }

    /// Accepts a run that depends on no other, within no limit. Returns false if another run has its
    /// key.
    pub async fn accept(&self, run: &NewRun, writer: &Writer) -> Result<bool, Error> {
        let (batch, writer) = (self.clone(), writer.clone());
        let work = Work::Accept(Box::new(run.clone()));
        let accepting = async move { batch.write(work, &writer).await };
        let written = self.0.tasks.spawn(accepting.in_current_span()).await;
        let broken_off = |_| Error::Unavailable("the write was broken off".into());
        Ok(written.map_err(broken_off)?? > 0)
    }

    /// Claims one run, as [`writes::claim`] does. `values` are those of the statement.
    pub async fn claim(
        &self,
        run: RunId,
        owner: &str,
        values: Vec<Bound>,
        at: Timestamp,
        writer: &Writer,
    ) -> Result<Option<Lease>, Error> {
        let owner = owner.to_owned();
        let claim = Work::Claim {
            run,
            owner: owner.clone(),
            values,
            at,
        };
        let epoch = self.write(claim, writer).await?;
        Ok((epoch > 0).then_some(Lease { run, owner, epoch }))
    }

    /// Writes in one transaction, alone or with others.
    async fn write(&self, work: Work, writer: &Writer) -> Result<i64, Error> {
        let work = Arc::new(work);
        loop {
            let (done, mut result) = oneshot::channel();
            self.waiting().push_back(Waiting {
                work: Arc::clone(&work),
                done,
            });
            let _turn = tokio::select! {
                biased;
                written = &mut result => match written {
                    Ok(written) => return written,
                    // The task that wrote this was dropped, so the result is unknown. Trying again
                    // is safe: what the journal has is not written twice.
                    Err(_) => continue,
                },
                turn = self.0.turn.lock() => turn,
            };
            loop {
                // Another append may have written this one before it got the lock.
                if let Ok(written) = result.try_recv() {
                    return written;
                }
                let batch = self.next();
                if batch.is_empty() {
                    break;
                }
                write(batch, writer).await;
            }
        }
    }

    /// Takes the appends of the next transaction from the queue.
    fn next(&self) -> Vec<Waiting> {
        let (mut waiting, mut entries) = (self.waiting(), 0);
        let mut batch: Vec<Waiting> = vec![];
        while let Some(next) = waiting.pop_front() {
            if next.done.is_closed() {
                continue;
            }
            entries += next.work.entries();
            if entries > MAX_ENTRIES && !batch.is_empty() {
                waiting.push_front(next);
                break;
            }
            batch.push(next);
        }
        batch
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a batch. Each append is written completely or not at all; if the commit fails, none is
/// written.
async fn write(batch: Vec<Waiting>, writer: &Writer) {
    match written(&batch, writer).await {
        Ok(results) => {
            for (waiting, result) in batch.into_iter().zip(results) {
                // If the receiver is gone, its caller was dropped.
                let _ = waiting.done.send(result);
            }
        }
        Err(failure) => refuse(batch, &failure.into()),
    }
}

/// Returns the result of each part of the batch, once all are committed. The outer error is an error of the
/// database; an inner one concerns only its part.
async fn written(batch: &[Waiting], writer: &Writer) -> Result<Vec<Result<i64, Error>>, Failure> {
    let (mut open, fences) = writer
        .begin_and_read(FENCES, vec![wanted(batch).into()])
        .await?;
    let written = plan_and_commit(batch, &fences, &mut open).await;
    open.end(written.is_ok()).await;
    written
}

/// Returns the parameter of [`FENCES`].
fn wanted(batch: &[Waiting]) -> String {
    let appends = batch.iter().filter_map(|waiting| match &*waiting.work {
        Work::Append(append) => Some(append),
        Work::Accept(_) | Work::Claim { .. } => None,
    });
    let events = appends.flat_map(|append| {
        let Lease { run, owner, epoch } = &append.lease;
        let (run, at) = (run.to_string(), append.at.as_millisecond());
        let of = move |event: &Event| json!([run, event.key(), epoch, owner, at]);
        append.events.iter().map(of)
    });
    serde_json::Value::Array(events.collect()).to_string()
}

/// What a transaction writes.
#[derive(Default)]
struct Writes {
    entries: Vec<(RunId, ArchivedEntry)>,
    /// The new head of each run, and what its calls cost.
    heads: BTreeMap<String, (Head, i64)>,
    /// What events change besides the journal and the head.
    changes: Vec<Statement>,
    /// The keys of the entries.
    keys: BTreeSet<(RunId, String)>,
    /// The runs that are claimed. Earlier leases of them are lost.
    claimed: BTreeSet<RunId>,
}

/// Computes the entries from the fences, one for each event of an append, and writes all.
async fn plan_and_commit(
    batch: &[Waiting],
    fences: &[SqliteRow],
    open: &mut Open,
) -> Result<Vec<Result<i64, Error>>, Failure> {
    let (mut writes, mut results) = (Writes::default(), vec![]);
    let mut fences = fences.iter();
    for waiting in batch {
        results.push(match &*waiting.work {
            Work::Append(append) => {
                let own: Vec<&SqliteRow> = fences.by_ref().take(append.events.len()).collect();
                match fenced(&own, append)? {
                    Ok(_) if writes.claimed.contains(&append.lease.run) => Err(Error::LeaseLost),
                    Ok(head) => Ok(add(&mut writes, append, &own, head)?),
                    Err(refused) => Err(refused),
                }
            }
            Work::Accept(run) => Ok(accept(&mut writes, run, open).await?),
            Work::Claim {
                run,
                owner,
                values,
                at,
            } => {
                // Its lease was valid when the fences were read. The claim is tried again later.
                if writes.heads.contains_key(&run.to_string()) {
                    results.push(Ok(0));
                    continue;
                }
                let row = open.row(SqliteStore::CLAIM, values.clone()).await?;
                let claimed = row.map(|row| claim(&mut writes, &row, (*run, owner), *at));
                Ok(claimed.transpose()?.unwrap_or(0))
            }
        });
    }
    commit(open, writes).await?;
    Ok(results)
}

/// Adds the first entry of a run and inserts its row. Returns 0 if another run has its key.
async fn accept(writes: &mut Writes, run: &NewRun, open: &mut Open) -> Result<i64, Failure> {
    if let Some(key) = &run.idempotency_key
        && open.row(BY_KEY, vec![key.as_str().into()]).await?.is_some()
    {
        return Ok(0);
    }
    open.change(writes::insert_run(run)).await?;
    let accepted = Event::Accepted(Box::new(run.accepted.clone()));
    let (seq, prev) = writes::genesis();
    writes.push(run.id, rows::line(run.id, run.at, &accepted, seq, &prev)?);
    Ok(1)
}

/// Adds the entry of a claim. Returns its epoch.
fn claim(
    writes: &mut Writes,
    row: &SqliteRow,
    (run, owner): (RunId, &str),
    at: Timestamp,
) -> Result<i64, Error> {
    let lease = Lease {
        run,
        owner: owner.to_owned(),
        epoch: row.whole("epoch")?,
    };
    let (seq, prev) = (row.whole("head_seq")?, row.text("head_hash")?);
    let line = rows::line(run, at, &writes::claim_event(&lease), seq, &prev)?;
    writes.push(run, line);
    writes.claimed.insert(run);
    Ok(lease.epoch)
}

impl Writes {
    /// Adds the only entry of a run.
    fn push(&mut self, run: RunId, line: ArchivedEntry) {
        let head = (line.seq, line.hash.clone());
        self.heads.insert(run.to_string(), (head, 0));
        self.entries.push((run, line));
    }
}

/// Returns the head of the run if the lease may append. The inner error says that it may not.
fn fenced(fences: &[&SqliteRow], append: &Append) -> Result<Result<Head, Error>, Error> {
    // An append without events has no fence, and is refused.
    let Some(fence) = fences.first() else {
        return Ok(Err(Error::LeaseLost));
    };
    let Some(cancel_requested) = fence.whole_or_null("cancel_requested")? else {
        return Ok(Err(Error::LeaseLost));
    };
    if cancel_requested != 0 && writes::needs_consent(&append.events) {
        return Ok(Err(Error::CancelRequested));
    }
    Ok(Ok((fence.whole("head_seq")?, fence.text("head_hash")?)))
}

/// Adds the entries of one append. Returns the last sequence number.
fn add(
    writes: &mut Writes,
    append: &Append,
    fences: &[&SqliteRow],
    head: Head,
) -> Result<i64, Error> {
    let (run, at) = (append.lease.run, append.at);
    let id = run.to_string();
    // An earlier append of this transaction may have moved the head.
    let ((mut seq, mut prev), mut spent) = writes.heads.get(&id).cloned().unwrap_or((head, 0));
    for ((event, body), fence) in append.events.iter().zip(&append.bodies).zip(fences) {
        let known = fence.text_or_null("known")?.is_some();
        if known || !writes.keys.insert((run, event.key())) {
            continue;
        }
        let line = rows::chained(run, at, event.key(), body.clone(), seq, &prev);
        (seq, prev) = (line.seq, line.hash.clone());
        writes.entries.push((run, line));
        match rows::change(event) {
            Some(Change::Spent(nanos)) => spent += nanos,
            _ => writes.changes.extend(writes::project(&id, at, event)),
        }
    }
    writes.heads.insert(id, ((seq, prev), spent));
    Ok(seq)
}

/// Writes and commits.
async fn commit(open: &mut Open, writes: Writes) -> Result<(), Failure> {
    for change in writes.changes {
        open.change(change).await?;
    }
    let heads = writes.heads.into_iter();
    let heads = heads.map(|(id, ((seq, hash), spent))| json!([id, seq, hash, spent]));
    let mut values: Vec<Bound> = vec![serde_json::Value::Array(heads.collect()).to_string().into()];
    let rows = writes.entries.len().next_power_of_two();
    for (run, line) in writes.entries {
        values.extend([
            run.to_string().into(),
            line.seq.into(),
            line.at_ms.into(),
            line.key.into(),
            line.body.into(),
            line.prev.into(),
            Bound::from(line.hash),
        ]);
    }
    open.finish(script(rows), values).await?;
    Ok(())
}

/// Returns the statements that write so many entries and commit. Rows without values are left out,
/// so that few different scripts serve all numbers of entries.
fn script(rows: usize) -> String {
    let row = |n: usize| {
        let first = 2 + 7 * n;
        let parameters: Vec<String> = (first..first + 7).map(|n| format!("?{n}")).collect();
        format!("({})", parameters.join(","))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!(
        "INSERT INTO entries (run, seq, at_ms, key, body, prev, hash)
         SELECT * FROM (VALUES {}) WHERE column1 IS NOT NULL;{HEADS}COMMIT",
        rows.join(",")
    )
}

fn refuse(batch: Vec<Waiting>, error: &Error) {
    let text = match error {
        Error::Unavailable(text) => text.clone(),
        other => other.to_string(),
    };
    for waiting in batch {
        let _ = waiting.done.send(Err(Error::Unavailable(text.clone())));
    }
}
