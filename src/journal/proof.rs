//! Proves that a run was not altered: neither its entries, nor the columns of its row that are read
//! without them.

use jiff::Timestamp;

use super::rows::{Change, change};
use super::{ChainFault, Entry, Event, RunRow, RunState, verify};
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

/// Returns the first column that differs from what the entries imply.
fn projected(row: &RunRow, entries: &[Entry]) -> Option<&'static str> {
    let Some((at, Event::Accepted(accepted))) =
        entries.first().map(|entry| (entry.at, &entry.event))
    else {
        return Some("id");
    };
    let question = &accepted.question;
    // PostgreSQL texts cannot contain U+0000. It is stored as U+FFFD.
    let same =
        |shown: &str, said: &str| shown.replace('\0', "\u{FFFD}") == said.replace('\0', "\u{FFFD}");
    let (mut spent, mut end) = (0_i64, None);
    for entry in entries {
        match change(&entry.event) {
            Some(Change::Spent(nanos)) => spent = spent.saturating_add(nanos),
            Some(Change::Ended {
                state,
                cause,
                c_final,
            }) => end = Some((entry.at, state, cause, c_final)),
            Some(Change::Changed(_)) | None => {}
        }
    }
    let mut columns = vec![
        ("kind", row.kind == accepted.kind()),
        ("mode", row.mode == question.mode),
        ("source", row.source == question.source),
        ("user_id", same(&row.user_id, &question.user.id)),
        ("message", same(&row.message, &question.message)),
        ("parent", row.parent == accepted.parent()),
        ("cap_nanos", row.cap == accepted.cap),
        (
            "spent_nanos",
            row.spent == Usd::from_nanos(spent.unsigned_abs()),
        ),
        (
            "accepted_ms",
            row.accepted_at.as_millisecond() == at.as_millisecond(),
        ),
    ];
    columns.extend(match end {
        Some((at, state, cause, c_final)) => vec![
            ("state", row.state == state),
            (
                "cause",
                same(
                    row.cause.as_deref().unwrap_or_default(),
                    &cause.unwrap_or_default(),
                ),
            ),
            ("c_final", row.c_final == c_final),
            (
                "finished_ms",
                row.finished_at.map(Timestamp::as_millisecond) == Some(at.as_millisecond()),
            ),
        ],
        None => vec![
            (
                "state",
                matches!(row.state, RunState::Queued | RunState::Running),
            ),
            ("c_final", row.c_final.is_none()),
            ("finished_ms", row.finished_at.is_none()),
        ],
    });
    columns
        .into_iter()
        .find(|(_, holds)| !holds)
        .map(|(column, _)| column)
}
