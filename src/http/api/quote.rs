//! `POST /api/quote`: the price of a question before it is asked.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Value, json};

use super::chat::read;
use crate::app::{App, Rejected, check};
use crate::http::error::Problem;

/// The body is a chat's. Nothing is bought and nothing is stored.
pub(in crate::http) async fn post(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, Problem> {
    let (parts, body) = request.into_parts();
    let limits = &app.config.policy.limits;
    let mut question = read(&parts.headers, body, limits).await?;
    let problems = check(&mut question, limits);
    if !problems.is_empty() {
        return Err(Rejected::Invalid(problems).into());
    }
    let quote = app.quote(&question);
    Ok(Json(json!({
        "capUsd": quote.cap.dollars(),
        "expectedUsd": quote.expected.dollars(),
        "worstUsd": quote.worst.dollars(),
        "calls": quote.calls,
    })))
}
