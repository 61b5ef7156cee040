//! The terms of c_final (SPEC 6), measured from the evidence.
//!
//! If the request has one final answer, c_final is the rate at which answers with such support are
//! right, unless the outputs' own scores give less. The rate comes from a logistic regression with
//! one feature and an offset. The feature is the log odds of the independent voices: those for the
//! answer against those for another one and those that are missing. The offset is the cross-check's
//! verdict. A contradicted key claim keeps c_final below the threshold. A refuted one does so if
//! the request has no final answer.

use super::agreement::{Agreement, CORE_SIZE, Group, support};
use super::axes::{Context, Measure};
use super::claims::Claim;
use super::status_caps::is_of_disproof;
use crate::domain::{Axes, Score, ScoringPolicy, Status};

/// The highest probability for an answer with one voice and no confirming check, and for one whose
/// stated calculations do not hold.
const LONE: f64 = 0.65;
/// The least verdict of the cross-check that confirms an answer with one voice. One from memory
/// without evidence is weaker: it checks nothing.
const CONFIRMS: f64 = 0.5;
/// At most this mean verdict of its members' calculations refutes an answer: half of them are wrong.
const MISCALCULATED: f64 = -0.5;
/// The highest c_final for an open request that was not cross-checked (SPEC 6).
pub const MAX_UNCHECKED: f64 = 0.75;
/// The same, by the number of outputs that count.
const NOT_CROSS_CHECKED: [f64; 4] = [0.0, LONE, 0.72, MAX_UNCHECKED];
/// How far a contradicted key claim keeps c_final below the threshold: at least, and at most in
/// addition.
const CONTRADICTED: (f64, f64) = (0.05, 0.25);

/// What raises c_final: the base score and the coverage bonus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gains {
    pub base: f64,
    pub bonus: f64,
}

/// Returns the penalty for a reply that gives the answer of a group. A contested key claim keeps
/// c_final below the threshold, and so does a cross-check that finds nothing of the request answered.
/// Answers with a higher probability stay higher.
pub(super) fn answer_penalty(
    gains: Gains,
    group: &Group,
    scores: &[Score],
    context: &Context<'_>,
    policy: &ScoringPolicy,
) -> f64 {
    let thinned = thinned(gains.base, scores, context.agreement.lost, policy);
    let probability = probability(group, context.agreement, policy);
    let contested = context.claims.iter().any(Claim::is_contested);
    let most = if contested || !is_answered(context) {
        policy.ask_threshold - CONTRADICTED.0 - CONTRADICTED.1 * (1.0 - probability)
    } else {
        1.0
    };
    (gains.base + gains.bonus - probability.min(most))
        .max(thinned)
        .clamp(0.0, policy.max_conflict_penalty)
}

/// Returns how far outputs that are missing lower BaseScore. Each counts as one that is just VALID, so
/// losing the weakest never raises c_final.
fn thinned(base: f64, scores: &[Score], missing: usize, policy: &ScoringPolicy) -> f64 {
    let valid = scores.iter().filter(|it| it.status == Status::Valid);
    let (mut sum, mut heaviest) = (0.0, 1.0_f64);
    for weight in valid.map(|score| policy.weight(&score.agent)) {
        (sum, heaviest) = (sum + weight, heaviest.max(weight));
    }
    let missing = missing as f64 * heaviest;
    missing / (sum + missing).max(1.0) * (base - policy.thresholds.tau_soft).max(0.0)
}

/// Returns the probability that the answer of a group is right, 0 to 1.
pub(super) fn probability(group: &Group, agreement: &Agreement, policy: &ScoringPolicy) -> f64 {
    let (weights, support) = (&policy.calibration, support(group, agreement));
    let odds = weights.intercept + weights.support * support + weights.cross_check * group.verdict;
    let probability = 1.0 / (1.0 + (-odds).exp());
    // A last step that was recomputed outweighs a verdict.
    let mut others = agreement.groups.iter().filter(|it| *it != group);
    let outweighed = others.any(|other| other.checked > 0.0);
    let confirmed = group.checked > 0.0 || group.verdict >= CONFIRMS && !outweighed;
    let is_lone = group.voters.len() <= 1 && !confirmed;
    if is_lone || group.checked <= MISCALCULATED {
        probability.min(LONE)
    } else {
        probability
    }
}

/// Returns the penalty of a request without one final answer. If some outputs give an answer all the
/// same, c_final is at most the probability of the leading one.
pub(super) fn open_penalty(
    gains: Gains,
    scores: &[Score],
    context: &Context<'_>,
    policy: &ScoringPolicy,
) -> f64 {
    let counting = context.agreement.counting;
    // An output that lost its VALID status through the verdicts still counts here. Otherwise a
    // refuted claim would be milder than an open one.
    let stands = |agent| {
        scores
            .get(agent)
            .is_some_and(|it| stands_without_verdicts(it, policy))
    };
    let held = context
        .claims
        .iter()
        .filter(|claim| stands(claim.agent) && claim.is_held());
    let held: Vec<&Claim<'_>> = held.collect();
    let is_doubtful = |claim: &&&Claim<'_>| claim.is_contested() || claim.is_refuted();
    let doubtful = held.iter().filter(is_doubtful).count();
    let most = if doubtful > 0 {
        policy.ask_threshold
            - CONTRADICTED.0
            - CONTRADICTED.1 * crate::text::ratio(doubtful, held.len())
    } else if !is_answered(context) {
        policy.ask_threshold - CONTRADICTED.0
    } else if !context.cross_checked {
        NOT_CROSS_CHECKED
            .get(counting)
            .copied()
            .unwrap_or(MAX_UNCHECKED)
    } else if counting <= 1 && held.iter().any(|claim| claim.verdict <= 0.0) {
        LONE
    } else {
        1.0
    };
    // Here an output that is not VALID counts as a missing one too.
    let valid = scores.iter().filter(|it| it.status == Status::Valid);
    let missing = CORE_SIZE.saturating_sub(valid.count());
    let thinned = thinned(
        gains.base,
        scores,
        missing.max(context.agreement.lost),
        policy,
    );
    // Outputs that give no answer do not confirm the one that some give.
    let leading = context.agreement.groups.first();
    let answer = leading.map_or(1.0, |group| probability(group, context.agreement, policy));
    (gains.base + gains.bonus - most.min(answer))
        .max(thinned)
        .clamp(0.0, policy.max_conflict_penalty)
}

/// False if the cross-check finds no part of the request answered by anyone: every statement may be
/// true, and none be about the request.
fn is_answered(context: &Context<'_>) -> bool {
    !context.cross_checked
        || context.parts.is_empty()
        || context.parts.iter().any(|(_, agents)| !agents.is_empty())
}

/// True if an output is VALID, or would be without the points that the cross-check subtracted.
fn stands_without_verdicts(score: &Score, policy: &ScoringPolicy) -> bool {
    let of_verdicts = [
        Measure::ClaimsHold,
        Measure::ClaimsContradicted,
        Measure::ClaimsSupported,
    ];
    let features = score.axes.iter().flat_map(|(_, axis)| &axis.features);
    let taken: f64 = features
        .filter(|it| of_verdicts.iter().any(|measure| measure.is_of(it)) || is_of_disproof(it))
        .map(|feature| feature.points.min(0.0))
        .sum();
    score.status == Status::Valid
        || policy
            .thresholds
            .status(score.cred - taken / Axes::MAX_POINTS)
            == Status::Valid
}
