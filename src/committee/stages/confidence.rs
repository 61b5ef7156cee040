//! Computes c_final from what the engine measured and what the master estimates.

use crate::config::Policy;
use crate::domain::{AnswerGroup, Confidence, ConfidenceLimit, Judgement, Terms};
use crate::journal::Draft;
use crate::scoring;

/// The highest c_final of an answer about images that no model could see.
const MAX_UNSEEN: f64 = 0.5;
/// Penalties of groups that differ by less are equal.
const ROUNDING: f64 = 1e-9;

/// True if c_final cannot reach the threshold even with the largest bonus and the least penalty
/// that may be applied. Then no synthesis is written (SPEC 6).
pub fn out_of_reach(policy: &Policy, judgement: &Judgement) -> bool {
    highest(policy, judgement, judgement.coverage_bonus).is_low()
}

/// True if c_final reaches the threshold with the least penalty and without the bonus, which the
/// master may lower.
pub fn is_in_reach_without_bonus(policy: &Policy, judgement: &Judgement) -> bool {
    !highest(policy, judgement, 0.0).is_low()
}

/// Returns the highest c_final with this bonus.
fn highest(policy: &Policy, judgement: &Judgement, bonus: f64) -> Confidence {
    let least = leading(judgement).and_then(|group| group.conflict_penalty);
    let least = least.unwrap_or(judgement.conflict_penalty);
    let highest = Confidence::new(
        judgement.base_score,
        term(None, least, policy.scoring.max_conflict_penalty, f64::max),
        term(None, bonus, policy.scoring.max_coverage_bonus, f64::min),
        policy.scoring.ask_threshold,
    );
    bounded(judgement, highest)
}

/// Limits c_final where an image was not seen, and where an open request was not cross-checked.
fn bounded(judgement: &Judgement, confidence: Confidence) -> Confidence {
    let unchecked = !judgement.cross_checked && leading(judgement).is_none();
    if judgement.rests_on_unseen {
        confidence.at_most(MAX_UNSEEN, ConfidenceLimit::UnseenImage)
    } else if unchecked {
        confidence.at_most(scoring::MAX_UNCHECKED, ConfidenceLimit::NotCrossChecked)
    } else {
        confidence
    }
}

/// Returns the group of final answers with the least penalty; `None` for a request without a final
/// answer.
pub fn leading(judgement: &Judgement) -> Option<&AnswerGroup> {
    let groups = judgement.answer_groups.iter();
    let measured = groups.filter_map(|group| Some((group.conflict_penalty?, group)));
    let least = measured.min_by(|(a, _), (b, _)| a.total_cmp(b));
    least.map(|(_, group)| group)
}

/// True if a reply gives another final answer than the leading one, or than one of several that lead
/// equally.
pub fn is_against_leading(judgement: &Judgement, final_answer: &str) -> bool {
    let leading = leading(judgement).and_then(|group| group.conflict_penalty);
    let given = group_of(judgement, final_answer).and_then(|group| group.conflict_penalty);
    leading.is_some_and(|least| given.is_none_or(|given| given > least + ROUNDING))
}

/// Returns the group of reports with this final answer.
fn group_of<'a>(judgement: &'a Judgement, final_answer: &str) -> Option<&'a AnswerGroup> {
    let groups = &judgement.answer_groups;
    groups.get(scoring::answer_group(groups, final_answer)?)
}

/// Returns the conflict penalty of the answer that the reply gives. It is the policy's maximum if
/// no agent gave or supports that answer, or if it contradicts the leading answer without a
/// justification. A reply that names no answer gets the highest penalty of all answers.
fn conflict(policy: &Policy, judgement: &Judgement, draft: Option<&Draft>) -> f64 {
    let most = policy.scoring.max_conflict_penalty;
    // Without a draft there is only the question.
    let Some(draft) = draft else {
        return judgement.conflict_penalty;
    };
    if draft.answer_unsupported {
        return most;
    }
    if leading(judgement).is_none() {
        return judgement.conflict_penalty;
    }
    let of = |group: &AnswerGroup| group.conflict_penalty.unwrap_or(most);
    // Plain text does not say which answer it gives, so the highest penalty counts.
    let Some(answer) = &draft.final_answer else {
        return judgement.answer_groups.iter().map(of).fold(0.0, f64::max);
    };
    if draft.answer_justification.is_none() && is_against_leading(judgement, answer) {
        return most;
    }
    group_of(judgement, answer).map_or(most, of)
}

/// Returns a term that is at most `most`. `bound` joins an estimate to the measurement.
fn term(estimated: Option<f64>, measured: f64, most: f64, bound: fn(f64, f64) -> f64) -> Terms {
    let estimated = estimated.filter(|x| x.is_finite());
    let measured = measured.clamp(0.0, most);
    Terms {
        estimated,
        measured,
        applied: estimated.map_or(measured, |x| bound(x.clamp(0.0, most), measured)),
    }
}

/// Computes c_final. The master's estimates are clamped to the policy's bounds, then limited by the
/// service's own measurements. A conflict counts at least as measured, and coverage at most as
/// measured. So the master can never raise the confidence above what was measured.
pub fn settle(policy: &Policy, judgement: &Judgement, draft: Option<&Draft>) -> Confidence {
    let penalty = draft.and_then(|draft| draft.conflict_penalty);
    let measured = conflict(policy, judgement, draft);
    let penalty = term(
        penalty,
        measured,
        policy.scoring.max_conflict_penalty,
        f64::max,
    );
    let bonus = draft.and_then(|draft| draft.coverage_bonus);
    let measured = judgement.coverage_bonus;
    let bonus = term(bonus, measured, policy.scoring.max_coverage_bonus, f64::min);
    let threshold = policy.scoring.ask_threshold;
    let confidence = Confidence::new(judgement.base_score, penalty, bonus, threshold);
    bounded(judgement, confidence)
}

#[cfg(test)]
mod tests;
