//! Group commit: appends of several runs that arrive during one transaction share the next one.
//!
//! A commit waits for the disk, and a run makes about twenty commits. With many runs in flight,
//! separate commits would take all of the service's time. There is no background task: the first
//! waiting append that gets the lock writes for all. An append whose caller was dropped is not
//! written.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use sqlx::{Sqlite, Transaction};
use tokio::sync::oneshot;

use super::writer::Writer;
use super::{Error, Event, Lease, SqliteStore};
use crate::journal::writes;

/// The waiting appends, and the lock of the append that writes.
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
    /// Writes the events in one transaction, alone or with other appends.
    pub async fn append(
        &self,
        lease: &Lease,
        at: Timestamp,
        events: &[Event],
        writer: &Writer,
    ) -> Result<i64, Error> {
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
                    // The task that wrote this append was dropped, so the result is unknown. Trying
                    // again is safe: keys that the journal has are skipped.
                    Err(_) => continue,
                },
                turn = self.turn.lock() => turn,
            };
            // Another append may have written this one before it got the lock.
            if let Ok(written) = result.try_recv() {
                return written;
            }
            self.write(writer.transaction().await).await;
            if let Ok(written) = result.try_recv() {
                return written;
            }
        }
    }

    /// Writes all waiting appends. Each append is written completely or not at all; if the commit
    /// fails, none is written.
    async fn write(&self, begun: Result<Transaction<'_, Sqlite>, sqlx::Error>) {
        let batch: Vec<Waiting> = std::mem::take(&mut *self.waiting());
        let batch: Vec<Waiting> = batch
            .into_iter()
            .filter(|waiting| !waiting.done.is_closed())
            .collect();
        let mut tx = match begun {
            Ok(tx) => tx,
            Err(error) => return refuse(batch, &error.into()),
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
                    // If the receiver is gone, its caller was dropped.
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

/// Writes one append. The outer error is an error of the database and ends the batch; the inner one
/// concerns only this append.
async fn one(
    tx: &mut Transaction<'_, Sqlite>,
    waiting: &Waiting,
) -> Result<Result<i64, Error>, Error> {
    let Waiting {
        lease, at, events, ..
    } = waiting;
    let head = match writes::fenced::<SqliteStore>(tx, lease, *at, events).await? {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    // One event is atomic. Of several, the first may be inserted before the second proves
    // unwritable, so they need a savepoint.
    let several = events.len() > 1;
    if several {
        sqlx::query("SAVEPOINT one").execute(&mut **tx).await?;
    }
    let appended = writes::append(&mut **tx, lease.run, *at, events, head).await;
    let appended = appended.map_err(Error::from);
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
