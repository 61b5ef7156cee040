//! Group commit: appends of several runs that come while one transaction is being written share the next one.
//!
//! A commit waits for the disk, and a run makes some twenty of them; with many runs in flight that is all a service would
//! do. There is no task behind this: of those who wait, the first to get the turn writes for all. An append that nobody
//! waits for any more is not written.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use sqlx::{Sqlite, Transaction};
use tokio::sync::oneshot;

use super::{Error, Event, Lease, append};

/// The appends that wait, and whose turn it is to write.
#[derive(Default)]
pub(super) struct Batch {
    waiting: Mutex<Vec<Waiting>>,
    turn: tokio::sync::Mutex<()>,
}

struct Waiting {
    lease: Lease,
    at: Timestamp,
    events: Vec<Event>,
    done: oneshot::Sender<Result<i64, Error>>,
}

impl Batch {
    /// Writes the events in one transaction, alone or with others. `begin` opens it.
    pub async fn append<'a, B, F>(
        &self,
        lease: &Lease,
        at: Timestamp,
        events: &[Event],
        begin: B,
    ) -> Result<i64, Error>
    where
        B: Fn() -> F,
        F: Future<Output = Result<Transaction<'a, Sqlite>, Error>>,
    {
        loop {
            let (done, mut result) = oneshot::channel();
            self.waiting().push(Waiting {
                lease: lease.clone(),
                at,
                events: events.to_vec(),
                done,
            });
            let _turn = tokio::select! {
                biased;
                written = &mut result => match written {
                    Ok(written) => return written,
                    // Whoever wrote it was dropped; what the journal has already is not written twice.
                    Err(_) => continue,
                },
                turn = self.turn.lock() => turn,
            };
            // It was written while the turn came round, or is to be written now.
            if let Ok(written) = result.try_recv() {
                return written;
            }
            self.write(begin().await).await;
            if let Ok(written) = result.try_recv() {
                return written;
            }
        }
    }

    /// Writes all that wait. Each append is whole or not there; if the commit fails, none is.
    async fn write(&self, begun: Result<Transaction<'_, Sqlite>, Error>) {
        let batch: Vec<Waiting> = std::mem::take(&mut *self.waiting());
        let batch: Vec<Waiting> = batch
            .into_iter()
            .filter(|waiting| !waiting.done.is_closed())
            .collect();
        let mut tx = match begun {
            Ok(tx) => tx,
            Err(error) => return refuse(batch, &error),
        };
        let mut results = vec![];
        for waiting in &batch {
            match one(&mut tx, waiting).await {
                Ok(result) => results.push(result),
                Err(error) => return refuse(batch, &error),
            }
        }
        match tx.commit().await {
            Ok(()) => {
                for (waiting, result) in batch.into_iter().zip(results) {
                    // Whoever has gone away does not want to know.
                    let _ = waiting.done.send(result);
                }
            }
            Err(error) => refuse(batch, &error.into()),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outer error is the database's, and ends the batch; the inner one is this append's own.
async fn one(
    tx: &mut Transaction<'_, Sqlite>,
    waiting: &Waiting,
) -> Result<Result<i64, Error>, Error> {
    let Waiting {
        lease, at, events, ..
    } = waiting;
    let held: Option<(i64,)> = sqlx::query_as(
        "SELECT cancel_requested FROM runs
         WHERE id = ? AND epoch = ? AND owner = ? AND state = 'running' AND lease_until_ms >= ?",
    )
    .bind(lease.run.to_string())
    .bind(lease.epoch)
    .bind(&lease.owner)
    .bind(at.as_millisecond())
    .fetch_optional(&mut **tx)
    .await?;
    let Some((cancel,)) = held else {
        return Ok(Err(Error::LeaseLost));
    };
    if cancel != 0
        && events
            .iter()
            .any(|event| matches!(event, Event::CallSent(_) | Event::Executed(_)))
    {
        return Ok(Err(Error::CancelRequested));
    }
    // One event is written whole or not at all; of several the first may be there when the second proves unwritable.
    let several = events.len() > 1;
    if several {
        sqlx::query("SAVEPOINT one").execute(&mut **tx).await?;
    }
    let appended = append(tx, lease.run, *at, events).await;
    if let Err(Error::Unavailable(_)) = appended {
        return appended.map(Ok);
    }
    if several {
        let end = if appended.is_ok() {
            "RELEASE one"
        } else {
            "ROLLBACK TO one"
        };
        sqlx::query(end).execute(&mut **tx).await?;
    }
    Ok(appended)
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
