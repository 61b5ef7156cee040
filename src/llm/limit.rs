//! How many calls a model is given at once.
//!
//! The limit adapts by additive increase and multiplicative decrease (AIMD, Chiu and Jain 1989). It
//! begins at its provider's configured maximum. A refusal for the rate, an overload or a timeout
//! halves it. Latency well above what calls of the same kind took before lowers it by a fifth. Each
//! call that ends well while the limit is in use raises it again. Each model has a limit of its own,
//! because providers limit the rate of each model, and one model may hang while others answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::circuit::Signal;
use super::{ChatReply, ChatRequest, Error, ErrorKind};

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

/// The limit on the calls of a provider, for all its models together.
pub(super) struct ProviderLimit {
    permits: Semaphore,
    most: usize,
    /// Told when a call ends or stops waiting.
    changed: Arc<Notify>,
}

impl ProviderLimit {
    pub(super) fn new(most: usize, changed: Arc<Notify>) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Semaphore::new(most),
            most,
            changed,
        }
    }
}

/// The adaptive limit of one model at one provider.
pub(super) struct Limit {
    permits: Semaphore,
    provider: Arc<ProviderLimit>,
    /// False for a model in this process, whose capacity is known.
    is_adaptive: bool,
    state: Mutex<State>,
}

struct State {
    /// At least 1, at most the provider's limit.
    limit: f64,
    in_flight: usize,
    waiting: usize,
    /// Permits that exist beyond the limit. They are removed when their calls end.
    surplus: usize,
    /// Calls that began before this do not lower the limit again.
    lowered: Instant,
    /// When the last call that ended well did.
    answered: Option<Instant>,
    window: Window,
    /// The usual latency, by the magnitude of the output.
    usual: BTreeMap<OutputMagnitude, Usual>,
}

/// The order of magnitude of a call's output, log2 of `max_tokens`. Calls of one magnitude take about
/// as long.
type OutputMagnitude = u32;

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

/// The load of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Calls that may be under way at once.
    pub limit: usize,
    pub in_flight: usize,
    pub waiting: usize,
    /// How many more calls its provider may get.
    pub free: usize,
}

impl Limit {
    pub(super) fn new(provider: Arc<ProviderLimit>, is_adaptive: bool) -> Self {
        let state = State {
            limit: provider.most as f64,
            in_flight: 0,
            waiting: 0,
            surplus: 0,
            lowered: Instant::now(),
            answered: None,
            window: Window::default(),
            usual: BTreeMap::new(),
        };
        Self {
            permits: Semaphore::new(provider.most),
            provider,
            is_adaptive,
            state: Mutex::new(state),
        }
    }

    pub(super) fn load(&self) -> Load {
        let state = self.state();
        Load {
            limit: state.limit as usize,
            in_flight: state.in_flight,
            waiting: state.waiting,
            free: self.provider.permits.available_permits(),
        }
    }

    /// Waits for a permit in the order of the calls, first among those of the model. So a model that
    /// takes few calls does not keep the provider's permits. `None` if `patience` passes first.
    pub(super) async fn permit(&self, patience: Duration) -> Option<CallPermit<'_>> {
        // This is still fair: a released permit goes to the first waiting call, so none is free
        // while calls wait.
        let (permits, asked) = match self.free_permits() {
            Some(permits) => (permits, None),
            None => {
                let asked = Instant::now();
                self.state().waiting += 1;
                let _queued = Queued(self);
                let permits = async {
                    let own = self.permits.acquire().await.ok()?;
                    let shared = self.provider.permits.acquire().await.ok()?;
                    Some((own, shared))
                };
                (timeout(patience, permits).await.ok()??, Some(asked))
            }
        };
        self.state().in_flight += 1;
        let begun = Instant::now();
        Some(CallPermit {
            limit: self,
            permits: Some(permits),
            begun,
            waited: asked.map(|asked| begun - asked),
        })
    }

    /// True if a call has ended well within this time.
    pub(super) fn has_answered_within(&self, time: Duration) -> bool {
        let answered = self.state().answered;
        answered.is_some_and(|answered| answered.elapsed() < time)
    }

    /// True if the limit was lowered and a further call would wait for it.
    pub(super) fn is_throttled(&self) -> bool {
        self.permits.available_permits() == 0 && (self.state().limit as usize) < self.provider.most
    }

    fn free_permits(&self) -> Option<Permits<'_>> {
        let own = self.permits.try_acquire().ok()?;
        let shared = self.provider.permits.try_acquire().ok()?;
        Some((own, shared))
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

