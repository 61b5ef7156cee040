//! News of runs, inside this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};

use crate::domain::RunId;

/// Tells readers of a run's journal that it has new entries. A hint only: readers poll as well.
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
    /// News that this process has made.
    pub fn up(&self, run: RunId) {
        let _ = self.own.send(run);
        self.pass_on(run);
    }

    /// News from another process.
    pub fn pass_on(&self, run: RunId) {
        if let Some(sender) = self.senders().get(&run) {
            let _ = sender.send(());
        }
    }

    /// One run's wake-ups, from now on.
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

    /// Only what this process has made: what others have to be told.
    pub fn own(&self) -> broadcast::Receiver<RunId> {
        self.own.subscribe()
    }

    fn senders(&self) -> MutexGuard<'_, BTreeMap<RunId, watch::Sender<()>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears of one run.
#[derive(Debug)]
pub struct Listener {
    run: RunId,
    news: watch::Receiver<()>,
    wake: Wake,
}

impl Listener {
    /// Returns when there was a wake-up since the last one that was heard.
    pub async fn notified(&mut self) {
        // The sender lives as long as its last listener.
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
