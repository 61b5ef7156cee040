//! A mock provider that speaks both wire formats over real HTTP. It plays a [`Scenario`], applies
//! the rules that a test sets, and records every call.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, DefaultBodyLimit};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Map, Value};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::Call;
use super::scenario::{Scenario, prose};
use super::script::{Canned, Fault, Mix, Reply, Script};
use super::vendor;
use super::wire::{self, Answer, Stop, Wire};

/// The running mock. When it is dropped, it stops and cuts off calls in flight.
pub struct MockProvider {
    address: SocketAddr,
    shared: Shared,
    /// Aborted on drop.
    _server: JoinSet<()>,
    _stop: DropGuard,
}

#[derive(Clone)]
struct Shared {
    state: Arc<Mutex<State>>,
    stop: CancellationToken,
}

#[derive(Default)]
pub struct State {
    pub scenario: Scenario,
    pub script: Script,
    pub calls: Vec<Call>,
    /// System prompts that are in the cache.
    cached: BTreeSet<String>,
    pub in_flight: usize,
    /// The highest number of calls that were in flight at once.
    pub most_in_flight: usize,
    /// If set, calls are neither checked nor recorded, and the first answer to each step is
    /// repeated: for tens of thousands of calls, of which only the caller is measured.
    pub repeated: Option<BTreeMap<String, (&'static str, String)>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// A new rule, whose number of uses can be limited.
pub struct RuleHandle<'a> {
    shared: &'a Shared,
    rule: usize,
}

impl RuleHandle<'_> {
    /// Applies the rule only to the next `times` calls that it matches.
    pub fn times(self, times: u32) {
        self.shared.lock().script.limit(self.rule, times);
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
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(8192).unwrap();
        let address = listener.local_addr().unwrap();
        let (state, stop) = (Arc::default(), CancellationToken::new());
        let shared = Shared { state, stop };
        shared.lock().scenario = scenario;
        let router = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            _server: server,
            _stop: shared.stop.clone().drop_guard(),
            shared,
        }
    }

    /// Returns the base URL, without a trailing slash. The mock accepts any path before `/messages`
    /// and `/chat/completions`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Applies a fault to the calls that `pattern` matches. See [`Call::is_at`] for patterns and
    /// [`Script`] for the order of rules.
    pub fn on(&self, pattern: &str, fault: Fault) -> RuleHandle<'_> {
        RuleHandle {
            shared: &self.shared,
            rule: self.shared.lock().script.add(pattern, fault),
        }
    }

    /// Replies with this JSON.
    pub fn reply_with(&self, pattern: &str, reply: Value) -> RuleHandle<'_> {
        self.canned(pattern, move |_| Canned::Text(reply.to_string()))
    }

    /// Replies with this text, unchanged.
    pub fn reply_text(&self, pattern: &str, text: impl Into<String>) -> RuleHandle<'_> {
        let text = text.into();
        self.canned(pattern, move |_| Canned::Text(text.clone()))
    }

    /// Replies with the result of `reply` for the call.
    pub fn reply_by(
        &self,
        pattern: &str,
        reply: impl Fn(&Call) -> Value + Send + Sync + 'static,
    ) -> RuleHandle<'_> {
        self.canned(pattern, move |call| Canned::Text(reply(call).to_string()))
    }

    /// Answers with the result of `reply` for the call.
    pub fn canned(
        &self,
        pattern: &str,
        reply: impl Fn(&Call) -> Canned + Send + Sync + 'static,
    ) -> RuleHandle<'_> {
        self.on(pattern, Fault::Reply(Reply(Arc::new(reply))))
    }

    /// Returns all that a test may set and read.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    /// Returns the calls in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Returns the calls that the pattern matches.
    pub fn calls_of(&self, pattern: &str) -> Vec<Call> {
        let calls = self.calls().into_iter();
        calls.filter(|call| call.is_at(pattern)).collect()
    }

    /// Returns the number of calls that the pattern matches. `r1/solver` counts every attempt at
    /// that step, but not its repair.
    pub fn count_step(&self, pattern: &str) -> usize {
        self.calls_of(pattern).len()
    }

    /// Returns the steps of a run with the number of calls for each, sorted by name.
    pub fn steps_of(&self, run: &str) -> BTreeMap<String, usize> {
        let mut steps = BTreeMap::new();
        for call in self.calls().into_iter().filter(|call| call.run == run) {
            *steps.entry(call.step).or_insert(0) += 1;
        }
        steps
    }

    /// Returns the keys that came more than once. A key is unique per run, step and attempt.
    pub fn repeated_keys(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let keys = self.calls().into_iter().map(|call| call.full_key);
        keys.filter(|key| !seen.insert(key.clone())).collect()
    }

    /// Returns why a real provider would have rejected requests (and the mock did).
    pub fn complaints(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        calls.filter_map(|call| call.complaint).collect()
    }
}

