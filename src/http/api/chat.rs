//! `POST /api/chat`: asks the committee a question.

use super::reply_body::ReplyBody;
use super::runs::end_of;
use crate::http::headers::{accepts, wants};
use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::{App, ChatInput, RequestIds};
use crate::http::auth::Caller;
use crate::http::body::{Unread, read, shape, shaped};
use crate::http::error::Problem;
use crate::http::{request_id, sse};
use crate::journal::{AckTiming, Ending};

/// A run that continues without the connection that started it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct Accepted {
    #[schemars(schema_with = "super::shapes::run_id")]
    run_id: String,
}

pub(super) static SHAPE: LazyLock<Option<Validator>> = LazyLock::new(shape::<ChatInput>);

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, input) = read(&app, request, &SHAPE).await?;
    let headers = &parts.headers;
    let ids = RequestIds {
        idempotency_key: idempotency_key(headers)?,
        correlation_id: request_id::correlation_id(headers),
    };
    let streams = accepts(headers, "text/event-stream");
    let is_async = wants(headers, "prefer", "respond-async");
    let ack = if streams || is_async {
        AckTiming::Immediate
    } else {
        AckTiming::WithReply
    };
    let chat = app.chat_request(input)?;
    // Boxed, so that its state is freed before the wait for the reply.
    let run = Box::pin(app.submit(chat, ids, ack)).await?;
    let mut response = if streams {
        sse::progress(&app, run, 0, parts.extensions.get::<Caller>().cloned()).into_response()
    } else if is_async {
        let run_id = run.to_string();
        let location = [(LOCATION, format!("/api/runs/{run}"))];
        let applied = [("preference-applied", "respond-async")];
        let accepted = Json(Accepted { run_id });
        (StatusCode::ACCEPTED, location, applied, accepted).into_response()
    } else {
        let ending = end_of(&app, run).await?;
        let Ending::Replied { reply } = &ending else {
            return Err(Problem::ended(run, &ending));
        };
        let outcome = [("x-conclave-outcome", reply.outcome.into_str())];
        (outcome, Json(ReplyBody::of(reply))).into_response()
    };
    request_id::set_run(response.headers_mut(), run);
    Ok(response)
}

/// Parses the body of a chat. It does not check the rules;
/// [`ChatRequest::parse`](crate::app::ChatRequest::parse) does.
///
/// # Errors
/// [`Unread`]: it is not JSON, or it differs from the documented shape.
pub fn question(body: &[u8]) -> Result<ChatInput, Unread> {
    shaped(body, SHAPE.as_ref())
}

pub(in crate::http) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or("").trim();
    let is_key = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_key && values.all(|other| other == value) {
        return Ok(Some(key.to_owned()));
    }
    let detail = "must have 1 to 255 visible ASCII characters, and be given once";
    Err(Problem::wrong_parameter("Idempotency-Key", detail))
}
