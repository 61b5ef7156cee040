//! Progress as server-sent events: a view of the journal, entry by entry, each with its `seq` as
//! id.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Sse, KeepAlive, KeepAliveStream};
use futures_util::{Stream, StreamExt as _};
use serde_json::{Value, json};

use super::api::reply_body::reply_body;
use super::api::shapes::{closed, with};
use super::auth::Caller;
use super::error::Problem;
use super::reference::operation::{Content, Schemas};
use crate::app::App;
use crate::domain::{Agent, Decision, Mode, Role, RunId, RunKind, Score, TaskType};
use crate::journal::{
    AgentFinished, AgentOutcome, CallResult, CallSent, CallSettled, CrossChecked, Ending, Entry,
    Event, Scored,
};

/// A comment is sent at this interval, so that no proxy closes the stream as idle.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) type Progress = axum::response::Sse<
    KeepAliveStream<futures_util::stream::BoxStream<'static, Result<Sse, Infallible>>>,
>;

/// How often the token of an open stream is checked again.
const RECHECK: Duration = Duration::from_secs(5);

/// Streams the run's events after `after`, and then new ones, up to `reply` or `error`. The stream
/// ends early if the token that opened it is revoked or expires.
pub(super) fn progress(app: &Arc<App>, run: RunId, after: i64, caller: Option<Caller>) -> Progress {
    let revoked = revoked(Arc::clone(app), caller.and_then(|caller| caller.token));
    let events = stream(app, run, after)
        .take_until(Box::pin(revoked))
        .boxed();
    axum::response::Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still working"))
}

/// Returns when the token is no longer valid.
async fn revoked(app: Arc<App>, token: Option<String>) {
    let Some(token) = token else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(RECHECK).await;
        if !app.access.still_works(&token).await {
            return;
        }
    }
}

fn stream(
    app: &Arc<App>,
    run: RunId,
    after: i64,
) -> impl Stream<Item = Result<Sse, Infallible>> + use<> {
    app.follow(run, after).filter_map(move |entry| {
        let event = match entry {
            Ok(entry) => progress_event(run, &entry)
                .map(|(name, data)| sse(name, &data).id(entry.seq.to_string())),
            Err(error) => Some(sse("error", &Problem::from(error).of(run).body())),
        };
        std::future::ready(event.map(Ok))
    })
}

fn sse(name: &str, data: &Value) -> Sse {
    Sse::default().event(name).data(data.to_string())
}

/// Returns the name and data of the event of an entry, or `None` if the stream does not show it.
pub fn progress_event(run: RunId, entry: &Entry) -> Option<(&'static str, Value)> {
    let at = entry.at.to_string();
    Some(match &entry.event {
        Event::Accepted(e) => {
            let parent = e.continues.as_ref().map(|c| c.parent.to_string());
            // An action has no mode.
            let mode = (e.kind() == RunKind::Chat).then_some(e.question.mode);
            let data =
                json!({ "runId": run.to_string(), "mode": mode, "at": at, "continues": parent });
            ("run", data)
        }
        Event::Planned(e) => {
            let data = json!({ "plan": e.plan, "corrections": e.corrections, "at": at });
            ("plan", data)
        }
        Event::RoundStarted(e) => {
            let data = json!({ "round": e.round, "state": "run", "agents": e.agents, "why": e.why, "at": at });
            ("round", data)
        }
        // The report of a solver that is enough shows as its cross-check.
        Event::SolverJudged(e) if !e.others.is_empty() => {
            let data =
                json!({ "round": 1, "state": "run", "agents": e.others, "why": e.why, "at": at });
            ("round", data)
        }
        Event::RoundSkipped(e) => {
            let data = json!({ "round": e.round, "state": "skipped", "why": e.why, "at": at });
            ("round", data)
        }
        Event::CallSent(e) => started(e, &at)?,
        Event::AgentFinished(e) => ("agent.finished", agent_finished(e, &at)),
        Event::Scored(e) => ("score", scored(e, &at)),
        Event::CrossChecked(e) => ("cross_check", cross_checked(e, &at)),
        Event::Trimmed(e) => {
            let again = e.wave.is_some();
            let data =
                json!({ "agents": e.agents, "leftOut": e.left_out, "again": again, "at": at });
            ("fit", data)
        }
        Event::CallSettled(e) => ("call", settled(e, &at)),
        Event::Synthesized(e) => {
            let wrote = if e.draft.is_some() {
                "reply"
            } else {
                "question"
            };
            (
                "synthesis.finished",
                json!({ "wrote": wrote, "obtained": e.obtained, "at": at }),
            )
        }
        Event::Gated(e) => {
            let (c_final, threshold) = (e.confidence.c_final, e.confidence.threshold);
            let data =
                json!({ "gate": e.gate, "c_final": c_final, "threshold": threshold, "at": at });
            ("gate", data)
        }
        Event::Finished(e) => match &e.ending {
            Ending::Replied { reply } => ("reply", reply_body(reply)),
            Ending::Acted { response, .. } => ("action", response.clone()),
            ending => ("error", Problem::ended(run, ending).body()),
        },
        Event::Claimed(_)
        | Event::ComputeStarted(_)
        | Event::Hinted(_)
        | Event::SolverJudged(_)
        | Event::Converged(_)
        | Event::Reviewed(_)
        | Event::Feedback(_)
        | Event::Learned(_)
        | Event::Parsed(_)
        | Event::Proposed(_)
        | Event::GateChecked(_)
        | Event::Executed(_) => return None,
        Event::Decided(e) => {
            let data = json!({ "path": e.path, "why": e.why, "at": at });
            ("decision", data)
        }
        Event::ToolPlanned(e) => {
            let data = json!({ "plan": e.plan, "rejection": e.rejection, "at": at });
            ("tool_plan", data)
        }
        Event::StepStarted(e) => {
            let data = json!({ "stepId": e.step_id, "tool": e.tool, "at": at });
            ("step.started", data)
        }
        Event::StepFinished(e) => {
            let data = json!({ "stepId": e.step_id, "tool": e.tool, "ok": e.ok, "error": e.error, "at": at });
            ("step.finished", data)
        }
        Event::Explained(e) => {
            let data = json!({ "text": e.text, "source": e.source, "at": at });
            ("explanation", data)
        }
    })
}

