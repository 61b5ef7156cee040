//! Learns answers from feedback.

use std::ops::ControlFlow;

use jiff::Timestamp;

use crate::domain::{Outcome, RunId};
use crate::journal::{
    Annotated, Ending, Entry, Error, Event, Learned, LearnedChange, LearnedRow, Store, Taught,
    Transcript, prove,
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

/// Learns from feedback on a run: the answer of a learned answer that replied is trusted more or
/// less; the committee's own answer is learned if the feedback is positive and the answer stands on
/// its own. Returns the change, with the run whose answer it is.
///
/// # Errors
/// If the database does not answer.
pub async fn learn(
    store: &dyn Store,
    now: Timestamp,
    judged: RunId,
    positive: bool,
) -> Result<Option<(RunId, Learned)>, Error> {
    loop {
        let learned = lesson_of(store, judged, positive).await?;
        if let ControlFlow::Break(ended) = recorded(store, now, learned).await? {
            return Ok(ended);
        }
    }
}

/// Returns the change that feedback makes now; `None` if the run was altered, too.
async fn lesson_of(
    store: &dyn Store,
    judged: RunId,
    positive: bool,
) -> Result<Option<(RunId, Learned)>, Error> {
    let Some(row) = store.run(judged).await? else {
        return Ok(None);
    };
    let mut entries = store.entries(judged, 0).await?;
    // Other feedback may be written between the two reads: the row's hash does not cover it.
    entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
    if prove(&row, &entries).is_err() {
        return Ok(None);
    }
    let transcript = Transcript::of_entries(&entries);
    let replied = transcript
        .decided
        .filter(|decided| decided.answer.is_some())
        .and_then(|decided| decided.matched.as_ref());
    let taught_by = replied.map_or(judged, |matched| matched.id);
    // The journal has the confidence. The table of answers may have been altered.
    let known = changes_of(store, taught_by).await?;
    let number = number_after(&known);
    if let Some(last) = known.last() {
        if last.change == LearnedChange::Revoked {
            return Ok(None);
        }
        let change = if positive {
            LearnedChange::Raised
        } else {
            LearnedChange::Lowered
        };
        let learned = Learned {
            judged: (judged != taught_by).then_some(judged),
            ..changed(number, change, moved(last.confidence, positive))
        };
        return Ok(Some((taught_by, learned)));
    }
    let taught = lesson(&entries).filter(|_| positive && replied.is_none());
    Ok(taught.map(|taught| {
        let learned = Learned {
            taught: Some(Box::new(taught)),
            ..changed(number, LearnedChange::Learned, START)
        };
        (judged, learned)
    }))
}

fn changed(number: u32, change: LearnedChange, confidence: f64) -> Learned {
    Learned {
        number,
        change,
        confidence,
        judged: None,
        taught: None,
    }
}

/// Returns the changes so far of what a run taught.
async fn changes_of(store: &dyn Store, run: RunId) -> Result<Vec<Learned>, Error> {
    let entries = store.entries(run, 0).await?;
    let learned = Transcript::of_entries(&entries).learned.into_iter();
    Ok(learned.cloned().collect())
}

/// Returns the number of the next change. If another one comes between, the number is taken.
fn number_after(known: &[Learned]) -> u32 {
    let known = u32::try_from(known.len()).unwrap_or(u32::MAX);
    known.saturating_add(1)
}

/// Revokes a learned answer for good. Returns `None` if there is none, or it is revoked already.
///
/// # Errors
/// If the database does not answer.
pub async fn revoke(
    store: &dyn Store,
    now: Timestamp,
    run: RunId,
) -> Result<Option<(RunId, Learned)>, Error> {
    loop {
        let known = changes_of(store, run).await?;
        let last = known.last();
        let last = last.filter(|last| last.change != LearnedChange::Revoked);
        let number = number_after(&known);
        let revoked = last.map(|_| (run, changed(number, LearnedChange::Revoked, 0.0)));
        if let ControlFlow::Break(ended) = recorded(store, now, revoked).await? {
            return Ok(ended);
        }
    }
}

/// Writes a change of a learned answer, if there is one, and returns it. Continues if another change
/// came between, so that this one must be computed anew.
async fn recorded(
    store: &dyn Store,
    now: Timestamp,
    changed: Option<(RunId, Learned)>,
) -> Result<ControlFlow<Option<(RunId, Learned)>>, Error> {
    let Some((run, learned)) = changed else {
        return Ok(ControlFlow::Break(None));
    };
    let event = Event::Learned(Box::new(learned.clone()));
    Ok(match store.annotate(run, now, &event).await? {
        Annotated::Written => ControlFlow::Break(Some((run, learned))),
        Annotated::Taken => ControlFlow::Continue(()),
        Annotated::Unfinished | Annotated::Unknown => ControlFlow::Break(None),
    })
}

/// Returns what a run can teach; `None` if its answer rests on more than its question, or is not
/// sound: on a conversation, an attachment, a discarded output, a contested claim, or a question
/// that was asked; or if it is cut, or below the threshold.
fn lesson(entries: &[Entry]) -> Option<Taught> {
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
