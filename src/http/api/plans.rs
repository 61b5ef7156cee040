//! `POST /api/plans` and what belongs to it: plans of tool calls, authorizations, executions.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chat::{ContextBody, READING, UserBody, set_run};
use super::quote::{QuoteBody, priced};
use super::runs::{Id, parse};
use crate::app::{
    App, Authorization, AuthorizedSteps, Authorizing, PlanInput, RequestIds, Submitted,
};
use crate::domain::{EvidenceFocus, RunId, Source, ToolPlan};
use crate::http::body::{Unread, json_bytes, shape, shaped};
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;
use crate::http::reference::operation::{Content, Operation, Schemas};
use crate::http::request_id;
use crate::journal::{Ending, Rejection};
use crate::tools::answers::{ExecutionView, PlanView};

/// A request for a plan of tool calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct PlanBody {
    source: Source,
    user: UserBody,
    context: ContextBody,
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
    user: UserBody,
    /// Default: that of the plan.
    context: Option<ContextBody>,
    mode: AuthorizeMode,
    /// With the mode `step`: the step, which must be the next one. Default: the next one.
    #[schemars(length(min = 1, max = 40))]
    step_id: Option<String>,
    /// With the mode `modified`: the plan as the user changed it. It is checked again. Other modes
    /// ignore it.
    plan: Option<ToolPlan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AuthorizeMode {
    /// One step.
    Step,
    /// All steps that are left.
    Plan,
    /// All steps of the given plan.
    Modified,
}

/// Who takes the changes of an execution back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct UndoBody {
    source: Source,
    user: UserBody,
}

/// The outcome of an authorization: the execution, or why the changed plan is rejected.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct AuthorizedBody {
    execution: Option<ExecutionView>,
    rejection: Option<Rejection>,
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
        "authorization": { "mode": "plan", "by": "Ada (8112)", "steps": ["step_1"], "undoes": null },
        "steps": [{ "stepId": "step_1", "tool": "file_read", "ok": true, "output": "fn main() {}\n", "error": null,
                    "inDoubt": false, "changed": [], "value": null }],
        "explanation": { "text": "src/lib.rs has 1 line.", "source": "model", "rejected": [] },
        "budget": budget_example(),
    })
}

pub(in crate::http) fn about_post(schemas: &mut Schemas) -> Operation {
    let plan = Content::json(schemas.answer::<PlanView>(), plan_example());
    Operation::new("plan", "plans", "A plan of tool calls")
        .about(
            "A model proposes steps with the tools of the workspace, and nothing is executed. The plan is checked by fixed \
             rules: a rejected one has `rejection` with status 200. The same request with the same evidence, tools, prompts \
             and model gets the same stored plan. `X-Request-Id` is the plan's run: it has a journal like every run.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @plan.json")
        .body(schemas.request::<PlanBody>(), example())
        .answer(200, "The plan, and why it is rejected, if it is", vec![plan], &[])
        .problems(READING)
        .problems(&[
            Kind::Invalid,
            Kind::ToolsOff,
            Kind::LimitSpent,
            Kind::OverBudget,
            Kind::ProviderFailed,
            Kind::Deadline,
            Kind::Busy,
            Kind::NoJournal,
        ])
}

pub(in crate::http) fn about_quote(schemas: &mut Schemas) -> Operation {
    let quoted = json!({ "capUsd": 0.1, "expectedUsd": 0.0172, "worstUsd": 0.1, "calls": 2 });
    let price = Content::json(schemas.answer::<QuoteBody>(), quoted);
    Operation::new("quotePlan", "plans", "What a plan would cost")
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
    Operation::new("getPlan", "plans", "A plan with its executions")
        .path("id", super::run_bodies::id(), "The plan.")
        .answer(200, "The plan", vec![plan], &[])
        .problems(&[Kind::NoSuchPlan, Kind::PlanClosed, Kind::NoJournal])
}

pub(in crate::http) fn about_authorize(schemas: &mut Schemas) -> Operation {
    let done = Content::json(
        schemas.answer::<AuthorizedBody>(),
        json!({ "execution": execution_example(), "rejection": null }),
    );
    let example =
        json!({ "source": "http", "user": { "id": "8112", "name": "Ada" }, "mode": "plan" });
    Operation::new("authorizePlan", "plans", "Execute steps of a plan")
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
        .problems(&[
            Kind::NoSuchPlan,
            Kind::PlanClosed,
            Kind::ToolsOff,
            Kind::LimitSpent,
            Kind::Busy,
            Kind::NoJournal,
        ])
}

pub(in crate::http) fn about_undo(schemas: &mut Schemas) -> Operation {
    let done = Content::json(schemas.answer::<ExecutionView>(), execution_example());
    let example = json!({ "source": "http", "user": { "id": "8112", "name": "Ada" } });
    Operation::new("undoExecution", "plans", "Take the changes of an execution back")
        .about(
            "By the user of the plan, once. The last change is taken back first. A file that was changed since halts; it \
             stays as it is.",
        )
        .sample(" -H \"Content-Type: application/json\" -d @undo.json")
        .path("id", super::run_bodies::id(), "The execution.")
        .body(schemas.request::<UndoBody>(), example)
        .answer(200, "The execution that took the changes back", vec![done], &[])
        .problems(READING)
        .problems(&[
            Kind::NoSuchPlan,
            Kind::PlanClosed,
            Kind::ToolsOff,
            Kind::LimitSpent,
            Kind::Busy,
            Kind::NoJournal,
        ])
}

