//! `POST /api/plans` and what belongs to it: plans of tool calls, authorizations, executions.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chat::{READING, set_run};
use super::quote::{QuoteBody, priced};
use super::runs::{Id, parse};
use crate::app::{ActionInput, App, Authorization, AuthorizeOutcome, RequestIds, Submitted};
use crate::domain::{Context, EvidenceFocus, RunId, Source, ToolPlan, User};
use crate::http::body::{json_bytes, shape, shaped};
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;
use crate::http::reference::operation::{Content, Operation, Schemas};
use crate::http::request_id;
use crate::journal::Ending;
use crate::tools::answers::{AuthorizeMode, AuthorizedBody, ExecutionView, PlanView};

/// A request for a plan of tool calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct PlanBody {
    source: Source,
    user: User,
    context: Context,
    /// Counted after trimming. Without NUL.
    #[schemars(
        length(min = 1, max = 32000),
        regex(pattern = r"^[^\u0000]*[^\s\u0000][^\u0000]*$")
    )]
    message: String,
    /// The file that the user looks at, relative to the workspace.
    #[schemars(length(min = 1, max = 4096))]
    file: Option<String>,
    /// The code of the diagnostic that the user looks at, such as `E0425`.
    #[schemars(length(min = 1, max = 200))]
    diagnostic: Option<String>,
}

/// What the user of a plan authorizes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct AuthorizeBody {
    source: Source,
    user: User,
    /// Default: that of the plan.
    context: Option<Context>,
    mode: AuthorizeMode,
    /// With the mode `step`: the step, which must be the next one. Default: the next one.
    #[schemars(length(min = 1, max = 40))]
    step_id: Option<String>,
    /// With the mode `modified`: the plan as the user changed it. It is checked again. Other modes
    /// ignore it.
    #[serde(default)]
    #[schemars(with = "ToolPlan")]
    plan: Option<ToolPlan>,
}

/// Who takes the changes of an execution back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct UndoBody {
    source: Source,
    user: User,
}

fn example() -> Value {
    json!({
        "source": "http",
        "user": { "id": "8112", "name": "Ada" },
        "context": {},
        "message": "Fix the E0425 error in src/lib.rs",
        "file": "src/lib.rs",
        "diagnostic": "E0425",
    })
}

fn plan_example() -> Value {
    let step = json!({ "step_id": "step_1", "tool": "file_read", "arguments": { "path": "src/lib.rs" },
                       "precondition": "file exists", "requires_confirmation": false });
    let id = "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182";
    json!({
        "planId": id, "state": "proposed",
        "plan": { "plan_id": id, "intent": "READ", "steps": [step], "evidence_referenced": [] },
        "rejection": null, "changes": [], "modified": null, "budget": budget_example(), "evidence": {}, "executions": [], "nextStep": "step_1",
    })
}

fn budget_example() -> Value {
    let call = json!({ "call": "tool_plan", "model": "claude-sonnet-5-5", "state": "answered", "promptHash": "9f3a", "inputTokens": 2100,
                       "outputTokens": 90, "latencyMs": 1900, "costUsd": 0.0051 });
    json!({ "capUsd": 0.1, "spentUsd": 0.0051, "calls": [call] })
}

fn execution_example() -> Value {
    let id = "019b2c4e-8a00-7aa1-b2c3-0d4e5f607182";
    json!({
        "executionId": id, "planId": "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182", "state": "completed",
        "request": "Show src/lib.rs", "prompt": { "input": "User request: Show src/lib.rs", "promptsHash": "5f2b", "model": null },
        "evidence": {}, "plan": plan_example().get("plan"),
        "proposed": null,
        "authorization": { "mode": "plan", "by": "Ada (8112)", "steps": ["step_1"], "undoes": null },
        "steps": [{ "stepId": "step_1", "tool": "file_read", "ok": true, "output": "fn main() {}\n", "error": null,
                    "inDoubt": false, "changed": [], "value": null }],
        "explanation": { "text": "src/lib.rs has 1 line.", "source": "model", "rejected": [] },
        "budget": budget_example(),
    })
}

