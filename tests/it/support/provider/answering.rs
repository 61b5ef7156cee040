//! Answers the calls of the mock: applies faults, generates the reply, and bills tokens.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::support::record::{Call, Ended};
use crate::support::script::{self, Canned, Fault, Hit};
use crate::support::wire::{self, Answer, Payload, Stop, Tokens, Wire};
use crate::support::{dialect, replies, thinking};

/// System prompts with fewer tokens are not cached, as with the vendors.
const CACHED_FROM_TOKENS: i64 = 1024;
/// The billed tokens of an image.
const IMAGE_TOKENS: i64 = 1_500;

#[derive(Clone)]
pub(super) struct Door {
    pub(super) shared: Arc<Shared>,
    pub(super) stop: CancellationToken,
}

/// A call in flight. It counts as abandoned if it is dropped before its reply is complete.
struct InFlight {
    shared: Arc<Shared>,
    serial: u64,
    ended: Ended,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // Never panics in a drop: a poisoned lock means that a test has already failed.
        if let Ok(mut inner) = self.shared.state.lock() {
            inner.in_flight -= 1;
            let ended = self.ended;
            inner
                .calls
                .iter_mut()
                .filter(|call| call.serial == self.serial)
                .for_each(|call| call.ended = ended);
        }
    }
}

pub(super) async fn handle(
    State(door): State<Door>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(wire) = Wire::of_path(uri.path()) else {
        return (StatusCode::NOT_FOUND, "no such path").into_response();
    };
    if method != Method::POST {
        return whole(wire, 0, 405, wire::error(wire, 405, "POST only"), None);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return whole(
            wire,
            0,
            400,
            wire::error(wire, 400, "the body is not JSON"),
            None,
        );
    };
    let (call, hit, flight) = arrive(&door.shared, wire, uri.path(), &headers, body);
    let silence = if let Some(Fault::Hang(silence)) = hit.outcome {
        silence
    } else {
        Duration::ZERO
    };
    tokio::select! {
        () = door.stop.cancelled() => hang_up(flight),
        () = tokio::time::sleep(hit.delay + silence) => {}
    }
    if let Some(ready) = ready(&door.shared, &call) {
        return whole(wire, call.serial, 200, ready, Some(flight));
    }
    if let Some((status, reason)) = dialect::complaint(&call) {
        return whole(
            wire,
            call.serial,
            status,
            wire::error(wire, status, &reason),
            Some(flight),
        );
    }
    match hit.outcome {
        Some(Fault::Hang(_)) => hang_up(flight),
        Some(Fault::Said(status, words)) => whole(
            wire,
            call.serial,
            status,
            wire::error(wire, status, words),
            Some(flight),
        ),
        Some(Fault::Status(status)) => whole(
            wire,
            call.serial,
            status,
            wire::error(wire, status, "as the test asked"),
            Some(flight),
        ),
        Some(Fault::RateLimited { retry_after_secs }) => {
            let mut response = whole(
                wire,
                call.serial,
                429,
                wire::error(wire, 429, "slow down"),
                Some(flight),
            );
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, retry_after_secs.into());
            response
        }
        Some(Fault::Html) => {
            let page = "<html><body><h1>Welcome to the proxy</h1></body></html>".to_owned();
            whole(
                wire,
                call.serial,
                200,
                Payload {
                    content_type: "text/html",
                    text: page,
                },
                Some(flight),
            )
        }
        Some(Fault::CutBody) => half(
            answer(&door.shared, &call, &hit),
            Duration::ZERO,
            door.stop,
            flight,
        ),
        Some(Fault::Stall(silence)) => half(
            answer(&door.shared, &call, &hit),
            silence,
            door.stop,
            flight,
        ),
        _ => whole(
            wire,
            call.serial,
            200,
            answer(&door.shared, &call, &hit),
            Some(flight),
        ),
    }
}

/// Records the call and returns the faults that apply to it.
fn arrive(
    shared: &Arc<Shared>,
    wire: Wire,
    path: &str,
    headers: &HeaderMap,
    body: Value,
) -> (Call, Hit, InFlight) {
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
    let flight = InFlight {
        shared: Arc::clone(shared),
        serial: call.serial,
        ended: Ended::Abandoned,
    };
    (call, hit, flight)
}

