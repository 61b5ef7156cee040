//! Notifies readers in this process of new journal entries, and hands them the end of a run that is
//! executed here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};

use super::Finished;
use crate::domain::RunId;

/// What listeners know of a run.
#[derive(Debug, Clone, Default)]
struct RunUpdate {
    /// Incremented if only the database can update what is new.
    unread: u64,
    /// The run's end, if this process has written it.
    finished: Option<Arc<Finished>>,
}

/// Publishes which runs have new entries. Only a hint: readers poll as well.
#[derive(Debug, Clone)]
pub struct Wake {
    listeners: Arc<Mutex<BTreeMap<RunId, watch::Sender<RunUpdate>>>>,
    own: broadcast::Sender<RunId>,
}

impl Default for Wake {
    fn default() -> Self {
        Self {
            listeners: Arc::default(),
            own: broadcast::Sender::new(1024),
        }
    }
}

impl Wake {
    /// Notifies the listeners of a run whose row this process has changed.
    pub fn up(&self, run: RunId) {
        let _ = self.own.send(run);
        self.notify_local(run);
    }

    /// Notifies the listeners of a run in progress that this process has written entries.
    pub(super) fn written(&self, run: RunId) {
        let _ = self.own.send(run);
        self.update(run, |_| {});
    }

    /// Notifies the listeners of a run whose end this process has written.
    pub(super) fn finished(&self, run: RunId, finished: Finished) {
        let _ = self.own.send(run);
        self.update(run, |update| update.finished = Some(Arc::new(finished)));
    }

    /// Notifies the listeners of a run that another process has written to.
    pub fn notify_local(&self, run: RunId) {
        self.update(run, |update| update.unread = update.unread.wrapping_add(1));
    }

    fn update(&self, run: RunId, change: impl FnOnce(&mut RunUpdate)) {
        if let Some(sender) = self.senders().get(&run) {
            sender.send_modify(change);
        }
    }

    /// Subscribes to the notifications of one run, from now on.
    pub fn listen(&self, run: RunId) -> Listener {
        let updates = self.senders().entry(run).or_default().subscribe();
        let unread = updates.borrow().unread;
        Listener {
            run,
            updates,
            unread,
            wake: self.clone(),
        }
    }

    /// Subscribes to the runs that this process has written to, so that other processes can be
    /// notified.
    pub fn own(&self) -> broadcast::Receiver<RunId> {
        self.own.subscribe()
    }

    fn senders(&self) -> MutexGuard<'_, BTreeMap<RunId, watch::Sender<RunUpdate>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription to one run.
#[derive(Debug)]
pub struct Listener {
    run: RunId,
    updates: watch::Receiver<RunUpdate>,
    /// What [`Listener::end`] returned last.
    unread: u64,
    wake: Wake,
}

impl Listener {
    /// Waits until there is a notification after the last one that was received.
    pub async fn notified(&mut self) {
        // The sender lives as long as its last listener, so this cannot fail.
        let _ = self.updates.changed().await;
    }

    /// Waits for the end of the run. Returns `None` if the database must be read to know more.
    pub async fn end(&mut self) -> Option<Arc<Finished>> {
        let is_newer =
            |update: &RunUpdate| update.finished.is_some() || update.unread != self.unread;
        let update = self.updates.wait_for(is_newer).await.ok()?;
        self.unread = update.unread;
        update.finished.clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut senders = self.wake.senders();
        self.updates = watch::Sender::default().subscribe();
        if senders
            .get(&self.run)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            senders.remove(&self.run);
        }
    }
}
