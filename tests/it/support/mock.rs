//! A mock provider that speaks both wire formats over real HTTP. It plays a [`Scenario`], applies
//! the rules that a test sets, and records every call.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::scenario::{Scenario, prose};
use super::script::{Canned, Effect, Fault, Hit, Mix, Script};
use super::vendor;
use super::wire::{self, Answer, Stop, Tokens, Wire};

/// The running mock. When it is dropped, it stops and cuts off calls in flight.
pub struct MockProvider {
    address: SocketAddr,
    shared: Shared,
    /// Aborted on drop.
    _server: JoinSet<()>,
}

#[derive(Clone)]
struct Shared {
    state: Arc<Mutex<Inner>>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Inner {
    scenario: Scenario,
    script: Script,
    calls: Vec<Call>,
    /// System prompts that are in the cache.
    cached: BTreeSet<String>,
    in_flight: usize,
    most_in_flight: usize,
    /// The content type and the body for each step, if answers are repeated.
    repeated: Option<BTreeMap<String, (&'static str, String)>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
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
        let inner = Inner {
            scenario,
            ..Inner::default()
        };
        let shared = Shared {
            state: Arc::new(Mutex::new(inner)),
            stop: CancellationToken::new(),
        };
        let router = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            shared,
            _server: server,
        }
    }

    /// Returns the base URL, without a trailing slash. The mock accepts any path before `/messages`
    /// and `/chat/completions`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the scenario.
    pub fn play(&self, scenario: Scenario) {
        self.shared.lock().scenario = scenario;
    }

