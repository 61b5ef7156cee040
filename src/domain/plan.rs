//! The plan of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Agent, Clarification, Demand, Mode};

/// The kind of work that a question asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
pub enum TaskType {
    PromptEngineering,
    VerbalReasoning,
    TechnicalExecution,
    VisualAnalysis,
    #[default]
    Mixed,
}

/// The orchestration plan, as bounded by the service. The agents are in canonical order without
/// duplicates and include the core. The number of rounds is within the mode's limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub task_type: TaskType,
    pub agents_to_run: Vec<Agent>,
    pub rounds: u8,
    pub needs_clarification: bool,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "super::clarification::with_letters"
    )]
    pub clarification_question: Option<Clarification>,
    pub output_shape: Mode,
    /// The countable demands of the request on its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// The language that the user writes in, as the master names it: "de".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}