pub(in crate::http) fn about_execution(schemas: &mut Schemas) -> Operation {
    let done = Content::json(schemas.answer::<ExecutionView>(), execution_example());
    Operation::new(
        "getExecution",
        "plans",
        "An execution with all that led to it",
    )
    .about(
        "Request, evidence, prompt, plan, authorization, each step with its output, explanation.",
    )
    .path("id", super::run_bodies::id(), "The execution.")
    .answer(200, "The execution", vec![done], &[])
    .problems(&[Kind::NoSuchPlan, Kind::NoJournal])
}

static PLAN: LazyLock<Option<Validator>> = LazyLock::new(shape::<PlanBody>);
static UNDO: LazyLock<Option<Validator>> = LazyLock::new(shape::<UndoBody>);
static AUTHORIZE: LazyLock<Option<Validator>> = LazyLock::new(shape::<AuthorizeBody>);

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, bytes) = read(&app, request).await?;
    let ids = RequestIds {
        idempotency_key: None,
        correlation_id: request_id::correlation_id(&parts.headers),
    };
    let Submitted { run, .. } = app.plan_tools(plan(&bytes)?, ids).await?;
    ended(&app, run).await?;
    let view = app
        .tool_plan(run)
        .await?
        .ok_or_else(Problem::no_such_plan)?;
    let mut response = Json(view).into_response();
    set_run(&mut response, run);
    Ok(response)
}

/// Quotes a plan. No call is made and nothing is stored.
pub(in crate::http) async fn quote(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<QuoteBody>, Problem> {
    let (_, bytes) = read(&app, request).await?;
    priced(app.quote_plan(plan(&bytes)?).await?)
}

async fn read(app: &App, request: Request) -> Result<(Parts, Bytes), Problem> {
    let (parts, body) = request.into_parts();
    let bytes = json_bytes(&parts.headers, body, &app.config.policy.limits).await?;
    Ok((parts, bytes))
}

/// Parses the body of a request for a plan.
///
/// # Errors
/// [`Unread`]: it is not JSON, or it differs from the documented shape.
pub fn plan(body: &[u8]) -> Result<PlanInput, Unread> {
    let PlanBody {
        source,
        user,
        context,
        message,
        file,
        diagnostic,
    } = shaped(body, PLAN.as_ref())?;
    Ok(PlanInput {
        source,
        user: user.into(),
        context: context.into(),
        message,
        focus: EvidenceFocus { file, diagnostic },
    })
}

/// Waits for the end of a plan's or an execution's run.
async fn ended(app: &App, run: RunId) -> Result<(), Problem> {
    let finished = app.finished(run).await?.ok_or_else(Problem::no_such_run)?;
    match &finished.ending {
        Ending::Acted { .. } => Ok(()),
        ending => Err(Problem::ended(run, ending)),
    }
}

pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    id: Id,
) -> Result<Json<PlanView>, Problem> {
    let id = parse(id).map_err(|_| Problem::no_such_plan())?;
    let plan = app.tool_plan(id).await?;
    Ok(Json(plan.ok_or_else(|| {
        Problem::new(
            Kind::PlanClosed,
            "the plan is not finished, or its run failed",
        )
        .of(id)
    })?))
}

pub(in crate::http) async fn authorize(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let id = parse(id).map_err(|_| Problem::no_such_plan())?;
    let (_, bytes) = read(&app, request).await?;
    let AuthorizeBody {
        source,
        user,
        context,
        mode,
        step_id,
        plan,
    } = shaped(&bytes, AUTHORIZE.as_ref())?;
    let steps = match (mode, plan) {
        (AuthorizeMode::Step, _) => AuthorizedSteps::Step(step_id),
        (AuthorizeMode::Plan, _) => AuthorizedSteps::Plan,
        (AuthorizeMode::Modified, plan) => AuthorizedSteps::Modified(plan.map(Box::new)),
    };
    let given = Authorization {
        plan: id,
        source,
        user: user.into(),
        context: context.map(Into::into),
        steps,
    };
    let (run, body) = match app.authorize(given).await? {
        Authorizing::Started(Submitted { run, .. }) => {
            ended(&app, run).await?;
            let execution = Some(app.execution(run).await?);
            (
                run,
                AuthorizedBody {
                    execution,
                    rejection: None,
                },
            )
        }
        Authorizing::Rejected(rejection) => {
            let rejection = Some(*rejection);
            (
                id,
                AuthorizedBody {
                    execution: None,
                    rejection,
                },
            )
        }
    };
    let mut response = Json(body).into_response();
    set_run(&mut response, run);
    Ok(response)
}

pub(in crate::http) async fn execution(
    State(app): State<Arc<App>>,
    id: Id,
) -> Result<Json<ExecutionView>, Problem> {
    let id = parse(id).map_err(|_| Problem::no_such_plan())?;
    Ok(Json(app.execution(id).await?))
}

pub(in crate::http) async fn undo(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Response, Problem> {
    let id = parse(id).map_err(|_| Problem::no_such_plan())?;
    let (_, bytes) = read(&app, request).await?;
    let UndoBody { source, user } = shaped(&bytes, UNDO.as_ref())?;
    let Submitted { run, .. } = app.undo(id, source, user.into()).await?;
    ended(&app, run).await?;
    let mut response = Json(app.execution(run).await?).into_response();
    set_run(&mut response, run);
    Ok(response)
}
