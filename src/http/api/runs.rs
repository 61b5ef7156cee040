//! `/api/runs`: what became of questions.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chat::meta_body;
use crate::app::App;
use crate::domain::{Mode, RunId};
use crate::http::error::Problem;
use crate::http::sse;
use crate::journal::{CancelOutcome, Ending, RunFilter, RunRow, RunState, verify, views};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ListQuery {
    mode: Option<String>,
    user: Option<String>,
    outcome: Option<String>,
    since: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
}

/// What runs can be listed by.
enum Outcomes {
    State(RunState),
    Heuristic,
}

fn outcome(name: &str) -> Result<Outcomes, Problem> {
    if name == "heuristic" {
        return Ok(Outcomes::Heuristic);
    }
    RunState::ALL.into_iter().find(|state| state.as_str() == name).map(Outcomes::State).ok_or_else(|| {
        let detail = "must be answered, clarification, heuristic, failed, cancelled, queued or running";
        Problem::wrong_parameter("outcome", detail)
    })
}

/// Newest first; `nextCursor` is null on the last page.
pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(query) =
        query.map_err(|_| Problem::wrong_parameter("query", "has a parameter that is unknown or stands twice"))?;
    let mode = query.mode.as_deref().map(|name| match name {
        "ask" => Ok(Mode::Ask),
        "audit" => Ok(Mode::Audit),
        "deep" => Ok(Mode::Deep),
        _ => Err(Problem::wrong_parameter("mode", "must be ask, audit or deep")),
    });
    let since = query.since.as_deref().map(|since| {
        since.parse::<Timestamp>().map_err(|_| Problem::wrong_parameter("since", "is not an RFC 3339 time"))
    });
    let (mode, since) = (mode.transpose()?, since.transpose()?);
    let before = query.cursor.as_deref().map(str::parse::<RunId>).transpose();
    let before = before.map_err(|_| Problem::wrong_parameter("cursor", "is not a cursor of this list"))?;
    let limit = query.limit.as_deref().map_or(Ok(50), str::parse::<u32>);
    let Some(limit) = limit.ok().filter(|limit| (1..=200).contains(limit)) else {
        return Err(Problem::wrong_parameter("limit", "must be from 1 to 200"));
    };
    let state = match query.outcome.as_deref().map(outcome).transpose()? {
        // No run is answered without the committee yet.
        Some(Outcomes::Heuristic) => return Ok(Json(json!({ "runs": [], "nextCursor": null }))),
        Some(Outcomes::State(state)) => Some(state),
        None => None,
    };
    let filter = RunFilter { mode, user_id: query.user, state, since, before, limit: limit + 1 };
    let mut rows = app.runs(&filter).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = if more { rows.last().map(|row| row.id.to_string()) } else { None };
    let runs: Vec<Value> = rows.iter().map(summary).collect();
    Ok(Json(json!({ "runs": runs, "nextCursor": next })))
}

pub(in crate::http) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let row = find(&app, &id).await?;
    let entries = app.entries(row.id).await?;
    let mut body = summary(&row);
    let Value::Object(map) = &mut body else { return Ok(Json(body)) };
    let accepted = views::accepted(&entries);
    map.insert("correlationId".into(), json!(accepted.and_then(|a| a.correlation_id.clone())));
    map.insert("continues".into(), json!(accepted.and_then(|a| a.continues.clone())));
    let events: Vec<_> = entries.iter().map(|entry| entry.event.clone()).collect();
    let calls = views::calls(&events.iter());
    map.insert(
        "timings".into(),
        json!({
            "acceptedAt": row.accepted_at.to_string(),
            "finishedAt": row.finished_at.map(|at| at.to_string()),
            "totalMs": row.finished_at.map(|at| at.as_millisecond() - row.accepted_at.as_millisecond()),
            "calls": calls.iter().map(|call| json!({
                "call": call.sent.call,
                "state": call.state(),
                "latencyMs": call.settled.map(|s| s.latency_ms),
            })).collect::<Vec<_>>(),
        }),
    );
    if let Some(Ending::Replied { reply }) = views::finished(&entries).map(|f| &f.ending) {
        map.insert("reply".into(), json!(reply.text));
        map.insert("meta".into(), meta_body(reply));
        if let Some(audit) = &reply.audit {
            map.insert("audit".into(), audit.clone());
        }
    }
    Ok(Json(body))
}

/// Every entry as it is stored, with the chain and whether it holds.
pub(in crate::http) async fn journal(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find(&app, &id).await?;
    let mut entries = app.entries(row.id).await?;
    // The run may have gone on between the two reads.
    entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
    let proof = verify(row.id, &entries, &row.head_hash);
    let lines: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "seq": entry.seq,
                "at": entry.at.to_string(),
                "key": entry.key,
                "body": serde_json::from_str::<Value>(&entry.body).unwrap_or(Value::Null),
                "prev": entry.prev,
                "hash": entry.hash,
            })
        })
        .collect();
    Ok(Json(json!({
        "runId": row.id.to_string(),
        "entries": lines,
        "head": row.head_hash,
        "verified": proof.is_ok(),
        "broken": proof.err().map(|broken| broken.to_string()),
    })))
}

/// The event stream of a run, from the beginning or from after `Last-Event-ID`.
pub(in crate::http) async fn events(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let row = find(&app, &id).await?;
    let after = match headers.get("last-event-id").map(|v| v.to_str().unwrap_or("").trim().parse::<i64>()) {
        None => 0,
        // An id from beyond the end would let the stream wait for an end that it has passed.
        Some(Ok(seq)) if seq >= 0 => seq.min(row.head_seq),
        Some(_) => return Err(Problem::wrong_parameter("Last-Event-ID", "is not an id of this stream")),
    };
    if row.state.is_terminal() && after >= row.head_seq {
        // Nothing more will ever come: tell the client not to reconnect.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(sse::progress(&app, row.id, after).into_response())
}

pub(in crate::http) async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, Problem> {
    let id = parse(&id)?;
    match app.cancel(id).await? {
        CancelOutcome::Requested => {
            Ok((StatusCode::ACCEPTED, Json(json!({ "runId": id.to_string(), "state": "cancelling" }))).into_response())
        }
        CancelOutcome::AlreadyFinished(RunState::Cancelled) => {
            Ok(Json(json!({ "runId": id.to_string(), "state": "cancelled" })).into_response())
        }
        CancelOutcome::AlreadyFinished(state) => {
            Err(Problem::conflict(format!("the run is {} already", state.as_str())).of(id))
        }
        CancelOutcome::Unknown => Err(Problem::no_such_run()),
    }
}

fn parse(id: &str) -> Result<RunId, Problem> {
    id.parse().map_err(|_| Problem::no_such_run())
}

async fn find(app: &App, id: &str) -> Result<RunRow, Problem> {
    app.run(parse(id)?).await?.ok_or_else(Problem::no_such_run)
}

fn summary(row: &RunRow) -> Value {
    json!({
        "id": row.id.to_string(),
        "state": row.state,
        "cause": row.cause,
        "mode": row.mode,
        "source": row.source,
        "userId": row.user_id,
        "message": row.message,
        "parent": row.parent.map(|id| id.to_string()),
        "c_final": row.c_final,
        "cost": { "capUsd": row.cap.dollars(), "spentUsd": row.spent.dollars() },
        "acceptedAt": row.accepted_at.to_string(),
        "finishedAt": row.finished_at.map(|at| at.to_string()),
    })
}
