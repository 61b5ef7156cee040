//! The scoring engine (SPEC 5, 6, 13.1): deterministic, no I/O, no model.
//!
//! In reading order: `request` reads what is asked, `constraint` what it demands of the form; `reading` reads each output
//! once, with the help of `text`, `markdown`, `arithmetic`, `quantity`, `dates`, `answer` and `screen`; `snippet` holds code
//! against its language's parser (`grammar`), `algebra` formulas against each other; `disagree` compares the outputs by their
//! answers and `claims`; one file per axis turns that into named features with points;
//! `limit` keeps refusals, attacks and the like out of reach of VALID; `judge` puts it together.
//! Hostile input is bounded: texts are cut at `text::MAX_BYTES`, claims and equations are capped in number.
//!
//! Scores say how far an output can be relied on. They do not say which words to use, and never assemble an answer.

mod algebra;
mod alignment;
mod amount;
mod answer;
mod arithmetic;
mod claims;
mod coherence;
mod compliance;
mod constraint;
mod dates;
mod density;
mod disagree;
#[cfg(test)]
mod features_tests;
mod formula;
mod from_text;
mod grammar;
mod kept;
mod limit;
mod markdown;
mod normal;
mod pattern;
mod puzzle;
mod quantity;
mod reading;
mod recorded;
mod request;
mod reviewed;
mod screen;
mod snippet;
mod support;
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod units;
mod verifiability;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::domain::{AnswerGroup, Judgement};
pub use from_text::report_from_text;
pub use recorded::{Error as RecordError, Record, Scored, parse as parse_record};
pub use screen::{Flag, FlagKind, Screening, screen};

use crate::domain::{
    AgentReport, Axes, Calibration, CrossCheck, Obtained, Resolution, Review, ReviewWeights, Score, Status, TaskType,
    Thresholds,
};
use disagree::Comparison;
use limit::Limit;
use reading::Reading;
use request::Request;
use support::Support;
pub use support::family;

/// One agent's output as it came.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    pub agent: &'a str,
    pub report: &'a AgentReport,
    pub obtained: Obtained,
    /// Whether the model was cut off at its token limit.
    pub truncated: bool,
    /// Whether the report named the role that it was asked to take.
    pub role_matches: bool,
    /// The family of the model that wrote it, where it is known: members of one family err together.
    pub family: Option<&'a str>,
}

/// What is to be judged: a request and the latest report of each agent.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    pub message: &'a str,
    pub task_type: Option<TaskType>,
    /// The latest output of each agent.
    pub outputs: Vec<Output<'a>>,
    /// What the agents said on their own, before they saw each other; empty if the outputs are just that.
    pub first_round: Vec<Output<'a>>,
    /// What agents found of contested claims that the latest outputs still make.
    pub reviews: Vec<&'a Review>,
    /// What the cross-check calls found: none, one, or two of which the second saw everything in reverse order.
    pub cross_checks: &'a [CrossCheck],
    /// What agents decided on their own contested claims in later rounds.
    pub resolutions: &'a [Resolution],
}

/// The part of the config that scoring depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub thresholds: Thresholds,
    /// The weight of a role in BaseScore and in votes; a role that is not named weighs 1.
    pub weights: BTreeMap<String, f64>,
    pub max_conflict_penalty: f64,
    pub max_coverage_bonus: f64,
    pub calibration: Calibration,
    #[serde(default)]
    pub review: ReviewWeights,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            thresholds: Thresholds { tau_hard: 0.35, tau_soft: 0.55 },
            weights: BTreeMap::new(),
            max_conflict_penalty: 0.30,
            max_coverage_bonus: 0.10,
            calibration: Calibration::default(),
            review: ReviewWeights::default(),
        }
    }
}

