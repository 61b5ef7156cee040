//! CPU-heavy pieces of a run, and the notice of those that take long.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tracing::Instrument as _;

use super::{RunContext, Stop};
use crate::compute::{Isolation, Place, attributed};
use crate::journal::{ComputeStarted, Event};

/// Pause before a CPU-heavy piece, for each process that ended in one. The pause makes it unlikely
/// that a kill from outside falls into a piece and is blamed on the run.
const PAUSE_PER_DEATH: Duration = Duration::from_secs(2);

/// A piece takes milliseconds. Only one that takes longer than this is recorded, so that kills from
/// outside at random moments, also in quick succession, are not attributed to the run.
const LONG_PIECE: Duration = Duration::from_secs(1);

/// The most bytes of all texts of a run whose pieces are short. The routines are linear, so such a
/// piece takes less time than its hand-over to another thread.
const MAX_SHORT_BYTES: usize = 16 * 1024;

/// A piece of a resumed run, from its start to its end.
struct Announced<'a> {
    /// Records the start of the piece if it takes longer than [`LONG_PIECE`].
    notice: AbortHandle,
    _isolation: Option<Isolation>,
    _alone: tokio::sync::MutexGuard<'a, ()>,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.notice.abort();
    }
}

impl RunContext {
    /// Runs a CPU-heavy piece of work off the async workers. A resumed run without progress records
    /// that it is in a piece once the piece takes long: see [`RunContext::deaths`].
    ///
    /// # Errors
    /// [`Stop`] if the database fails, the lease is lost or the run has ended.
    pub async fn compute<T>(
        &self,
        piece: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Stop> {
        drop(self.open_state()?);
        // The piece may take long, or end the process.
        self.start_flush();
        let (place, _announced) = self.announce(piece).await?;
        Ok(place.run_for(self.lease.run, work))
    }

    /// As [`RunContext::compute`], for a piece whose time depends only on the run's texts. If they are
    /// short, the piece runs on the worker. A resumed run without progress is suspected of having
    /// ended its process, and a run that continues others has their texts too.
    ///
    /// # Errors
    /// As [`RunContext::compute`].
    pub async fn compute_text<T>(
        &self,
        piece: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Stop> {
        let is_short = {
            let state = self.state();
            !state.closed && state.resumed.is_none() && state.text_bytes <= MAX_SHORT_BYTES
        };
        if is_short && self.accepted.continues.is_none() {
            return Ok(attributed(self.lease.run, work));
        }
        self.compute(piece, work).await
    }

    async fn announce(&self, piece: &str) -> Result<(Place, Option<Announced<'_>>), Stop> {
        let deaths = self
            .state()
            .resumed
            .as_ref()
            .map(|resumed| resumed.deaths.count);
        let isolation = match deaths {
            None => return Ok((self.compute.place().await, None)),
            Some(0) => None,
            Some(deaths) => {
                tokio::time::sleep(PAUSE_PER_DEATH * deaths).await;
                // With isolation, of two suspected runs only the one at fault is in a piece when
                // the process ends.
                Some(self.compute.isolated().await)
            }
        };
        // A process that is killed while the piece waits for its place has not ended in it.
        let place = self.compute.place().await;
        let alone = self.alone.lock().await;
        let Some(number) = self.state().resumed.as_mut().map(|resumed| {
            resumed.pieces += 1;
            resumed.pieces
        }) else {
            return Ok((place, None));
        };
        let started = Event::ComputeStarted(ComputeStarted {
            epoch: self.lease.epoch,
            number,
            piece: piece.to_owned(),
        });
        let notice = self.write_after(LONG_PIECE, started)?;
        Ok((
            place,
            Some(Announced {
                notice,
                _isolation: isolation,
                _alone: alone,
            }),
        ))
    }

    /// Writes an event once `delay` has passed, in a task of its own: the worker of this one may be in
    /// the piece then.
    fn write_after(&self, delay: Duration, event: Event) -> Result<AbortHandle, Stop> {
        let mut state = self.open_state()?;
        state.unconfirmed += 1;
        let (store, lease, clock) = (
            Arc::clone(&self.store),
            self.lease.clone(),
            self.clock.clone(),
        );
        let write = async move {
            tokio::time::sleep(delay).await;
            if let Err(error) = store.append(&lease, clock.now(), &[&event]).await {
                tracing::warn!(%error, "the start of a long piece was not recorded");
            }
        };
        Ok(self.writes.spawn(write.in_current_span()).abort_handle())
    }
}
