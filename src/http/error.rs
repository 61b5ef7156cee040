//! Errors as problem details (RFC 9457): the only place that knows status codes.

use std::any::Any;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{FieldProblem, Rejected};
use crate::domain::{RunId, Scope};
use crate::journal::{self, Cause, Ending};

tokio::task_local! {
    /// The id of the request that is being answered.
    pub(super) static REQUEST_ID: String;
}

/// How long a client should wait before it tries again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What went wrong, for the client.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    /// Last part of the problem's type.
    slug: &'static str,
    title: &'static str,
    detail: String,
    errors: Vec<FieldProblem>,
    run: Option<RunId>,
    retry_after: Option<Duration>,
    /// The scope that the token would need.
    lacks: Option<Scope>,
}

#[derive(Serialize)]
struct FieldError<'a> {
    pointer: &'a str,
    detail: &'a str,
}

impl Problem {
    fn new(status: StatusCode, slug: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, slug, title, detail: detail.into(), errors: vec![], run: None, retry_after: None, lacks: None }
    }

    pub fn not_json(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "not-json", "The body is not valid JSON", detail)
    }

    pub fn wrong_shape(errors: Vec<FieldProblem>) -> Self {
        let detail = "the body is JSON, but not of the documented shape";
        let problem = Self::new(StatusCode::BAD_REQUEST, "wrong-shape", "The body has the wrong shape", detail);
        Self { errors, ..problem }
    }

    pub fn wrong_parameter(name: &str, detail: &str) -> Self {
        let errors = vec![FieldProblem { pointer: format!("/{name}"), detail: detail.to_owned() }];
        let problem = Self::new(StatusCode::BAD_REQUEST, "wrong-parameter", "A parameter is wrong", detail);
        Self { errors, ..problem }
    }

    pub fn wrong_type() -> Self {
        let detail = "send the body as application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong-content-type", "The content type is not supported", detail)
    }

    pub fn too_large(limit: usize) -> Self {
        let detail = format!("a body may have at most {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", detail)
    }

    pub fn no_token() -> Self {
        let detail = "send the header Authorization: Bearer TOKEN with a valid token";
        Self::new(StatusCode::UNAUTHORIZED, "no-token", "A valid bearer token is needed", detail)
    }

    pub fn lacks_scope(scope: Scope) -> Self {
        let detail = format!("the token is valid, but it was made without the scope {scope}");
        let problem = Self::new(StatusCode::FORBIDDEN, "lacks-scope", "The token does not open this", detail);
        Self { lacks: Some(scope), ..problem }
    }

    /// Without tokens, only this machine is served: a name from elsewhere in `Host` means that a web page reached in.
    pub fn not_local() -> Self {
        let detail = "without a token the service answers only to localhost and its addresses";
        Self::new(StatusCode::FORBIDDEN, "not-local", "The service is not known by this name", detail)
    }

    pub fn too_often(detail: impl Into<String>, retry_after: Duration) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", "Too many requests", detail);
        Self { retry_after: Some(retry_after), ..problem }
    }

    pub fn too_slow() -> Self {
        let detail = "the body did not arrive in time, or the connection broke";
        Self::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "The body did not arrive", detail)
    }

    pub fn no_such_run() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no-such-run", "There is no such run", "no run has this id")
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "The run's state does not allow it", detail)
    }

    pub fn not_ready(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", "The service is not ready", detail).with_retry()
    }

    fn internal() -> Self {
        let detail = "the service has a defect; its log says more under this request's id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something went wrong inside", detail)
    }

    fn with_retry(mut self) -> Self {
        self.retry_after = Some(RETRY_AFTER);
        self
    }

    /// Names the run that the problem is about.
    pub fn of(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// The ending of a run that has no reply.
    pub fn ended(run: RunId, ending: &Ending) -> Self {
        let problem = match ending {
            Ending::Replied { .. } => Self::internal(),
            Ending::Cancelled => Self::conflict("the run was cancelled"),
            Ending::Failed { cause: Cause::Provider, detail } => Self::new(
                StatusCode::BAD_GATEWAY,
                "provider-failed",
                "The models gave no usable output",
                detail.clone(),
            ),
            Ending::Failed { cause: Cause::Deadline, detail } => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, "deadline", "The run's deadline passed", detail.clone())
            }
            Ending::Failed { cause: Cause::Budget, detail } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "over-budget",
                "The question does not fit under the cap",
                detail.clone(),
            ),
            Ending::Failed { cause: Cause::Internal, .. } => Self::internal(),
        };
        problem.of(run)
    }

    /// The problem as data, as it also goes into an event stream.
    pub fn body(&self) -> Value {
        let id = self.run.map(|run| run.to_string()).or_else(|| REQUEST_ID.try_with(Clone::clone).ok());
        let mut body = json!({
            "type": format!("urn:conclave:problem:{}", self.slug),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "requestId": id,
        });
        if let Value::Object(map) = &mut body
            && !self.errors.is_empty()
        {
            let errors: Vec<FieldError<'_>> =
                self.errors.iter().map(|e| FieldError { pointer: &e.pointer, detail: &e.detail }).collect();
            map.insert("errors".to_owned(), json!(errors));
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(run) = self.run
            && let Ok(value) = HeaderValue::from_str(&run.to_string())
        {
            headers.insert(super::request_id::HEADER, value);
        }
        if let Some(after) = self.retry_after {
            // Rounded up: who comes back then is let in.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(scope) = self.lacks
            && let Ok(value) = HeaderValue::from_str(&format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""))
        {
            headers.insert(header::WWW_AUTHENTICATE, value);
        }
        response
    }
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        tracing::error!(%error, "the journal refused");
        if matches!(error, journal::Error::Corrupt { .. }) {
            return Self::internal();
        }
        let detail = "the journal cannot be reached; nothing was lost";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no-journal", "The journal is not available", detail).with_retry()
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        let busy = |detail: &str| {
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "The service takes no more runs now", detail)
                .with_retry()
        };
        match rejected {
            Rejected::Invalid(errors) => {
                let detail = "the body is of the right shape, but breaks a rule";
                let title = "The request breaks a rule";
                let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", title, detail);
                Self { errors, ..problem }
            }
            Rejected::KeyReused { run } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "key-reused",
                "The idempotency key was used for another request",
                format!("run {run} has this key with another body: use a new key for a new request"),
            ),
            Rejected::Spent(spent) => {
                let title = "A spending limit is reached";
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "limit-spent", title, spent.to_string());
                Self { retry_after: Some(spent.retry_after), ..problem }
            }
            Rejected::TooOften { retry_after } => Self::too_often("this user asks too often", retry_after),
            Rejected::Busy => busy("too many runs are in flight"),
            Rejected::Draining => busy("the service is shutting down"),
            Rejected::Journal(error) => error.into(),
        }
    }
}

pub(super) async fn no_such_page() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no-such-page", "There is nothing here", "no route has this path")
}

pub(super) async fn no_such_method() -> Problem {
    let detail = "the path exists, but not with this method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no-such-method", "The method is not allowed here", detail)
}

#[allow(clippy::needless_pass_by_value, reason = "the layer hands it over")]
pub(super) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}
