//! How many calls a provider is given at once.
//!
//! The limit adapts by additive increase and multiplicative decrease (AIMD, Chiu and Jain 1989). It
//! begins at the configured maximum. A refusal for the rate, an overload or a timeout halves it.
//! Latency well above what calls of the same kind took before lowers it by a fifth. Each call that
//! ends well while the limit is in use raises it again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::circuit::Outcome;
use super::{ChatReply, ChatRequest, Error};

/// A lowering of the limit: the share of the calls under way that is kept, and the least limit.
struct Lowering {
    share: f64,
    least: f64,
}

/// After a refusal. One run's calls may still be made at once.
const REFUSED: Lowering = Lowering {
    share: 0.5,
    least: 4.0,
};

/// After a timeout and after latency that is too high. With few calls it has another cause.
const TIMED_OUT: Lowering = Lowering {
    share: 0.5,
    least: 16.0,
};
const SLOW: Lowering = Lowering {
    share: 0.8,
    least: 16.0,
};

/// The limit returns from 1 to its maximum within this many round trips.
const ROUND_TRIPS_TO_RECOVER: f64 = 50.0;

/// Calls whose mean latency is compared with earlier calls.
const WINDOW: u32 = 16;

/// Latency is too high if it is this multiple of the usual one, and this much above it. A smaller
/// difference may be this machine's own.
const SLOW_FACTOR: f64 = 2.0;
const SLOW_SECONDS: f64 = 1.0;

/// The usual latency of a kind is the mean of about this many calls.
const REMEMBERED: f64 = 4096.0;

/// The adaptive limit of one provider.
pub(super) struct Limit {
    permits: Semaphore,
    most: usize,
    /// False for a model in this process, whose capacity is known.
    is_adaptive: bool,
    state: Mutex<State>,
    /// Told when a call ends or stops waiting.
    changed: Arc<Notify>,
}

struct State {
    /// At least 1, at most `most`.
    limit: f64,
    in_flight: usize,
    waiting: usize,
    /// Permits that exist beyond the limit. They are removed when their calls end.
    surplus: usize,
    /// Calls that began before this do not lower the limit again.
    lowered: Instant,
    window: Window,
    /// The usual latency, by the kind of call.
    usual: BTreeMap<Kind, Usual>,
}

/// Calls of one kind take about as long: the model, and the order of magnitude of their output.
type Kind = (String, u32);

/// A mean latency in seconds, of this many calls.
#[derive(Default)]
struct Usual {
    calls: f64,
    mean: f64,
}

/// Sums over the calls since the last comparison, in seconds.
#[derive(Default)]
struct Window {
    calls: u32,
    latency: f64,
    usual: f64,
}

/// A provider's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Calls that may be under way at once.
    pub limit: usize,
    pub in_flight: usize,
    pub waiting: usize,
}

impl Limit {
    pub(super) fn new(most: usize, is_adaptive: bool, changed: Arc<Notify>) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let state = State {
            limit: most as f64,
            in_flight: 0,
            waiting: 0,
            surplus: 0,
            lowered: Instant::now(),
            window: Window::default(),
            usual: BTreeMap::new(),
        };
        Self {
            permits: Semaphore::new(most),
            most,
            is_adaptive,
            state: Mutex::new(state),
            changed,
        }
    }

    pub(super) fn load(&self) -> Load {
        let state = self.state();
        Load {
            limit: state.limit as usize,
            in_flight: state.in_flight,
            waiting: state.waiting,
        }
    }

    /// Waits for a place in the order of the calls. `None` if `patience` passes first.
    pub(super) async fn place(&self, patience: Duration) -> Option<Place<'_>> {
        // This is still fair: a released permit goes to the first waiting call, so none is free
        // while calls wait.
        let (permit, asked) = match self.permits.try_acquire() {
            Ok(permit) => (permit, None),
            Err(_) => {
                let asked = Instant::now();
                self.state().waiting += 1;
                let _queued = Queued(self);
                let waited = timeout(patience, self.permits.acquire()).await;
                (waited.ok()?.ok()?, Some(asked))
            }
        };
        self.state().in_flight += 1;
        let begun = Instant::now();
        Some(Place {
            limit: self,
            permit: Some(permit),
            begun,
            waited: asked.map(|asked| begun - asked),
        })
    }

    fn lower(&self, state: &mut State, to: &Lowering) {
        let before = state.limit as usize;
        let used = state.limit.min(state.in_flight as f64);
        state.limit = (used * to.share).max(to.least).min(state.limit);
        state.surplus += before - state.limit as usize;
        state.surplus -= self.permits.forget_permits(state.surplus);
        state.lowered = Instant::now();
        state.window = Window::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for its place.
struct Queued<'a>(&'a Limit);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
        self.0.changed.notify_one();
    }
}

