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
use futures_util::stream;
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::Call;
use super::scenario::{Scenario, prose};
use super::script::{Fault, Reply, Rule, hit};
use super::vendor;
use super::wire::{self, Answer, Stop, Wire};

/// The running mock. When it is dropped, it stops and cuts off calls in flight.
pub struct MockProvider {
    address: SocketAddr,
    state: Shared,
    /// Aborted on drop.
    _server: JoinSet<()>,
    _stop: DropGuard,
}

type Shared = Arc<Mutex<State>>;

#[derive(Default)]
pub struct State {
    pub scenario: Scenario,
    pub script: Vec<Rule>,
    pub calls: Vec<Call>,
    pub in_flight: usize,
    /// The highest number of calls that were in flight at once.
    pub most_in_flight: usize,
    /// If set, calls are neither checked nor recorded, and the first answer to each step is
    /// repeated: for tens of thousands of calls, of which only the caller is measured.
    pub repeated: Option<BTreeMap<String, Sent>>,
    /// Cancelled when the mock is dropped.
    stop: CancellationToken,
}

/// A new rule, whose number of uses can be limited.
pub struct RuleHandle<'a> {
    provider: &'a MockProvider,
    rule: usize,
}

impl RuleHandle<'_> {
    /// Applies the rule only to the next `times` calls that it matches.
    pub fn times(self, times: u32) {
        self.provider.state().script[self.rule].left = Some(times);
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
        let stop = CancellationToken::new();
        let state = Arc::new(Mutex::new(State {
            scenario,
            stop: stop.clone(),
            ..State::default()
        }));
        let router = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&state));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            _server: server,
            _stop: stop.drop_guard(),
            state,
        }
    }

    /// Returns the base URL, without a trailing slash. The mock accepts any path before `/messages`
    /// and `/chat/completions`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Applies a fault to the calls that `pattern` matches. See [`Call::is_at`] for patterns and [`hit`]
    /// for the order of rules.
    pub fn on(&self, pattern: &str, fault: Fault) -> RuleHandle<'_> {
        let (pattern, left) = (pattern.to_owned(), None);
        let rules = &mut self.state().script;
        rules.push(Rule {
            pattern,
            fault,
            left,
        });
        RuleHandle {
            provider: self,
            rule: rules.len() - 1,
        }
    }

    /// Replies with this JSON.
    pub fn reply_with(&self, pattern: &str, reply: Value) -> RuleHandle<'_> {
        self.canned(pattern, move |_| Fault::Text(reply.to_string()))
    }

    /// Replies with this text, unchanged.
    pub fn reply_text(&self, pattern: &str, text: impl Into<String>) -> RuleHandle<'_> {
        self.on(pattern, Fault::Text(text.into()))
    }

    /// Replies with the result of `reply` for the call.
    pub fn reply_by(
        &self,
        pattern: &str,
        reply: impl Fn(&Call) -> Value + Send + Sync + 'static,
    ) -> RuleHandle<'_> {
        self.canned(pattern, move |call| Fault::Text(reply(call).to_string()))
    }

    /// Answers with the result of `reply` for the call.
    pub fn canned(
        &self,
        pattern: &str,
        reply: impl Fn(&Call) -> Fault + Send + Sync + 'static,
    ) -> RuleHandle<'_> {
        self.on(pattern, Fault::Reply(Reply(Arc::new(reply))))
    }

    /// Returns all that a test may set and read.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
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
        if let Ok(mut inner) = self.0.lock() {
            inner.in_flight -= 1;
        }
    }
}

const JSON: &str = "application/json";

async fn handle(
    extract::State(state): extract::State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (Some(wire), Ok(body)) = (Wire::of_path(uri.path()), serde_json::from_slice(&body)) else {
        return (StatusCode::NOT_FOUND, "no such path, or no JSON").into_response();
    };
    let mut call = Call::new(wire, uri.path(), headers, body);
    let is_recorded = state.lock().unwrap().repeated.is_none();
    call.complaint = is_recorded.then(|| vendor::complaint(&call)).flatten();
    let (mut faults, _in_flight) = arrive(&state, &call);
    for fault in &mut faults {
        if let Fault::Reply(Reply(reply)) = fault {
            *fault = reply(&call);
        }
    }
    let pauses = faults.iter().map(|fault| match fault {
        Fault::Latency(pause) | Fault::Hang(pause) => *pause,
        _ => Duration::ZERO,
    });
    let stop = state.lock().unwrap().stop.clone();
    tokio::select! {
        () = stop.cancelled() => hang_up(),
        () = tokio::time::sleep(pauses.sum()) => {}
    }
    let refused = call.complaint.as_deref();
    let (status, kind, text) = refused
        .map(|reason| (400, JSON, wire::error(reason)))
        .or_else(|| faults.iter().rev().find_map(without_model))
        .unwrap_or_else(|| answer(&state, &call, &faults));
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_LENGTH, text.len())
        .header("request-id", "req_mock")
        .header("x-request-id", "req_mock");
    let mut body = Body::from(text.clone());
    for fault in faults {
        match fault {
            Fault::RateLimited(seconds) => response = response.header(header::RETRY_AFTER, seconds),
            Fault::CutBody => body = half(&text),
            _ => {}
        }
    }
    response.body(body).unwrap()
}