/// A call in flight.
struct InFlight(Shared);

impl Drop for InFlight {
    fn drop(&mut self) {
        // Never panics in a drop: a poisoned lock means that a test has already failed.
        if let Ok(mut inner) = self.0.state.lock() {
            inner.in_flight -= 1;
        }
    }
}

const JSON: &str = "application/json";
/// The page of a proxy.
const PAGE: &str = "<html><body><h1>Welcome to the proxy</h1></body></html>";

async fn handle(
    extract::State(shared): extract::State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (Some(wire), Ok(body)) = (Wire::of_path(uri.path()), serde_json::from_slice(&body)) else {
        return (StatusCode::NOT_FOUND, "no such path, or no JSON").into_response();
    };
    let mut call = Call::new(wire, uri.path(), headers, body);
    let is_recorded = shared.lock().repeated.is_none();
    call.complaint = is_recorded.then(|| vendor::complaint(&call)).flatten();
    let ([delay, reply, outcome, usage], latency, _in_flight) = arrive(&shared, &call);
    let pauses = [&delay, &outcome].map(|fault| match fault {
        Some(Fault::Latency(pause) | Fault::Hang(pause)) => *pause,
        _ => Duration::ZERO,
    });
    tokio::select! {
        () = shared.stop.cancelled() => hang_up(),
        () = tokio::time::sleep(latency + pauses[0] + pauses[1]) => {}
    }
    let canned = match reply {
        Some(Fault::Reply(Reply(reply))) => Some(reply(&call)),
        _ => None,
    };
    let (status, kind, text) = match (&call.complaint, &outcome, canned) {
        (Some(reason), ..) => (400, JSON, wire::error(reason)),
        (None, Some(Fault::Hang(_)), _) => hang_up(),
        (None, Some(Fault::Status(status)), _) => (*status, JSON, wire::error("as the test asked")),
        (None, Some(Fault::RateLimited(_)), _) => (429, JSON, wire::error("slow down")),
        (None, Some(Fault::Html), _) => (200, "text/html", PAGE.to_owned()),
        (None, _, Some(Canned::Body(status, text))) => (status, JSON, text),
        (None, _, canned) => {
            let (kind, text) = answer(&shared, &call, canned, outcome.as_ref(), usage.as_ref());
            (200, kind, text)
        }
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_LENGTH, text.len())
        .header("request-id", "req_mock")
        .header("x-request-id", "req_mock");
    if let Some(Fault::RateLimited(retry_after_secs)) = outcome {
        response = response.header(header::RETRY_AFTER, retry_after_secs);
    }
    let body = match outcome {
        Some(Fault::CutBody) => half(&text),
        _ => Body::from(text),
    };
    response.body(body).unwrap()
}

/// Records the call and returns the faults that apply to it, with the delay of all calls.
fn arrive(shared: &Shared, call: &Call) -> ([Option<Fault>; 4], Duration, InFlight) {
    let mut inner = shared.lock();
    inner.in_flight += 1;
    inner.most_in_flight = inner.most_in_flight.max(inner.in_flight);
    if inner.repeated.is_none() {
        inner.calls.push(call.clone());
    }
    let latency = inner.script.latency;
    (inner.script.hit(call), latency, InFlight(shared.clone()))
}

/// Closes the connection without a response.
fn hang_up() -> ! {
    // Ends the connection's task. Unlike a panic, this prints nothing.
    std::panic::resume_unwind(Box::new("the mock hangs up"))
}

