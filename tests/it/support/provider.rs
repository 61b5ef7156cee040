//! A provider of models that is not one: it speaks both wire formats over real HTTP, plays a [`Scenario`], breaks what a
//! test tells it to break, and remembers every call.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::record::{Call, Ended};
use super::replies::{self, Scenario};
use super::script::{Canned, Fault, Hit, Mix, Script};
use super::wire::{self, Answer, Payload, Stop, Tokens, Wire};
use super::{dialect, script, thinking};

/// System prompts shorter than this many tokens are not cached, as with the vendors.
const CACHED_FROM_TOKENS: i64 = 1024;
/// What an image is billed.
const IMAGE_TOKENS: i64 = 1_500;

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
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port of loopback");
        let listener = socket.listen(8192).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        shared.lock().scenario = scenario;
        let stop = CancellationToken::new();
        let router = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::disable())
            .with_state(Door { shared: Arc::clone(&shared), stop: stop.clone() });
        let mut server = JoinSet::new();
        server.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { address, shared, stop, _server: server }
    }

    /// The base URL, without a slash at the end. Any path in front of `/messages` and `/chat/completions` will do.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A base URL at which nobody listens.
    pub async fn dead_url() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of loopback");
        format!("http://{}", listener.local_addr().expect("an address"))
    }

    /// Replaces the scenario.
    pub fn play(&self, scenario: Scenario) {
        self.shared.lock().scenario = scenario;
    }

    /// Breaks the calls that `pattern` matches; see [`script`] for patterns and for the order of rules.
    pub fn on(&self, pattern: &str, fault: Fault) -> RuleHandle<'_> {
        let id = self.shared.lock().script.add_fault(pattern, fault);
        RuleHandle { shared: &self.shared, id }
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
    pub fn reply_by(&self, pattern: &str, reply: impl Fn(&Call) -> Value + Send + Sync + 'static) -> RuleHandle<'_> {
        self.reply(pattern, Canned::By(Arc::new(reply)))
    }

    fn reply(&self, pattern: &str, reply: Canned) -> RuleHandle<'_> {
        let id = self.shared.lock().script.add_reply(pattern, reply);
        RuleHandle { shared: &self.shared, id }
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
        self.shared.lock().calls.iter().filter(|call| wanted(call)).count()
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
        for call in self.shared.lock().calls.iter().filter(|call| call.run == run) {
            *steps.entry(call.step.clone()).or_insert(0) += 1;
        }
        steps
    }

    /// Keys that came more than once: a key is unique per run, step and attempt.
    pub fn repeated_keys(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let calls = self.calls();
        calls.into_iter().map(|call| call.full_key).filter(|key| !seen.insert(key.clone())).collect()
    }

    /// What a real vendor would have rejected (and the mock did), as "key: reason".
    pub fn complaints(&self) -> Vec<String> {
        let inner = self.shared.lock();
        inner.calls.iter().filter_map(|c| Some(format!("{}: {}", c.key, c.complaint.as_ref()?))).collect()
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

#[derive(Clone)]
struct Door {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

/// A call in flight. Dropped before its reply is complete, it was abandoned.
struct InFlight {
    shared: Arc<Shared>,
    serial: u64,
    ended: Ended,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // Never panic in a drop: a poisoned lock means that a test has failed already.
        if let Ok(mut inner) = self.shared.state.lock() {
            inner.in_flight -= 1;
            let ended = self.ended;
            inner.calls.iter_mut().filter(|call| call.serial == self.serial).for_each(|call| call.ended = ended);
        }
    }
}

async fn handle(State(door): State<Door>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let Some(wire) = Wire::of_path(uri.path()) else {
        return (StatusCode::NOT_FOUND, "no such path").into_response();
    };
    if method != Method::POST {
        return whole(wire, 0, 405, wire::error(wire, 405, "POST only"), None);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return whole(wire, 0, 400, wire::error(wire, 400, "the body is not JSON"), None);
    };
    let (call, hit, flight) = arrive(&door.shared, wire, uri.path(), &headers, body);
    let silence = if let Some(Fault::Hang(silence)) = hit.outcome { silence } else { Duration::ZERO };
    tokio::select! {
        () = door.stop.cancelled() => hang_up(flight),
        () = tokio::time::sleep(hit.delay + silence) => {}
    }
    if let Some(ready) = ready(&door.shared, &call) {
        return whole(wire, call.serial, 200, ready, Some(flight));
    }
    if let Some((status, reason)) = dialect::complaint(&call) {
        return whole(wire, call.serial, status, wire::error(wire, status, &reason), Some(flight));
    }
    match hit.outcome {
        Some(Fault::Hang(_)) => hang_up(flight),
        Some(Fault::Said(status, words)) => {
            whole(wire, call.serial, status, wire::error(wire, status, words), Some(flight))
        }
        Some(Fault::Status(status)) => {
            whole(wire, call.serial, status, wire::error(wire, status, "as the test asked"), Some(flight))
        }
        Some(Fault::RateLimited { retry_after_secs }) => {
            let mut response = whole(wire, call.serial, 429, wire::error(wire, 429, "slow down"), Some(flight));
            response.headers_mut().insert(header::RETRY_AFTER, retry_after_secs.into());
            response
        }
        Some(Fault::Html) => {
            let page = "<html><body><h1>Welcome to the proxy</h1></body></html>".to_owned();
            whole(wire, call.serial, 200, Payload { content_type: "text/html", text: page }, Some(flight))
        }
        Some(Fault::CutBody) => half(answer(&door.shared, &call, &hit), Duration::ZERO, door.stop, flight),
        Some(Fault::Stall(silence)) => half(answer(&door.shared, &call, &hit), silence, door.stop, flight),
        _ => whole(wire, call.serial, 200, answer(&door.shared, &call, &hit), Some(flight)),
    }
}

/// Records the call and finds the faults that hit it.
fn arrive(shared: &Arc<Shared>, wire: Wire, path: &str, headers: &HeaderMap, body: Value) -> (Call, Hit, InFlight) {
    let mut inner = shared.lock();
    inner.serial += 1;
    inner.in_flight += 1;
    inner.most_in_flight = inner.most_in_flight.max(inner.in_flight);
    let mut call = Call::new(inner.serial, wire, path, headers, body);
    if !inner.forgetful {
        call.complaint = dialect::complaint(&call).map(|(_, reason)| reason);
        inner.calls.push(call.clone());
    }
    let hit = inner.script.faults_for(&call);
    let flight = InFlight { shared: Arc::clone(shared), serial: call.serial, ended: Ended::Abandoned };
    (call, hit, flight)
}

/// The step's reply in a forgetful mock, which takes every call for granted: what is measured is the caller.
fn ready(shared: &Shared, call: &Call) -> Option<Payload> {
    {
        let inner = shared.lock();
        if !inner.forgetful {
            return None;
        }
        if let Some(payload) = inner.ready.get(&call.step) {
            return Some(payload.clone());
        }
    }
    let payload = answer(shared, call, &Hit::default());
    shared.lock().ready.insert(call.step.clone(), payload.clone());
    Some(payload)
}

/// Closes the connection without a word.
fn hang_up(mut flight: InFlight) -> ! {
    flight.ended = Ended::Broken;
    drop(flight);
    // Ends the connection's task; unlike a panic it prints nothing.
    std::panic::resume_unwind(Box::new("the mock hangs up"))
}

fn whole(wire: Wire, serial: u64, status: u16, payload: Payload, flight: Option<InFlight>) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let id = format!("req_mock{serial:06}");
    if let Some(mut flight) = flight {
        flight.ended = Ended::Answered;
    }
    let headers = [(header::CONTENT_TYPE.as_str(), payload.content_type.to_owned()), (wire.request_id_header(), id)];
    (status, headers, payload.text).into_response()
}