/// Returns the cached reply of a step if the mock is forgetful. Such a mock skips all checks,
/// because only its caller is measured.
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
    shared
        .lock()
        .ready
        .insert(call.step.clone(), payload.clone());
    Some(payload)
}

/// Closes the connection without a response.
fn hang_up(mut flight: InFlight) -> ! {
    flight.ended = Ended::Broken;
    drop(flight);
    // Ends the connection's task. Unlike a panic, this prints nothing.
    std::panic::resume_unwind(Box::new("the mock hangs up"))
}

fn whole(
    wire: Wire,
    serial: u64,
    status: u16,
    payload: Payload,
    flight: Option<InFlight>,
) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let id = format!("req_mock{serial:06}");
    if let Some(mut flight) = flight {
        flight.ended = Ended::Answered;
    }
    let headers = [
        (
            header::CONTENT_TYPE.as_str(),
            payload.content_type.to_owned(),
        ),
        (wire.request_id_header(), id),
    ];
    (status, headers, payload.text).into_response()
}

/// Promises the whole payload and sends half of it. Breaks the connection after the silence.
fn half(
    payload: Payload,
    silence: Duration,
    stop: CancellationToken,
    flight: InFlight,
) -> Response {
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
                // Never zero: the first half must leave the buffers.
                () = tokio::time::sleep(silence.max(Duration::from_millis(10))) => {}
            }
            flight.ended = Ended::Broken;
            Some((
                Err(std::io::Error::other("as the test asked")),
                (None, flight),
            ))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, payload.content_type.to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    (headers, Body::from_stream(stream)).into_response()
}

/// Returns the body of the reply, with the faults of text and usage applied.
fn answer(shared: &Shared, call: &Call, hit: &Hit) -> Payload {
    let (canned, scenario, cached) = {
        let mut inner = shared.lock();
        // The first call with a system prompt writes the cache, later ones read it.
        let cached = !inner.cached.insert(call.system());
        (
            inner.script.reply_for(&call.step_key()),
            inner.scenario.clone(),
            cached,
        )
    };
    let text = match canned {
        Some(Canned::Json(value)) => value.to_string(),
        Some(Canned::Text(text)) => text,
        Some(Canned::By(reply)) => reply(call).to_string(),
        None => replies::text_for(&scenario, call),
    };
    let (text, stop) = script::spoil(text, hit.outcome.as_ref());
    let all = wire::max_tokens(call).unwrap_or(0) as i64;
    let thinking = if stop == Stop::Cut && text.is_empty() {
        all
    } else {
        thinking::tokens(call)
    };
    let room =
        wire::max_tokens(call).map(|max| usize::try_from(max as i64 - thinking).unwrap_or(0));
    let (text, stop) = match room {
        _ if matches!(hit.outcome, Some(Fault::Overlong(_))) => (text, stop),
        Some(0) => (String::new(), Stop::Cut),
        Some(room) if tokens(&text) > room as i64 => (script::cut(&text, room * 4), Stop::Cut),
        _ => (text, stop),
    };
    let usage = usage(call, &text, cached);
    let usage = Tokens {
        output: usage.output + thinking,
        thinking,
        ..usage
    };
    let usage = match hit.usage {
        Some(Fault::NoUsage) => None,
        Some(Fault::NegativeUsage) => Some(Tokens {
            input: -1,
            output: -5,
            ..usage
        }),
        Some(Fault::HugeUsage(output)) => Some(Tokens {
            output: i64::try_from(output).unwrap_or(i64::MAX),
            ..usage
        }),
        _ => Some(usage),
    };
    let model = match hit.outcome {
        Some(Fault::ServedBy(model)) => model.to_owned(),
        _ => call.model.clone(),
    };
    wire::render(
        call,
        &Answer {
            text,
            stop,
            tokens: usage,
            model,
        },
    )
}

/// Returns one token for every four bytes, rounded down.
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
        (true, true, _) => Tokens {
            input: rest,
            cache_read: system,
            output,
            ..Tokens::default()
        },
        (true, false, Wire::Anthropic) => Tokens {
            input: rest,
            cache_write: system,
            output,
            ..Tokens::default()
        },
        (true, false, Wire::OpenAi) if thinking::writes_cache(call) => Tokens {
            cache_write: system + rest,
            output,
            ..Tokens::default()
        },
        _ => Tokens {
            input: system + rest,
            output,
            ..Tokens::default()
        },
    }
}
