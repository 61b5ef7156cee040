//! The response bodies of `/api/runs`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::reply_body::MetaBody;
use crate::actions::reply::Reply;
use crate::domain::{Mode, RunKind, Source};
use crate::journal::{Continues, RunState};
use crate::tools::answers::{ExecutionEnd, PlanView};

/// Runs, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct RunPage {
    pub runs: Vec<RunSummary>,
    /// The cursor of the next page; null on the last one.
    #[schemars(schema_with = "super::shapes::run_id_or_null")]
    pub next_cursor: Option<String>,
}

/// A run as the list shows it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct RunSummary {
    /// The run.
    #[schemars(schema_with = "super::shapes::run_id")]
    pub id: String,
    /// Its current state, or how it ended.
    #[schemars(schema_with = "super::shapes::state")]
    pub state: RunState,
    /// Why it failed: `provider`, `deadline`, `budget` or `internal`, then the detail.
    pub cause: Option<String>,
    pub kind: RunKind,
    /// Null for an action.
    pub mode: Option<Mode>,
    pub source: Source,
    /// The `user.id` of the request.
    pub user_id: String,
    /// The message of the request, trimmed.
    pub message: String,
    /// The run that this one continues. In the list also the one that its message named, if the
    /// message turned out to ask something new.
    #[schemars(schema_with = "super::shapes::run_id_or_null")]
    pub parent: Option<String>,
    /// Null while there is no reply, and for an action.
    #[serde(rename = "c_final")]
    #[schemars(range(min = 0, max = 1))]
    pub c_final: Option<f64>,
    pub cost: CostBody,
    #[schemars(schema_with = "super::shapes::time")]
    pub accepted_at: String,
    /// Null while the run is in flight.
    #[schemars(schema_with = "super::shapes::time_or_null")]
    pub finished_at: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Cost", deny_unknown_fields)]
pub(in crate::http) struct CostBody {
    /// The most that the run may cost.
    #[schemars(range(min = 0))]
    pub cap_usd: f64,
    /// What was settled so far.
    #[schemars(range(min = 0))]
    pub spent_usd: f64,
}

/// One run: the fields of the list, and more. `reply`, `meta` and `audit` are there once there is a
/// reply.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Run", extend("additionalProperties" = false))]
pub(in crate::http) struct RunBody {
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The client's own id of the request.
    pub correlation_id: Option<String>,
    /// The earlier run, and what the user said to it.
    pub continues: Option<Continues>,
    pub timings: Timings,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::shapes::audit")]
    pub audit: Option<Value>,
    /// Of an action: the response that the client was given. Of a tool plan: the plan as it was
    /// proposed. Of an execution: which steps ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunAction")]
    pub action: Option<Value>,
}

/// The end of an action, a tool plan or an execution.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it is only the schema of `RunBody::action`")]
enum RunAction {
    Action(Reply),
    Plan(Box<PlanView>),
    Execution(ExecutionEnd),
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct Timings {
    #[schemars(schema_with = "super::shapes::time")]
    pub accepted_at: String,
    /// Null while the run is in flight.
    #[schemars(schema_with = "super::shapes::time_or_null")]
    pub finished_at: Option<String>,
    pub total_ms: Option<i64>,
    /// In the order in which they were sent.
    pub calls: Vec<CallTiming>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct CallTiming {
    /// The step, such as `r1/solver`; later attempts are `r1/solver#2`.
    pub call: String,
    /// `answered`, `failed: CAUSE`, `in doubt` or `in flight`.
    pub state: String,
    pub latency_ms: Option<u64>,
}

/// A run's journal with the proof of its chain.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Journal", deny_unknown_fields)]
pub(in crate::http) struct JournalBody {
    #[schemars(schema_with = "super::shapes::run_id")]
    pub run_id: String,
    pub entries: Vec<EntryBody>,
    #[schemars(schema_with = "super::shapes::hash")]
    pub head: String,
    /// Whether the hash chain is intact.
    pub verified: bool,
    /// Where the hash chain breaks.
    pub broken: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entry", deny_unknown_fields)]
pub(in crate::http) struct EntryBody {
    #[schemars(range(min = 1))]
    pub seq: i64,
    #[schemars(schema_with = "super::shapes::time")]
    pub at: String,
    pub key: String,
    /// The event: `kind`, `data` and the version `v`.
    pub body: Value,
    #[schemars(schema_with = "super::shapes::hash")]
    pub prev: String,
    #[schemars(schema_with = "super::shapes::hash")]
    pub hash: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(in crate::http) struct Cancelled {
    #[schemars(schema_with = "super::shapes::run_id")]
    pub run_id: String,
    #[schemars(extend("enum" = ["cancelling", "cancelled"]))]
    pub state: &'static str,
}
