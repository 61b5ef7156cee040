//! Code that both databases share: parses rows (invalid data is `Error::Corrupt`), and computes the
//! change that an event makes to its run's row.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Acceptance, Accepted, ArchivedEntry, CallResult, Continues, Effect, Ending, Entry, Error,
    Event, MemoryRow, NewRun, RunFilter, RunRow, RunState, SceneLine, SheetRow, TokenRow, VERSION,
    chain,
};
use crate::domain::{Outcome, RunId, RunKind, Usd};

/// Characters of an action's message in lists, and in the recent lines that are shown to a
/// narrator.
const MAX_LISTED_ACTION_CHARS: usize = 1000;

/// Reads the columns of a row by name, for any database.
pub(super) trait Columns {
    fn text(&self, column: &str) -> Result<String, Error>;
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error>;
    fn whole(&self, column: &str) -> Result<i64, Error>;
    fn whole_or_null(&self, column: &str) -> Result<Option<i64>, Error>;
    fn real_or_null(&self, column: &str) -> Result<Option<f64>, Error>;
}

/// A change that an event makes to its run's row.
pub(super) enum Change {
    /// Adds this number of nano-dollars to the spent amount.
    Spent(i64),
    Ended {
        state: RunState,
        cause: Option<String>,
        c_final: Option<f64>,
    },
    /// A command changed a sheet or memory of its user.
    Changed(Effect),
}

pub(super) fn change(event: &Event) -> Option<Change> {
    match event {
        Event::CallSettled(settled) => {
            debug_assert!(
                !matches!(settled.result, CallResult::InDoubt) || settled.usage.is_none()
            );
            Some(Change::Spent(settled.cost.nanos().cast_signed()))
        }
        Event::Finished(finished) => {
            let (state, cause, c_final) = match &finished.ending {
                Ending::Replied { reply } => {
                    let state = match reply.outcome {
                        Outcome::Clarification => RunState::Clarification,
                        Outcome::Answered | Outcome::Heuristic => RunState::Answered,
                    };
                    (state, None, Some(reply.meta.c_final))
                }
                Ending::Failed { cause, detail } => (
                    RunState::Failed,
                    Some(format!("{}: {detail}", cause.as_str())),
                    None,
                ),
                Ending::Cancelled => (RunState::Cancelled, None, None),
                Ending::Acted { .. } => (RunState::Answered, None, None),
            };
            Some(Change::Ended {
                state,
                cause,
                c_final,
            })
        }
        Event::Accepted(_)
        | Event::Claimed(_)
        | Event::ComputeStarted(_)
        | Event::Hinted(_)
        | Event::Planned(_)
        | Event::Trimmed(_)
        | Event::RoundStarted(_)
        | Event::RoundSkipped(_)
        | Event::CallSent(_)
        | Event::Reviewed(_)
        | Event::CrossChecked(_)
        | Event::AgentFinished(_)
        | Event::Scored(_)
        | Event::Synthesized(_)
        | Event::Gated(_)
        | Event::Feedback(_)
        | Event::Parsed(_)
        | Event::Proposed(_)
        | Event::GateChecked(_) => None,
        Event::Executed(executed) => executed.effect.clone().map(Change::Changed),
    }
}

/// Builds the entry that follows the one with sequence number `seq` and hash `prev`.
pub(super) fn line(
    run: RunId,
    at: Timestamp,
    event: &Event,
    seq: i64,
    prev: &str,
) -> Result<ArchivedEntry, Error> {
    let (seq, at_ms, key, body) = (
        seq + 1,
        at.as_millisecond(),
        event.key(),
        body(event, VERSION)?,
    );
    let hash = chain::link(run, (seq, at_ms), &key, &body, prev);
    Ok(ArchivedEntry {
        seq,
        at_ms,
        key,
        body,
        prev: prev.to_owned(),
        hash,
    })
}

/// Returns the outcome for a run whose idempotency key another run has, given as its id and the
/// hash of its body.
pub(super) fn same_key(
    known: Option<(String, String)>,
    run: &NewRun,
) -> Result<Option<Acceptance>, Error> {
    let Some((id, body_hash)) = known else {
        return Ok(None);
    };
    let id = run_id(&id)?;
    Ok(Some(if body_hash == run.body_hash {
        Acceptance::Joined(id)
    } else {
        Acceptance::KeyReused(id)
    }))
}

