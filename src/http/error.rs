//! Responses for errors: problem details (RFC 9457).

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::problem_kind::Kind;
use super::request_id;
use crate::app::{App, FieldProblem, Rejected};
use crate::domain::{RunId, Scope};
use crate::journal::{self, Cause, Ending};

/// The maximum length of a detail in characters. A cause may quote a provider.
const MAX_DETAIL_CHARS: usize = 2000;

/// How long a client should wait before it retries.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Removes configured secrets from error responses, which may quote names of fields and parameters
/// of the request.
pub(super) async fn redact_secrets(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    if response.status().as_u16() < 400 {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The body of an error is already in memory.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Problem::internal().into_response();
    };
    match std::str::from_utf8(&bytes).map(|text| app.redacted(text)) {
        Ok(Cow::Owned(redacted)) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(redacted))
        }
        _ => Response::from_parts(parts, Body::from(bytes)),
    }
}

/// An error for the client.
#[derive(Debug)]
pub(super) struct Problem {
    kind: Kind,
    detail: String,
    errors: Vec<FieldProblem>,
    run: Option<RunId>,
    retry_after: Option<Duration>,
    /// The scopes of which the token lacks all, separated by spaces.
    lacks: Option<String>,
}

/// Problem details as RFC 9457 has them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Problem", deny_unknown_fields)]
pub(super) struct ProblemBody {
    /// Tells kinds of problem apart; everything else is for people.
    #[serde(rename = "type")]
    #[schemars(regex(pattern = r"^urn:conclave:problem:[a-z-]+$"))]
    kind: String,
    title: &'static str,
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    detail: String,
    /// The run that it is about, else the id of the request.
    request_id: Option<String>,
    /// For bad input: every field that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem>,
}