/// Promises the whole payload and sends half of it; after the silence the connection breaks.
fn half(payload: Payload, silence: Duration, stop: CancellationToken, flight: InFlight) -> Response {
    let length = payload.text.len();
    let first = Bytes::from(payload.text.into_bytes()).slice(..length / 2);
    let stream = futures_util::stream::unfold((Some(first), flight), move |(first, mut flight)| {
        let stop = stop.clone();
        async move {
            if let Some(first) = first {
                return Some((Ok(first), (None, flight)));
            }
            tokio::select! {
                () = stop.cancelled() => {}
                // Never zero: the first half has to leave the buffers.
                () = tokio::time::sleep(silence.max(Duration::from_millis(10))) => {}
            }
            flight.ended = Ended::Broken;
            Some((Err(std::io::Error::other("as the test asked")), (None, flight)))
        }
    });
    let headers =
        [(header::CONTENT_TYPE, payload.content_type.to_owned()), (header::CONTENT_LENGTH, length.to_string())];
    (headers, Body::from_stream(stream)).into_response()
}

/// The reply's body with every fault of the text and of the usage in it.
fn answer(shared: &Shared, call: &Call, hit: &Hit) -> Payload {
    let (canned, scenario, cached) = {
        let mut inner = shared.lock();
        // The first call with a system prompt writes the cache, later ones read it.
        let cached = !inner.cached.insert(call.system());
        (inner.script.reply_for(&call.step_key()), inner.scenario.clone(), cached)
    };
    let text = match canned {
        Some(Canned::Json(value)) => value.to_string(),
        Some(Canned::Text(text)) => text,
        Some(Canned::By(reply)) => reply(call).to_string(),
        None => replies::text_for(&scenario, call),
    };
    let (text, stop) = script::spoil(text, hit.outcome.as_ref());
    let all = wire::max_tokens(call).unwrap_or(0) as i64;
    let thinking = if stop == Stop::Cut && text.is_empty() { all } else { thinking::tokens(call) };
    let room = wire::max_tokens(call).map(|max| usize::try_from(max as i64 - thinking).unwrap_or(0));
    let (text, stop) = match room {
        _ if matches!(hit.outcome, Some(Fault::Overlong(_))) => (text, stop),
        Some(0) => (String::new(), Stop::Cut),
        Some(room) if tokens(&text) > room as i64 => (script::cut(&text, room * 4), Stop::Cut),
        _ => (text, stop),
    };
    let usage = usage(call, &text, cached);
    let usage = Tokens { output: usage.output + thinking, thinking, ..usage };
    let usage = match hit.usage {
        Some(Fault::NoUsage) => None,
        Some(Fault::NegativeUsage) => Some(Tokens { input: -1, output: -5, ..usage }),
        Some(Fault::HugeUsage(output)) => Some(Tokens { output: i64::try_from(output).unwrap_or(i64::MAX), ..usage }),
        _ => Some(usage),
    };
    let model = match hit.outcome {
        Some(Fault::ServedBy(model)) => model.to_owned(),
        _ => call.model.clone(),
    };
    wire::render(call, &Answer { text, stop, tokens: usage, model })
}

/// A token for every four bytes, rounded down.
fn tokens(text: &str) -> i64 {
    (text.len() / 4) as i64
}

fn usage(call: &Call, reply: &str, cached: bool) -> Tokens {
    let schema = match wire::wanted(call) {
        wire::Wanted::Json(schema) | wire::Wanted::Tool(_, schema) => tokens(&schema.to_string()),
        wire::Wanted::Text => 0,
    };
    let system = tokens(&call.system());
    let rest = tokens(&call.prompt()) + schema + call.images() as i64 * IMAGE_TOKENS;
    let output = tokens(reply).max(1);
    let asked = call.wire == Wire::OpenAi || call.body.to_string().contains("cache_control");
    match (asked && system >= CACHED_FROM_TOKENS, cached, call.wire) {
        (true, true, _) => Tokens { input: rest, cache_read: system, output, ..Tokens::default() },
        (true, false, Wire::Anthropic) => Tokens { input: rest, cache_write: system, output, ..Tokens::default() },
        (true, false, Wire::OpenAi) if thinking::writes_cache(call) => {
            Tokens { cache_write: system + rest, output, ..Tokens::default() }
        }
        _ => Tokens { input: system + rest, output, ..Tokens::default() },
    }
}
