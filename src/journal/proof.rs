//! Proves that a run was not altered: neither its entries, nor the columns of its row that are read
//! without them.

use jiff::Timestamp;

use super::encoded_event::{Change, End, change, listed_message, spent as spent_by};
use super::{
    ChainFault, Entry, Error, Event, LearnedChange, LearnedRow, Owner, RunRow, RunState, Store,
    Transcript, learned_scope, verify,
};
use crate::domain::{RunId, Usd};

/// Verifies the chain of a run's entries, given from the first to the row's head. Then compares the
/// columns of the run's row with the values that the entries imply.
///
/// # Errors
/// [`ChainFault`]: the first mismatch.
pub fn prove(row: &RunRow, entries: &[Entry]) -> Result<(), ChainFault> {
    verify(row.id, entries, &row.head_hash)?;
    match projected(row, entries) {
        Some(column) => Err(ChainFault::Row { column }),
        None => Ok(()),
    }
}

/// A run as it is stored, with the first mismatch that was found.
pub struct Proven {
    pub row: RunRow,
    pub entries: Vec<Entry>,
    pub fault: Option<ChainFault>,
}

/// True if a run, and what was learned from it, are as its journal says.
///
/// # Errors
/// If the database fails.
pub async fn is_unaltered(store: &dyn Store, id: RunId) -> Result<bool, Error> {
    match read_proven(store, id).await {
        Ok(proven) => Ok(proven.is_some_and(|it| it.fault.is_none())),
        Err(Error::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How often a run is read again that was written to while it was read.
const READS: u32 = 5;

/// Reads a run and proves it, with the answer that was learned from it.
///
/// # Errors
/// If the row or an entry cannot be read, or the database fails.
pub async fn read_proven(store: &dyn Store, id: RunId) -> Result<Option<Proven>, Error> {
    let mut left = READS;
    loop {
        let Some(row) = store.run(id).await? else {
            return Ok(None);
        };
        let learned = store.learned_from(id).await;
        let mut entries = store.entries(id, 0).await?;
        if !row.state.is_terminal() {
            entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
        } else if left > 0 && entries.last().is_some_and(|last| last.seq > row.head_seq) {
            left -= 1;
            continue;
        }
        let fault = prove_with_learned(&row, &entries, learned)?;
        return Ok(Some(Proven {
            row,
            entries,
            fault,
        }));
    }
}

/// As [`prove`], with the stored answer that was learned from the run. Returns the first mismatch.
///
/// # Errors
/// If the learned answer was not read. A learned answer that cannot be parsed is a mismatch.
pub(super) fn prove_with_learned(
    row: &RunRow,
    entries: &[Entry],
    learned: Result<Option<LearnedRow>, Error>,
) -> Result<Option<ChainFault>, Error> {
    let learned = match learned {
        Err(Error::Corrupt { .. }) => Err(ChainFault::Learned),
        read => prove_learned(read?.as_ref(), entries),
    };
    Ok(prove(row, entries).and(learned).err())
}

/// Compares the row of what a run taught with the last state that the run's entries give it. Rows are
/// only deleted with their run.
///
/// # Errors
/// [`ChainFault::Learned`].
fn prove_learned(row: Option<&LearnedRow>, entries: &[Entry]) -> Result<(), ChainFault> {
    let transcript = Transcript::of_entries(entries);
    let changes = &transcript.learned;
    let Some(row) = row else {
        let deleted = changes.iter().any(|change| change.taught.is_some());
        return if deleted {
            Err(ChainFault::Learned)
        } else {
            Ok(())
        };
    };
    let mut taught = changes.iter().filter_map(|it| it.taught.as_ref());
    let is_taught = taught.any(|it| same(&row.condition, &it.condition) && row.answer == it.answer);
    let is_last = changes.last().is_some_and(|last| {
        let is_revoked = last.change == LearnedChange::Revoked;
        last.confidence == row.confidence && is_revoked == row.is_revoked
    });
    let mut entries = entries.iter().rev();
    let changed = entries.find(|entry| matches!(entry.event, Event::Learned(_)));
    let is_dated = changed.is_some_and(|entry| entry.at == row.changed_at);
    let is_in_place = transcript.accepted.is_some_and(|accepted| {
        let scope = learned_scope(&accepted.question);
        let guild = |owner: &Owner| owner.guild_id.clone().unwrap_or_default();
        scope.source == row.scope.source
            && same(&row.scope.user_id, &scope.user_id)
            && same(&guild(&row.scope), &guild(&scope))
    });
    if is_taught && is_last && is_dated && is_in_place {
        Ok(())
    } else {
        Err(ChainFault::Learned)
    }
}

/// True if a column has a text. Texts of PostgreSQL cannot contain U+0000. It is stored as U+FFFD.
fn same(shown: &str, said: &str) -> bool {
    shown.replace('\0', "\u{FFFD}") == said.replace('\0', "\u{FFFD}")
}

/// Returns the first column that differs from what the entries imply.
fn projected(row: &RunRow, entries: &[Entry]) -> Option<&'static str> {
    let Some((at, Event::Accepted(accepted))) =
        entries.first().map(|entry| (entry.at, &entry.event))
    else {
        return Some("id");
    };
    let question = &accepted.question;
    let context = &question.context;
    let (spent, end) = outcome(entries);
    let accepted_ms = at.as_millisecond();
    let last = entries.last().map_or(0, |entry| entry.seq);
    let mut columns = vec![
        ("head_seq", row.head_seq == last),
        ("kind", row.kind == accepted.kind()),
        ("mode", row.mode == question.mode),
        ("source", row.source == question.source),
        ("user_id", same(&row.user_id, &question.user.id)),
        (
            "guild_id",
            same(&row.guild_id, context.guild_id.as_deref().unwrap_or("")),
        ),
        (
            "channel_id",
            same(&row.channel_id, context.channel_id.as_deref().unwrap_or("")),
        ),
        ("message", same(&row.message, &listed_message(accepted))),
        ("parent", row.parent == accepted.parent()),
        ("cap_nanos", row.cap == accepted.cap),
        ("spent_nanos", row.spent == spent),
        (
            "accepted_ms",
            row.accepted_at.as_millisecond() == accepted_ms,
        ),
    ];
    let finished_ms = row.finished_at.map(Timestamp::as_millisecond);
    if let Some((at, end)) = end {
        let (shown, cause) = (row.cause.as_deref(), end.cause.unwrap_or_default());
        columns.extend([
            ("state", row.state == end.state),
            ("cause", same(shown.unwrap_or_default(), &cause)),
            ("c_final", row.c_final == end.c_final),
            ("finished_ms", finished_ms == Some(at.as_millisecond())),
        ]);
    } else {
        let unfinished = matches!(row.state, RunState::Queued | RunState::Running);
        columns.extend([
            ("state", unfinished),
            ("c_final", row.c_final.is_none()),
            ("finished_ms", finished_ms.is_none()),
        ]);
    }
    columns
        .into_iter()
        .find(|(_, holds)| !holds)
        .map(|(column, _)| column)
}

/// Returns what the run has spent, and its end with the time.
fn outcome(entries: &[Entry]) -> (Usd, Option<(Timestamp, End)>) {
    let (mut spent, mut end) = (0_i64, None);
    for entry in entries {
        spent = spent.saturating_add(spent_by(&entry.event));
        match change(&entry.event) {
            Some(Change::Ended(ended)) => end = Some((entry.at, ended)),
            Some(Change::Changed(_) | Change::Learned(_)) | None => {}
        }
    }
    (Usd::from_nanos(spent.unsigned_abs()), end)
}