fn agent_finished(finished: &AgentFinished, at: &str) -> Value {
    let (outcome, cause, detail) = match &finished.outcome {
        AgentOutcome::Answered { .. } => ("answered", None, None),
        AgentOutcome::Failed { cause, detail, .. } => ("failed", Some(cause), Some(detail)),
    };
    let reused = finished.reused_from.map(|id| id.to_string());
    let decided = |decision| {
        let resolved = finished.resolved.as_ref()?;
        let resolutions = resolved.resolutions.iter();
        Some(resolutions.filter(|r| r.decision == decision).count())
    };
    json!({ "agent": finished.agent, "round": finished.round, "outcome": outcome, "cause": cause,
            "detail": detail, "kept": decided(Decision::Keep), "conceded": decided(Decision::Concede),
            "reusedFrom": reused, "at": at })
}

fn settled(settled: &CallSettled, at: &str) -> Value {
    let (outcome, cause, detail) = match &settled.result {
        CallResult::Answered { .. } => ("answered", None, None),
        CallResult::Failed { cause, detail, .. } => ("failed", Some(cause), Some(detail)),
        CallResult::InDoubt => ("in doubt", None, None),
    };
    let usage = settled.usage;
    json!({ "call": settled.call, "outcome": outcome, "cause": cause, "detail": detail,
            "latencyMs": settled.latency_ms, "inputTokens": usage.map(|u| u.all_input()),
            "outputTokens": usage.map(|u| u.output), "costUsd": settled.cost.dollars(), "at": at })
}

fn scored(scored: &Scored, at: &str) -> Value {
    let judgement = &scored.judgement;
    let score = |s: &Score| json!({ "agent": s.agent, "cred": s.cred, "status": s.status });
    let scores: Vec<Value> = judgement.scores.iter().map(score).collect();
    let disagreements = judgement.disagreements.iter();
    let topics: Vec<&str> = disagreements.map(|d| d.topic.as_str()).collect();
    json!({ "round": scored.round, "scores": scores, "disagreements": topics, "at": at })
}

fn cross_checked(checked: &CrossChecked, at: &str) -> Value {
    let verdicts = checked.passes.iter().flat_map(|pass| &pass.found.claims);
    let contradicted = verdicts
        .clone()
        .filter(|verdict| !verdict.contradicted_by.is_empty())
        .count();
    json!({ "passes": checked.passes.len(), "verdicts": verdicts.count(), "contradicted": contradicted,
            "notes": checked.notes, "at": at })
}

