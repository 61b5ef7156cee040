//! When runs begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::limit::Limit;

/// The calls that a run makes at once when it begins: the plan, and the core agents beside it.
const CALLS_AT_ONCE: usize = 4;

/// Lets runs begin as fast as the models take their calls. Runs that have begun come first: while
/// their calls wait, no other run begins.
pub struct RunSlots {
    /// The model of a run's first call, and its fallbacks. Without one, every run may begin.
    first: Vec<Arc<Limit>>,
    others: Vec<Arc<Limit>>,
    changed: Arc<Notify>,
    /// The run that waits in front. The others wait for its lock, in their order.
    front: tokio::sync::Mutex<()>,
    /// Runs whose first call has not ended.
    starting: AtomicUsize,
}

/// The permission for a run to begin. It is dropped when the run's first call has ended.
pub struct RunSlot(Arc<RunSlots>);

impl RunSlots {
    pub(super) fn new(
        first: Vec<Arc<Limit>>,
        others: Vec<Arc<Limit>>,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            first,
            others,
            changed,
            front: tokio::sync::Mutex::default(),
            starting: AtomicUsize::new(0),
        }
    }

    /// Waits until the run may begin. Runs begin in the order in which they ask.
    pub async fn acquire(self: &Arc<Self>) -> RunSlot {
        let _front = self.front.lock().await;
        while !self.is_free() {
            self.changed.notified().await;
        }
        self.take()
    }

    /// Returns the permission if the run may begin at once.
    pub fn try_acquire(self: &Arc<Self>) -> Option<RunSlot> {
        let _front = self.front.try_lock().ok()?;
        self.is_free().then(|| self.take())
    }

    fn take(self: &Arc<Self>) -> RunSlot {
        self.starting.fetch_add(1, Ordering::Relaxed);
        RunSlot(Arc::clone(self))
    }

    /// True if a run may begin:
    ///
    /// - A model of the first call may get another call, and no call waits for it.
    /// - The limits suffice for the calls of all runs that are beginning. One at a time may always begin.
    /// - Few calls wait for each other model.
    fn is_free(&self) -> bool {
        if self.first.is_empty() {
            return true;
        }
        let starting = self.starting.load(Ordering::Relaxed);
        let first = self.first.iter().map(|limit| limit.load());
        let (mut limits, mut is_available) = (0, false);
        for load in first {
            limits += load.limit;
            is_available |= load.waiting == 0 && load.in_flight < load.limit && load.free > 0;
        }
        let mut others = self.others.iter().map(|limit| limit.load());
        let suffices = starting == 0 || (starting + 1) * CALLS_AT_ONCE <= limits;
        is_available && suffices && others.all(|load| load.waiting <= load.limit / CALLS_AT_ONCE)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}
