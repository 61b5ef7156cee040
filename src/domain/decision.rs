//! Decisions: whether a learned answer or the committee replies to a request.

use serde::{Deserialize, Serialize};

use super::RunId;

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum DecisionPath {
    /// A learned answer, without the committee.
    Heuristic,
    /// The committee.
    Llm,
    /// The committee was asked and gave no answer.
    Fallback,
    /// Neither may answer.
    Rejected,
}

/// The agents that a committee asks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedFirst {
    /// All at once.
    #[default]
    Panel,
    /// The solver, and the others only if its report is not clearly VALID.
    Solver,
}

impl AskedFirst {
    pub fn is_panel(&self) -> bool {
        *self == Self::Panel
    }
}

/// A learned answer that resembles a request, as the master sees it: no scores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownAnswer {
    /// The run that gave the answer.
    pub id: RunId,
    /// The question that it answered.
    pub condition: String,
    /// The answer.
    pub action: String,
}