/// Returns the start event for the first attempt of an agent, of the master at its plan or its
/// synthesis, or of the cross-check.
fn started(sent: &CallSent, at: &str) -> Option<(&'static str, Value)> {
    // With little money only a small one is made.
    if ["cross-check", "cross-check/first"].contains(&sent.call.as_str()) {
        return Some((
            "cross_check.started",
            json!({ "model": sent.model, "at": at }),
        ));
    }
    match sent.role {
        Role::Agent(agent) => {
            let round = sent
                .call
                .split('/')
                .next()
                .unwrap_or("")
                .trim_start_matches('r')
                .parse::<u8>()
                .ok();
            // Only the first attempt at a report or at decisions counts, not a repair or a retry.
            let own = |round| {
                [
                    format!("r{round}/{agent}"),
                    format!("r{round}/resolve/{agent}"),
                ]
            };
            let first = round.is_some_and(|round| own(round).contains(&sent.call));
            first.then(|| {
                (
                    "agent.started",
                    json!({ "agent": agent, "round": round, "model": sent.model, "at": at }),
                )
            })
        }
        Role::Master => match sent.call.as_str() {
            "plan" => Some(("plan.started", json!({ "model": sent.model, "at": at }))),
            "synthesis" | "question" => Some((
                "synthesis",
                json!({ "step": sent.call, "model": sent.model, "at": at }),
            )),
            _ => None,
        },
        Role::Proposer => None,
    }
}

/// What each event says, for the reference.
const EVENTS: [(&str, &str); 22] = [
    (
        "run",
        "The run was accepted. `continues` is the parent's id.",
    ),
    ("plan.started", "The master begins to plan."),
    ("plan", "The plan, and what the service changed in it."),
    (
        "fit",
        "The agents that fit under the cap, and what was left out. `again` if calls cost less than they were \
         reserved for, so that more fits.",
    ),
    (
        "call",
        "A call to a model ended. `latencyMs` is its own time; calls of a round overlap.",
    ),
    (
        "round",
        "A round begins, or is skipped; `agents` only if it begins.",
    ),
    ("agent.started", "The first attempt of an agent in a round."),
    (
        "agent.finished",
        "An agent answered, failed, or its earlier report is used again. `kept` and `conceded` count its contested \
         claims, if a later round asked for them.",
    ),
    (
        "score",
        "The statuses after a round, and the topics in dispute.",
    ),
    ("cross_check.started", "The cross-check begins."),
    (
        "cross_check",
        "Key claims were compared, by so many calls; `notes` says why one is missing.",
    ),
    (
        "synthesis",
        "The master begins to write the reply, or the question instead of it.",
    ),
    (
        "synthesis.finished",
        "The reply or the question is written, by the master or in its place.",
    ),
    ("gate", "Whether the reply ships or the question is asked."),
    (
        "decision",
        "Whether a learned answer replies or the committee; only with a decision strategy or an A/B test.",
    ),
    ("tool_plan", "A plan of tool calls, and why it is rejected."),
    ("step.started", "A step of an execution begins."),
    (
        "step.finished",
        "A step ended; `error` is the tool's own, word for word.",
    ),
    ("explanation", "What the steps did, in words."),
    ("reply", "The body of the plain response. The last event."),
    (
        "action",
        "Of an action, the body of its response. The last event.",
    ),
    ("error", "A problem. The last event."),
];

/// Describes the stream in the reference. The schema is that of one event. The data of each event
/// is described in an extension field, because OpenAPI 3.1 cannot express it.
pub(super) fn content(schemas: &mut Schemas) -> Content {
    let mut events = data_of_events(schemas);
    for (name, about) in EVENTS {
        if let Some(event) = events.get_mut(name) {
            *event = with(event.take(), "description", about);
        }
    }
    let event = json!({
        "type": "object",
        "description": "Each event of the stream.",
        "properties": {
            "event": { "enum": EVENTS.map(|(name, _)| name) },
            "data": { "type": "string", "contentMediaType": "application/json" },
            "id": { "type": "string", "description": "The entry's number in the journal." },
        },
        "required": ["event", "data"],
    });
    let data = "{\"runId\":\"019b2c4e-7f00-7aa1-b2c3-0d4e5f607182\",\"mode\":\"ask\",\"at\":\"2026-01-05T10:00:00.12Z\",\
                \"continues\":null}";
    let example = json!({ "event": "run", "data": data, "id": "1" });
    Content::events(event, example).with("x-events", events)
}

