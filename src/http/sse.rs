//! Progress as server-sent events: a view of the journal, entry by entry, each with its seq as id.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Sse, KeepAlive, KeepAliveStream};
use futures_util::{Stream, StreamExt as _};
use serde_json::{Value, json};

use super::api::chat::reply_body;
use super::error::Problem;
use crate::app::App;
use crate::domain::{Role, RunId};
use crate::journal::{AgentOutcome, CallSent, Ending, Entry, Event};

/// A comment goes out this often, so that no proxy takes the stream for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) type Progress =
    axum::response::Sse<KeepAliveStream<futures_util::stream::BoxStream<'static, Result<Sse, Infallible>>>>;

/// The run's events after `after`, then those to come, up to `reply` or `error`.
pub(super) fn progress(app: &Arc<App>, run: RunId, after: i64) -> Progress {
    let events = stream(app, run, after).boxed();
    axum::response::Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still working"))
}

fn stream(app: &Arc<App>, run: RunId, after: i64) -> impl Stream<Item = Result<Sse, Infallible>> + use<> {
    app.follow(run, after).filter_map(move |entry| {
        let event = match entry {
            Ok(entry) => view(run, &entry).map(|(name, data)| sse(name, &data).id(entry.seq.to_string())),
            Err(error) => Some(sse("error", &Problem::from(error).of(run).body())),
        };
        std::future::ready(event.map(Ok))
    })
}

fn sse(name: &str, data: &Value) -> Sse {
    Sse::default().event(name).data(data.to_string())
}

/// What an entry looks like in the stream; `None` for those that are nobody's business there.
fn view(run: RunId, entry: &Entry) -> Option<(&'static str, Value)> {
    let at = entry.at.to_string();
    Some(match &entry.event {
        Event::Accepted(e) => {
            let parent = e.continues.as_ref().map(|c| c.parent.to_string());
            ("run", json!({ "runId": run.to_string(), "mode": e.question.mode, "at": at, "continues": parent }))
        }
        Event::Planned(e) => ("plan", json!({ "plan": e.plan, "corrections": e.corrections, "at": at })),
        Event::RoundStarted(e) => {
            ("round", json!({ "round": e.round, "state": "run", "agents": e.agents, "why": e.why, "at": at }))
        }
        Event::RoundSkipped(e) => ("round", json!({ "round": e.round, "state": "skipped", "why": e.why, "at": at })),
        Event::CallSent(e) => started(e, &at)?,
        Event::AgentFinished(e) => {
            let (outcome, cause) = match &e.outcome {
                AgentOutcome::Answered { .. } => ("answered", None),
                AgentOutcome::Failed { cause, .. } => ("failed", Some(cause)),
            };
            let reused = e.reused_from.map(|id| id.to_string());
            let data = json!({ "agent": e.agent, "round": e.round, "outcome": outcome, "cause": cause,
                               "reusedFrom": reused, "at": at });
            ("agent.finished", data)
        }
        Event::Scored(e) => {
            let scores: Vec<Value> = e
                .judgement
                .scores
                .iter()
                .map(|s| json!({ "agent": s.agent, "cred": s.cred, "status": s.status }))
                .collect();
            let topics: Vec<&str> = e.judgement.disagreements.iter().map(|d| d.topic.as_str()).collect();
            ("score", json!({ "round": e.round, "scores": scores, "disagreements": topics, "at": at }))
        }
        Event::Finished(e) => match &e.ending {
            Ending::Replied { reply } => ("reply", reply_body(reply)),
            ending => ("error", Problem::ended(run, ending).body()),
        },
        Event::Claimed(_)
        | Event::Hinted(_)
        | Event::Trimmed(_)
        | Event::CallSettled(_)
        | Event::Synthesized(_)
        | Event::Gated(_)
        | Event::Feedback(_) => return None,
    })
}

/// The first attempt of an agent, or of the master at its synthesis.
fn started(sent: &CallSent, at: &str) -> Option<(&'static str, Value)> {
    match sent.role {
        Role::Agent(agent) => {
            let first = sent.call.ends_with(&format!("/{agent}"));
            let round = sent.call.split('/').next().unwrap_or("").trim_start_matches('r').parse::<u8>().ok();
            first.then(|| ("agent.started", json!({ "agent": agent, "round": round, "model": sent.model, "at": at })))
        }
        Role::Master => match sent.call.as_str() {
            "synthesis" | "question" => {
                Some(("synthesis", json!({ "step": sent.call, "model": sent.model, "at": at })))
            }
            _ => None,
        },
    }
}
