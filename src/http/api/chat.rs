//! `POST /api/chat`.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::{App, FieldProblem, Submission};
use crate::config::Limits;
use crate::domain::{Attachment, Context, Mode, Question, Reply, RunId, Source, User};
use crate::http::body::whole;
use crate::http::error::Problem;
use crate::http::{request_id, sse};
use crate::journal::Ending;

const OUTCOME: HeaderName = HeaderName::from_static("x-conclave-outcome");

/// The body of a chat.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct ChatBody {
    source: Source,
    mode: Mode,
    user: UserBody,
    context: ContextBody,
    /// 1 to 32,000 characters after trimming.
    message: String,
    /// At most 10.
    attachments: Option<Vec<AttachmentBody>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserBody {
    id: String,
    name: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContextBody {
    channel_id: Option<String>,
    guild_id: Option<String>,
    message_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AttachmentBody {
    filename: String,
    /// https, on a host of the allowlist.
    url: String,
    content_type: Option<String>,
}

static SHAPE: LazyLock<Option<Validator>> =
    LazyLock::new(|| jsonschema::validator_for(&schemars::schema_for!(ChatBody).to_value()).ok());

pub(in crate::http) async fn post(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let question = read(&headers, body, &app.config.policy.limits).await?;
    let submission = Submission {
        question,
        idempotency_key: idempotency_key(&headers)?,
        correlation_id: request_id::correlation_id(&headers),
    };
    let submitted = app.submit(submission).await?;
    let run = submitted.run;
    if wants(&headers, ACCEPT.as_str(), "text/event-stream") {
        let mut response = sse::progress(&app, run, 0).into_response();
        set_run(&mut response, run);
        return Ok(response);
    }
    if wants(&headers, "prefer", "respond-async") {
        let location = format!("/api/runs/{run}");
        let mut response = (StatusCode::ACCEPTED, Json(json!({ "runId": run.to_string() }))).into_response();
        if let Ok(value) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(LOCATION, value);
        }
        response.headers_mut().insert("preference-applied", HeaderValue::from_static("respond-async"));
        set_run(&mut response, run);
        return Ok(response);
    }
    let finished = app.finished(run).await?.ok_or_else(Problem::no_such_run)?;
    match &finished.ending {
        Ending::Replied { reply } => {
            let mut response = Json(reply_body(reply)).into_response();
            response.headers_mut().insert(OUTCOME, HeaderValue::from_static(reply.outcome.as_str()));
            set_run(&mut response, run);
            Ok(response)
        }
        ending => Err(Problem::ended(run, ending)),
    }
}

/// The response's body: exactly the documented fields.
pub fn reply_body(reply: &Reply) -> Value {
    let mut body = json!({ "reply": reply.text, "meta": meta_body(reply) });
    if let (Some(audit), Value::Object(map)) = (&reply.audit, &mut body) {
        map.insert("audit".to_owned(), audit.clone());
    }
    body
}

pub(in crate::http) fn meta_body(reply: &Reply) -> Value {
    let meta = &reply.meta;
    json!({
        "taskType": meta.task_type,
        "c_final": meta.c_final,
        "budget": {
            "capUsd": meta.budget.cap.dollars(),
            "estimatedUsd": meta.budget.spent.dollars(),
            "modeCapExceeded": meta.budget.exceeded,
        },
        "usedAgents": meta.used_agents,
        "invalidation": {
            "discarded": meta.invalidation.discarded,
            "quarantined": meta.invalidation.quarantined,
            "valid": meta.invalidation.valid,
        },
    })
}

pub(in crate::http) async fn read(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Question, Problem> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::wrong_type());
    }
    let declared = headers.get("content-length").and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
    if declared.is_some_and(|bytes| bytes > limits.body_bytes) {
        return Err(Problem::too_large(limits.body_bytes));
    }
    let bytes = whole(body, limits).await?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| Problem::not_json(error.to_string()))?;
    let problems = shape_problems(&value);
    if !problems.is_empty() {
        return Err(Problem::wrong_shape(problems));
    }
    let body: ChatBody = serde_json::from_value(value).map_err(|error| {
        Problem::wrong_shape(vec![FieldProblem { pointer: String::new(), detail: error.to_string() }])
    })?;
    Ok(body.into())
}

/// Everything in which a body differs from the documented shape.
fn shape_problems(value: &Value) -> Vec<FieldProblem> {
    let Some(shape) = SHAPE.as_ref() else { return vec![] };
    let mut problems = vec![];
    for error in shape.iter_errors(value) {
        let place = error.instance_path().to_string();
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                problems.extend(unexpected.iter().map(|key| FieldProblem {
                    pointer: format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")),
                    detail: "unknown field".to_owned(),
                }));
            }
            ValidationErrorKind::Required { property } => problems.push(FieldProblem {
                pointer: format!("{place}/{}", property.as_str().unwrap_or_default()),
                detail: "is missing".to_owned(),
            }),
            // The message of a mismatch would repeat the value, which may be long and is the client's own.
            ValidationErrorKind::Type { .. } => {
                problems.push(FieldProblem { pointer: place, detail: "has the wrong type".to_owned() });
            }
            _ => problems.push(FieldProblem { pointer: place, detail: "is not one of the allowed values".to_owned() }),
        }
    }
    problems
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().unwrap_or("").trim();
    let wrong = || Problem::wrong_parameter("Idempotency-Key", "must have 1 to 255 visible ASCII characters");
    if key.is_empty() || key.len() > 255 { Err(wrong()) } else { Ok(Some(key.to_owned())) }
}

fn wants(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .any(|list| list.split(',').any(|item| item.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(value)))
}

fn set_run(response: &mut Response, run: RunId) {
    if let Ok(value) = HeaderValue::from_str(&run.to_string()) {
        response.headers_mut().insert(request_id::HEADER, value);
    }
}

impl From<ChatBody> for Question {
    fn from(body: ChatBody) -> Self {
        let attachments = body.attachments.unwrap_or_default().into_iter();
        Question {
            source: body.source,
            mode: body.mode,
            user: User { id: body.user.id, name: body.user.name },
            context: Context {
                channel_id: body.context.channel_id,
                guild_id: body.context.guild_id,
                message_id: body.context.message_id,
            },
            message: body.message,
            attachments: attachments
                .map(|a| Attachment { filename: a.filename, url: a.url, content_type: a.content_type })
                .collect(),
        }
    }
}
