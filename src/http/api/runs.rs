//! `/api/runs`: the runs and their results.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reply_body::MetaBody;
use super::run_bodies::{
    CallTiming, Cancelled, CostBody, EntryBody, JournalBody, RunBody, RunPage, RunSummary, Timings,
};
use crate::app::App;
use crate::committee::rounded_audit;
use crate::domain::{RunId, RunKind, Scope};
use crate::http::auth::Caller;
use crate::http::error::Problem;
use crate::http::{request_id, sse};
use crate::journal::{
    self, CancelOutcome, Ending, Entry, Proven, RunFilter, RunRow, RunState, Transcript,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ListQuery {
    kind: Option<String>,
    mode: Option<String>,
    user: Option<String>,
    outcome: Option<String>,
    since: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
}

/// Lists runs, newest first. `nextCursor` is null on the last page.
pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    query: Result<Query<ListQuery>, QueryRejection>,
    caller: Option<Extension<Caller>>,
) -> Result<Json<RunPage>, Problem> {
    let wrong = "has a parameter that is unknown or stands twice";
    let Query(query) = query.map_err(|_| Problem::wrong_parameter("query", wrong))?;
    let filter = filter(query)?;
    let may_read = |kind| {
        let permits = |scope| caller.as_ref().is_none_or(|caller| caller.permits(scope));
        permits(scope_of(kind)) || (kind == RunKind::Action && permits(Scope::Act))
    };
    if let Some(kind) = filter.kind.filter(|kind| !may_read(*kind)) {
        return Err(Problem::lacks_scope(&[scope_of(kind)]));
    }
    let mut rows = match (filter.mode, filter.kind) {
        (None, _) | (Some(_), Some(RunKind::Chat)) => app.runs(&filter).await?,
        (Some(_), _) => vec![],
    };
    let size = filter.limit as usize - 1;
    let more = rows.len() > size;
    rows.truncate(size);
    let last = rows.last().filter(|_| more);
    let next_cursor = last.map(|row| row.id.to_string());
    rows.retain(|row| may_read(row.kind));
    Ok(Json(RunPage {
        next_cursor,
        runs: rows.iter().map(summary).collect(),
    }))
}

/// Reads the filter of a list, with a limit of one more run than the page has.
fn filter(query: ListQuery) -> Result<RunFilter, Problem> {
    let kinds = "must be chat, action, plan, execution or all";
    let kind = match query.kind.as_deref() {
        None => Some(RunKind::Chat),
        Some("all") => None,
        Some(_) => parsed("kind", query.kind, kinds)?,
    };
    let mode = parsed("mode", query.mode, "must be ask, audit or deep")?;
    // Only chats have one.
    let kind = kind.or(mode.map(|_| RunKind::Chat));
    let since = parsed("since", query.since, "is not an RFC 3339 time")?;
    let before = parsed("cursor", query.cursor, "is not a cursor of this list")?;
    let states = "must be answered, clarification, heuristic, failed, cancelled, queued or running";
    let state = parsed("outcome", query.outcome, states)?;
    let limit = query.limit.as_deref().map_or(Ok(50), str::parse::<u32>);
    let Some(limit) = limit.ok().filter(|limit| (1..=200).contains(limit)) else {
        return Err(Problem::wrong_parameter("limit", "must be from 1 to 200"));
    };
    Ok(RunFilter {
        kind,
        mode,
        user_id: query.user,
        state,
        since,
        before,
        limit: limit + 1,
    })
}

/// Parses a parameter that is written as its type is in JSON.
fn parsed<T: DeserializeOwned>(
    name: &str,
    value: Option<String>,
    wrong: &str,
) -> Result<Option<T>, Problem> {
    let parsed = value.map(|value| serde_json::from_value(Value::String(value)));
    let parsed = parsed.transpose();
    parsed.map_err(|_| Problem::wrong_parameter(name, wrong))
}

/// The id in the path, or the error of its extraction.
pub(in crate::http) type Id = Result<Path<String>, PathRejection>;

pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    id: Id,
    caller: Option<Extension<Caller>>,
) -> Result<Json<RunBody>, Problem> {
    let row = find(&app, id, caller.as_deref()).await?;
    let entries = app.entries(row.id).await?;
    Ok(Json(app.compute(move || shown(&row, &entries)).await))
}