/// The right to make one call.
pub(super) struct Place<'a> {
    limit: &'a Limit,
    permit: Option<SemaphorePermit<'a>>,
    begun: Instant,
    /// How long the call waited, if it did.
    pub(super) waited: Option<Duration>,
}

impl Place<'_> {
    /// Adapts the limit to the result of the call, which the circuit breaker takes as `outcome`.
    pub(super) fn note(
        &self,
        request: &ChatRequest,
        result: &Result<ChatReply, Error>,
        outcome: Outcome,
    ) {
        if !self.limit.is_adaptive {
            return;
        }
        let mut state = self.limit.state();
        match (result, outcome) {
            (Ok(_), _) => {
                let kind = (request.model.clone(), request.max_tokens.max(1).ilog2());
                let is_slow = state.is_slow(kind, self.begun.elapsed());
                if is_slow && self.begun >= state.lowered {
                    self.limit.lower(&mut state, &SLOW);
                } else if state.in_flight + state.waiting >= state.limit as usize {
                    let added = state.raise(self.limit.most);
                    self.limit.permits.add_permits(added);
                }
            }
            (Err(error), Outcome::Failure) if self.begun >= state.lowered => {
                if let Some(lowering) = lowering_after(error) {
                    self.limit.lower(&mut state, lowering);
                }
            }
            (Err(_), _) => {}
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.limit.state();
        state.in_flight -= 1;
        if state.surplus > 0 {
            state.surplus -= 1;
            if let Some(permit) = self.permit.take() {
                permit.forget();
            }
        }
        drop(state);
        self.permit = None;
        self.limit.changed.notify_one();
    }
}

impl State {
    /// Raises the limit a little. Returns how many permits are to be added.
    fn raise(&mut self, most: usize) -> usize {
        let before = self.limit as usize;
        let step = (most as f64 / ROUND_TRIPS_TO_RECOVER).max(1.0);
        self.limit = (self.limit + step / self.limit).min(most as f64);
        let added = self.limit as usize - before;
        let kept = added.min(self.surplus);
        self.surplus -= kept;
        added - kept
    }

    /// Notes a latency. True if the last calls took much longer than is usual for their kinds.
    fn is_slow(&mut self, kind: Kind, latency: Duration) -> bool {
        let latency = latency.as_secs_f64();
        let usual = self.usual.entry(kind).or_default();
        let before = if usual.calls > 0.0 {
            usual.mean
        } else {
            latency
        };
        usual.calls = (usual.calls + 1.0).min(REMEMBERED);
        usual.mean = before + (latency - before) / usual.calls;
        self.window.calls += 1;
        self.window.latency += latency;
        self.window.usual += before;
        if self.window.calls < WINDOW {
            return false;
        }
        let last = std::mem::take(&mut self.window);
        let excess = last.latency - last.usual;
        last.latency > last.usual * SLOW_FACTOR && excess > SLOW_SECONDS * f64::from(last.calls)
    }
}

/// Lets runs begin as fast as the providers take their calls. Runs that have begun come first: while
/// their calls wait, no other run begins.
pub struct RunSlots {
    /// The provider of a run's first call. Without one, every run may begin.
    first: Option<Arc<Limit>>,
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
        first: Option<Arc<Limit>>,
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

