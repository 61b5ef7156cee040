//! The proof that a run was not altered: its chain, and what is read of it without its entries.

use jiff::Timestamp;

use super::rows::{Change, change};
use super::{ChainFault, Entry, Event, RunRow, RunState, verify};
use crate::domain::Usd;

/// Recomputes the chain of a run's entries, given from the first to the row's head, and from them what the run's row says.
///
/// # Errors
/// The first place where it does not hold.
pub fn prove(row: &RunRow, entries: &[Entry]) -> Result<(), ChainFault> {
    verify(row.id, entries, &row.head_hash)?;
    match projected(row, entries) {
        Some(column) => Err(ChainFault::Row { column }),
        None => Ok(()),
    }
}

/// The first column that is not what the entries make of it.
fn projected(row: &RunRow, entries: &[Entry]) -> Option<&'static str> {
    let Some((at, Event::Accepted(accepted))) =
        entries.first().map(|entry| (entry.at, &entry.event))
    else {
        return Some("id");
    };
    let question = &accepted.question;
    // PostgreSQL's texts have no place for this character.
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