    /// Applies a fault to the calls that `pattern` matches. See [`Call::is_at`] for patterns and
    /// [`Script`] for the order of rules.
    pub fn on(&self, pattern: &str, fault: Fault) -> RuleHandle<'_> {
        self.rule(pattern, Effect::Fault(fault))
    }

    /// Replies with this JSON.
    pub fn reply_with(&self, pattern: &str, reply: Value) -> RuleHandle<'_> {
        self.reply_by(pattern, move |_| reply.clone())
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
        self.rule(pattern, Effect::Reply(Arc::new(reply)))
    }

    fn rule(&self, pattern: &str, effect: Effect) -> RuleHandle<'_> {
        let rule = self.shared.lock().script.add(pattern, effect);
        RuleHandle {
            shared: &self.shared,
            rule,
        }
    }

    /// Applies `mix` to the calls to which no fault applies.
    pub fn mix(&self, mix: Mix) {
        self.shared.lock().script.mix = Some(mix);
    }

    /// Delays every reply.
    pub fn latency(&self, latency: Duration) {
        self.shared.lock().script.latency = latency;
    }

    /// Returns the calls since the start or the last reset, in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.lock().calls.clone()
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

    /// Returns the requests that a real provider would have rejected (and the mock did), as "key:
    /// reason".
    pub fn complaints(&self) -> Vec<String> {
        let told = |call: Call| Some(format!("{}: {}", call.key, call.complaint?));
        self.calls().into_iter().filter_map(told).collect()
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

    /// Forgets the calls. Scenario and rules stay.
    pub fn reset(&self) {
        self.shared.lock().calls.clear();
    }

    /// Neither checks nor records calls, and repeats the first answer to each step: for tens of
    /// thousands of calls, of which only the caller is measured.
    pub fn repeat_answers(&self) {
        self.shared.lock().repeated = Some(BTreeMap::new());
    }

    /// Removes all rules and the latency. Scenario and calls stay.
    pub fn heal(&self) {
        self.shared.lock().script = Script::default();
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        self.shared.stop.cancel();
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

/// The page of a proxy.
const PAGE: &str = "<html><body><h1>Welcome to the proxy</h1></body></html>";

async fn handle(
    State(shared): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (Some(wire), Ok(body)) = (Wire::of_path(uri.path()), serde_json::from_slice(&body)) else {
        return (StatusCode::NOT_FOUND, "no such path, or no JSON").into_response();
    };
    let mut call = Call::new(wire, uri.path(), headers, body);
    let repeated = shared
        .lock()
        .repeated
        .as_ref()
        .map(|known| known.get(&call.step).cloned());
    let is_checked = repeated.is_none();
    let complaint = is_checked.then(|| vendor::complaint(&call)).flatten();
    call.complaint = complaint.as_ref().map(|(_, reason)| reason.clone());
    let (hit, flight) = arrive(&shared, &call);
    let silence = match hit.outcome {
        Some(Fault::Hang(silence)) => silence,
        _ => Duration::ZERO,
    };
    tokio::select! {
        () = shared.stop.cancelled() => hang_up(),
        () = tokio::time::sleep(hit.delay + silence) => {}
    }
    let json = "application/json";
    let (status, kind, text) = match (complaint, &hit.outcome, &hit.reply) {
        (Some((status, reason)), ..) => (status, json, wire.error(status, &reason)),
        (None, Some(Fault::Hang(_)), _) => hang_up(),
        (None, Some(Fault::Status(status)), _) => {
            (*status, json, wire.error(*status, "as the test asked"))
        }
        (None, Some(Fault::RateLimited(_)), _) => (429, json, wire.error(429, "slow down")),
        (None, Some(Fault::Html), _) => (200, "text/html", PAGE.to_owned()),
        (None, _, Some(Canned::Body(status, text))) => (*status, json, text.clone()),
        _ => {
            let known = repeated.flatten();
            let (kind, text) = known.unwrap_or_else(|| answer(&shared, &call, &hit));
            if let Some(known) = &mut shared.lock().repeated {
                known.insert(call.step, (kind, text.clone()));
            }
            (200, kind, text)
        }
    };
    let length = text.len();
    let body = match hit.outcome {
        Some(Fault::CutBody) => half(&text, flight),
        _ => Body::from(text),
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_LENGTH, length)
        .header(wire.request_id_header(), "req_mock");
    if let Some(Fault::RateLimited(retry_after_secs)) = hit.outcome {
        response = response.header(header::RETRY_AFTER, retry_after_secs);
    }
    response.body(body).unwrap()
}

/// Records the call and returns the rules that apply to it.
fn arrive(shared: &Shared, call: &Call) -> (Hit, InFlight) {
    let mut inner = shared.lock();
    inner.in_flight += 1;
    inner.most_in_flight = inner.most_in_flight.max(inner.in_flight);
    if inner.repeated.is_none() {
        inner.calls.push(call.clone());
    }
    (inner.script.hit(call), InFlight(shared.clone()))
}

/// Closes the connection without a response.
fn hang_up() -> ! {
    // Ends the connection's task. Unlike a panic, this prints nothing.
    std::panic::resume_unwind(Box::new("the mock hangs up"))
}

/// Sends half of the text, and then breaks the connection.
fn half(text: &str, flight: InFlight) -> Body {
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    let pieces = futures_util::stream::unfold((Some(half), flight), async |(half, flight)| {
        if half.is_none() {
            // The first half must leave the buffers.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Some((half.ok_or("as the test asked"), (None, flight)))
    });
    Body::from_stream(pieces)
}

/// Returns the content type and the body of the reply, with the faults of text and usage applied.
fn answer(shared: &Shared, call: &Call, hit: &Hit) -> (&'static str, String) {
    let (scenario, is_cached) = {
        let mut inner = shared.lock();
        // The first call with a system prompt writes the cache, later ones read it.
        let is_cached = !inner.cached.insert(call.system());
        (inner.scenario.clone(), is_cached)
    };
    let text = match &hit.reply {
        Some(Canned::Text(text)) => text.clone(),
        _ => text_for(&scenario, call),
    };
    let (text, stop) = spoil(text, hit.outcome.as_ref());
    let max = wire::max_tokens(call);
    let thinking = match hit.outcome {
        Some(Fault::ThoughtAway) => max,
        _ => vendor::thinking(call),
    };
    let room = usize::try_from(max - thinking).unwrap_or(0);
    let (text, stop) = match hit.outcome {
        Some(Fault::Overlong(_)) => (text, stop),
        _ if text.len() / 4 <= room => (text, stop),
        _ => (cut(&text, room * 4), Stop::Cut),
    };
    let tokens = vendor::bill(call, &text, thinking, is_cached);
    let tokens = match hit.usage {
        Some(Fault::NoUsage) => None,
        Some(Fault::NegativeUsage) => Some(Tokens {
            input: -1,
            output: -5,
            ..tokens
        }),
        Some(Fault::HugeUsage(output)) => Some(Tokens {
            output: output as i64,
            ..tokens
        }),
        _ => Some(tokens),
    };
    let model = match hit.outcome {
        Some(Fault::ServedBy(model)) => model.to_owned(),
        _ => call.model.clone(),
    };
    let answer = Answer {
        text,
        stop,
        tokens,
        model,
    };
    wire::render(call, &answer)
}

/// Returns the reply of the scenario: JSON, or prose of the same report for a plain-text role.
fn text_for(scenario: &Scenario, call: &Call) -> String {
    if call.run == "doctor" {
        return r#"{"sum":5}"#.to_owned();
    }
    let request = call.text();
    let reply = scenario.reply(&call.step, &request).unwrap_or_default();
    let is_text = wire::schema(call).is_null() && !request.contains("selfConfidence");
    if is_text && reply["units"].is_array() {
        return prose(&reply);
    }
    reply.to_string()
}

/// Returns the model's text after the fault, and why the model stopped.
fn spoil(text: String, fault: Option<&Fault>) -> (String, Stop) {
    let said = |text: &str| (text.to_owned(), Stop::End);
    match fault {
        Some(Fault::CutJson) => (cut(&text, text.len() * 3 / 5), Stop::Cut),
        Some(Fault::Malformed) => {
            said("I would rather talk this over than fill in a form. It depends.")
        }
        Some(Fault::FencedJson) => said(&format!(
            "Here it is:\n\n```json\n{text}\n```\n\nGood luck!"
        )),
        Some(Fault::WrongSchema) => said(&with_keys_lost(&text)),
        Some(Fault::Refusal) => (String::new(), Stop::Refused),
        Some(Fault::EmptyText) => said(""),
        Some(Fault::ThoughtAway) => (String::new(), Stop::Cut),
        Some(Fault::Overlong(bytes)) => said(&"1=".repeat(bytes / 2)),
        _ => (text, Stop::End),
    }
}

/// Returns at most `bytes` bytes of the text, in whole characters.
fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

fn with_keys_lost(text: &str) -> String {
    let mut object: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let lost: Vec<String> = object.keys().skip(object.len() / 2).cloned().collect();
    lost.iter().for_each(|key| drop(object.remove(key)));
    object.insert("unexpected".to_owned(), Value::Bool(true));
    Value::Object(object).to_string()
}
