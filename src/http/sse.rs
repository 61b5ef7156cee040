//! Progress as server-sent events: a view of the journal, entry by entry, each with its `seq` as
//! id.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Sse, KeepAlive, KeepAliveStream};
use futures_util::{Stream, StreamExt as _};
use serde_json::{Map, Value, json};

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
    let (name, mut data) = event(run, &entry.event)?;
    let is_whole = matches!(name, "reply" | "action" | "error");
    if let (false, Value::Object(data)) = (is_whole, &mut data) {
        data.insert("at".into(), json!(entry.at.to_string()));
    }
    Some((name, data))
}

fn event(run: RunId, event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Accepted(e) => {
            let parent = e.continues.as_ref().map(|c| c.parent.to_string());
            // An action has no mode.
            let mode = (e.kind() == RunKind::Chat).then_some(e.question.mode);
            (
                "run",
                json!({ "runId": run.to_string(), "mode": mode, "continues": parent }),
            )
        }
        Event::Planned(e) => (
            "plan",
            json!({ "plan": e.plan, "corrections": e.corrections }),
        ),
        Event::RoundStarted(e) => (
            "round",
            json!({ "round": e.round, "state": "run", "agents": e.agents, "why": e.why }),
        ),
        // The report of a solver that is enough shows as its cross-check.
        Event::SolverJudged(e) if !e.others.is_empty() => (
            "round",
            json!({ "round": 1, "state": "run", "agents": e.others, "why": e.why }),
        ),
        Event::RoundSkipped(e) => (
            "round",
            json!({ "round": e.round, "state": "skipped", "why": e.why }),
        ),
        Event::CallSent(e) => started(e)?,
        Event::AgentFinished(e) => ("agent.finished", agent_finished(e)),
        Event::Scored(e) => ("score", scored(e)),
        Event::CrossChecked(e) => ("cross_check", cross_checked(e)),
        Event::Trimmed(e) => {
            let again = e.wave.is_some();
            (
                "fit",
                json!({ "agents": e.agents, "leftOut": e.left_out, "again": again }),
            )
        }
        Event::CallSettled(e) => ("call", settled(e)),
        Event::Synthesized(e) => {
            let wrote = if e.draft.is_some() {
                "reply"
            } else {
                "question"
            };
            (
                "synthesis.finished",
                json!({ "wrote": wrote, "obtained": e.obtained }),
            )
        }
        Event::Gated(e) => {
            let (c_final, threshold) = (e.confidence.c_final, e.confidence.threshold);
            (
                "gate",
                json!({ "gate": e.gate, "c_final": c_final, "threshold": threshold }),
            )
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
        Event::Decided(_)
        | Event::ToolPlanned(_)
        | Event::StepStarted(_)
        | Event::StepFinished(_)
        | Event::Explained(_) => event_around(event)?,
    })
}

/// Returns the events of a decision strategy and of tool plans.
fn event_around(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Decided(e) => ("decision", json!({ "path": e.path, "why": e.why })),
        Event::ToolPlanned(e) => (
            "tool_plan",
            json!({ "plan": e.plan, "rejection": e.rejection }),
        ),
        Event::StepStarted(e) => (
            "step.started",
            json!({ "stepId": e.step_id, "tool": e.tool }),
        ),
        Event::StepFinished(e) => {
            let data = json!({ "stepId": e.step_id, "tool": e.tool, "ok": e.ok, "error": e.error });
            ("step.finished", data)
        }
        Event::Explained(e) => ("explanation", json!({ "text": e.text, "source": e.source })),
        _ => return None,
    })
}

fn agent_finished(finished: &AgentFinished) -> Value {
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
            "reusedFrom": reused })
}

fn settled(settled: &CallSettled) -> Value {
    let (outcome, cause, detail) = match &settled.result {
        CallResult::Answered { .. } => ("answered", None, None),
        CallResult::Failed { cause, detail, .. } => ("failed", Some(cause), Some(detail)),
        CallResult::InDoubt => ("in doubt", None, None),
    };
    let usage = settled.usage;
    json!({ "call": settled.call, "outcome": outcome, "cause": cause, "detail": detail,
            "latencyMs": settled.latency_ms, "inputTokens": usage.map(|u| u.all_input()),
            "outputTokens": usage.map(|u| u.output), "costUsd": settled.cost.dollars() })
}

