//! The response bodies of `/api/runs`, and their description.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::reply_body::{MetaBody, reply_example};
use crate::domain::{Mode, RunKind, Source};
use crate::http::problem_kind::Kind;
use crate::http::reference::operation::{Content, Operation, Schemas};
use crate::http::sse;
use crate::journal::{Continues, RunState};

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
    /// The run that this one continues.
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
    /// For an action: the response that the client was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::shapes::action")]
    pub action: Option<Value>,
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

/// The run of all examples.
pub(in crate::http) const RUN: &str = "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182";

fn summary_example() -> Value {
    json!({
        "id": RUN, "state": "answered", "cause": null, "kind": "chat", "mode": "ask", "source": "discord", "userId": "8112",
        "message": "What is the boiling point of water at sea level in Celsius?", "parent": null, "c_final": 0.8312,
        "cost": { "capUsd": 0.1, "spentUsd": 0.01834 },
        "acceptedAt": "2026-01-05T10:00:00.12Z", "finishedAt": "2026-01-05T10:00:31.5Z",
    })
}

pub(super) fn id() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

pub(in crate::http) fn about_list(schemas: &mut Schemas) -> Operation {
    let example = json!({ "runs": [summary_example()], "nextCursor": null });
    let page = Content::json(schemas.answer::<RunPage>(), example);
    let outcomes = json!({ "enum": RunState::ALL.map(|state| state.into_str()) });
    let kinds =
        json!({ "enum": ["chat", "action", "plan", "execution", "all"], "default": "chat" });
    let time = json!({ "type": "string", "format": "date-time" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 200, "default": 50 });
    let text = json!({ "type": "string" });
    Operation::new("listRuns", "runs", "List runs, newest first")
        .about("Unknown parameters, and parameters that stand twice, are an error.")
        .query(
            "kind",
            kinds,
            "Questions to the committee, actions, tool plans, their executions, or all. Without the scope `tools` the list has none of tool plans.",
        )
        .query("mode", schemas.request::<Mode>(), "Chats of this mode. Another `kind` has none.")
        .query("user", text, "Runs of this `user.id`.")
        .query("outcome", outcomes, "Runs that stand so, or ended so.")
        .query("since", time, "Runs accepted then or later (RFC 3339).")
        .query("limit", limit, "Runs on a page.")
        .query("cursor", id(), "`nextCursor` of the page before.")
        .answer(200, "A page", vec![page], &[])
        .problems(&[Kind::WrongParameter, Kind::NoJournal])
}

pub(in crate::http) fn about_show(schemas: &mut Schemas) -> Operation {
    let mut example = summary_example();
    let call = json!({ "call": "r1/solver", "state": "answered", "latencyMs": 8120 });
    let (accepted, finished) = ("2026-01-05T10:00:00.12Z", "2026-01-05T10:00:31.5Z");
    let timings = json!({ "acceptedAt": accepted, "finishedAt": finished, "totalMs": 31_380, "calls": [call] });
    let more = json!({ "correlationId": null, "continues": null, "timings": timings });
    for more in [more, reply_example()] {
        if let (Value::Object(example), Value::Object(more)) = (&mut example, more) {
            example.extend(more);
        }
    }
    let run = vec![Content::json(schemas.answer::<RunBody>(), example)];
    let summary = "One run with its reply, meta, audit, cost and timings";
    Operation::new("showRun", "runs", summary)
        .path("id", id(), "The run.")
        .answer(200, "The run", run, &[])
        .problems(&[Kind::NoSuchRun, Kind::NoJournal])
}

pub(in crate::http) fn about_journal(schemas: &mut Schemas) -> Operation {
    let (first, second) = ("0".repeat(64), "3fa1".repeat(16));
    let body = json!({ "kind": "claimed", "data": { "epoch": 1, "owner": "019b" }, "v": 1 });
    let entry = json!({ "seq": 1, "at": "2026-01-05T10:00:00.12Z", "key": "claimed/1", "body": body,
                        "prev": first, "hash": second });
    let example = json!({ "runId": RUN, "entries": [entry], "head": second, "verified": true, "broken": null });
    Operation::new("showJournal", "runs", "Every entry of a run, with the proof of its chain")
        .about(
            "All that was said in the run, model outputs included. Money is in nano-dollars. The hashes are over the \
             stored text of the bodies, which this view parses: `conclave verify RUN` recomputes them.",
        )
        .path("id", id(), "The run.")
        .answer(200, "The journal", vec![Content::json(schemas.answer::<JournalBody>(), example)], &[])
        .problems(&[Kind::NoSuchRun, Kind::NoJournal])
}

pub(in crate::http) fn about_events(schemas: &mut Schemas) -> Operation {
    let about =
        "From the beginning, or from after `Last-Event-ID`; the last event is `reply` or `error`.";
    let ended = "The run has ended and nothing is left to send: do not connect again";
    let seen = json!({ "type": "string", "pattern": "^[0-9]{1,18}$" });
    let about_seen = "The `id` of the last event that was seen.";
    Operation::new(
        "followRun",
        "runs",
        "A run's progress as server-sent events",
    )
    .about(about)
    .path("id", id(), "The run.")
    .header("Last-Event-ID", seen, about_seen)
    .answer(200, "The events", vec![sse::content(schemas)], &[])
    .answer(204, ended, vec![], &[])
    .problems(&[Kind::WrongParameter, Kind::NoSuchRun, Kind::NoJournal])
}

pub(in crate::http) fn about_cancel(schemas: &mut Schemas) -> Operation {
    let schema = schemas.answer::<Cancelled>();
    let [before, now] = ["cancelled", "cancelling"].map(|state| {
        let example = json!({ "runId": RUN, "state": state });
        vec![Content::json(schema.clone(), example)]
    });
    Operation::new("cancelRun", "runs", "Cancel a run in flight")
        .about("Calls under way are dropped and settled at their reservation. Clients that wait for the run get 409.")
        .path("id", id(), "The run.")
        .answer(200, "It was cancelled already", before, &[])
        .answer(202, "It will stop", now, &[])
        .problems(&[Kind::Conflict, Kind::NoSuchRun, Kind::NoJournal])
}