    /// True if the first provider has a free place and no call waits for it, and if no more calls
    /// wait for each other provider than it takes at once.
    fn is_free(&self) -> bool {
        let Some(first) = self.first.as_ref().map(|limit| limit.load()) else {
            return true;
        };
        let starting = self.starting.load(Ordering::Relaxed);
        let mut others = self.others.iter().map(|limit| limit.load());
        first.waiting == 0
            && first.in_flight.max(starting) < first.limit
            && others.all(|load| load.waiting <= load.limit)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

/// Returns how an error lowers the limit, if the provider cannot take as many calls as it gets.
fn lowering_after(error: &Error) -> Option<&'static Lowering> {
    match error {
        Error::Timeout { .. } => Some(&TIMED_OUT),
        Error::Status {
            status: 429 | 503 | 529,
            ..
        } => Some(&REFUSED),
        Error::Connect { .. }
        | Error::Status { .. }
        | Error::Unpaid { .. }
        | Error::Broken { .. }
        | Error::Unreadable { .. }
        | Error::Unfit { .. }
        | Error::TooLong { .. }
        | Error::Saturated { .. }
        | Error::CircuitOpen { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use async_trait::async_trait;
    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;
    use crate::llm::{CallStop, ChatModel, Registry};

    /// A provider that takes so many calls at once and refuses the others, or slows down.
    struct Server {
        capacity: usize,
        refuses: bool,
        busy: AtomicUsize,
        refused: AtomicU64,
    }

    impl Server {
        fn new(capacity: usize, refuses: bool) -> Arc<Self> {
            Arc::new(Self {
                capacity,
                refuses,
                busy: AtomicUsize::new(0),
                refused: AtomicU64::new(0),
            })
        }

        async fn answer(&self) -> Result<ChatReply, Error> {
            let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
            let over = busy.saturating_sub(self.capacity);
            let refuse = self.refuses && over > 0;
            let slowed = 1.0 + over as f64 / self.capacity as f64;
            let seconds = if refuse { 0.05 } else { 2.0 * slowed };
            sleep(Duration::from_secs_f64(seconds)).await;
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if refuse {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Error::Status {
                    provider: "p".into(),
                    status: 429,
                    detail: String::new(),
                    retry_after: None,
                });
            }
            Ok(ChatReply {
                text: String::new(),
                stop: CallStop::End,
                usage: None,
                model: None,
                provider_request_id: None,
            })
        }
    }

    #[async_trait]
    impl ChatModel for Arc<Server> {
        async fn chat(&self, _: &ChatRequest) -> Result<ChatReply, Error> {
            self.answer().await
        }
    }

    fn limit(most: usize) -> Limit {
        Limit::new(most, true, Arc::default())
    }

    /// Has so many clients make calls one after the other.
    async fn load(limit: &Limit, server: &Server, clients: usize, calls: usize) {
        let request = ChatRequest {
            timeout: Duration::from_secs(1000),
            ..ChatRequest::sample()
        };
        let client = || async {
            for _ in 0..calls {
                let place = limit.place(request.timeout).await.unwrap();
                let result = server.answer().await;
                let outcome = match result {
                    Ok(_) => Outcome::Success,
                    Err(_) => Outcome::Failure,
                };
                place.note(&request, &result, outcome);
            }
        };
        join_all((0..clients).map(|_| client())).await;
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_lower_the_limit_to_what_the_provider_takes() {
        let (limit, server) = (limit(512), Server::new(40, true));
        load(&limit, &server, 400, 10).await;
        let before = server.refused.load(Ordering::Relaxed);
        load(&limit, &server, 400, 20).await;
        let refused = server.refused.load(Ordering::Relaxed) - before;
        assert!(refused * 5 < 8000, "{refused} of 8,000 calls refused");
        let load = limit.load();
        assert!((10..=100).contains(&load.limit), "{load:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_recovers_when_the_provider_does() {
        let (limit, server) = (limit(64), Server::new(4, true));
        load(&limit, &server, 64, 10).await;
        let low = limit.load().limit;
        assert!(low <= 16, "{low}");
        load(&limit, &Server::new(1000, true), 64, 100).await;
        assert_eq!(limit.load().limit, 64);
    }

    #[tokio::test(start_paused = true)]
    async fn latency_beyond_the_usual_lowers_the_limit() {
        let (limit, server) = (limit(512), Server::new(20, false));
        load(&limit, &server, 10, 200).await;
        assert_eq!(limit.load().limit, 512, "no call was slow");
        load(&limit, &server, 200, 6).await;
        let load = limit.load();
        assert!(load.limit < 150, "{load:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn runs_begin_while_the_provider_has_free_places_and_those_that_have_begun_come_first() {
        let mut registry = Registry::default();
        registry.insert("p", Arc::new(Server::new(100, false)), 2);
        let slots = Arc::new(registry.run_slots("p", ["p", "q"]));
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