fn scored(scored: &Scored) -> Value {
    let judgement = &scored.judgement;
    let score = |s: &Score| json!({ "agent": s.agent, "cred": s.cred, "status": s.status });
    let scores: Vec<Value> = judgement.scores.iter().map(score).collect();
    let disagreements = judgement.disagreements.iter();
    let topics: Vec<&str> = disagreements.map(|d| d.topic.as_str()).collect();
    json!({ "round": scored.round, "scores": scores, "disagreements": topics })
}

fn cross_checked(checked: &CrossChecked) -> Value {
    let verdicts = checked.passes.iter().flat_map(|pass| &pass.found.claims);
    let contradicted = verdicts
        .clone()
        .filter(|verdict| !verdict.contradicted_by.is_empty())
        .count();
    json!({ "passes": checked.passes.len(), "verdicts": verdicts.count(), "contradicted": contradicted,
            "notes": checked.notes })
}

/// Returns the start event for the first attempt of an agent, of the master at its plan or its
/// synthesis, or of the cross-check.
fn started(sent: &CallSent) -> Option<(&'static str, Value)> {
    let (call, model) = (sent.call.as_str(), &sent.model);
    // With little money only a small cross-check is made.
    if matches!(call, "cross-check" | "cross-check/first") {
        return Some(("cross_check.started", json!({ "model": model })));
    }
    match (sent.role, call) {
        (Role::Agent(agent), _) => {
            // Only the first attempt at a report or at decisions counts, not a repair or a retry.
            let (round, rest) = call.strip_prefix('r')?.split_once('/')?;
            let step = rest.strip_prefix("resolve/").unwrap_or(rest);
            let round = round.parse::<u8>().ok()?;
            let data = json!({ "agent": agent, "round": round, "model": model });
            (step == agent.into_str()).then_some(("agent.started", data))
        }
        (Role::Master, "plan") => Some(("plan.started", json!({ "model": model }))),
        (Role::Master, "synthesis" | "question") => {
            Some(("synthesis", json!({ "step": call, "model": model })))
        }
        (Role::Master | Role::Proposer, _) => None,
    }
}

/// Describes the stream in the reference. The schema is that of one event. The data of each event
/// is described in an extension field, because OpenAPI 3.1 cannot express it.
pub(super) fn content(schemas: &mut Schemas) -> Content {
    let events = events(schemas);
    let names: Vec<&String> = events.as_object().into_iter().flat_map(Map::keys).collect();
    let event = json!({
        "type": "object",
        "description": "Each event of the stream.",
        "properties": {
            "event": { "enum": names },
            "data": { "type": "string", "contentMediaType": "application/json" },
            "id": { "type": "string", "description": "The entry's number in the journal." },
        },
        "required": ["event", "data"],
    });
    let data = "{\"runId\":\"019b2c4e-7f00-7aa1-b2c3-0d4e5f607182\",\"mode\":\"ask\",\"at\":\"2026-01-05T10:00:00.12Z\",\
                \"continues\":null}";
    let example = json!({ "event": "run", "data": data, "id": "1" });
    Content::events(event, example, events)
}

