//! `/health`: the process is up. `/ready`: a run can be accepted.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;
use crate::http::reference::operation::{Content, Operation, Schemas};

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

pub(in crate::http) fn about_health(schemas: &mut Schemas) -> Operation {
    let example = json!({ "status": "ok", "version": "0.1.0" });
    let content = vec![Content::json(schemas.answer::<Health>(), example)];
    let summary = "Whether the process is up";
    Operation::new("health", "service", summary).answer(200, "It is", content, &[])
}

pub(in crate::http) async fn health() -> Json<Health> {
    Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
    })
}

pub(in crate::http) fn about_ready(schemas: &mut Schemas) -> Operation {
    let content = Content::json(schemas.answer::<Ready>(), json!({ "status": "ready" }));
    Operation::new("ready", "service", "Whether a run could be accepted")
        .about("The database answers, and every role has a provider. No model is called; `conclave doctor` does that.")
        .answer(200, "It could", vec![content], &[])
        .problems(&[Kind::NotReady])
}

pub(in crate::http) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Ready>, Problem> {
    match app.ready().await {
        Ok(()) => Ok(Json(Ready { status: "ready" })),
        Err(detail) => Err(Problem::new(Kind::NotReady, detail)),
    }
}