/// Sends half of the text, and then breaks the connection.
fn half(text: &str) -> Body {
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    let broken = async {
        // The first half must leave the buffers.
        tokio::time::sleep(Duration::from_millis(10)).await;
        Err("as the test asked")
    };
    let half: Result<Bytes, &str> = Ok(half);
    Body::from_stream(stream::iter([half]).chain(stream::once(broken)))
}

/// Returns the content type and the body of an answer, with the faults of text and usage applied.
fn answer(
    shared: &Shared,
    call: &Call,
    canned: Option<Canned>,
    outcome: Option<&Fault>,
    usage: Option<&Fault>,
) -> (&'static str, String) {
    let (scenario, is_cached) = {
        let mut inner = shared.lock();
        if let Some(known) = inner.repeated.as_ref().and_then(|all| all.get(&call.step)) {
            return known.clone();
        }
        // The first call with a system prompt writes the cache, later ones read it.
        let is_cached = !inner.cached.insert(call.system());
        (inner.scenario.clone(), is_cached)
    };
    let text = match canned {
        Some(Canned::Text(text)) => text,
        _ => text_for(&scenario, call),
    };
    let max = call.max_tokens();
    let mut answer = Answer {
        text,
        stop: Stop::End,
        thinking: vendor::thinking(call),
        model: call.model.clone(),
        usage: Value::Null,
    };
    spoil(&mut answer, outcome, max);
    let room = usize::try_from(max - answer.thinking).unwrap_or(0);
    if answer.text.len() / 4 > room && !matches!(outcome, Some(Fault::Overlong(_))) {
        cut(&mut answer, room * 4);
    }
    answer.usage = vendor::usage(call, &answer, is_cached, usage);
    let rendered = wire::render(call, &answer);
    if let Some(known) = &mut shared.lock().repeated {
        known.insert(call.step.clone(), rendered.clone());
    }
    rendered
}

/// Returns the reply of the scenario: JSON, or prose of the same report for a plain-text role.
fn text_for(scenario: &Scenario, call: &Call) -> String {
    let request = call.text();
    let step = match &*call.run {
        "doctor" if request.contains("You plan") => "plan",
        "doctor" => "r1/solver",
        _ => &call.step,
    };
    let reply = scenario.reply(step, &request).unwrap_or_default();
    let is_text = call.schema().is_null() && !request.contains("selfConfidence");
    if is_text && reply["units"].is_array() {
        return prose(&reply);
    }
    reply.to_string()
}

/// Applies a fault to the text and to why the model stopped.
fn spoil(answer: &mut Answer, fault: Option<&Fault>, max_tokens: i64) {
    let text = &mut answer.text;
    match fault {
        Some(Fault::CutJson) => cut(answer, answer.text.len() * 3 / 5),
        Some(Fault::Malformed) => {
            *text = "I would rather talk this over than fill in a form. It depends.".into();
        }
        Some(Fault::FencedJson) => {
            *text = format!("Here it is:\n\n```json\n{text}\n```\n\nGood luck!");
        }
        Some(Fault::WrongSchema) => {
            let object: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
            let half = object.len() / 2;
            let extra = ("unexpected".to_owned(), Value::Bool(true));
            let object: Map<_, _> = object.into_iter().take(half).chain([extra]).collect();
            *text = Value::Object(object).to_string();
        }
        Some(Fault::EmptyText) => text.clear(),
        Some(Fault::Refusal) => {
            text.clear();
            answer.stop = Stop::Refused;
        }
        Some(Fault::ThoughtAway) => {
            cut(answer, 0);
            answer.thinking = max_tokens;
        }
        Some(Fault::Overlong(bytes)) => *text = "1=".repeat(bytes / 2),
        Some(Fault::ServedBy(model)) => answer.model = (*model).to_owned(),
        _ => {}
    }
}

/// Stops the answer after at most `bytes` bytes, in whole characters.
fn cut(answer: &mut Answer, bytes: usize) {
    answer.text.truncate(answer.text.floor_char_boundary(bytes));
    answer.stop = Stop::Cut;
}
