//! `/health`: the process is up. `/ready`: a run can be accepted.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct Health {
    #[schemars(extend("const" = "ok"))]
    status: &'static str,
    version: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct Ready {
    #[schemars(extend("const" = "ready"))]
    status: &'static str,
}

pub(in crate::http) async fn health() -> Json<Health> {
    Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
    })
}

pub(in crate::http) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Ready>, Problem> {
    match app.ready().await {
        Ok(()) => Ok(Json(Ready { status: "ready" })),
        Err(detail) => Err(Problem::new(Kind::NotReady, detail)),
    }
}