/// Why a run of tools may not begin.
const BEGINNING: &[Kind] = &[
    Kind::ToolsOff,
    Kind::LimitSpent,
    Kind::Busy,
    Kind::NoJournal,
];
/// Why a run of tools may give no answer.
const ENDING: &[Kind] = &[Kind::OverBudget, Kind::ProviderFailed, Kind::Deadline];
const UNKNOWN: &[Kind] = &[Kind::NoSuchPlan, Kind::NoJournal];

fn about(name: &'static str, title: &'static str) -> Operation {
    Operation::new(name, "plans", title)
}

pub(in crate::http) fn about_post(schemas: &mut Schemas) -> Operation {
    let plan = Content::json(schemas.answer::<PlanView>(), plan_example());
    about("plan", "A plan of tool calls")
        .about(
            "A model proposes steps with the tools of the workspace, and nothing is executed. The plan is checked by fixed \
             rules: a rejected one has `rejection` with status 200. The same request with the same evidence, tools, prompts \
             and model gets the same stored plan. `X-Request-Id` is the plan's run: it has a journal like every run.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @plan.json")
        .body(schemas.request::<PlanBody>(), example())
        .answer(200, "The plan, and why it is rejected, if it is", vec![plan], &[])
        .problems(READING)
        .problems(&[Kind::Invalid])
        .problems(BEGINNING)
        .problems(ENDING)
}

pub(in crate::http) fn about_quote(schemas: &mut Schemas) -> Operation {
    let quoted = json!({ "capUsd": 0.1, "expectedUsd": 0.0172, "worstUsd": 0.1, "calls": 2 });
    let price = Content::json(schemas.answer::<QuoteBody>(), quoted);
    about("quotePlan", "What a plan would cost")
        .about(
            "Takes the body of a request for a plan: the price of the plan with the explanation of one execution. The tools \
             cost nothing. Nothing is bought and nothing is stored.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @plan.json")
        .body(schemas.request::<PlanBody>(), example())
        .answer(200, "The price", vec![price], &[])
        .problems(READING)
        .problems(&[Kind::Invalid, Kind::ToolsOff, Kind::OverBudget, Kind::NoJournal])
}

pub(in crate::http) fn about_get(schemas: &mut Schemas) -> Operation {
    let plan = Content::json(schemas.answer::<PlanView>(), plan_example());
    about("getPlan", "A plan with its executions")
        .path("id", super::run_bodies::id(), "The plan.")
        .answer(200, "The plan", vec![plan], &[])
        .problems(UNKNOWN)
        .problems(&[Kind::PlanClosed])
}

pub(in crate::http) fn about_authorize(schemas: &mut Schemas) -> Operation {
    let body = json!({ "execution": execution_example(), "rejection": null });
    let done = Content::json(schemas.answer::<AuthorizedBody>(), body);
    let example =
        json!({ "source": "http", "user": { "id": "8112", "name": "Ada" }, "mode": "plan" });
    about("authorizePlan", "Execute steps of a plan")
        .about(
            "By the user of the plan: the same `source` and `user.id`. Steps run in order; what has to hold is checked right \
             before each; a failure halts the plan, and nothing is tried again. Each step is executed once. The answer comes \
             when the steps have ended.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @authorization.json")
        .path("id", super::run_bodies::id(), "The plan.")
        .body(schemas.request::<AuthorizeBody>(), example)
        .answer(200, "The execution, or why a changed plan is rejected", vec![done], &[])
        .problems(READING)
        .problems(&[Kind::NoSuchPlan, Kind::PlanClosed])
        .problems(BEGINNING)
}

