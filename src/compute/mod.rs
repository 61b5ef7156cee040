//! Runs CPU-heavy pieces of work without delaying other tasks.
//!
//! The text of models and users is parsed, scored and rendered here. A piece may take seconds.
//! Requests, deadlines, cancellations and signals are served meanwhile.

mod crashes;

use std::sync::Arc;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::RunId;

pub use crashes::{Crashes, attributed};

/// Minimum number of concurrent pieces, so that one long piece does not block all others.
const MIN_PIECES: usize = 2;

/// Runs one piece per core at a time, and at least two. Clones share the limit.
#[derive(Debug, Clone)]
pub struct ComputePool {
    permits: Arc<Semaphore>,
    crashes: Arc<Crashes>,
}

impl Default for ComputePool {
    fn default() -> Self {
        let cores = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .max(MIN_PIECES);
        Self {
            permits: Arc::new(Semaphore::new(cores)),
            crashes: Arc::default(),
        }
    }
}

impl ComputePool {
    /// Returns a pool that knows the crashes of earlier processes.
    pub fn after(crashes: Crashes) -> Self {
        Self {
            crashes: Arc::new(crashes),
            ..Self::default()
        }
    }

    /// Returns how many earlier processes a run crashed.
    pub fn crashes(&self, run: RunId) -> u32 {
        self.crashes.of(run)
    }

    /// Runs a piece in this task, after moving the worker's other tasks to another thread. A
    /// single-threaded runtime, as in tests, runs the piece directly.
    ///
    /// A task can be aborted only at an await. A piece that has begun is not interrupted; its
    /// result is dropped.
    pub async fn run<T>(&self, piece: impl FnOnce() -> T + Send) -> T {
        self.place().await.run(piece)
    }

    /// Waits for a place in which a piece can run at once.
    pub async fn place(&self) -> Place {
        // The semaphore is never closed; without a permit the piece runs all the same.
        Place {
            _permit: Arc::clone(&self.permits).acquire_owned().await.ok(),
        }
    }
}

/// A place in the pool, free again once this is dropped.
pub struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Runs a piece of a run. A crash of the process in it is noted as one of this run.
    pub fn run_for<T>(self, run: RunId, piece: impl FnOnce() -> T + Send) -> T {
        self.run(|| crashes::attributed(run, piece))
    }

    /// Runs a piece as [`ComputePool::run`] does.
    pub fn run<T>(self, piece: impl FnOnce() -> T + Send) -> T {
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => piece(),
            _ => tokio::task::block_in_place(piece),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_runtime_of_one_worker_serves_others_while_a_piece_runs() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let (release, released) = mpsc::channel();
        let piece =
            runtime.spawn(async move { ComputePool::default().run(move || released.recv()).await });
        // The only worker runs the piece, and another task ends it.
        runtime
            .block_on(runtime.spawn(async move { release.send(7).unwrap() }))
            .unwrap();
        assert_eq!(runtime.block_on(piece).unwrap(), Ok(7));
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}
