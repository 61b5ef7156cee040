//! When runs begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::limit::Limit;

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

    /// True if a model of the first call has a free place and no call waits for it, and if no more
    /// calls wait for each other model than it takes at once.
    fn is_free(&self) -> bool {
        if self.first.is_empty() {
            return true;
        }
        let starting = self.starting.load(Ordering::Relaxed);
        let first = self.first.iter().map(|limit| limit.load());
        let (mut places, mut has_place) = (0, false);
        for load in first {
            places += load.limit;
            has_place |= load.waiting == 0 && load.in_flight < load.limit && load.free > 0;
        }
        let mut others = self.others.iter().map(|limit| limit.load());
        has_place && starting < places && others.all(|load| load.waiting <= load.limit)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use futures_util::future::join_all;
    use tokio::time::{Instant, sleep};

    use crate::llm::{ChatModel, ChatReply, ChatRequest, Error, Registry};

    use super::*;

    /// Answers after two seconds.
    struct Slow;

    #[async_trait]
    impl ChatModel for Slow {
        async fn chat(&self, _: &ChatRequest) -> Result<ChatReply, Error> {
            sleep(Duration::from_secs(2)).await;
            Ok(ChatReply::sample(""))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn runs_begin_while_the_provider_has_free_places_and_those_that_have_begun_come_first() {
        let mut registry = Registry::default();
        registry.insert("p", Arc::new(Slow), 2);
        let slots = Arc::new(registry.run_slots([("p", "m")], [("p", "m"), ("q", "m")]));
        let model = registry.model("p").unwrap();
        let (first, second) = (slots.try_acquire().unwrap(), slots.try_acquire().unwrap());
        assert!(
            slots.try_acquire().is_none(),
            "two runs make their first call"
        );
        let request = ChatRequest {
            timeout: Duration::from_secs(1000),
            ..ChatRequest::sample()
        };
        drop((first, second));
        let later = async {
            sleep(Duration::from_millis(1)).await;
            assert!(slots.try_acquire().is_none(), "a call waits");
            let begun = Instant::now();
            drop(slots.acquire().await);
            begun.elapsed()
        };
        let calls = join_all((0..5).map(|_| model.chat(&request)));
        let (_, waited) = tokio::join!(calls, later);
        assert_eq!(waited.as_secs(), 3, "the fifth call began after two others");
    }
}
