//! `POST /api/act`: maps free text to one command.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chat::{self, READING, set_run};
use super::runs::{Id, parse};
use crate::actions::reply::Reply;
use crate::app::{Acted, ActionInput, App, Confirmation, RequestIds};
use crate::domain::{Context, Source, User};
use crate::http::body::{Unread, json_bytes, shape, shaped};
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;
use crate::http::reference::operation::{Content, Operation, Schemas};
use crate::http::request_id;

/// The confirmation of the user for whom a command was proposed.
#[derive(Debug, Deserialize, JsonSchema)]
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
    #[serde(default, deserialize_with = "whole")]
    #[schemars(with = "Option<usize>", range(min = 1, max = 3))]
    choice: Option<usize>,
}

/// Reads a whole number, also one that is written as `2.0`: in JSON it is the same number.
fn whole<'de, D: serde::Deserializer<'de>>(number: D) -> Result<Option<usize>, D::Error> {
    let number = Option::<f64>::deserialize(number)?;
    let Some(number) = number else {
        return Ok(None);
    };
    if number.fract() != 0.0 || !(0.0..=1000.0).contains(&number) {
        return Err(serde::de::Error::custom("is not a whole number"));
    }
    Ok(Some(number as usize))
}

fn example() -> Value {
    json!({
        "source": "discord",
        "user": { "id": "8112", "name": "Ada" },
        "context": { "channelId": "c1", "guildId": "g1" },
        "message": "roll 2d6+3 for damage",
    })
}

fn reply_example() -> Value {
    let dice = json!([{ "expression": "2d6", "rolls": [{ "value": 4, "kept": true }, { "value": 2, "kept": true }] }]);
    let result = json!({ "text": "damage: 2d6 (4, 2) + 3 = 9", "total": 9, "dice": dice, "label": "damage" });
    let parameters = json!({ "expression": "2d6+3", "label": "damage" });
    json!({
        "intent": { "action": "roll", "parameters": parameters, "confidence": 1.0 },
        "mode": "deterministic",
        "executed": true,
        "actions": [{ "action": "roll", "result": result }],
    })
}

pub(in crate::http) fn about_post(schemas: &mut Schemas) -> Operation {
    let reply = Content::json(schemas.answer::<Reply>(), reply_example());
    Operation::new("act", "actions", "Free text to one command")
        .about(
            "Fixed rules understand explicit commands and clear phrasings; then the command is executed and no model is \
             asked (`mode` is `deterministic`). Dice in first-person prose (\"I roll 2d6\") are offered, and executed once the \
             user confirms them. Else, if that is switched on, a model proposes one command (`mode` is `llm_proposal`), \
             which is executed only once the user confirms it, with few exceptions. A text that is not understood or not \
             allowed gets an answer too: `error`, `message` and `ephemeral` with status 200.\n\n\
             `X-Request-Id` is the action's run: it has a journal like every run.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @action.json")
        .header(
            "Idempotency-Key",
            json!({ "type": "string", "pattern": "^[!-~]{1,255}$" }),
            "Repetitions with the same key and body get the stored answer, and do nothing again. Without it, `source` and \
             `context.messageId` together are the key.",
        )
        .body(schemas.request::<ActionInput>(), example())
        .answer(200, "What was done, is proposed, or why nothing was done", vec![reply], &[])
        .problems(READING)
        .problems(&[
            Kind::WrongParameter,
            Kind::Invalid,
            Kind::KeyReused,
            Kind::LimitSpent,
            Kind::Busy,
            Kind::NoJournal,
        ])
}

pub(in crate::http) fn about_confirm(schemas: &mut Schemas) -> Operation {
    let reply = Content::json(schemas.answer::<Reply>(), reply_example());
    let example = json!({
        "source": "discord", "user": { "id": "8112", "name": "Ada" }, "context": { "channelId": "c1", "guildId": "g1" },
    });
    Operation::new("confirmProposal", "actions", "Have a proposed command executed")
        .about(
            "Once, before it expires, and only by the user for whom it was proposed: the same `source`, `user.id` and, if \
             `context` is given, `context.guildId`. That of another user is not found.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @confirmation.json")
        .header(
            "Idempotency-Key",
            json!({ "type": "string", "pattern": "^[!-~]{1,255}$" }),
            "A repetition with the same key and choice gets the stored answer.",
        )
        .path("id", super::run_bodies::id(), "The proposal.")
        .body(schemas.request::<ConfirmBody>(), example)
        .answer(200, "What was done, or why nothing was done", vec![reply], &[])
        .problems(READING)
        .problems(&[Kind::WrongParameter, Kind::Invalid, Kind::NoSuchProposal, Kind::ProposalGone, Kind::NoJournal, Kind::Busy])
}

static ACT: LazyLock<Option<Validator>> = LazyLock::new(shape::<ActionInput>);
static CONFIRM: LazyLock<Option<Validator>> = LazyLock::new(shape::<ConfirmBody>);

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = json_bytes(&parts.headers, body, &app.config.policy.limits).await?;
    let ids = RequestIds {
        idempotency_key: chat::idempotency_key(&parts.headers)?,
        correlation_id: request_id::correlation_id(&parts.headers),
    };
    let request = app.action_request(action(&bytes)?)?;
    Ok(answer(app.act(request, ids).await?))
}

/// Parses the body of an action.
///
/// # Errors
/// [`Unread`]: it is not JSON, or it differs from the documented shape.
pub fn action(body: &[u8]) -> Result<ActionInput, Unread> {
    shaped(body, ACT.as_ref())
}

pub(in crate::http) async fn confirm(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let proposal = parse(id).map_err(|_| Problem::no_such_proposal())?;
    let (parts, body) = request.into_parts();
    let idempotency_key = chat::idempotency_key(&parts.headers)?;
    let bytes = json_bytes(&parts.headers, body, &app.config.policy.limits).await?;
    let ConfirmBody {
        source,
        user,
        context,
        choice,
        ..
    } = shaped(&bytes, CONFIRM.as_ref())?;
    let confirmation = Confirmation {
        proposal,
        source,
        user,
        context,
        choice: choice.unwrap_or(1),
        idempotency_key,
    };
    Ok(answer(app.confirm(confirmation).await?))
}

fn answer(acted: Acted) -> Response {
    let mut response = Json(acted.response).into_response();
    if let Some(run) = acted.run {
        set_run(&mut response, run);
    }
    response
}
