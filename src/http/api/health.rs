//! `/health`: the process is up. `/ready`: a run could be taken on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::error::Problem;

pub(in crate::http) async fn health() -> Json<Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

pub(in crate::http) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Value>, Problem> {
    match app.ready().await {
        Ok(()) => Ok(Json(json!({ "status": "ready" }))),
        Err(detail) => Err(Problem::not_ready(detail)),
    }
}
