//! A mock provider that speaks both wire formats over real HTTP. It plays a [`Scenario`], applies
//! the faults that a test sets, and records every call.

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

/// The running mock. When it is dropped, it stops and cuts off calls in flight.
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
    /// The reply of each step in a forgetful mock, generated once.
    ready: BTreeMap<String, Payload>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap()
    }
}

/// A new rule, whose number of uses can be limited.
pub struct RuleHandle<'a> {
    shared: &'a Shared,
    id: u64,
}

impl RuleHandle<'_> {
    /// Applies the rule only to the next `times` calls that it matches.
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

    /// Returns the base URL, without a trailing slash. The mock accepts any path before `/messages`
    /// and `/chat/completions`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a base URL on whose port nothing listens.
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

    /// Applies a fault to the calls that `pattern` matches. See [`script`] for patterns and the
    /// order of rules.
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

    /// Replies with this text, unchanged.
    pub fn reply_text(&self, pattern: &str, text: impl Into<String>) -> RuleHandle<'_> {
        self.reply(pattern, Canned::Text(text.into()))
    }

    /// Replies with the result of `reply` for the call.
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

    /// Applies `mix` to the calls to which no rule applies.
    pub fn mix(&self, mix: Option<Mix>) {
        self.shared.lock().script.mix = mix;
    }

    /// Delays every reply.
    pub fn latency(&self, latency: Duration) {
        self.shared.lock().script.latency = latency;
    }

    /// Returns the calls since the start or the last reset, in order of arrival.
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

    /// Returns the number of calls that the pattern matches. `r1/solver` counts every attempt at
    /// that step, but not its repair.
    pub fn count_step(&self, pattern: &str) -> usize {
        self.count(|call| script::matches(pattern, &call.step_key()))
    }

    /// Returns the calls that the pattern matches.
    pub fn calls_of(&self, pattern: &str) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| script::matches(pattern, &call.step_key()));
        calls
    }

    /// Returns the steps of a run with the number of calls for each, sorted by name.
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

    /// Returns the keys that came more than once. A key is unique per run, step and attempt.
    pub fn repeated_keys(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let calls = self.calls();
        calls
            .into_iter()
            .map(|call| call.full_key)
            .filter(|key| !seen.insert(key.clone()))
            .collect()
    }

    /// Returns the requests that a real vendor would have rejected (and the mock did), as "key:
    /// reason".
    pub fn complaints(&self) -> Vec<String> {
        let inner = self.shared.lock();
        inner
            .calls
            .iter()
            .filter_map(|c| Some(format!("{}: {}", c.key, c.complaint.as_ref()?)))
            .collect()
    }

    /// Returns the patterns of rules that no call has matched: an unused fault tests nothing.
    pub fn unmet_rules(&self) -> Vec<String> {
        self.shared.lock().script.unmet()
    }

    pub fn in_flight(&self) -> usize {
        self.shared.lock().in_flight
    }

    /// Returns the highest number of calls that were in flight at once.
    pub fn most_in_flight(&self) -> usize {
        self.shared.lock().most_in_flight
    }

    /// Clears calls, counters and cached prompts. Scenario, faults and set replies stay.
    pub fn reset(&self) {
        let mut inner = self.shared.lock();
        inner.calls.clear();
        inner.cached.clear();
        inner.most_in_flight = inner.in_flight;
    }

    /// Stops recording calls and only counts how many are in flight, for tens of thousands of
    /// calls.
    pub fn forget_calls(&self) {
        let mut inner = self.shared.lock();
        inner.calls.clear();
        inner.forgetful = true;
    }

    /// Clears faults, set replies and latency. Scenario and calls stay.
    pub fn heal(&self) {
        self.shared.lock().script = Script::default();
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
