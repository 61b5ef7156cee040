//! The reply to the client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Agent, Ledger, TaskType, Usd};

/// The outcome of a run that replied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Outcome {
    Answered,
    Clarification,
    /// A learned answer (SPEC 12).
    Heuristic,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetMeta {
    pub cap: Usd,
    /// The cost of the run. Calls in doubt count at their reserved maximum.
    pub spent: Usd,
    /// True if a provider billed more than was reserved for a call.
    pub exceeded: bool,
}

impl From<&Ledger> for BudgetMeta {
    fn from(ledger: &Ledger) -> Self {
        Self {
            cap: ledger.cap(),
            spent: ledger.spent(),
            exceeded: ledger.exceeded(),
        }
    }
}

/// Agents by status; failed ones count as discarded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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
    /// Markdown in the form of SPEC 2.
    pub text: String,
    pub meta: Meta,
    /// The audit appendix as data. Present only in the modes audit and deep, and always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<serde_json::Value>,
}