/// Returns the run in flight that continues the same run in the same way, such as the same answer
/// sent twice. Each candidate comes with the body of its `accepted` entry.
pub(super) fn twin(
    live: Vec<(String, String)>,
    continues: &Continues,
) -> Result<Option<RunId>, Error> {
    let same = live.into_iter().find(|(_, body)| {
        matches!(serde_json::from_str(body), Ok(Event::Accepted(a)) if a.continues.as_ref() == Some(continues))
    });
    same.map(|(id, _)| run_id(&id)).transpose()
}

/// Serializes an event with its tag, data and format version. Refuses an event that cannot be
/// parsed back, such as one with a number that JSON cannot represent, before it enters the chain.
fn body(event: &Event, version: u32) -> Result<String, Error> {
    let unwritable =
        |error: serde_json::Error| Error::Unwritable(format!("{}: {error}", event.key()));
    let mut value = serde_json::to_value(event).map_err(unwritable)?;
    if let Value::Object(map) = &mut value {
        map.insert("v".to_owned(), json!(version));
    }
    let body = value.to_string();
    serde_json::from_str::<Event>(&body).map_err(unwritable)?;
    Ok(body)
}

/// A condition in the statement for a list of runs.
pub(super) struct Condition {
    pub column: &'static str,
    pub operator: &'static str,
    pub bound: Bound,
}

pub(super) enum Bound {
    Text(String),
    Whole(i64),
}

/// Bounds a list of runs since a time by id, so that the scan can end early. Ids are in order of
/// time, except that a clock may be set back. One day is assumed to cover that. So the list starts
/// at the first run that was accepted one day before the time. The condition on `accepted_ms`
/// itself applies as well.
pub(super) const FLOOR: &str = " AND id >= (SELECT id FROM runs WHERE accepted_ms >= ";
pub(super) const FLOOR_END: &str = " ORDER BY accepted_ms LIMIT 1)";

pub(super) fn floor(since: Timestamp) -> i64 {
    since.as_millisecond().saturating_sub(24 * 60 * 60 * 1000)
}

