//! The runs that this process executes.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::Runner;
use crate::domain::RunId;
use crate::journal::{Accepted, Error, Lease};
use crate::llm::RunSlot;

/// A run that this process has claimed.
pub struct Begun {
    pub lease: Lease,
    pub start: Option<RunSlot>,
    /// Set if the journal has only this and the claim.
    pub accepted: Option<Accepted>,
}

/// A run that this process executes, or waits to execute.
#[derive(Default)]
pub struct Own {
    pub cancel: CancellationToken,
    pub is_held: bool,
}

/// An action that this process works on, until this is dropped.
pub struct OwnAction {
    runner: Runner,
    run: RunId,
    pub cancel: CancellationToken,
}

impl Drop for OwnAction {
    fn drop(&mut self) {
        self.runner.own().remove(&self.run);
        self.runner.0.process.wake.notify_local(self.run);
    }
}

impl Runner {
    /// Lists an action as one that this process works on.
    pub fn own_action(&self, run: RunId) -> OwnAction {
        OwnAction {
            runner: self.clone(),
            run,
            cancel: self.cancellation(run),
        }
    }

    /// Returns why no process can end a run that does not execute here: a write found the database
    /// damaged.
    pub async fn why_stuck(&self, run: RunId) -> Option<Error> {
        if self.holds(run) || !self.0.database_lost.load(Ordering::Relaxed) {
            return None;
        }
        let lost = self.0.process.store.ready().await.err();
        lost.filter(Error::is_damaged)
    }

    pub fn own_runs(&self) -> Vec<RunId> {
        self.own().keys().copied().collect()
    }
}