fn shown(row: &RunRow, entries: &[Entry]) -> RunBody {
    let transcript = Transcript::of_entries(entries);
    let accepted = transcript.accepted;
    let (reply, action) = match transcript.finished.map(|finished| &finished.ending) {
        Some(Ending::Replied { reply }) => (Some(reply), None),
        Some(Ending::Acted { response, .. }) => (None, Some(response.clone())),
        Some(Ending::Failed { .. } | Ending::Cancelled) | None => (None, None),
    };
    let calls = transcript.calls.iter().map(|call| CallTiming {
        call: call.sent.call.clone(),
        state: call.state(),
        latency_ms: call.latency_ms(),
    });
    let timings = Timings {
        accepted_at: row.accepted_at.to_string(),
        finished_at: row.finished_at.map(|at| at.to_string()),
        total_ms: row
            .finished_at
            .map(|at| (at.as_millisecond() - row.accepted_at.as_millisecond()).max(0)),
        calls: calls.collect(),
    };
    let continues = transcript.continues().cloned();
    let mut summary = summary(row);
    if accepted.is_some_and(|accepted| accepted.continues.is_some()) && continues.is_none() {
        // Its message turned out to ask something new.
        summary.parent = None;
    }
    RunBody {
        summary,
        correlation_id: accepted.and_then(|a| a.correlation_id.clone()),
        continues,
        timings,
        reply: reply.map(|reply| reply.text.clone()),
        meta: reply.map(|reply| MetaBody::of(reply)),
        audit: reply.and_then(|reply| reply.audit.clone().map(rounded_audit)),
        action,
    }
}

/// Returns every entry as it is stored, with the hash chain and whether it is intact. Returns none if
/// one of them cannot be read.
pub(in crate::http) async fn journal(
    State(app): State<Arc<App>>,
    id: Id,
    caller: Option<Extension<Caller>>,
) -> Result<Json<JournalBody>, Problem> {
    let row = find(&app, id, caller.as_deref()).await?;
    let proven = match app.proven(row.id).await {
        Ok(proven) => proven.ok_or_else(Problem::no_such_run)?,
        Err(journal::Error::Corrupt { .. }) => {
            return Ok(Json(JournalBody {
                run_id: row.id.to_string(),
                entries: vec![],
                head: row.head_hash,
                verified: false,
                broken: Some("an entry cannot be read".to_owned()),
            }));
        }
        Err(error) => return Err(error.into()),
    };
    let body = app.compute(move || {
        let Proven {
            row,
            entries,
            fault,
        } = proven;
        let lines = entries.into_iter().map(|entry| EntryBody {
            seq: entry.seq,
            at: entry.at.to_string(),
            key: entry.key,
            body: serde_json::from_str(&entry.body).unwrap_or(Value::Null),
            prev: entry.prev,
            hash: entry.hash,
        });
        JournalBody {
            run_id: row.id.to_string(),
            entries: lines.collect(),
            head: row.head_hash,
            verified: fault.is_none(),
            broken: fault.map(|broken| broken.to_string()),
        }
    });
    Ok(Json(body.await))
}

