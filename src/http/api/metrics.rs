//! `/metrics`: the counters of the process in Prometheus text format. Also counts the responses.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::{counter, histogram};
use tokio::time::Instant;

use crate::app::App;

pub(in crate::http) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics())
}

/// The methods that have a label of their own.
const METHODS: [&str; 7] = ["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"];

/// Counts a response under the pattern of its route and never under the requested path. So the set
/// of labels stays bounded.
pub(in crate::http) async fn count(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let method = METHODS.into_iter().find(|it| *request.method() == *it);
    let method = method.unwrap_or("other");
    let started = Instant::now();
    let response = next.run(request).await;
    let mut labels = vec![("method", method.to_owned()), ("route", route)];
    histogram!("conclave_http_request_seconds", &labels).record(started.elapsed().as_secs_f64());
    labels.push(("status", response.status().as_u16().to_string()));
    counter!("conclave_http_requests_total", &labels).increment(1);
    response
}