/// Returns the conditions of a filter for runs of one kind.
pub(super) fn conditions(filter: &RunFilter) -> Vec<Condition> {
    let text = |column, operator, value: Option<String>| {
        value.map(|value| Condition {
            column,
            operator,
            bound: Bound::Text(value),
        })
    };
    let since = filter.since.map(Timestamp::as_millisecond);
    [
        text("user_id", " = ", filter.user_id.clone()),
        text(
            "kind",
            " = ",
            filter.kind.map(|kind| kind.as_str().to_owned()),
        ),
        text(
            "mode",
            " = ",
            filter.mode.map(|mode| mode.as_str().to_owned()),
        ),
        text(
            "state",
            " = ",
            filter.state.map(|state| state.as_str().to_owned()),
        ),
        text("id", " < ", filter.before.map(|id| id.to_string())),
        since.map(|since| Condition {
            column: "accepted_ms",
            operator: " >= ",
            bound: Bound::Whole(since),
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Splits a filter for all kinds into one filter per kind.
pub(super) fn by_kind(filter: &RunFilter) -> Vec<RunFilter> {
    let kinds = filter
        .kind
        .map_or_else(|| vec![RunKind::Chat, RunKind::Action], |kind| vec![kind]);
    kinds
        .into_iter()
        .map(|kind| RunFilter {
            kind: Some(kind),
            ..filter.clone()
        })
        .collect()
}

/// Merges the lists of several kinds, newest first, and cuts the result at `limit`.
pub(super) fn merge(listed: &mut Vec<RunRow>, limit: u32) {
    listed.sort_by_key(|row| std::cmp::Reverse(row.id.to_string()));
    listed.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
}

/// Returns the message as the run's row has it. Actions are free, so their text is cut; the journal
/// has all of it.
pub(super) fn listed_message(accepted: &Accepted) -> String {
    let most = if accepted.action.is_some() {
        MAX_LISTED_ACTION_CHARS
    } else {
        usize::MAX
    };
    accepted.question.message.chars().take(most).collect()
}

pub(super) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|_| corrupt("runs", "id", text))
}

fn state(text: &str, id: RunId) -> Result<RunState, Error> {
    RunState::ALL
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or_else(|| corrupt("runs", "state", &id.to_string()))
}

pub(super) fn entry(row: &impl Columns) -> Result<Entry, Error> {
    let run = row.text("run")?;
    let seq = row.whole("seq")?;
    let body = row.text("body")?;
    let id = format!("{run}/{seq}");
    let event = serde_json::from_str(&body).map_err(|_| corrupt("entries", "body", &id))?;
    Ok(Entry {
        seq,
        at: timestamp(row.whole("at_ms")?, "entries", &id)?,
        key: row.text("key")?,
        body,
        prev: row.text("prev")?,
        hash: row.text("hash")?,
        event,
    })
}

/// Reads an entry for an archive, without parsing its event.
pub(super) fn archived(row: &impl Columns) -> Result<ArchivedEntry, Error> {
    Ok(ArchivedEntry {
        seq: row.whole("seq")?,
        at_ms: row.whole("at_ms")?,
        key: row.text("key")?,
        body: row.text("body")?,
        prev: row.text("prev")?,
        hash: row.text("hash")?,
    })
}

pub(super) fn run(row: &impl Columns) -> Result<RunRow, Error> {
    let id_text = row.text("id")?;
    let id = run_id(&id_text)?;
    let parent = row.text_or_null("parent")?;
    let finished = row.whole_or_null("finished_ms")?;
    let state_text = row.text("state")?;
    let money = |column: &'static str| -> Result<Usd, Error> {
        let nanos = row.whole(column)?;
        u64::try_from(nanos)
            .map(Usd::from_nanos)
            .map_err(|_| corrupt("runs", column, &id_text))
    };
    Ok(RunRow {
        id,
        state: state(&state_text, id)?,
        kind: word(row, "kind", &id_text)?,
        mode: word(row, "mode", &id_text)?,
        source: word(row, "source", &id_text)?,
        user_id: row.text("user_id")?,
        message: row.text("message")?,
        parent: parent
            .map(|p| p.parse().map_err(|_| corrupt("runs", "parent", &id_text)))
            .transpose()?,
        cause: row.text_or_null("cause")?,
        c_final: row.real_or_null("c_final")?,
        cap: money("cap_nanos")?,
        spent: money("spent_nanos")?,
        accepted_at: timestamp(row.whole("accepted_ms")?, "runs", &id_text)?,
        finished_at: finished
            .map(|ms| timestamp(ms, "runs", &id_text))
            .transpose()?,
        cancel_requested: row.whole("cancel_requested")? != 0,
        head_seq: row.whole("head_seq")?,
        head_hash: row.text("head_hash")?,
    })
}

fn word<T: DeserializeOwned>(
    row: &impl Columns,
    column: &'static str,
    id: &str,
) -> Result<T, Error> {
    let text = row.text(column)?;
    serde_json::from_value(Value::String(text)).map_err(|_| corrupt("runs", column, id))
}

pub(super) fn token(row: &impl Columns) -> Result<TokenRow, Error> {
    let (id, scopes) = (row.text("id")?, row.text("scopes")?);
    let time = |column: &'static str| -> Result<Option<Timestamp>, Error> {
        row.whole_or_null(column)?
            .map(|ms| timestamp(ms, "tokens", &id))
            .transpose()
    };
    Ok(TokenRow {
        name: row.text("name")?,
        scopes: scopes
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| corrupt("tokens", "scopes", &id)))
            .collect::<Result<_, _>>()?,
        hash: row.text("hash")?,
        created_at: timestamp(row.whole("created_ms")?, "tokens", &id)?,
        expires_at: time("expires_ms")?,
        revoked_at: time("revoked_ms")?,
        id,
    })
}

pub(super) fn sheet(row: &impl Columns) -> Result<SheetRow, Error> {
    let name = row.text("name")?;
    let body = row.text("sheet")?;
    let sheet = serde_json::from_str(&body).map_err(|_| corrupt("sheets", "sheet", &name))?;
    Ok(SheetRow {
        sheet,
        updated_at: timestamp(row.whole("updated_ms")?, "sheets", &name)?,
        name,
    })
}

pub(super) fn memory(row: &impl Columns) -> Result<MemoryRow, Error> {
    let id = row.text("run")?;
    Ok(MemoryRow {
        run: run_id(&id)?,
        content: row.text("content")?,
        at: timestamp(row.whole("created_ms")?, "memories", &id)?,
    })
}

pub(super) fn scene_line(
    (id, user_id, message): (String, String, String),
) -> Result<SceneLine, Error> {
    Ok(SceneLine {
        run: run_id(&id)?,
        user_id,
        message,
    })
}

fn timestamp(ms: i64, table: &'static str, id: &str) -> Result<Timestamp, Error> {
    Timestamp::from_millisecond(ms).map_err(|_| corrupt(table, "time", id))
}

fn corrupt(table: &'static str, column: &'static str, id: &str) -> Error {
    Error::Corrupt {
        table,
        column,
        id: id.to_owned(),
    }
}
