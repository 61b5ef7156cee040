//! The id of every response: that of the run if there is one, else the client's own or a new one.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::clock::Clock;
use crate::domain::RunId;

tokio::task_local! {
    /// The id of the current request.
    static REQUEST_ID: String;
}

pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Returns the client's id if it is well-formed: 1 to 128 letters, digits, dots, dashes or
/// underscores.
pub(super) fn correlation_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(HEADER)?.to_str().ok()?;
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    ((1..=128).contains(&id.len()) && id.chars().all(fine)).then(|| id.to_owned())
}

/// Sets the id of a response to that of its run.
pub(super) fn set_run(headers: &mut HeaderMap, run: RunId) {
    let value = HeaderValue::from_str(&run.to_string()).ok();
    headers.extend(value.map(|value| (HEADER, value)));
}

/// Returns the id of the request that this task handles.
pub(super) fn current() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

/// Runs `work` for the request with this id.
pub(super) fn with<T>(id: String, work: impl FnOnce() -> T) -> T {
    REQUEST_ID.sync_scope(id, work)
}

/// Gives every request an id. Every response gets a header with it, unless it already has the run's
/// id. An id that contains a configured secret is replaced by a new one.
pub(super) async fn assign(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = correlation_id(request.headers())
        .filter(|id| app.redacted(id) == id.as_str())
        .unwrap_or_else(|| Clock::System.new_id().to_string());
    let mut response = REQUEST_ID.scope(id.clone(), next.run(request)).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().entry(HEADER).or_insert(value);
    }
    response
}