impl Problem {
    pub(in crate::http) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let retry_after = kind.has_retry_after().then_some(RETRY_AFTER);
        Self {
            kind,
            detail: crate::actions::cut(&detail.into(), MAX_DETAIL_CHARS),
            errors: vec![],
            run: None,
            retry_after,
            lacks: None,
        }
    }

    /// Lists the fields that are wrong.
    pub fn with_errors(kind: Kind, detail: &str, errors: Vec<FieldProblem>) -> Self {
        Self {
            errors,
            ..Self::new(kind, detail)
        }
    }

    pub fn wrong_parameter(name: &str, detail: &str) -> Self {
        let error = FieldProblem::new(format!("/{name}"), detail);
        Self::with_errors(Kind::WrongParameter, detail, vec![error])
    }

    pub fn too_large(limit: usize) -> Self {
        let detail = format!("a body may have at most {limit} bytes");
        Self::new(Kind::TooLarge, detail)
    }

    /// The token has none of these scopes, of which one is needed.
    pub fn lacks_scope(one_of: &[Scope]) -> Self {
        let names: Vec<&str> = one_of.iter().map(Scope::into_str).collect();
        let which = match names.as_slice() {
            [scope] => format!("the scope {scope}"),
            scopes => format!("any of the scopes {}", scopes.join(", ")),
        };
        let detail = format!("the token is valid, but it was made without {which}");
        Self {
            lacks: Some(names.join(" ")),
            ..Self::new(Kind::LacksScope, detail)
        }
    }

    pub fn too_often(detail: impl Into<String>, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(Kind::RateLimited, detail)
        }
    }

    pub fn no_such_run() -> Self {
        Self::new(Kind::NoSuchRun, "no run has this id")
    }

    /// Only for actions. Also if the proposal belongs to another user, so that ids cannot be
    /// probed.
    pub fn no_such_proposal() -> Self {
        Self::new(Kind::NoSuchProposal, "no proposal of yours has this id")
    }

    /// Also if the plan belongs to another user, so that ids cannot be probed.
    pub fn no_such_plan() -> Self {
        let detail = "no plan of yours, and no execution, has this id";
        Self::new(Kind::NoSuchPlan, detail)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, detail)
    }

    fn internal() -> Self {
        let detail = "the service has a defect; its log says more under this request's id";
        Self::new(Kind::Internal, detail)
    }

    /// Sets the run that the problem is about.
    pub fn of(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Returns the problem for a run that ended without a reply.
    pub fn ended(run: RunId, ending: &Ending) -> Self {
        let problem = match ending {
            Ending::Replied { .. } | Ending::Acted { .. } => Self::internal(),
            Ending::Cancelled => Self::conflict("the run was cancelled"),
            Ending::Failed { cause, detail } => match cause {
                Cause::Provider => Self::new(Kind::ProviderFailed, detail),
                Cause::Deadline => Self::new(Kind::Deadline, detail),
                Cause::Budget => Self::new(Kind::OverBudget, detail),
                Cause::Internal => Self::internal(),
            },
        };
        problem.of(run)
    }

    /// Returns the problem as JSON. Event streams use it too.
    pub fn body(&self) -> Value {
        let run = self.run.map(|run| run.to_string());
        let text = self.kind.text();
        json!(ProblemBody {
            kind: self.kind.urn(),
            title: text.title,
            status: text.status.as_u16(),
            detail: self.detail.clone(),
            request_id: run.or_else(request_id::current),
            errors: self.errors.clone(),
        })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.kind.text().status;
        let mut response = (status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if let Some(run) = self.run {
            request_id::set_run(headers, run);
        }
        if let Some(after) = self.retry_after {
            // Rounded up, so that a client that retries after this time is admitted.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(scopes) = self.lacks {
            let value = format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"");
            let value = HeaderValue::from_str(&value).ok();
            headers.extend(value.map(|value| (header::WWW_AUTHENTICATE, value)));
        }
        response
    }
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        tracing::error!(%error, "a journal operation failed");
        if matches!(error, journal::Error::Corrupt { .. }) {
            return Self::internal();
        }
        let detail = if error.is_damaged() {
            "the journal cannot be used"
        } else {
            "the journal cannot be reached; nothing was lost"
        };
        let detail = match error {
            // The store's own message contains no statement, path or address.
            journal::Error::Unavailable(why) => format!("{detail} ({why})"),
            _ => detail.to_owned(),
        };
        Self::new(Kind::NoJournal, detail)
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Invalid(errors) => {
                let detail = "the body is of the right shape, but breaks a rule";
                Self::with_errors(Kind::Invalid, detail, errors)
            }
            Rejected::KeyReused { run } => {
                let why = format!("run {run} has this key with another body");
                Self::new(Kind::KeyReused, why + ": use a new key for a new request")
            }
            Rejected::Spent(spent) => Self {
                retry_after: Some(spent.retry_after),
                ..Self::new(Kind::LimitSpent, spent.to_string())
            },
            Rejected::TooOften { retry_after } => {
                let seconds = retry_after.as_secs() + 1;
                let why = format!("this user asks too often; again in {seconds} s");
                Self::too_often(why, retry_after)
            }
            Rejected::Busy | Rejected::Draining => Self::new(Kind::Busy, rejected.to_string()),
            Rejected::NoSuchProposal => Self::no_such_proposal(),
            Rejected::ProposalGone(why) => Self::new(Kind::ProposalGone, why.to_string()),
            Rejected::ToolsOff => Self::new(Kind::ToolsOff, rejected.to_string()),
            Rejected::NoSuchPlan => Self::no_such_plan(),
            Rejected::PlanClosed(why) => Self::new(Kind::PlanClosed, why.to_string()),
            Rejected::Defect(detail) => {
                tracing::error!(%detail, "a request failed");
                Self::internal()
            }
            Rejected::Journal(error) => error.into(),
        }
    }
}

pub(super) async fn no_such_page() -> Problem {
    Problem::new(Kind::NoSuchPage, "no route has this path")
}

pub(super) async fn no_such_method() -> Problem {
    let detail = "the path exists, but not with this method";
    Problem::new(Kind::NoSuchMethod, detail)
}

#[allow(clippy::needless_pass_by_value, reason = "the layer hands it over")]
pub(super) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}
