//! Parses rows, for both databases. Invalid data is `Error::Corrupt`.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::database::Columns;
use super::packed::unpack;
use super::{
    ArchivedEntry, Entry, Error, LearnedRow, MemoryRow, Owner, RunRow, SheetRow, TokenRow, chain,
};
use crate::domain::{RunId, Usd};

pub(super) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|_| corrupt("runs", "id", text))
}

/// Reads the entries after `after` from the rows of [`super::reads::ENTRIES`].
pub(super) fn entries(run: RunId, after: i64, found: &[impl Columns]) -> Result<Vec<Entry>, Error> {
    let stored = archived(run, after, found)?;
    stored
        .into_iter()
        .map(|stored| {
            let id = format!("{run}/{}", stored.seq);
            let parsed = stored.body.parse();
            Ok(Entry {
                event: parsed.map_err(|_| corrupt("entries", "body", &id))?,
                seq: stored.seq,
                at: timestamp(stored.at_ms, "entries", &id)?,
                key: stored.key,
                body: stored.body,
                prev: stored.prev,
                hash: stored.hash,
            })
        })
        .collect()
}

/// As [`entries`], without parsing the events.
pub(super) fn archived(
    run: RunId,
    after: i64,
    found: &[impl Columns],
) -> Result<Vec<ArchivedEntry>, Error> {
    let mut read: Vec<ArchivedEntry> = Vec::with_capacity(found.len());
    // The number of entries that have their bodies.
    let mut complete = 0;
    for row in found {
        let mut prev = row.text("prev")?;
        if prev.is_empty() {
            prev = read
                .last()
                .map_or(chain::GENESIS, |last| &last.hash)
                .to_owned();
        }
        let entry = ArchivedEntry {
            seq: row.whole("seq")?,
            at_ms: row.whole("at_ms")?,
            key: row.text("key")?,
            body: row.text("body")?,
            prev,
            hash: row.text("hash")?,
        };
        let (id, has_body) = (entry.seq, !entry.body.is_empty());
        read.push(entry);
        if let Some(packed) = row.bytes_or_null("packed")? {
            let bodies = unpack(&packed);
            let bodies =
                bodies.ok_or_else(|| corrupt("entries", "packed", &format!("{run}/{id}")))?;
            // The rows may begin inside of the group.
            let waiting = read.get_mut(complete..).unwrap_or_default();
            let before = bodies.len().saturating_sub(waiting.len());
            for (entry, body) in waiting.iter_mut().zip(bodies.into_iter().skip(before)) {
                if entry.body.is_empty() {
                    entry.body = body;
                }
            }
            complete = read.len();
        } else if has_body {
            complete = read.len();
        }
    }
    read.retain(|entry| entry.seq > after);
    Ok(read)
}

pub(super) fn run(row: &impl Columns) -> Result<RunRow, Error> {
    let id_text = row.text("id")?;
    let id = run_id(&id_text)?;
    let parent = row.text_or_null("parent")?;
    let finished = row.whole_or_null("finished_ms")?;
    let money = |column: &'static str| -> Result<Usd, Error> {
        let nanos = row.whole(column)?;
        u64::try_from(nanos)
            .map(Usd::from_nanos)
            .map_err(|_| corrupt("runs", column, &id_text))
    };
    Ok(RunRow {
        id,
        state: word(row, "state", &id_text)?,
        kind: word(row, "kind", &id_text)?,
        mode: word(row, "mode", &id_text)?,
        source: word(row, "source", &id_text)?,
        user_id: row.text("user_id")?,
        guild_id: row.text("guild_id")?,
        channel_id: row.text("channel_id")?,
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

pub(super) fn learned(row: &impl Columns) -> Result<LearnedRow, Error> {
    let id = row.text("run")?;
    let corrupt = |column| corrupt("learned_answers", column, &id);
    let time = |column| timestamp(row.whole(column)?, "learned_answers", &id);
    let guild_id = row.text("guild_id")?;
    Ok(LearnedRow {
        run: run_id(&id)?,
        scope: Owner {
            source: word(row, "source", &id)?,
            user_id: row.text("user_id")?,
            guild_id: (!guild_id.is_empty()).then_some(guild_id),
        },
        condition: row.text("content")?,
        answer: serde_json::from_str(&row.text("answer")?).map_err(|_| corrupt("answer"))?,
        confidence: row.real("confidence")?,
        learned_at: time("learned_ms")?,
        changed_at: time("changed_ms")?,
        is_revoked: row.whole("revoked")? != 0,
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

/// Reads a run's id and the fingerprint of its request.
pub(super) fn by_key(row: &impl Columns) -> Result<(RunId, String), Error> {
    Ok((run_id(&row.text("id")?)?, row.text("body_hash")?))
}

fn timestamp(ms: i64, table: &'static str, id: &str) -> Result<Timestamp, Error> {
    Timestamp::from_millisecond(ms).map_err(|_| corrupt(table, "time", id))
}

pub(super) fn corrupt(table: &'static str, column: &'static str, id: &str) -> Error {
    Error::Corrupt {
        table,
        column,
        id: id.to_owned(),
    }
}
