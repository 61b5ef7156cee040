//! `POST /api/plans` and what belongs to it: plans of tool calls, authorizations, executions.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Deserialize;

use super::quote::{QuoteBody, priced};
use super::runs::{Id, end_of, of_run, parse};
use crate::app::{ActionInput, App, Authorization, AuthorizeOutcome, MESSAGE, RequestIds};
use crate::domain::{Context, EvidenceFocus, RunId, Source, User};
use crate::http::body::{read, shape};
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;
use crate::http::request_id;
use crate::journal::Ending;
use crate::tools::answers::{AuthorizedBody, ExecutionView, PlanView};

/// A request for a plan of tool calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct PlanBody {
    source: Source,
    user: User,
    context: Context,
    /// Counted after trimming. Without NUL.
    #[schemars(length(min = 1, max = 32000), regex(pattern = MESSAGE))]
    message: String,
    /// The file that the user looks at, relative to the workspace.
    #[schemars(length(min = 1, max = 4096))]
    file: Option<String>,
    /// The code of the diagnostic that the user looks at, such as `E0425`.
    #[schemars(length(min = 1, max = 200))]
    diagnostic: Option<String>,
}

/// Who takes the changes of an execution back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct UndoBody {
    source: Source,
    user: User,
}

static PLAN: LazyLock<Option<Validator>> = LazyLock::new(shape::<PlanBody>);
static UNDO: LazyLock<Option<Validator>> = LazyLock::new(shape::<UndoBody>);
static AUTHORIZE: LazyLock<Option<Validator>> = LazyLock::new(shape::<Authorization>);

impl PlanBody {
    fn parts(self) -> (ActionInput, EvidenceFocus) {
        let focus = EvidenceFocus {
            file: self.file,
            diagnostic: self.diagnostic,
            no_index: None,
        };
        let action = ActionInput {
            source: self.source,
            user: self.user,
            context: self.context,
            message: self.message,
        };
        (action, focus)
    }
}

/// Waits for the end of a plan's or an execution's run.
async fn ended(app: &App, run: RunId) -> Result<(), Problem> {
    match &end_of(app, run).await? {
        Ending::Acted { .. } => Ok(()),
        Ending::Cancelled if app.execution(run).await.is_ok() => {
            let detail =
                format!("execution {run} was cancelled; GET /api/executions/{run} has its steps");
            Err(Problem::conflict(detail).of(run))
        }
        ending => Err(Problem::ended(run, ending)),
    }
}

fn known(id: Id) -> Result<RunId, Problem> {
    parse(id).map_err(|_| Problem::no_such_plan())
}

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let ids = RequestIds {
        idempotency_key: None,
        correlation_id: request_id::correlation_id(request.headers()),
    };
    let (_, body) = read::<PlanBody>(&app, request, &PLAN).await?;
    let (action, focus) = body.parts();
    let run = app.plan_tools(action, focus, ids).await?;
    ended(&app, run).await?;
    let view = app.tool_plan(run).await?;
    Ok(of_run(run, view.ok_or_else(Problem::no_such_plan)?))
}

/// Quotes a plan. No call is made and nothing is stored.
pub(in crate::http) async fn quote(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<QuoteBody>, Problem> {
    let (_, body) = read::<PlanBody>(&app, request, &PLAN).await?;
    let (action, focus) = body.parts();
    priced(app.quote_plan(action, focus).await?)
}

pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    id: Id,
) -> Result<Json<PlanView>, Problem> {
    let id = known(id)?;
    match app.tool_plan(id).await? {
        Some(plan) => Ok(Json(plan)),
        None => {
            let why = app.why_unplanned(id).await?;
            Err(Problem::new(Kind::PlanClosed, why.to_string()).of(id))
        }
    }
}

pub(in crate::http) async fn authorize(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let plan = known(id)?;
    let (_, given) = read(&app, request, &AUTHORIZE).await?;
    let (mut execution, mut rejection, mut changes) = (None, None, None);
    let run = match app.authorize(plan, given).await? {
        AuthorizeOutcome::Begun(run) => {
            ended(&app, run).await?;
            execution = Some(app.execution(run).await?);
            run
        }
        AuthorizeOutcome::Refused(refused) => {
            rejection = Some(*refused);
            plan
        }
        AuthorizeOutcome::Checked(checked) => {
            changes = Some(checked);
            plan
        }
    };
    let body = AuthorizedBody {
        execution,
        rejection,
        changes,
    };
    Ok(of_run(run, body))
}

pub(in crate::http) async fn execution(
    State(app): State<Arc<App>>,
    id: Id,
) -> Result<Json<ExecutionView>, Problem> {
    Ok(Json(app.execution(known(id)?).await?))
}

pub(in crate::http) async fn undo(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let id = known(id)?;
    let (_, UndoBody { source, user }) = read(&app, request, &UNDO).await?;
    let run = app.undo(id, source, user).await?;
    ended(&app, run).await?;
    Ok(of_run(run, app.execution(run).await?))
}
