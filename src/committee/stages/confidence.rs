//! Computes c_final from what the engine measured and what the master estimates.

use crate::config::Policy;
use crate::domain::{AnswerGroup, Confidence, Judgement, Terms};
use crate::journal::Draft;
use crate::scoring;

/// The highest c_final of an answer about images that no model could see.
const MAX_UNSEEN: f64 = 0.5;

impl From<&Policy> for scoring::Policy {
    fn from(policy: &Policy) -> Self {
        Self {
            thresholds: policy.thresholds,
            weights: policy
                .role_weights
                .iter()
                .map(|(agent, weight)| (agent.into_str().to_owned(), *weight))
                .collect(),
            max_conflict_penalty: policy.max_conflict_penalty,
            max_coverage_bonus: policy.max_coverage_bonus,
            ask_threshold: policy.ask_user_threshold,
            calibration: policy.calibration.clone(),
        }
    }
}

/// True if c_final cannot reach the threshold even with the largest bonus and the least penalty
/// that may be applied. Then no synthesis is written (SPEC 6).
pub fn out_of_reach(policy: &Policy, judgement: &Judgement) -> bool {
    let measured = |value: f64, most: f64| {
        let measured = value.clamp(0.0, most);
        Terms {
            estimated: None,
            measured,
            applied: measured,
        }
    };
    let least = leading(judgement)
        .and_then(|group| group.conflict_penalty)
        .unwrap_or(judgement.conflict_penalty);
    let highest = Confidence::new(
        judgement.base_score,
        measured(least, policy.max_conflict_penalty),
        measured(judgement.coverage_bonus, policy.max_coverage_bonus),
        policy.ask_user_threshold,
    );
    bounded(judgement, highest).is_low()
}

/// Limits c_final where an image was not seen, and where an open request was not cross-checked.
fn bounded(judgement: &Judgement, confidence: Confidence) -> Confidence {
    let unchecked = !judgement.cross_checked && leading(judgement).is_none();
    if judgement.rests_on_unseen {
        confidence.at_most(MAX_UNSEEN)
    } else if unchecked {
        confidence.at_most(scoring::MAX_UNCHECKED)
    } else {
        confidence
    }
}

/// Returns the group of final answers with the least penalty; `None` for a request without a final
/// answer.
pub fn leading(judgement: &Judgement) -> Option<&AnswerGroup> {
    let measured = judgement
        .answer_groups
        .iter()
        .filter(|group| group.conflict_penalty.is_some());
    measured.min_by(|a, b| {
        let penalty = |group: &AnswerGroup| group.conflict_penalty.unwrap_or(f64::INFINITY);
        penalty(a).total_cmp(&penalty(b))
    })
}

/// True if a reply gives another final answer than the leading one.
pub fn is_against_leading(judgement: &Judgement, final_answer: &str) -> bool {
    let Some(leading) = leading(judgement) else {
        return false;
    };
    let given = scoring::answer_group(&judgement.answer_groups, final_answer);
    given
        .and_then(|at| judgement.answer_groups.get(at))
        .is_none_or(|group| group != leading)
}

/// Returns the conflict penalty of the answer that the reply gives. It is the policy's maximum if
/// no agent gave that answer, or if it contradicts the leading answer without a justification. A
/// reply that names no answer gets the highest penalty of all answers.
fn conflict(policy: &Policy, judgement: &Judgement, draft: Option<&Draft>) -> f64 {
    if leading(judgement).is_none() {
        return judgement.conflict_penalty;
    }
    let of = |group: &AnswerGroup| {
        group
            .conflict_penalty
            .unwrap_or(policy.max_conflict_penalty)
    };
    match draft.map(|draft| {
        (
            draft.final_answer.as_deref(),
            draft.answer_justification.is_some(),
        )
    }) {
        // There is only the question, and no draft.
        None => judgement.conflict_penalty,
        // Plain text does not say which answer it gives, so the highest penalty counts.
        Some((None, _)) => judgement.answer_groups.iter().map(of).fold(0.0, f64::max),
        Some((Some(answer), justified)) => {
            let group = scoring::answer_group(&judgement.answer_groups, answer);
            let group = group.and_then(|at| judgement.answer_groups.get(at));
            let group = group.filter(|_| justified || !is_against_leading(judgement, answer));
            group.map_or(policy.max_conflict_penalty, of)
        }
    }
}

/// Computes c_final. The master's estimates are clamped to the policy's bounds, then limited by the
/// service's own measurements. A conflict counts at least as measured, and coverage at most as
/// measured. So the master can never raise the confidence above what was measured.
pub fn settle(policy: &Policy, judgement: &Judgement, draft: Option<&Draft>) -> Confidence {
    let estimated = |f: fn(&Draft) -> Option<f64>| draft.and_then(f).filter(|x| x.is_finite());
    let penalty = estimated(|d| d.conflict_penalty);
    let bonus = estimated(|d| d.coverage_bonus);
    let most_penalty = policy.max_conflict_penalty;
    let most_bonus = policy.max_coverage_bonus;
    let measured_penalty = conflict(policy, judgement, draft).clamp(0.0, most_penalty);
    let measured_bonus = judgement.coverage_bonus.clamp(0.0, most_bonus);
    let conflict_penalty = Terms {
        estimated: penalty,
        measured: measured_penalty,
        applied: penalty.map_or(measured_penalty, |p| {
            p.clamp(0.0, most_penalty).max(measured_penalty)
        }),
    };
    let coverage_bonus = Terms {
        estimated: bonus,
        measured: measured_bonus,
        applied: bonus.map_or(measured_bonus, |b| {
            b.clamp(0.0, most_bonus).min(measured_bonus)
        }),
    };
    let confidence = Confidence::new(
        judgement.base_score,
        conflict_penalty,
        coverage_bonus,
        policy.ask_user_threshold,
    );
    bounded(judgement, confidence)
}

#[cfg(test)]
mod tests;