impl From<&crate::config::Policy> for Policy {
    fn from(policy: &crate::config::Policy) -> Self {
        Self {
            thresholds: policy.thresholds,
            weights: policy.role_weights.iter().map(|(agent, weight)| (agent.as_str().to_owned(), *weight)).collect(),
            max_conflict_penalty: policy.max_conflict_penalty,
            max_coverage_bonus: policy.max_coverage_bonus,
            calibration: policy.calibration.clone(),
            review: ReviewWeights::default(),
        }
    }
}

impl Policy {
    /// The weight of an agent: as configured if that is a sensible number, else 1.
    pub fn weight(&self, agent: &str) -> f64 {
        self.weights.get(agent).copied().filter(|weight| weight.is_finite() && *weight >= 0.0).unwrap_or(1.0)
    }
}

/// Scores every output of a panel and measures the terms of c_final. The same panel and policy give the same judgement.
pub fn judge(panel: &Panel<'_>, policy: &Policy) -> Judgement {
    let request = request::read(panel.message);
    let readings: Vec<Reading<'_>> = read_all(&panel.outputs, &request, policy);
    let first: Vec<Reading<'_>> = read_all(&panel.first_round, &request, policy);
    let comparison = disagree::compare(&readings, &first);
    let limits: Vec<Option<Limit>> =
        readings.iter().map(|reading| limit::of(reading, &request, panel.task_type)).collect();
    let conflict = disagree::conflict(&comparison);
    let covered = covered(&readings, &limits, &request);
    let share = text::ratio(covered.iter().filter(|covered| **covered).count(), covered.len());
    let bonus = policy.max_coverage_bonus * share * (1.0 - conflict);
    let peers = |holders: &[&str], answers: bool| {
        let about: Vec<&Review> = panel.reviews.iter().copied().filter(|r| r.on_final_answer || !answers).collect();
        reviewed::mean(&about, holders, &panel.outputs, &policy.review, &policy.calibration)
    };
    let found = |holders: &[&str]| peers(holders, true).map(|mean| (mean, policy.review.answer));
    let supports = support::measure(&readings, &first, &request, &policy.calibration, &found);
    let penalty = penalty(conflict, &comparison, &supports, policy);
    let scores: Vec<Score> = readings
        .iter()
        .enumerate()
        .zip(limits.iter().zip(&supports))
        .map(|((at, reading), (limit, support))| {
            let found = peers(&[reading.agent()], false).map(|mean| (mean, policy.review.points));
            let axes = axes(at, reading, &readings, &request, &comparison, panel.task_type, found);
            let axes = match (limit, support) {
                (Some(limit), _) => limit::apply(axes, *limit, policy.thresholds),
                // The terms that c_final adds and takes are taken and added here, so that it comes out calibrated.
                (None, Some(support)) => {
                    let target = support.probability + penalty - bonus;
                    let outvoted = disagree::outvoted(at, &comparison.groups, &supports);
                    let most = if outvoted { limit::below_valid(policy.thresholds) } else { 1.0 };
                    limit::settle(axes, support, target.min(most))
                }
                (None, None) => limit::temper(axes),
            };
            let cred = axes.cred();
            Score { agent: reading.agent().to_owned(), status: policy.thresholds.status(cred), cred, axes }
        })
        .collect();
    // With nobody VALID there is nothing to take from; what likelihood is left shows as far as the bonus reaches.
    let any_valid = scores.iter().any(|score| score.status == Status::Valid);
    let left = leading(&comparison, &supports).map_or(0.0, |support| support.probability);
    let (penalty, bonus) = if any_valid { (penalty, bonus) } else { (0.0, left.min(policy.max_coverage_bonus)) };
    Judgement {
        base_score: base_score(&scores, policy),
        conflict_penalty: penalty,
        coverage_bonus: bonus,
        cross_checked: !panel.cross_checks.is_empty(),
        answer_groups: disagree::named_groups(&readings, &comparison.groups),
        disagreements: comparison.disagreements,
        scores,
        parts: request.parts,
        covered,
    }
}

