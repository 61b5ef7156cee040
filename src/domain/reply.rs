//! What goes back to the client.

use serde::{Deserialize, Serialize};

use super::{Agent, TaskType, Usd};

/// How a run ended for the one who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Answered,
    Clarification,
    /// A learned answer (SPEC 12).
    Heuristic,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::Clarification => "clarification",
            Outcome::Heuristic => "heuristic",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetMeta {
    pub cap: Usd,
    /// What the run cost, calls in doubt counted at their reserved maximum.
    pub spent: Usd,
    /// A provider billed more than was reserved for a call.
    pub exceeded: bool,
}

/// Which agents ended with which status; failed agents count as discarded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invalidation {
    pub discarded: Vec<Agent>,
    pub quarantined: Vec<Agent>,
    pub valid: Vec<Agent>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub task_type: TaskType,
    pub c_final: f64,
    pub budget: BudgetMeta,
    pub used_agents: Vec<Agent>,
    pub invalidation: Invalidation,
}

/// The finished reply of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub outcome: Outcome,
    /// Markdown, SPEC 2.
    pub text: String,
    pub meta: Meta,
    /// The audit appendix as data; present exactly in audit and deep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<serde_json::Value>,
}
