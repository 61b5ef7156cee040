//! `POST /api/act`: maps free text to one command.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Deserialize;

use super::chat;
use super::runs::{Id, of_run, parse};
use crate::app::{Acted, ActionInput, App, Confirmation, RequestIds};
use crate::domain::{Context, Source, User};
use crate::http::body::{read, shape};
use crate::http::error::Problem;
use crate::http::request_id;

/// The confirmation of the user for whom a command was proposed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct ConfirmBody {
    source: Source,
    user: User,
    /// Default: that of the proposal.
    context: Option<Context>,
    /// Ignored; accepted so that the body of the action can be sent again.
    #[serde(rename = "message")]
    #[schemars(length(max = 32000))]
    _message: Option<String>,
    /// Which choice of the proposal; default 1, the first.
    // In JSON `2.0` is the same whole number as `2`. The schema admits no other number.
    #[serde(default)]
    #[schemars(with = "Option<usize>", range(min = 1, max = 3))]
    choice: Option<f64>,
}

static ACT: LazyLock<Option<Validator>> = LazyLock::new(shape::<ActionInput>);
static CONFIRM: LazyLock<Option<Validator>> = LazyLock::new(shape::<ConfirmBody>);

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
    let (_, body) = read::<ConfirmBody>(&app, request, &CONFIRM).await?;
    let confirmation = Confirmation {
        source: body.source,
        user: body.user,
        context: body.context,
        choice: body.choice.map_or(1, |choice| choice as usize),
    };
    let key = idempotency_key.as_deref();
    Ok(answer(app.confirm(proposal, confirmation, key).await?))
}

fn answer(acted: Acted) -> Response {
    match acted.run {
        Some(run) => of_run(run, acted.response),
        None => Json(acted.response).into_response(),
    }
}