/// The group of answers that means the same as `answer`, by its place; `None` if there is none.
pub fn answer_group(groups: &[AnswerGroup], answer: &str) -> Option<usize> {
    let wanted = normal::normalise(answer)?;
    groups.iter().position(|group| normal::normalise(&group.answer).is_some_and(|known| known.same(&wanted)))
}

/// Whether two reports answer a request alike; also where the earlier one has no final answer to compare.
pub fn same_answer(message: &str, earlier: &AgentReport, now: &AgentReport) -> bool {
    let request = request::read(message);
    let answer = |report| {
        let output = as_it_came(report);
        Reading::new(&output, &request, 1.0).answer
    };
    answer(earlier).is_none_or(|earlier| answer(now).is_some_and(|now| earlier.same(&now)))
}

/// A report about whose coming nothing is known.
fn as_it_came(report: &AgentReport) -> Output<'_> {
    let (obtained, agent) = (Obtained::Clean, report.agent.as_str());
    Output { agent, report, obtained, truncated: false, role_matches: true, family: None }
}

/// Whether a report may take the place of an earlier one: it is no refusal, attack or degenerate text, and it has a final
/// answer if the earlier one had.
pub fn stands(message: &str, earlier: &AgentReport, now: &AgentReport) -> bool {
    let request = request::read(message);
    let (earlier, now) = (as_it_came(earlier), as_it_came(now));
    let (earlier, now) = (Reading::new(&earlier, &request, 1.0), Reading::new(&now, &request, 1.0));
    now.counts() && (now.answer.is_some() || earlier.answer.is_none())
}

fn read_all<'a>(outputs: &'a [Output<'a>], request: &Request, policy: &Policy) -> Vec<Reading<'a>> {
    outputs.iter().map(|output| Reading::new(output, request, policy.weight(output.agent))).collect()
}

/// Weighted mean of Cred over the VALID scores; 0 with none.
pub fn base_score(scores: &[Score], policy: &Policy) -> f64 {
    let valid = || scores.iter().filter(|score| score.status == Status::Valid);
    let weight: f64 = valid().map(|score| policy.weight(&score.agent)).sum();
    if weight > 0.0 { valid().map(|score| score.cred * policy.weight(&score.agent)).sum::<f64>() / weight } else { 0.0 }
}

/// What the disagreements take from c_final: their share of the most there is, but no more than half of the doubt that
/// the leading answer's support leaves, so that Cred has room for both.
fn penalty(conflict: f64, comparison: &Comparison, supports: &[Option<Support>], policy: &Policy) -> f64 {
    let doubt = leading(comparison, supports).map_or(1.0, |support| (1.0 - support.probability) / 2.0);
    (policy.max_conflict_penalty * conflict).min(doubt)
}

/// The support of the leading answer.
fn leading<'a>(comparison: &Comparison, supports: &'a [Option<Support>]) -> Option<&'a Support> {
    comparison.groups.iter().flatten().next().and_then(|at| supports.get(*at)).and_then(Option::as_ref)
}

fn axes(
    at: usize,
    reading: &Reading<'_>,
    readings: &[Reading<'_>],
    request: &Request,
    comparison: &Comparison,
    task: Option<TaskType>,
    found: Option<(f64, f64)>,
) -> Axes {
    Axes {
        coherence: coherence::measure(at, readings, comparison, found).finish(),
        alignment: alignment::measure(reading, request, task).finish(),
        verifiability: verifiability::measure(reading, request).finish(),
        signal_density: density::measure(reading, request).finish(),
        compliance: compliance::measure(reading, request).finish(),
    }
}

/// For each part of the request, whether an output that counts covers it.
fn covered(readings: &[Reading<'_>], limits: &[Option<Limit>], request: &Request) -> Vec<bool> {
    let mut out = vec![false; request.parts.len()];
    for (reading, _) in readings.iter().zip(limits).filter(|(_, limit)| limit.is_none()) {
        for (all, own) in out.iter_mut().zip(alignment::covered(reading, request)) {
            *all |= own;
        }
    }
    out
}
