//! Reads the body of a request within its limits of size and time, and checks its shape.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use conclave_lenient_json::{Unambiguous, allowed_words, below};
use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::Problem;
use super::problem_kind::Kind;
use crate::app::{App, FieldProblem, bounded};
use crate::config::Limits;

/// Why a body was not accepted.
#[derive(Debug)]
pub enum Unread {
    NotJson(String),
    /// The differences from the documented shape, bounded in number.
    WrongShape(Vec<FieldProblem>),
}

impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::NotJson(detail) => Problem::new(Kind::NotJson, detail),
            Unread::WrongShape(problems) => {
                let detail = "the body is JSON, but not of the documented shape";
                Problem::with_errors(Kind::WrongShape, detail, problems)
            }
        }
    }
}

const JSON: &str = "application/json";

/// Returns the bytes of a body whose content type is JSON.
///
/// # Errors
/// 415 for another content type; as [`whole`].
async fn json_bytes(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, Problem> {
    let text = |name| headers.get(name)?.to_str().ok();
    let mut content_type = text(CONTENT_TYPE).unwrap_or("").split(';').map(str::trim);
    let kind = content_type.next();
    let is_json = kind.is_some_and(|kind| kind.eq_ignore_ascii_case(JSON));
    let is_utf8 = content_type.all(|parameter| match parameter.split_once('=') {
        Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
            let charset = charset.trim_matches('"');
            ["utf-8", "utf8"]
                .iter()
                .any(|it| charset.eq_ignore_ascii_case(it))
        }
        _ => true,
    });
    let coding = headers.get(CONTENT_ENCODING);
    if !(is_json && is_utf8) || coding.is_some_and(|coding| coding != "identity") {
        let detail = "send the body as application/json in UTF-8, without a content encoding";
        return Err(Problem::new(Kind::WrongType, detail));
    }
    let declared = text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    if declared.is_some_and(|bytes| bytes > limits.body_bytes) {
        return Err(Problem::too_large(limits.body_bytes));
    }
    whole(body, limits).await
}

/// Reads the body of a request and parses it, after checking it against the schema of its type.
///
/// # Errors
/// As [`json_bytes`] and [`shaped`].
pub(super) async fn read<T: DeserializeOwned>(
    app: &App,
    request: Request,
    shape: &Option<Validator>,
) -> Result<(Parts, T), Problem> {
    let (parts, body) = request.into_parts();
    let bytes = json_bytes(&parts.headers, body, &app.config.policy.limits).await?;
    Ok((parts, shaped(&bytes, shape.as_ref())?))
}

/// Compiles the documented shape of a body.
pub(super) fn shape<T: JsonSchema>() -> Option<Validator> {
    jsonschema::validator_for(&schemars::schema_for!(T).to_value()).ok()
}

/// Parses a body, after checking it against the schema of its type.
///
/// # Errors
/// [`Unread`].
pub(super) fn shaped<T: DeserializeOwned>(
    body: &[u8],
    shape: Option<&Validator>,
) -> Result<T, Unread> {
    // RFC 8259 allows to ignore a byte order mark, and some clients send one.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let Unambiguous(value) =
        serde_json::from_slice(body).map_err(|error| Unread::NotJson(error.to_string()))?;
    let problems = shape.map(|shape| problems_of(&value, shape));
    let problems = problems.unwrap_or_default();
    if !problems.is_empty() {
        return Err(Unread::WrongShape(problems));
    }
    serde_json::from_value(value).map_err(|error| {
        let problem = FieldProblem::new("", error.to_string());
        Unread::WrongShape(bounded(vec![problem]))
    })
}

const WRONG_TYPE: &str = "has the wrong type";
const NOT_ALLOWED: &str = "is not one of the allowed values";

/// Returns what is wrong with a value that is none of the allowed ones.
fn not_allowed(error: &ValidationErrorKind) -> String {
    match allowed_words(error).split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("must be {} or {last}", others.join(", "))
        }
        _ => NOT_ALLOWED.to_owned(),
    }
}

/// Returns the differences between a body and the documented shape.
fn problems_of(value: &Value, shape: &Validator) -> Vec<FieldProblem> {
    let mut problems = vec![];
    for error in shape.iter_errors(value) {
        let place = error.instance_path().to_string();
        let detail = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                problems.extend(
                    unexpected
                        .iter()
                        .map(|key| FieldProblem::new(below(&place, key), "unknown field")),
                );
                continue;
            }
            ValidationErrorKind::Required { property } => {
                let field = property.as_str().unwrap_or_default();
                problems.push(FieldProblem::new(format!("{place}/{field}"), "is missing"));
                continue;
            }
            // `check` reports violations of these rules in full.
            ValidationErrorKind::MinLength { .. }
            | ValidationErrorKind::MaxLength { .. }
            | ValidationErrorKind::MaxItems { .. }
            | ValidationErrorKind::Pattern { .. }
            | ValidationErrorKind::Format { .. } => continue,
            // The validator's message would repeat the client's value, which may be long.
            ValidationErrorKind::Type { kind } => match kind {
                TypeKind::Single(kind) => format!("{WRONG_TYPE}: not {kind}"),
                TypeKind::Multiple(_) => WRONG_TYPE.to_owned(),
            },
            ValidationErrorKind::Minimum { limit } => format!("is less than {limit}"),
            ValidationErrorKind::Maximum { limit } => format!("is more than {limit}"),
            kind => not_allowed(kind),
        };
        problems.push(FieldProblem::new(place, detail));
    }
    // A value of the wrong type is not one of the allowed values either.
    problems.dedup_by(|next, first| {
        next.pointer == first.pointer && first.detail.starts_with(WRONG_TYPE)
    });
    bounded(problems)
}

/// Reads the whole body.
///
/// # Errors
/// 413 if it is too large, 408 if it does not arrive in time, 400 if it breaks off.
async fn whole(body: Body, limits: &Limits) -> Result<Bytes, Problem> {
    let most = limits.body_bytes;
    let read = axum::body::to_bytes(body, most);
    match tokio::time::timeout(Duration::from_secs(limits.body_seconds), read).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(Problem::too_large(most)),
        Ok(Err(_)) => {
            let detail = "the body broke off, or its framing is wrong";
            Err(Problem::new(Kind::NotJson, detail))
        }
        Err(_) => {
            let detail = "the body did not arrive in time, or the connection broke";
            Err(Problem::new(Kind::TooSlow, detail))
        }
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |&error| error.source());
    causes.any(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}
