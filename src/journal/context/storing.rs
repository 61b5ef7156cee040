//! Stores the recorded events of a run: in their order, one write at a time.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::{RunContext, Stop};
use crate::journal::database::RETRY;
use crate::journal::{Error, Event};

/// A write in progress.
type Write = JoinHandle<Result<(), Error>>;

/// How long a recorded event waits for others before it is stored by itself. The results of calls
/// that are made at the same time arrive together, and the intent of the next call soon after: one
/// write holds them all, so the intent does not wait for a write before it.
const GATHER: Duration = Duration::from_millis(5);

impl RunContext {
    /// Stores what is recorded, whenever the task that polls this has nothing else to do. Never
    /// returns. A failed write is attempted again until the lease is lost or the run has ended.
    pub async fn keep_stored(&self) -> Infallible {
        loop {
            self.recorded.notified().await;
            tokio::time::sleep(GATHER).await;
            while let Err(Stop::Store(Error::Unavailable(_))) = self.flush().await {
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Stores everything that is recorded.
    pub(super) async fn flush(&self) -> Result<(), Stop> {
        let turn = Arc::clone(&self.writing).lock_owned().await;
        let Some(write) = self.begin_write(turn)? else {
            return Ok(());
        };
        let written = write.await;
        Ok(written.map_err(|_| Error::Unavailable("the write was broken off".into()))??)
    }

    /// Starts to store what is recorded, unless a write is under way.
    pub(super) fn start_flush(&self) {
        if let Ok(turn) = Arc::clone(&self.writing).try_lock_owned() {
            let _ = self.begin_write(turn);
        }
    }

    /// Starts a write of all recorded events, unless the context is closed. `None` if there are
    /// none. The state lock covers both steps, so that [`RunContext::close`] waits for every write.
    fn begin_write(&self, turn: OwnedMutexGuard<()>) -> Result<Option<Write>, Stop> {
        let mut state = self.open_state()?;
        let events = std::mem::take(&mut state.unwritten);
        if events.is_empty() {
            return Ok(None);
        }
        state.unconfirmed += 1;
        let write = self.write(events, turn);
        Ok(Some(self.writes.spawn(write.in_current_span())))
    }

    fn write(
        &self,
        events: Vec<Arc<Event>>,
        turn: OwnedMutexGuard<()>,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (store, lease, at) = (
            Arc::clone(&self.process.store),
            self.lease.clone(),
            self.process.clock.now(),
        );
        let (state, observer) = (Arc::clone(&self.state), Arc::clone(&self.observer));
        let wake = self.process.wake.clone();
        async move {
            let _turn = turn;
            let shown: Vec<&Event> = events.iter().map(|event| &**event).collect();
            let stored = store.append(&lease, at, &shown).await;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = stored {
                state.unwritten.splice(0..0, events);
                return Err(error);
            }
            state.unconfirmed = state.unconfirmed.saturating_sub(1);
            for event in &events {
                observer.written(event, &state.seen);
            }
            drop(state);
            wake.written(lease.run);
            Ok(())
        }
    }
}
