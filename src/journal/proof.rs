//! Proves that a run was not altered: neither its entries, nor the columns of its row that are read
//! without them.

use jiff::Timestamp;

use super::unlinked::{Change, End, change, listed_message, spent as spent_by};
use super::{
    ChainFault, Entry, Event, Learned, LearnedChange, LearnedRow, RunRow, RunState, Transcript,
    verify,
};
use crate::domain::Usd;

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

/// Compares the row of what a run taught, if there is one, with a state that the run's entries say it
/// had. The row was read before the entries.
///
/// # Errors
/// [`ChainFault::Learned`].
pub fn prove_learned(row: Option<&LearnedRow>, entries: &[Entry]) -> Result<(), ChainFault> {
    let Some(row) = row else { return Ok(()) };
    let changes = Transcript::of_entries(entries).learned;
    let mut taught = changes.iter().filter_map(|it| it.taught.as_ref());
    let is_taught = taught.any(|it| same(&row.condition, &it.condition) && row.answer == it.answer);
    let had = |it: &&Learned| {
        let is_revoked = it.change == LearnedChange::Revoked;
        it.confidence == row.confidence && is_revoked == row.is_revoked
    };
    if is_taught && changes.into_iter().any(|it| had(&it)) {
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
    let mut columns = vec![
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
