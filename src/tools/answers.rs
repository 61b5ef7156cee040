//! The answers of the API for plans and executions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::ToolPlan;
use crate::journal::{Explained, Rejection, StepChanges, StepFinished};

/// A plan, as a model proposed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// The run that proposed the plan.
    pub plan_id: String,
    pub state: PlanState,
    pub plan: ToolPlan,
    pub rejection: Option<Rejection>,
    /// What each step will change.
    pub changes: Vec<StepChanges>,
    /// The plan that the user executed instead. Null if the user changed nothing.
    pub modified: Option<ModifiedPlan>,
    /// What the plan cost.
    pub budget: BudgetView,
    /// The summaries that the model was shown, by query.
    #[schemars(with = "std::collections::BTreeMap<String, Vec<Value>>")]
    pub evidence: Value,
    pub executions: Vec<ExecutionBrief>,
    /// The step that a step-by-step authorization runs next. Null if none is left, or a step failed.
    pub next_step: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// It waits for an authorization.
    Proposed,
    Rejected,
    /// Some steps are executed.
    Underway,
    Completed,
    /// A step failed. The rest is not executed.
    Halted,
    /// Its user closed it. The execution with the mode `cancel` says who.
    Cancelled,
}

/// A plan as its user changed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifiedPlan {
    pub by: String,
    pub plan: ToolPlan,
    pub changes: Vec<StepChanges>,
}

/// An execution in the list of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionBrief {
    pub execution_id: String,
    pub state: ExecutionState,
    pub steps: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    Running,
    Completed,
    /// A step failed, or is in doubt.
    Halted,
    /// The run ended without its steps, for example because it was cancelled.
    Failed,
    /// It has no steps: its user closed the plan with it.
    Closed,
}

/// An execution with all that led to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionView {
    pub execution_id: String,
    pub plan_id: String,
    pub state: ExecutionState,
    /// The request of the plan.
    pub request: String,
    /// What the model read for the plan, and the hash of the prompts around it.
    pub prompt: PromptView,
    #[schemars(with = "std::collections::BTreeMap<String, Vec<Value>>")]
    pub evidence: Value,
    /// The plan as it was authorized.
    pub plan: ToolPlan,
    /// The plan as the model proposed it, if the user changed it.
    pub proposed: Option<ToolPlan>,
    pub authorization: AuthorizationView,
    pub steps: Vec<StepFinished>,
    pub explanation: Option<Explained>,
    /// What the explanation cost. The tools cost nothing.
    pub budget: BudgetView,
}

/// The end of the run of an execution. `GET /api/executions/{id}` has the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionEnd {
    pub execution_id: String,
    /// True if no step failed.
    pub completed: bool,
    /// The ids of the steps that ended.
    pub steps: Vec<String>,
}

/// The cap of a run, and its calls of models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetView {
    pub cap_usd: f64,
    pub spent_usd: f64,
    pub calls: Vec<CallLine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallLine {
    pub call: String,
    pub model: String,
    pub state: String,
    pub prompt_hash: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub latency_ms: u64,
    pub cost_usd: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptView {
    pub input: String,
    pub prompts_hash: String,
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationView {
    /// `step`, `plan`, `modified`, `cancel` or `undo`.
    pub mode: String,
    pub by: String,
    pub steps: Vec<String>,
    /// The execution that this one takes back.
    pub undoes: Option<String>,
}

/// What a user authorizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthorizeMode {
    /// One step.
    Step,
    /// All steps that are left.
    Plan,
    /// All steps of the given plan.
    Modified,
    /// Nothing. The given plan is checked as for `modified`.
    Check,
    /// Nothing. The plan is closed.
    Cancel,
}

/// The outcome of an authorization: the execution, or why the changed plan is rejected, or what a
/// checked plan will change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizedBody {
    pub execution: Option<ExecutionView>,
    pub rejection: Option<Rejection>,
    /// What each step of a plan of the mode `check` will change.
    pub changes: Option<Vec<StepChanges>>,
}
