//! Rows to domain values. A row that cannot be is `Error::Corrupt`.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::domain::{RunId, Usd};
use crate::journal::{Entry, Error, Event, RunRow, RunState};

/// The stored form of an event: its tag and data with the format's version. What could not be read back (a number that
/// JSON has no form for) is refused before it is in the chain.
pub(super) fn body(event: &Event, version: u32) -> Result<String, Error> {
    let unwritable = |error: serde_json::Error| Error::Unwritable(format!("{}: {error}", event.key()));
    let mut value = serde_json::to_value(event).map_err(unwritable)?;
    if let Value::Object(map) = &mut value {
        map.insert("v".to_owned(), json!(version));
    }
    let body = value.to_string();
    serde_json::from_str::<Event>(&body).map_err(unwritable)?;
    Ok(body)
}

pub(super) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|_| corrupt("runs", "id", text))
}

pub(super) fn state(text: &str, id: RunId) -> Result<RunState, Error> {
    RunState::ALL
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or_else(|| corrupt("runs", "state", &id.to_string()))
}

pub(super) fn entry(row: &SqliteRow) -> Result<Entry, Error> {
    let run: String = row.try_get("run")?;
    let seq: i64 = row.try_get("seq")?;
    let body: String = row.try_get("body")?;
    let id = format!("{run}/{seq}");
    let event = serde_json::from_str(&body).map_err(|_| corrupt("entries", "body", &id))?;
    Ok(Entry {
        seq,
        at: timestamp(row.try_get("at_ms")?, "entries", &id)?,
        key: row.try_get("key")?,
        body,
        prev: row.try_get("prev")?,
        hash: row.try_get("hash")?,
        event,
    })
}

pub(super) fn run(row: &SqliteRow) -> Result<RunRow, Error> {
    let id_text: String = row.try_get("id")?;
    let id = run_id(&id_text)?;
    let parent: Option<String> = row.try_get("parent")?;
    let finished: Option<i64> = row.try_get("finished_ms")?;
    let state_text: String = row.try_get("state")?;
    let money = |column: &'static str| -> Result<Usd, Error> {
        let nanos: i64 = row.try_get(column)?;
        u64::try_from(nanos).map(Usd::from_nanos).map_err(|_| corrupt("runs", column, &id_text))
    };
    Ok(RunRow {
        id,
        state: state(&state_text, id)?,
        mode: word(row, "mode", &id_text)?,
        source: word(row, "source", &id_text)?,
        user_id: row.try_get("user_id")?,
        message: row.try_get("message")?,
        parent: parent.map(|p| p.parse().map_err(|_| corrupt("runs", "parent", &id_text))).transpose()?,
        cause: row.try_get("cause")?,
        c_final: row.try_get("c_final")?,
        cap: money("cap_nanos")?,
        spent: money("spent_nanos")?,
        accepted_at: timestamp(row.try_get("accepted_ms")?, "runs", &id_text)?,
        finished_at: finished.map(|ms| timestamp(ms, "runs", &id_text)).transpose()?,
        cancel_requested: row.try_get::<i64, _>("cancel_requested")? != 0,
        head_seq: row.try_get("head_seq")?,
        head_hash: row.try_get("head_hash")?,
    })
}

fn word<T: DeserializeOwned>(row: &SqliteRow, column: &'static str, id: &str) -> Result<T, Error> {
    let text: String = row.try_get(column)?;
    serde_json::from_value(Value::String(text)).map_err(|_| corrupt("runs", column, id))
}

pub(super) fn timestamp(ms: i64, table: &'static str, id: &str) -> Result<Timestamp, Error> {
    Timestamp::from_millisecond(ms).map_err(|_| corrupt(table, "time", id))
}

pub(super) fn corrupt(table: &'static str, column: &'static str, id: &str) -> Error {
    Error::Corrupt { table, column, id: id.to_owned() }
}
