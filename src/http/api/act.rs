//! `POST /api/act`: maps free text to one command.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;

use super::chat;
use super::runs::{Id, of_run, parse};
use crate::app::{Acted, ActionInput, App, Confirmation, RequestIds};
use crate::http::body::{read, shape};
use crate::http::error::Problem;
use crate::http::request_id;

static ACT: LazyLock<Option<Validator>> = LazyLock::new(shape::<ActionInput>);
static CONFIRM: LazyLock<Option<Validator>> = LazyLock::new(shape::<Confirmation>);

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, input) = read::<ActionInput>(&app, request, &ACT).await?;
    let ids = RequestIds {
        idempotency_key: chat::idempotency_key(&parts.headers)?,
        correlation_id: request_id::correlation_id(&parts.headers),
    };
    let request = app.action_request(input)?;
    Ok(answer(app.act(request, ids).await?))
}

pub(in crate::http) async fn confirm(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let proposal = parse(id).map_err(|_| Problem::no_such_proposal())?;
    let idempotency_key = chat::idempotency_key(request.headers())?;
    let (_, confirmation) = read(&app, request, &CONFIRM).await?;
    let key = idempotency_key.as_deref();
    Ok(answer(app.confirm(proposal, confirmation, key).await?))
}

fn answer(acted: Acted) -> Response {
    match acted.run {
        Some(run) => of_run(run, acted.response),
        None => Json(acted.response).into_response(),
    }
}