/// A permit of the model, and one of its provider.
type Permits<'a> = (SemaphorePermit<'a>, SemaphorePermit<'a>);

/// A call that waits for its permit.
struct Queued<'a>(&'a Limit);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
        self.0.provider.changed.notify_one();
    }
}

/// The right to make one call.
pub(super) struct CallPermit<'a> {
    limit: &'a Limit,
    permits: Option<Permits<'a>>,
    begun: Instant,
    /// How long the call waited, if it did.
    pub(super) waited: Option<Duration>,
}

impl CallPermit<'_> {
    /// Adapts the limit to the result of the call, which the circuit breaker takes as `signal`.
    pub(super) fn record(
        &self,
        request: &ChatRequest,
        result: &Result<ChatReply, Error>,
        signal: Signal,
    ) {
        if !self.limit.is_adaptive {
            return;
        }
        let mut state = self.limit.state();
        match (result, signal) {
            (Ok(_), _) => {
                state.answered = Some(Instant::now());
                let magnitude = request.max_tokens.max(1).ilog2();
                let is_slow = state.is_slow(magnitude, self.begun.elapsed());
                if is_slow && self.begun >= state.lowered {
                    self.limit.lower(&mut state, &SLOW);
                } else if state.in_flight + state.waiting >= state.limit as usize {
                    let added = state.raise(self.limit.provider.most);
                    self.limit.permits.add_permits(added);
                }
            }
            (Err(error), signal) if self.begun >= state.lowered => {
                if let Some(lowering) = lowering_after(error, signal) {
                    self.limit.lower(&mut state, lowering);
                }
            }
            (Err(_), _) => {}
        }
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        let mut state = self.limit.state();
        state.in_flight -= 1;
        if state.surplus > 0 {
            state.surplus -= 1;
            if let Some((own, _)) = self.permits.take() {
                own.forget();
            }
        }
        drop(state);
        self.permits = None;
        self.limit.provider.changed.notify_one();
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
    fn is_slow(&mut self, magnitude: OutputMagnitude, latency: Duration) -> bool {
        let latency = latency.as_secs_f64();
        let usual = self.usual.entry(magnitude).or_default();
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

/// Returns how an error lowers the limit, if the provider cannot take as many calls as it gets.
fn lowering_after(error: &Error, signal: Signal) -> Option<&'static Lowering> {
    match error.kind {
        ErrorKind::Timeout(_) if signal == Signal::Failure => Some(&TIMED_OUT),
        ErrorKind::Status {
            status: 429 | 503 | 529,
            ..
        } => Some(&REFUSED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

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
                let retry_after = None;
                let kind = ErrorKind::Status {
                    status: 429,
                    retry_after,
                };
                return Err(Error::new("p", kind, ""));
            }
            Ok(ChatReply::sample(""))
        }
    }

    fn provider_limit(most: usize) -> Arc<ProviderLimit> {
        Arc::new(ProviderLimit::new(most, Arc::default()))
    }

    fn limit(most: usize) -> Limit {
        Limit::new(provider_limit(most), true)
    }

    /// Has so many clients make calls one after the other.
    async fn load(limit: &Limit, server: &Server, clients: usize, calls: usize) {
        let request = ChatRequest {
            timeout: Duration::from_secs(1000),
            ..ChatRequest::sample()
        };
        let client = || async {
            for _ in 0..calls {
                let permit = limit.permit(request.timeout).await.unwrap();
                let result = server.answer().await;
                let signal = match result {
                    Ok(_) => Signal::Success,
                    Err(_) => Signal::Failure,
                };
                permit.record(&request, &result, signal);
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
    async fn a_model_that_refuses_or_hangs_leaves_the_others_of_its_provider_their_places() {
        let shared = provider_limit(64);
        let [low, well] = [(); 2].map(|()| Limit::new(Arc::clone(&shared), true));
        let (refusing, serving) = (Server::new(4, true), Server::new(1000, true));
        tokio::join!(load(&low, &refusing, 60, 20), load(&well, &serving, 30, 20));
        assert!(low.load().limit <= 16, "{:?}", low.load());
        assert_eq!(well.load().limit, 64);
        let moment = Duration::from_millis(1);
        let of_low = join_all((0..64).map(|_| low.permit(moment))).await;
        let of_well = join_all((0..64).map(|_| well.permit(moment))).await;
        let [few, most] = [&of_low, &of_well].map(|permits| permits.iter().flatten().count());
        assert_eq!(few + most, 64, "{few} and {most}");
        assert!(few <= 16, "{few} and {most}");
    }
}
