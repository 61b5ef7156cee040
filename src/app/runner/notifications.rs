//! Notifications of runs between the processes on one database. They are only hints: a missed one is
//! found by polling, at the latest when a lease is renewed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::broadcast::error::RecvError;

use super::{POLL, Runner};
use crate::domain::RunId;

/// How long notifications are collected before they are published together.
const BATCH_WINDOW: Duration = Duration::from_millis(20);

impl Runner {
    /// Exchanges notifications with the other processes until the service has drained.
    pub fn keep_in_touch(&self) {
        let runner = self.clone();
        self.0.readers.spawn(async move {
            let drained = async {
                runner.0.draining.cancelled().await;
                runner.0.tasks.wait().await;
            };
            tokio::select! {
                () = drained => {}
                () = runner.publish_loop() => {}
                () = runner.subscribe_loop() => {}
            }
        });
    }

    async fn publish_loop(&self) {
        let mut own = self.0.process.wake.own();
        loop {
            let mut runs = BTreeSet::new();
            match own.recv().await {
                Ok(run) => runs.insert(run),
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            tokio::time::sleep(BATCH_WINDOW).await;
            while let Ok(run) = own.try_recv() {
                runs.insert(run);
            }
            if let Err(error) = self.0.process.store.announce(&Vec::from_iter(runs)).await {
                tracing::debug!(%error, "notifying other processes failed");
            }
        }
    }

    async fn subscribe_loop(&self) {
        loop {
            match self.0.process.store.notifications().await {
                Ok(mut news) => {
                    while let Some(run) = news.next().await {
                        self.notified(run).await;
                    }
                    tracing::debug!("notifications of other processes ended");
                }
                Err(error) => {
                    tracing::debug!(%error, "notifications of other processes are unavailable");
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Handles another process's notification of a run: wakes its waiters. If the run executes here
    /// and was cancelled, stops it.
    async fn notified(&self, run: RunId) {
        self.0.process.wake.notify_local(run);
        let token = self.own().get(&run).map(|own| own.cancel.clone());
        if let Some(token) = token
            && let Ok(Some(row)) = self.0.process.store.run(run).await
            && row.cancel_requested
        {
            token.cancel();
        }
    }
}
