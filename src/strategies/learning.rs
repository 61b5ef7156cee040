//! Learns answers from feedback.

use jiff::Timestamp;

use crate::domain::{Outcome, RunId};
use crate::journal::{
    Annotated, Ending, Entry, Error, Event, Learned, LearnedChange, LearnedRow, Note, RunRow,
    Store, Taught, Transcript, prove,
};

/// The confidence of a new learned answer, whatever the models thought of it.
pub const START: f64 = 0.3;

/// What positive feedback adds, and negative feedback takes.
const RAISE: f64 = 0.2;
const LOWER: f64 = 0.3;

/// The most confidence that feedback gives.
const MOST: f64 = 0.95;

/// Returns the confidence of a learned answer; `None` if it is revoked.
pub fn confidence_of(row: &LearnedRow) -> Option<f64> {
    (!row.is_revoked).then_some(row.confidence)
}

/// Returns the confidence after feedback, rounded, so that steps add up to the figures of thresholds.
fn moved(confidence: f64, positive: bool) -> f64 {
    let step = if positive { RAISE } else { -LOWER };
    let moved = (confidence + step).clamp(0.0, MOST);
    (moved * 1000.0).round() / 1000.0
}

/// A change of a learned answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// The run whose answer it is.
    pub run: RunId,
    /// The last sequence number of that run, on whose entries the change rests.
    pub head_seq: i64,
    pub learned: Learned,
}

impl Lesson {
    /// Returns the entry of the change.
    pub fn note(&self) -> Note {
        Note {
            run: self.run,
            head_seq: self.head_seq,
            events: vec![Event::Learned(Box::new(self.learned.clone()))],
        }
    }
}

/// Returns what feedback on a run teaches: the answer of a learned answer that replied is trusted more
/// or less; the committee's own answer is learned if the feedback is positive and the answer stands on
/// its own. `entries` are the run's up to the row's last one. `None` also for a run that was altered.
///
/// # Errors
/// [`Error`] if the database does not answer.
pub async fn lesson(
    store: &dyn Store,
    row: &RunRow,
    entries: &[Entry],
    positive: bool,
) -> Result<Option<Lesson>, Error> {
    if prove(row, entries).is_err() {
        return Ok(None);
    }
    let transcript = Transcript::of_entries(entries);
    let replied = transcript
        .decided
        .filter(|decided| decided.answer.is_some())
        .and_then(|decided| decided.matched.as_ref());
    let taught_by = replied.map_or(row.id, |matched| matched.id);
    // The journal has the confidence. The table of answers may have been altered.
    let Some(known) = Known::of(store, taught_by).await? else {
        return Ok(None);
    };
    let Some(last) = known.changes.last() else {
        let taught = taught(entries).filter(|_| positive && replied.is_none());
        return Ok(taught.map(|taught| {
            let mut lesson = known.next(LearnedChange::Learned, START);
            lesson.learned.taught = Some(Box::new(taught));
            lesson
        }));
    };
    if last.change == LearnedChange::Revoked {
        return Ok(None);
    }
    let change = if positive {
        LearnedChange::Raised
    } else {
        LearnedChange::Lowered
    };
    let mut lesson = known.next(change, moved(last.confidence, positive));
    lesson.learned.judged = (row.id != taught_by).then_some(row.id);
    Ok(Some(lesson))
}

/// Revokes a learned answer for good. Returns false if there is none, or it is revoked already.
///
/// # Errors
/// [`Error`] if the database does not answer.
pub async fn revoke(store: &dyn Store, now: Timestamp, run: RunId) -> Result<bool, Error> {
    loop {
        let Some(known) = Known::of(store, run).await? else {
            return Ok(false);
        };
        let last = known.changes.last();
        if last.is_none_or(|last| last.change == LearnedChange::Revoked) {
            return Ok(false);
        }
        let note = known.next(LearnedChange::Revoked, 0.0).note();
        match store.annotate(now, vec![note]).await? {
            Annotated::Written => return Ok(true),
            Annotated::Changed => {}
            Annotated::Unfinished | Annotated::Unknown => return Ok(false),
        }
    }
}

/// The changes so far of what a run taught.
struct Known {
    run: RunId,
    head_seq: i64,
    changes: Vec<Learned>,
}

impl Known {
    async fn of(store: &dyn Store, run: RunId) -> Result<Option<Self>, Error> {
        let Some(row) = store.run(run).await? else {
            return Ok(None);
        };
        let entries = store.entries(run, 0).await?;
        let learned = Transcript::of_entries(&entries).learned.into_iter();
        Ok(Some(Self {
            run,
            head_seq: row.head_seq,
            changes: learned.cloned().collect(),
        }))
    }

    /// Returns the next change.
    fn next(&self, change: LearnedChange, confidence: f64) -> Lesson {
        let known = u32::try_from(self.changes.len()).unwrap_or(u32::MAX);
        let learned = Learned {
            number: known.saturating_add(1),
            change,
            confidence,
            judged: None,
            taught: None,
        };
        Lesson {
            run: self.run,
            head_seq: self.head_seq,
            learned,
        }
    }
}

/// Returns what a run can teach; `None` if its answer rests on more than its question, or is not
/// sound: on a conversation, an attachment, a discarded output, a contested claim, or a question
/// that was asked; or if it is cut, or below the threshold.
fn taught(entries: &[Entry]) -> Option<Taught> {
    let transcript = Transcript::of_entries(entries);
    let accepted = transcript.accepted?;
    let Ending::Replied { reply } = &transcript.finished?.ending else {
        return None;
    };
    let is_alone = transcript.continues().is_none()
        && accepted.action.is_none()
        && accepted.narrates.is_none()
        && accepted.question.attachments.is_empty();
    let judgement = transcript.judgement()?;
    let is_contested = judgement.disagreements.iter().any(|it| !it.settled);
    let is_sound = reply.outcome == Outcome::Answered
        && reply.meta.invalidation.discarded.is_empty()
        && !is_contested
        && !transcript.gated?.confidence.is_low();
    let draft = transcript.synthesized?.draft.as_ref()?;
    (is_alone && is_sound && draft.cut.is_none()).then(|| Taught {
        condition: accepted.question.message.clone(),
        answer: draft.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_moves_confidence_within_bounds() {
        let raised = (0..9).fold(START, |confidence, _| moved(confidence, true));
        assert!((raised - MOST).abs() < 1e-9, "{raised}");
        let lowered = (0..9).fold(START, |confidence, _| moved(confidence, false));
        assert!(lowered.abs() < 1e-9, "{lowered}");
        assert!(moved(0.5, true) > 0.5 && moved(0.5, false) < 0.5);
    }
}