/// Returns the events, with what each says and the schema of its data.
// Longer than other functions: one flat table.
fn events(schemas: &mut Schemas) -> Value {
    let at = json!({ "type": "string", "format": "date-time" });
    let text = json!({ "type": "string" });
    let truth = json!({ "type": "boolean" });
    let texts = json!({ "type": "array", "items": text });
    let text_or_null = json!({ "type": ["string", "null"] });
    let round = json!({ "type": ["integer", "null"], "minimum": 1 });
    let count = json!({ "type": "integer", "minimum": 0 });
    let count_or_null = json!({ "type": ["integer", "null"], "minimum": 0 });
    let share = json!({ "type": "number", "minimum": 0, "maximum": 1 });
    let (agent, mode) = (schemas.answer::<Agent>(), schemas.answer::<Mode>());
    let task = schemas.answer::<TaskType>();
    let agents = json!({ "type": "array", "items": agent });
    let said = |about: &str, schema: Value| with(schema, "description", about);
    let object = |about: &str, mut properties: Value| {
        if properties.get("at").is_none() {
            properties = with(properties, "at", at.clone());
        }
        said(about, closed(&properties, &[]))
    };
    let round_data = json!({ "round": round, "state": { "enum": ["run", "skipped"] }, "agents": agents, "why": text, "at": at });
    let round_data = closed(&round_data, &["agents"]);
    let plan = json!({
        "taskType": task, "agentsToRun": agents, "rounds": { "type": "integer", "minimum": 1, "maximum": 3 },
        "needsClarification": truth, "clarificationQuestion": { "type": "object" }, "outputShape": mode,
    });
    let plan = closed(&plan, &["clarificationQuestion"]);
    let statuses = ["DISCARD", "QUARANTINE", "VALID"];
    let score = json!({ "agent": text, "cred": share, "status": { "enum": statuses } });
    let score = closed(&score, &[]);
    json!({
        "run": object("The run was accepted. `continues` is the parent's id.", json!({
            "runId": { "type": "string", "format": "uuid" }, "mode": { "oneOf": [mode, { "type": "null" }] },
            "at": at, "continues": text_or_null
        })),
        "plan": object("The plan, and what the service changed in it.",
            json!({ "plan": plan, "corrections": texts })),
        "plan.started": object("The master begins to plan.", json!({ "model": text })),
        "fit": object("The agents that fit under the cap, and what was left out. `again` if calls cost \
             less than they were reserved for, so that more fits.",
            json!({ "agents": agents, "leftOut": texts, "again": truth })),
        "call": object("A call to a model ended. `latencyMs` is its own time; calls of a round overlap.", json!({
            "call": text, "outcome": { "enum": ["answered", "failed", "in doubt"] }, "cause": text_or_null,
            "detail": text_or_null, "latencyMs": count, "inputTokens": count_or_null,
            "outputTokens": count_or_null, "costUsd": { "type": "number", "minimum": 0 }
        })),
        "round": said("A round begins, or is skipped; `agents` only if it begins.", round_data),
        "agent.started": object("The first attempt of an agent in a round.",
            json!({ "agent": agent, "round": round, "model": text })),
        "agent.finished": object("An agent answered, failed, or its earlier report is used again. `kept` and \
             `conceded` count its contested claims, if a later round asked for them.", json!({
            "agent": agent, "round": round, "outcome": { "enum": ["answered", "failed"] },
            "cause": text_or_null, "detail": text_or_null, "kept": count_or_null,
            "conceded": count_or_null, "reusedFrom": text_or_null
        })),
        "score": object("The statuses after a round, and the topics in dispute.",
            json!({ "round": round, "scores": { "type": "array", "items": score }, "disagreements": texts })),
        "cross_check.started": object("The cross-check begins.", json!({ "model": text })),
        "cross_check": object("Key claims were compared, by so many calls; `notes` says why one is missing.", json!({
            "passes": { "type": "integer", "minimum": 0, "maximum": 2 }, "verdicts": count,
            "contradicted": count, "notes": texts
        })),
        "synthesis": object("The master begins to write the reply, or the question instead of it.",
            json!({ "step": { "enum": ["synthesis", "question"] }, "model": text })),
        "synthesis.finished": object("The reply or the question is written, by the master or in its place.",
            json!({ "wrote": { "enum": ["reply", "question"] }, "obtained": text })),
        "gate": object("Whether the reply ships or the question is asked.",
            json!({ "gate": { "enum": ["ship", "ask"] }, "c_final": share, "threshold": share })),
        "decision": object("Whether a learned answer replies or the committee; only with a decision \
             strategy or an A/B test.",
            json!({ "path": { "enum": ["heuristic", "llm"] }, "why": text })),
        "tool_plan": object("A plan of tool calls, and why it is rejected.",
            json!({ "plan": { "type": "object" }, "rejection": { "type": ["object", "null"] } })),
        "step.started": object("A step of an execution begins.", json!({ "stepId": text, "tool": text })),
        "step.finished": object("A step ended; `error` is the tool's own, word for word.",
            json!({ "stepId": text, "tool": text, "ok": truth, "error": text_or_null })),
        "explanation": object("What the steps did, in words.",
            json!({ "text": text, "source": { "enum": ["model", "restated", "output"] } })),
        "reply": said("The body of the plain response. The last event.", json!({ "$ref": "#/components/schemas/Reply" })),
        "action": said("Of an action, the body of its response. The last event.", json!({ "$ref": "#/components/schemas/ActionReply" })),
        "error": said("A problem. The last event.", json!({ "$ref": "#/components/schemas/Problem" })),
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
            started(&sent).map(|(name, _)| name)
        };
        assert_eq!(started("cross-check"), Some("cross_check.started"));
        assert_eq!(started("cross-check/first"), Some("cross_check.started"));
        assert_eq!(started("cross-check/reversed"), None);
        assert_eq!(started("cross-check/first#2"), None);
    }
}
