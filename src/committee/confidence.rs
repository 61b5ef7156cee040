//! c_final: what the engine measured, what the master estimates of it, and what is applied.

use crate::config::Policy;
use crate::domain::{Confidence, Judgement, Terms};
use crate::journal::Draft;
use crate::scoring;

impl From<&Policy> for scoring::Policy {
    fn from(policy: &Policy) -> Self {
        Self {
            thresholds: policy.thresholds,
            weights: policy.role_weights.iter().map(|(agent, weight)| (agent.as_str().to_owned(), *weight)).collect(),
            max_conflict_penalty: policy.max_conflict_penalty,
            max_coverage_bonus: policy.max_coverage_bonus,
            ask_threshold: policy.ask_user_threshold,
            calibration: policy.calibration.clone(),
        }
    }
}

/// Whether the threshold is out of reach even with the largest bonus that may be applied and the least penalty: then no
/// synthesis is bought (SPEC 6).
pub fn out_of_reach(policy: &Policy, judgement: &Judgement) -> bool {
    let bonus = judgement.coverage_bonus.clamp(0.0, policy.max_coverage_bonus);
    let penalty = judgement.conflict_penalty.clamp(0.0, policy.max_conflict_penalty);
    judgement.base_score - penalty + bonus < policy.ask_user_threshold
}

/// c_final. The master's estimates are clamped to the policy's bounds, and then held against the service's own
/// measurements: a conflict that was detected counts at least as measured, and coverage at most as measured, so that
/// confidence is never higher than what was earned.
pub fn settle(policy: &Policy, judgement: &Judgement, draft: Option<&Draft>) -> Confidence {
    let estimated = |f: fn(&Draft) -> Option<f64>| draft.and_then(f).filter(|x| x.is_finite());
    let penalty = estimated(|d| d.conflict_penalty);
    let bonus = estimated(|d| d.coverage_bonus);
    let most_penalty = policy.max_conflict_penalty;
    let most_bonus = policy.max_coverage_bonus;
    let measured_penalty = judgement.conflict_penalty.clamp(0.0, most_penalty);
    let measured_bonus = judgement.coverage_bonus.clamp(0.0, most_bonus);
    let conflict_penalty = Terms {
        estimated: penalty,
        measured: measured_penalty,
        applied: penalty.map_or(measured_penalty, |p| p.clamp(0.0, most_penalty).max(measured_penalty)),
    };
    let coverage_bonus = Terms {
        estimated: bonus,
        measured: measured_bonus,
        applied: bonus.map_or(measured_bonus, |b| b.clamp(0.0, most_bonus).min(measured_bonus)),
    };
    Confidence::new(judgement.base_score, conflict_penalty, coverage_bonus, policy.ask_user_threshold)
}
