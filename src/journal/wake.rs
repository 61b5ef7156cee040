//! Notifies readers in this process of new journal entries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};

use crate::domain::RunId;

/// Publishes which runs have new entries. Only a hint: readers poll as well.
#[derive(Debug, Clone)]
pub struct Wake {
    listeners: Arc<Mutex<BTreeMap<RunId, watch::Sender<()>>>>,
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
    /// Notifies the listeners of a run that this process has written to.
    pub fn up(&self, run: RunId) {
        let _ = self.own.send(run);
        self.pass_on(run);
    }

    /// Notifies the listeners of a run that another process has written to.
    pub fn pass_on(&self, run: RunId) {
        if let Some(sender) = self.senders().get(&run) {
            let _ = sender.send(());
        }
    }

    /// Subscribes to the notifications of one run, from now on.
    pub fn listen(&self, run: RunId) -> Listener {
        let news = self
            .senders()
            .entry(run)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe();
        Listener {
            run,
            news,
            wake: self.clone(),
        }
    }

    /// Subscribes to the runs that this process has written to, so that other processes can be
    /// notified.
    pub fn own(&self) -> broadcast::Receiver<RunId> {
        self.own.subscribe()
    }

    fn senders(&self) -> MutexGuard<'_, BTreeMap<RunId, watch::Sender<()>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription to one run.
#[derive(Debug)]
pub struct Listener {
    run: RunId,
    news: watch::Receiver<()>,
    wake: Wake,
}

impl Listener {
    /// Waits until there is a notification after the last one that was received.
    pub async fn notified(&mut self) {
        // The sender lives as long as its last listener, so this cannot fail.
        let _ = self.news.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut senders = self.wake.senders();
        self.news = watch::Sender::new(()).subscribe();
        if senders
            .get(&self.run)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            senders.remove(&self.run);
        }
    }
}
