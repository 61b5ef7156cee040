//! Watches the database. The log has one line when an outage begins and one when it ends, instead of
//! one for each run that meets the outage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::journal::Store;

/// Checks again and again, after each `pause`, whether runs could be accepted. Does not return.
pub(super) async fn watch(store: &dyn Store, is_lost: &AtomicBool, pause: Duration) {
    let mut lost = None;
    loop {
        match (store.ready().await, lost) {
            (Err(error), None) => {
                lost = Some(Instant::now());
                is_lost.store(true, Ordering::Relaxed);
                tracing::error!(%error, "the database is unavailable");
            }
            (Ok(()), Some(since)) => {
                let seconds = Instant::now().duration_since(since).as_secs();
                lost = None;
                is_lost.store(false, Ordering::Relaxed);
                tracing::warn!(seconds, "the database is available again");
            }
            (Err(_), Some(_)) | (Ok(()), None) => {}
        }
        tokio::time::sleep(pause).await;
    }
}
