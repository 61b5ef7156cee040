//! Code that both databases share: parses rows (invalid data is `Error::Corrupt`), and computes the
//! change that an event makes to its run's row.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::database::Columns;
use super::packed::unpack;
use super::{
    Accepted, ArchivedEntry, CallResult, Effect, Ending, Entry, Error, Event, Learned, LearnedRow,
    MemoryRow, Owner, RunRow, RunState, SceneLine, SheetRow, TokenRow, VERSION, chain,
};
use crate::domain::{Outcome, RunId, Usd};

/// Characters of an action's message in lists, and in the recent lines that are shown to a
/// narrator.
const MAX_LISTED_ACTION_CHARS: usize = 1000;

/// A change that an event makes to its run's row.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Ended {
        state: RunState,
        cause: Option<String>,
        c_final: Option<f64>,
    },
    /// An answer was learned, or changed.
    Learned(Box<Learned>),
    /// A command changed a sheet or memory of its user.
    Changed(Effect),
}

/// Returns the nano-dollars that an event adds to the spent amount of its run's row.
pub(super) fn spent(event: &Event) -> i64 {
    let Event::CallSettled(settled) = event else {
        return 0;
    };
    debug_assert!(!matches!(settled.result, CallResult::InDoubt) || settled.usage.is_none());
    settled.cost.nanos().cast_signed()
}

/// Returns what an event changes besides the journal and the spent amount.
pub(super) fn change(event: &Event) -> Option<Change> {
    match event {
        Event::Finished(finished) => {
            let (state, cause, c_final) = match &finished.ending {
                Ending::Replied { reply } => {
                    let state = match reply.outcome {
                        Outcome::Clarification => RunState::Clarification,
                        Outcome::Answered => RunState::Answered,
                        Outcome::Heuristic => RunState::Heuristic,
                    };
                    (state, None, Some(reply.meta.c_final))
                }
                Ending::Failed { cause, detail } => (
                    RunState::Failed,
                    Some(format!("{}: {detail}", cause.into_str())),
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
        | Event::SolverJudged(_)
        | Event::RoundSkipped(_)
        | Event::CallSent(_)
        | Event::CallSettled(_)
        | Event::Reviewed(_)
        | Event::CrossChecked(_)
        | Event::AgentFinished(_)
        | Event::Scored(_)
        | Event::Synthesized(_)
        | Event::Gated(_)
        | Event::Feedback(_)
        | Event::Parsed(_)
        | Event::Proposed(_)
        | Event::GateChecked(_)
        | Event::ToolPlanned(_)
        | Event::StepStarted(_)
        | Event::StepFinished(_)
        | Event::Explained(_)
        | Event::Decided(_)
        | Event::Converged(_) => None,
        Event::Learned(learned) => Some(Change::Learned(learned.clone())),
        Event::Executed(executed) => executed.effect.clone().map(Change::Changed),
    }
}

/// An event as it is stored, before it gets its place in a chain.
pub(super) struct Unlinked {
    key: String,
    pub body: String,
    pub change: Option<Change>,
    /// In nano-dollars.
    pub spent: i64,
    /// True if the event may not be written while its run is being cancelled.
    pub needs_consent: bool,
    /// True if a view of the database reads the body.
    pub is_queried: bool,
}

impl Unlinked {
    pub fn of(event: &Event) -> Result<Self, Error> {
        Ok(Self {
            key: event.key(),
            body: body(event)?,
            change: change(event),
            spent: spent(event),
            needs_consent: event.is_intent(),
            is_queried: matches!(event, Event::StepFinished(_)),
        })
    }

    pub fn all<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Vec<Self>, Error> {
        events.into_iter().map(Self::of).collect()
    }

    /// Returns the entry at the place `seq`, after the one with hash `prev`, and its hash.
    pub fn link(&self, run: RunId, (seq, at): (i64, Timestamp), prev: &str) -> (Line<'_>, String) {
        let (at_ms, key, body) = (at.as_millisecond(), &*self.key, &*self.body);
        let hash = chain::link(run, (seq, at_ms), key, body, prev);
        let line = Line {
            seq,
            at_ms,
            key,
            body,
        };
        (line, hash)
    }
}

/// The columns of an entry, without the hashes.
pub(super) struct Line<'a> {
    pub seq: i64,
    pub at_ms: i64,
    pub key: &'a str,
    pub body: &'a str,
}

/// An event with the format version.
#[derive(Serialize)]
struct Versioned<'a> {
    #[serde(flatten)]
    event: &'a Event,
    v: u32,
}

/// Serializes an event with its tag, data and format version. Refuses an event that cannot be
/// parsed back, such as one with a number that JSON cannot represent, before it enters the chain.
fn body(event: &Event) -> Result<String, Error> {
    let unwritable =
        |error: serde_json::Error| Error::Unwritable(format!("{}: {error}", event.key()));
    let body = serde_json::to_string(&Versioned { event, v: VERSION }).map_err(unwritable)?;
    // A number that is not finite is written as null.
    if has_values(event) || body.contains("null") {
        body.parse::<Event>().map_err(unwritable)?;
    }
    Ok(body)
}

/// True if an event has JSON of any shape, which could be nested too deep.
fn has_values(event: &Event) -> bool {
    match event {
        Event::Accepted(accepted) => accepted.tools.is_some(),
        Event::Finished(finished) => match &finished.ending {
            Ending::Replied { reply } => reply.audit.is_some(),
            Ending::Acted { .. } => true,
            Ending::Failed { .. } | Ending::Cancelled => false,
        },
        Event::Claimed(_)
        | Event::ComputeStarted(_)
        | Event::Hinted(_)
        | Event::Planned(_)
        | Event::Trimmed(_)
        | Event::RoundStarted(_)
        | Event::RoundSkipped(_)
        | Event::SolverJudged(_)
        | Event::CallSent(_)
        | Event::CallSettled(_)
        | Event::CrossChecked(_)
        | Event::AgentFinished(_)
        | Event::Scored(_)
        | Event::Synthesized(_)
        | Event::Gated(_) => false,
        _ => true,
    }
}

/// Returns the event as it is read back once it is stored.
pub(super) fn as_stored(event: &Event) -> Result<Event, Error> {
    let body = body(event)?;
    body.parse()
        .map_err(|error: serde_json::Error| Error::Unwritable(error.to_string()))
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

pub(super) fn scene_line(row: &impl Columns) -> Result<SceneLine, Error> {
    Ok(SceneLine {
        run: run_id(&row.text("id")?)?,
        user_id: row.text("user_id")?,
        message: row.text("message")?,
    })
}

/// Reads a run's id and the fingerprint of its request.
pub(super) fn by_key(row: &impl Columns) -> Result<(RunId, String), Error> {
    Ok((run_id(&row.text("id")?)?, row.text("body_hash")?))
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
