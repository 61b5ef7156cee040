//! A provider of models that is not one: it speaks both wire formats over real HTTP, plays a [`Scenario`], breaks what a
//! test tells it to break, and remembers every call.

mod answering;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::record::Call;
use super::replies::Scenario;
use super::script::{self, Canned, Fault, Mix, Script};
use super::wire::Payload;
use answering::{Door, handle};

/// The running mock; it stops when dropped, and calls in flight are cut off.
pub struct MockProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    /// Aborted on drop.
    _server: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    scenario: Scenario,
    script: Script,
    calls: Vec<Call>,
    /// System prompts that are in the cache.
    cached: BTreeSet<String>,
    serial: u64,
    in_flight: usize,
    most_in_flight: usize,
    forgetful: bool,
    /// Of a forgetful mock: the reply of each step, made once.
    ready: BTreeMap<String, Payload>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap()
    }
}

/// A rule just made, to be limited.
pub struct RuleHandle<'a> {
    shared: &'a Shared,
    id: u64,
}

impl RuleHandle<'_> {
    /// The rule applies to the next `times` calls that it matches, and then no more.
    pub fn times(self, times: u32) {
        self.shared.lock().script.limit(self.id, times);
    }

    pub fn once(self) {
        self.times(1);
    }
}

impl MockProvider {
    /// Starts on a free port of loopback, playing [`Scenario::agreeing`].
    pub async fn start() -> Self {
        Self::playing(Scenario::agreeing()).await
    }

    pub async fn playing(scenario: Scenario) -> Self {
        // Thousands of connections may come at once.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind(([127, 0, 0, 1], 0).into())
            .expect("a port of loopback");
        let listener = socket.listen(8192).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        shared.lock().scenario = scenario;
        let stop = CancellationToken::new();
        let router = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::disable())
            .with_state(Door {
                shared: Arc::clone(&shared),
                stop: stop.clone(),
            });
        let mut server = JoinSet::new();
        server.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self {
            address,
            shared,
            stop,
            _server: server,
        }
    }

    /// The base URL, without a slash at the end. Any path in front of `/messages` and `/chat/completions` will do.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A base URL at which nobody listens.
    pub async fn dead_url() -> String {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port of loopback");
        format!("http://{}", listener.local_addr().expect("an address"))
    }

    /// Replaces the scenario.
    pub fn play(&self, scenario: Scenario) {
        self.shared.lock().scenario = scenario;
    }

    /// Breaks the calls that `pattern` matches; see [`script`] for patterns and for the order of rules.
    pub fn on(&self, pattern: &str, fault: Fault) -> RuleHandle<'_> {
        let id = self.shared.lock().script.add_fault(pattern, fault);
        RuleHandle {
            shared: &self.shared,
            id,
        }
    }

    /// Replies with this JSON.
    pub fn reply_with(&self, pattern: &str, reply: Value) -> RuleHandle<'_> {
        self.reply(pattern, Canned::Json(reply))
    }

    /// Replies with this text, as it stands.
    pub fn reply_text(&self, pattern: &str, text: impl Into<String>) -> RuleHandle<'_> {
        self.reply(pattern, Canned::Text(text.into()))
    }

    /// Replies with what `reply` makes of the call.
    pub fn reply_by(
        &self,
        pattern: &str,
        reply: impl Fn(&Call) -> Value + Send + Sync + 'static,
    ) -> RuleHandle<'_> {
        self.reply(pattern, Canned::By(Arc::new(reply)))
    }

    fn reply(&self, pattern: &str, reply: Canned) -> RuleHandle<'_> {
        let id = self.shared.lock().script.add_reply(pattern, reply);
        RuleHandle {
            shared: &self.shared,
            id,
        }
    }

    /// Breaks the calls that no rule breaks as `mix` says.
    pub fn mix(&self, mix: Option<Mix>) {
        self.shared.lock().script.mix = mix;
    }

    /// Delays every reply.
    pub fn latency(&self, latency: Duration) {
        self.shared.lock().script.latency = latency;
    }

    /// Everything recorded since the start or the last reset, in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.lock().calls.clone()
    }

    pub fn count(&self, wanted: impl Fn(&Call) -> bool) -> usize {
        self.shared
            .lock()
            .calls
            .iter()
            .filter(|call| wanted(call))
            .count()
    }

    /// How many calls the pattern matches: `r1/solver` counts every attempt at that step, but not its repair.
    pub fn count_step(&self, pattern: &str) -> usize {
        self.count(|call| script::matches(pattern, &call.step_key()))
    }

    /// The calls that the pattern matches.
    pub fn calls_of(&self, pattern: &str) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| script::matches(pattern, &call.step_key()));
        calls
    }

    /// The steps of a run with how often each was bought, sorted by name.
    pub fn steps_of(&self, run: &str) -> BTreeMap<String, usize> {
        let mut steps = BTreeMap::new();
        for call in self
            .shared
            .lock()
            .calls
            .iter()
            .filter(|call| call.run == run)
        {
            *steps.entry(call.step.clone()).or_insert(0) += 1;
        }
        steps
    }

    /// Keys that came more than once: a key is unique per run, step and attempt.
    pub fn repeated_keys(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let calls = self.calls();
        calls
            .into_iter()
            .map(|call| call.full_key)
            .filter(|key| !seen.insert(key.clone()))
            .collect()
    }

    /// What a real vendor would have rejected (and the mock did), as "key: reason".
    pub fn complaints(&self) -> Vec<String> {
        let inner = self.shared.lock();
        inner
            .calls
            .iter()
            .filter_map(|c| Some(format!("{}: {}", c.key, c.complaint.as_ref()?)))
            .collect()
    }

    /// Patterns of rules that no call has met: a fault that never fired tests nothing.
    pub fn unmet_rules(&self) -> Vec<String> {
        self.shared.lock().script.unmet()
    }

    pub fn in_flight(&self) -> usize {
        self.shared.lock().in_flight
    }

    /// The most calls that were in flight at one time.
    pub fn most_in_flight(&self) -> usize {
        self.shared.lock().most_in_flight
    }

    /// Forgets calls, counters and cached prompts; scenario, faults and replies stay.
    pub fn reset(&self) {
        let mut inner = self.shared.lock();
        inner.calls.clear();
        inner.cached.clear();
        inner.most_in_flight = inner.in_flight;
    }

    /// Remembers no calls from now on, only how many there were at once: for tens of thousands of them.
    pub fn forget_calls(&self) {
        let mut inner = self.shared.lock();
        inner.calls.clear();
        inner.forgetful = true;
    }

    /// Forgets faults, set replies and latency; scenario and calls stay.
    pub fn heal(&self) {
        self.shared.lock().script = Script::default();
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
