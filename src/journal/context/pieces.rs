//! CPU-heavy pieces of a run.

use super::{RunContext, Stop};
use crate::compute::attributed;

/// The most bytes of a run's texts for which a piece runs on the worker. The routines are linear, so
/// such a piece takes less time than its hand-over to another thread.
const MAX_SHORT_BYTES: usize = 16 * 1024;

impl RunContext {
    /// Runs a CPU-heavy piece of work off the async workers.
    ///
    /// # Errors
    /// [`Stop::Lost`] if the lease is lost or the run has ended.
    pub async fn compute<T>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Stop> {
        drop(self.open_state()?);
        // The piece may take long, or end the process.
        self.start_flush();
        Ok(self
            .process
            .compute
            .place()
            .await
            .run_for(self.lease.run, work))
    }

    /// As [`RunContext::compute`], for a piece whose time depends only on the run's texts. If they are
    /// short, the piece runs on the worker. A run that continues others has their texts too.
    ///
    /// # Errors
    /// As [`RunContext::compute`].
    pub async fn compute_text<T>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Stop> {
        let is_short = {
            let state = self.state();
            !state.closed && state.text_bytes <= MAX_SHORT_BYTES
        };
        if is_short && self.accepted.continues.is_none() {
            return Ok(attributed(self.lease.run, work));
        }
        self.compute(work).await
    }
}
