//! Plans of tool calls, as models propose them and users authorize them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
pub enum PlanIntent {
    Read,
    Mutate,
    Query,
    Explain,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// Unique in its plan.
    pub step_id: String,
    pub tool: String,
    /// The arguments by name.
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub arguments: Map<String, Value>,
    /// What has to hold before the step, in words. The service checks the conditions of the tool,
    /// not these words.
    pub precondition: String,
    /// True for every step that changes files.
    pub requires_confirmation: bool,
}

/// A plan that passed no check yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPlan {
    /// The id of the run that proposed it.
    pub plan_id: String,
    pub intent: PlanIntent,
    pub steps: Vec<PlanStep>,
    /// The evidence queries that the plan refers to: `Q1` to `Q8`.
    pub evidence_referenced: Vec<String>,
}

/// What the evidence is gathered for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceFocus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
    /// Why the index of the code cannot be read; `None` if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_index: Option<String>,
}