/// Status, content type and body of an answer.
type Sent = (u16, &'static str, String);

/// Returns what a fault sends in place of a model's answer, if it does.
fn without_model(fault: &Fault) -> Option<Sent> {
    Some(match fault {
        Fault::Hang(_) => hang_up(),
        Fault::Status(status) => (*status, JSON, wire::error("as the test asked")),
        Fault::RateLimited(_) => (429, JSON, wire::error("slow down")),
        Fault::Body(status, text) => (*status, JSON, text.clone()),
        _ => return None,
    })
}

/// Records the call and returns the faults that apply to it.
fn arrive(state: &Shared, call: &Call) -> (Vec<Fault>, InFlight) {
    let mut inner = state.lock().unwrap();
    inner.in_flight += 1;
    inner.most_in_flight = inner.most_in_flight.max(inner.in_flight);
    if inner.repeated.is_none() {
        inner.calls.push(call.clone());
    }
    (hit(&mut inner.script, call), InFlight(Arc::clone(state)))
}

/// Closes the connection without a response.
fn hang_up() -> ! {
    // Ends the connection's task. Unlike a panic, this prints nothing.
    std::panic::resume_unwind(Box::new("the mock hangs up"))
}

/// Sends half of the text, and then breaks the connection.
fn half(text: &str) -> Body {
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    Body::from_stream(stream::iter([Ok(half), Err("as the test asked")]))
}

/// Returns the answer of the model, with the faults of text and usage applied.
fn answer(state: &Shared, call: &Call, faults: &[Fault]) -> Sent {
    let scenario = {
        let inner = state.lock().unwrap();
        if let Some(known) = inner.repeated.as_ref().and_then(|all| all.get(&call.step)) {
            return known.clone();
        }
        inner.scenario.clone()
    };
    let mut answer = Answer {
        text: text_for(&scenario, call),
        stop: Stop::End,
        thinking: vendor::thinking(call),
        model: call.model.clone(),
        usage: Value::Null,
    };
    let max = call.max_tokens();
    for fault in faults {
        spoil(&mut answer, fault, max);
    }
    let room = usize::try_from(max - answer.thinking).unwrap_or(0);
    let is_overlong = |fault: &Fault| matches!(fault, Fault::Overlong(_));
    if answer.text.len() / 4 > room && !faults.iter().any(is_overlong) {
        cut(&mut answer, room * 4);
    }
    let billed = faults.iter().find_map(|fault| match fault {
        Fault::Usage(output) => Some(*output),
        _ => None,
    });
    if billed != Some(None) {
        answer.usage = vendor::usage(call, &answer, billed.flatten());
    }
    let (kind, text) = wire::render(call, &answer);
    if let Some(known) = &mut state.lock().unwrap().repeated {
        known.insert(call.step.clone(), (200, kind, text.clone()));
    }
    (200, kind, text)
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
fn spoil(answer: &mut Answer, fault: &Fault, max_tokens: i64) {
    let text = &mut answer.text;
    match fault {
        Fault::Text(given) => given.clone_into(text),
        Fault::Overlong(bytes) => *text = "1=".repeat(bytes / 2),
        Fault::CutJson => cut(answer, answer.text.len() * 3 / 5),
        Fault::Malformed => {
            *text = "I would rather talk this over than fill in a form. It depends.".into();
        }
        Fault::WrongSchema => *text = r#"{ "unexpected": true }"#.into(),
        Fault::Refusal => {
            text.clear();
            answer.stop = Stop::Refused;
        }
        Fault::OutputSpentOnThinking => {
            cut(answer, 0);
            answer.thinking = max_tokens;
        }
        Fault::ServedBy(model) => answer.model = (*model).to_owned(),
        _ => {}
    }
}

/// Stops the answer after at most `bytes` bytes, in whole characters.
fn cut(answer: &mut Answer, bytes: usize) {
    answer.text.truncate(answer.text.floor_char_boundary(bytes));
    answer.stop = Stop::Cut;
}