pub(in crate::http) fn about_undo(schemas: &mut Schemas) -> Operation {
    let done = Content::json(schemas.answer::<ExecutionView>(), execution_example());
    let example = json!({ "source": "http", "user": { "id": "8112", "name": "Ada" } });
    about("undoExecution", "Take the changes of an execution back")
        .about(
            "By the user of the plan, once. The last change is taken back first. A file that was changed since halts; it \
             stays as it is.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @undo.json")
        .path("id", super::run_bodies::id(), "The execution.")
        .body(schemas.request::<UndoBody>(), example)
        .answer(200, "The execution that took the changes back", vec![done], &[])
        .problems(READING)
        .problems(&[Kind::NoSuchPlan, Kind::PlanClosed])
        .problems(BEGINNING)
}

pub(in crate::http) fn about_execution(schemas: &mut Schemas) -> Operation {
    let done = Content::json(schemas.answer::<ExecutionView>(), execution_example());
    let what =
        "Request, evidence, prompt, plan, authorization, each step with its output, explanation.";
    about("getExecution", "An execution with all that led to it")
        .about(what)
        .path("id", super::run_bodies::id(), "The execution.")
        .answer(200, "The execution", vec![done], &[])
        .problems(UNKNOWN)
}

static PLAN: LazyLock<Option<Validator>> = LazyLock::new(shape::<PlanBody>);
static UNDO: LazyLock<Option<Validator>> = LazyLock::new(shape::<UndoBody>);
static AUTHORIZE: LazyLock<Option<Validator>> = LazyLock::new(shape::<AuthorizeBody>);

/// Reads and checks the body of a request.
async fn read<T: DeserializeOwned>(
    app: &App,
    request: Request,
    shape: &Option<Validator>,
) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = json_bytes(&parts.headers, body, &app.config.policy.limits).await?;
    Ok(shaped(&bytes, shape.as_ref())?)
}

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
    let finished = app.finished(run).await?.ok_or_else(Problem::no_such_run)?;
    match &finished.ending {
        Ending::Acted { .. } => Ok(()),
        ending => Err(Problem::ended(run, ending)),
    }
}

/// Answers with a body of a run.
fn of_run(run: RunId, body: impl Serialize) -> Response {
    let mut response = Json(body).into_response();
    set_run(&mut response, run);
    response
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
    let (action, focus) = read::<PlanBody>(&app, request, &PLAN).await?.parts();
    let Submitted { run, .. } = app.plan_tools(action, focus, ids).await?;
    ended(&app, run).await?;
    let view = app.tool_plan(run).await?;
    Ok(of_run(run, view.ok_or_else(Problem::no_such_plan)?))
}

/// Quotes a plan. No call is made and nothing is stored.
pub(in crate::http) async fn quote(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<QuoteBody>, Problem> {
    let (action, focus) = read::<PlanBody>(&app, request, &PLAN).await?.parts();
    priced(app.quote_plan(action, focus).await?)
}

pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    id: Id,
) -> Result<Json<PlanView>, Problem> {
    let id = known(id)?;
    let why = "the plan is not finished, or its run failed";
    let unfinished = || Problem::new(Kind::PlanClosed, why).of(id);
    let plan = app.tool_plan(id).await?;
    Ok(Json(plan.ok_or_else(unfinished)?))
}

pub(in crate::http) async fn authorize(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let plan = known(id)?;
    let body: AuthorizeBody = read(&app, request, &AUTHORIZE).await?;
    let given = Authorization {
        plan,
        source: body.source,
        user: body.user,
        context: body.context,
        mode: body.mode,
        step_id: body.step_id,
        changed: body.plan,
    };
    let (mut execution, mut rejection) = (None, None);
    let run = match app.authorize(given).await? {
        AuthorizeOutcome::Begun(run) => {
            ended(&app, run).await?;
            execution = Some(app.execution(run).await?);
            run
        }
        AuthorizeOutcome::Refused(refused) => {
            rejection = Some(*refused);
            plan
        }
    };
    let body = AuthorizedBody {
        execution,
        rejection,
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
    let UndoBody { source, user } = read(&app, request, &UNDO).await?;
    let Submitted { run, .. } = app.undo(id, source, user).await?;
    ended(&app, run).await?;
    Ok(of_run(run, app.execution(run).await?))
}