/// Returns the schema of each event's data.
fn data_of_events(schemas: &mut Schemas) -> Value {
    let at = json!({ "type": "string", "format": "date-time" });
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let text_or_null = json!({ "type": ["string", "null"] });
    let round = json!({ "type": ["integer", "null"], "minimum": 1 });
    let count = json!({ "type": "integer", "minimum": 0 });
    let (agent, mode) = (schemas.answer::<Agent>(), schemas.answer::<Mode>());
    let task = schemas.answer::<TaskType>();
    let agents = json!({ "type": "array", "items": agent });
    let count_or_null = json!({ "type": ["integer", "null"], "minimum": 0 });
    let object = |properties: Value| closed(&properties, &[]);
    let plan = closed(
        &json!({
            "taskType": task, "agentsToRun": agents, "rounds": { "type": "integer", "minimum": 1, "maximum": 3 },
            "needsClarification": { "type": "boolean" }, "clarificationQuestion": { "type": "object" },
            "outputShape": mode,
        }),
        &["clarificationQuestion"],
    );
    let share = json!({ "type": "number", "minimum": 0, "maximum": 1 });
    let score = object(json!({ "agent": text, "cred": share,
                "status": { "enum": ["DISCARD", "QUARANTINE", "VALID"] } }));
    json!({
        "run": object(json!({ "runId": { "type": "string", "format": "uuid" },
                              "mode": { "oneOf": [mode, { "type": "null" }] }, "at": at, "continues": text_or_null })),
        "plan": object(json!({ "plan": plan, "corrections": texts, "at": at })),
        "plan.started": object(json!({ "model": text, "at": at })),
        "fit": object(json!({ "agents": agents, "leftOut": texts, "again": { "type": "boolean" }, "at": at })),
        "call": object(json!({ "call": text, "outcome": { "enum": ["answered", "failed", "in doubt"] },
                               "cause": text_or_null, "detail": text_or_null, "latencyMs": count,
                               "inputTokens": count_or_null, "outputTokens": count_or_null,
                               "costUsd": { "type": "number", "minimum": 0 }, "at": at })),
        "round": closed(&json!({ "round": round, "state": { "enum": ["run", "skipped"] }, "agents": agents,
                                "why": text, "at": at }), &["agents"]),
        "agent.started": object(json!({ "agent": agent, "round": round, "model": text, "at": at })),
        "agent.finished": object(json!({ "agent": agent, "round": round, "outcome": { "enum": ["answered", "failed"] },
                                         "cause": text_or_null, "detail": text_or_null, "kept": count_or_null,
                                         "conceded": count_or_null, "reusedFrom": text_or_null, "at": at })),
        "score": object(json!({ "round": round, "scores": { "type": "array", "items": score },
                                "disagreements": texts, "at": at })),
        "cross_check.started": object(json!({ "model": text, "at": at })),
        "cross_check": object(json!({ "passes": { "type": "integer", "minimum": 0, "maximum": 2 },
                                      "verdicts": count, "contradicted": count, "notes": texts, "at": at })),
        "synthesis": object(json!({ "step": { "enum": ["synthesis", "question"] }, "model": text, "at": at })),
        "synthesis.finished": object(json!({ "wrote": { "enum": ["reply", "question"] }, "obtained": text, "at": at })),
        "gate": object(json!({ "gate": { "enum": ["ship", "ask"] }, "c_final": share, "threshold": share, "at": at })),
        "decision": object(json!({ "path": { "enum": ["heuristic", "llm"] }, "why": text, "at": at })),
        "tool_plan": closed(&json!({ "plan": { "type": "object" }, "rejection": { "type": ["object", "null"] }, "at": at }), &[]),
        "step.started": object(json!({ "stepId": text, "tool": text, "at": at })),
        "step.finished": object(json!({ "stepId": text, "tool": text, "ok": { "type": "boolean" }, "error": text_or_null, "at": at })),
        "explanation": object(json!({ "text": text, "source": { "enum": ["model", "restated", "output"] }, "at": at })),
        "reply": { "$ref": "#/components/schemas/Reply" },
        "action": { "$ref": "#/components/schemas/ActionReply" },
        "error": { "$ref": "#/components/schemas/Problem" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_cross_check_has_a_start_and_only_its_first_pass_has_one() {
        let started = |call: &str| {
            let sent = CallSent {
                call: call.into(),
                role: Role::Agent(Agent::Verifier),
                provider: "p".into(),
                model: "m".into(),
                reserved: None,
                max_tokens: 1,
                effort: None,
                prompt_hash: "h".into(),
            };
            started(&sent, "2026-01-05T10:00:00Z").map(|(name, _)| name)
        };
        assert_eq!(started("cross-check"), Some("cross_check.started"));
        assert_eq!(started("cross-check/first"), Some("cross_check.started"));
        assert_eq!(started("cross-check/reversed"), None);
        assert_eq!(started("cross-check/first#2"), None);
    }
}
