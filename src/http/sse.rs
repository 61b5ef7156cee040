//! Progress as server-sent events: a view of the journal, entry by entry, each with its `seq` as
//! id.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Sse, KeepAlive, KeepAliveStream};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};

use super::api::reply_body::reply_body;
use super::auth::Caller;
use super::error::Problem;
use super::problem_kind::Kind;
use crate::app::App;
use crate::domain::{Agent, CallStep, Decision, RunId, RunKind, Score};
use crate::journal::{
    Accepted, AgentFinished, AgentOutcome, CallResult, CallSent, CallSettled, CrossChecked, Ending,
    Entry, Event, Scored,
};

/// A comment is sent at this interval, so that no proxy closes the stream as idle.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) type Progress = axum::response::Sse<
    KeepAliveStream<futures_util::stream::BoxStream<'static, Result<Sse, Infallible>>>,
>;

/// How often the token of an open stream is checked again.
const RECHECK: Duration = Duration::from_secs(5);

/// Streams the run's events after `after`, and then new ones, up to `reply` or `error`. An `error`
/// ends the stream early if the token that opened it is revoked or expires, or if the process shuts
/// down while another one executes the run.
pub(super) fn progress(app: &Arc<App>, run: RunId, after: i64, caller: Option<Caller>) -> Progress {
    let stopped = stopped(Arc::clone(app), run, caller.and_then(|caller| caller.token));
    let stopped = stopped.boxed().shared();
    let until = stopped.clone().map(drop);
    let events = app.follow(run, after).filter_map(move |entry| {
        let event = match entry {
            Ok(entry) => progress_event(run, &entry)
                .map(|(name, data)| sse(name, &data).id(entry.seq.to_string())),
            Err(error) => Some(sse("error", &Problem::from(error).of(run).body())),
        };
        std::future::ready(event.map(Ok))
    });
    let refused = stream::once(async move {
        let refused = |(kind, why)| sse("error", &Problem::new(kind, why).of(run).body());
        stopped.peek().copied().map(|why| Ok(refused(why)))
    });
    let events = events
        .take_until(until)
        .chain(refused.filter_map(std::future::ready));
    axum::response::Sse::new(events.boxed())
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still working"))
}

/// Returns why a stream ends before its run, once it does.
async fn stopped(app: Arc<App>, run: RunId, token: Option<String>) -> (Kind, &'static str) {
    tokio::select! {
        () = revoked(Arc::clone(&app), token) => {
            (Kind::NoToken, "the token was revoked or has expired; the run goes on")
        }
        () = app.left_to_others(run) => {
            (Kind::Busy, "the service is shutting down; the run goes on: follow it again")
        }
    }
}

/// Returns when the token is no longer valid.
async fn revoked(app: Arc<App>, token: Option<String>) {
    let Some(token) = token else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(RECHECK).await;
        if !app.authenticator.still_works(&token).await {
            return;
        }
    }
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

/// Returns the name and data of an event, without its time.
#[expect(
    clippy::too_many_lines,
    reason = "one flat table, with an arm for each event"
)]
fn event(run: RunId, event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Accepted(e) => ("run", accepted(run, e)),
        Event::Planned(e) => (
            "plan",
            json!({ "plan": e.plan, "corrections": e.corrections }),
        ),
        Event::RoundStarted(e) => ("round", round_started(e.round, &e.agents, &e.why)),
        // The report of a solver that is enough shows as its cross-check.
        Event::SolverJudged(e) if !e.others.is_empty() => {
            ("round", round_started(1, &e.others, &e.why))
        }
        Event::RoundSkipped(e) => {
            let data = json!({ "round": e.round, "state": "skipped", "why": e.why });
            ("round", data)
        }
        Event::CallSent(e) => started(e)?,
        Event::AgentFinished(e) => ("agent.finished", agent_finished(e)),
        Event::Scored(e) => ("score", scored(e)),
        Event::CrossChecked(e) => ("cross_check", cross_checked(e)),
        Event::Trimmed(e) => {
            let again = e.refit.is_some();
            let data = json!({ "agents": e.agents, "leftOut": e.left_out, "again": again });
            ("fit", data)
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
            let data = json!({ "gate": e.gate, "c_final": c_final, "threshold": threshold });
            ("gate", data)
        }
        Event::Finished(e) => match &e.ending {
            Ending::Replied { reply } => ("reply", reply_body(reply)),
            Ending::Acted { response, .. } => ("action", response.clone()),
            ending => ("error", Problem::ended(run, ending).body()),
        },
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
    })
}

fn accepted(run: RunId, accepted: &Accepted) -> Value {
    let parent = accepted.continues.as_ref().map(|c| c.parent.to_string());
    // An action has no mode.
    let mode = (accepted.kind() == RunKind::Chat).then_some(accepted.question.mode);
    json!({ "runId": run.to_string(), "mode": mode, "continues": parent })
}

fn round_started(round: u8, agents: &[Agent], why: &str) -> Value {
    json!({ "round": round, "state": "run", "agents": agents, "why": why })
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
    let model = &sent.model;
    let name = sent.name();
    let step = name
        .filter(|name| name.attempt == 1 && !name.is_repair)?
        .step;
    match step {
        CallStep::Plan => Some(("plan.started", json!({ "model": model }))),
        CallStep::Report { round, agent } | CallStep::Resolve { round, agent } => {
            let data = json!({ "agent": agent, "round": round, "model": model });
            Some(("agent.started", data))
        }
        // With little money only a small cross-check is made.
        CallStep::CrossCheck {
            of_solver: false,
            reversed: false,
            ..
        } => Some(("cross_check.started", json!({ "model": model }))),
        CallStep::Synthesis | CallStep::Question => {
            Some(("synthesis", json!({ "step": sent.call, "model": model })))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Role;

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
