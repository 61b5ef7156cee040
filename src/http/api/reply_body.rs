//! The body of a reply, as clients validate it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::committee::rounded_audit;
use crate::domain::{Agent, Invalidation, Reply, TaskType};

/// The answer to a chat.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Reply", deny_unknown_fields)]
pub(in crate::http) struct ReplyBody {
    /// Markdown: an answer, or exactly one question with three options.
    reply: String,
    meta: MetaBody,
    /// The audit appendix: in the modes audit and deep, and not in ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::shapes::audit")]
    audit: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Meta", deny_unknown_fields)]
pub(in crate::http) struct MetaBody {
    task_type: TaskType,
    /// What the gate compared, unrounded.
    #[serde(rename = "c_final")]
    #[schemars(range(min = 0, max = 1))]
    c_final: f64,
    budget: BudgetBody,
    /// The panel after the cap was applied, failed agents included.
    used_agents: Vec<Agent>,
    invalidation: Invalidation,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Budget", deny_unknown_fields)]
struct BudgetBody {
    /// The most that the run may cost.
    #[schemars(range(min = 0))]
    cap_usd: f64,
    /// What was settled: reported usage at the configured prices, calls of unknown cost at their
    /// reservation.
    #[schemars(range(min = 0))]
    estimated_usd: f64,
    /// A provider billed more for some call than was reserved for it.
    mode_cap_exceeded: bool,
}

impl ReplyBody {
    pub fn of(reply: &Reply) -> Self {
        Self {
            reply: reply.text.clone(),
            meta: MetaBody::of(reply),
            audit: reply.audit.clone().map(rounded_audit),
        }
    }
}

impl MetaBody {
    pub fn of(reply: &Reply) -> Self {
        let meta = &reply.meta;
        Self {
            task_type: meta.task_type,
            c_final: meta.c_final,
            budget: BudgetBody {
                cap_usd: meta.budget.cap.dollars(),
                estimated_usd: meta.budget.spent.dollars(),
                mode_cap_exceeded: meta.budget.exceeded,
            },
            used_agents: meta.used_agents.clone(),
            invalidation: meta.invalidation.clone(),
        }
    }
}

/// Returns the body of the response: exactly the documented fields.
pub fn reply_body(reply: &Reply) -> Value {
    json!(ReplyBody::of(reply))
}