/// Streams the events of a run, from the beginning or from after `Last-Event-ID`.
pub(in crate::http) async fn events(
    State(app): State<Arc<App>>,
    id: Id,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let row = find(&app, id, caller.as_deref()).await?;
    let seen = headers.get("last-event-id").map(|value| {
        let seq = value
            .to_str()
            .ok()
            .and_then(|id| id.trim().parse::<i64>().ok());
        let wrong = "is not an id of this stream";
        seq.filter(|seq| *seq >= 0)
            .ok_or_else(|| Problem::wrong_parameter("Last-Event-ID", wrong))
    });
    // With an id beyond the end, the stream would wait for an end that it has already passed.
    let after = seen.transpose()?.unwrap_or(0).min(row.head_seq);
    if row.state.is_terminal() {
        // Feedback may follow the end, but no event of the stream: 204 tells the client not to
        // reconnect.
        let entries = app.entries(row.id).await?;
        let mut left = entries.iter().filter(|entry| entry.seq > after);
        if !left.any(Entry::is_end) {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    Ok(sse::progress(&app, row.id, after, caller.map(|Extension(caller)| caller)).into_response())
}

pub(in crate::http) async fn cancel(
    State(app): State<Arc<App>>,
    id: Id,
    caller: Option<Extension<Caller>>,
) -> Result<Response, Problem> {
    let RunRow { id, kind, .. } = find(&app, id, caller.as_deref()).await?;
    let is_of_tools = scope_of(kind) == Scope::Tools;
    if !is_of_tools && caller.is_some_and(|caller| !caller.permits(Scope::Chat)) {
        return Err(Problem::lacks_scope(&[Scope::Chat]));
    }
    let said = |state| {
        Json(Cancelled {
            run_id: id.to_string(),
            state,
        })
    };
    match app.cancel(id).await? {
        CancelOutcome::Requested => Ok((StatusCode::ACCEPTED, said("cancelling")).into_response()),
        CancelOutcome::AlreadyFinished(RunState::Cancelled) => {
            Ok(said("cancelled").into_response())
        }
        CancelOutcome::AlreadyFinished(state) => {
            Err(Problem::conflict(format!("the run is {} already", state.into_str())).of(id))
        }
        CancelOutcome::Unknown => Err(Problem::no_such_run()),
    }
}

/// Waits for the end of a run.
pub(super) async fn end_of(app: &App, run: RunId) -> Result<Ending, Problem> {
    let finished = app.ended(run).await;
    let finished = finished.map_err(|error| Problem::from(error).of(run))?;
    Ok(finished.ok_or_else(Problem::no_such_run)?.ending)
}

/// Answers with a body of a run.
pub(super) fn of_run(run: RunId, body: impl Serialize) -> Response {
    let mut response = Json(body).into_response();
    request_id::set_run(response.headers_mut(), run);
    response
}

pub(in crate::http) fn parse(id: Id) -> Result<RunId, Problem> {
    id.ok()
        .and_then(|Path(id)| id.parse().ok())
        .ok_or_else(Problem::no_such_run)
}

/// Finds a run that the caller may read. With the scope `act` alone, these are actions and their
/// narrations.
async fn find(app: &App, id: Id, caller: Option<&Caller>) -> Result<RunRow, Problem> {
    let row = app.run(parse(id)?).await?;
    let row = row.ok_or_else(Problem::no_such_run)?;
    let permits = |scope| caller.is_none_or(|caller| caller.permits(scope));
    let needed = scope_of(row.kind);
    let may_act = needed == Scope::Chat && permits(Scope::Act);
    if permits(needed) || (may_act && is_of_action(app, &row).await?) {
        return Ok(row);
    }
    Err(Problem::lacks_scope(&[needed]))
}

/// Returns the scope that reads the runs of a kind. Those of tool plans hold contents of files.
fn scope_of(kind: RunKind) -> Scope {
    match kind {
        RunKind::Chat | RunKind::Action => Scope::Chat,
        RunKind::Plan | RunKind::Execution => Scope::Tools,
    }
}

/// True for an action, and for the narration of one.
async fn is_of_action(app: &App, row: &RunRow) -> Result<bool, Problem> {
    if row.kind == RunKind::Action {
        return Ok(true);
    }
    let Some(parent) = row.parent.filter(|_| row.kind == RunKind::Chat) else {
        return Ok(false);
    };
    let parent = app.run(parent).await?;
    Ok(parent.is_some_and(|parent| parent.kind == RunKind::Action))
}

fn summary(row: &RunRow) -> RunSummary {
    RunSummary {
        id: row.id.to_string(),
        state: row.state.shown(),
        cause: row.cause.clone(),
        kind: row.kind,
        mode: (row.kind == RunKind::Chat).then_some(row.mode),
        source: row.source,
        user_id: row.user_id.clone(),
        message: row.message.clone(),
        parent: row.parent.map(|id| id.to_string()),
        c_final: row.c_final,
        cost: CostBody {
            cap_usd: row.cap.dollars(),
            spent_usd: row.spent.dollars(),
        },
        accepted_at: row.accepted_at.to_string(),
        finished_at: row.finished_at.map(|at| at.to_string()),
    }
}
