//! The scoring engine (SPEC 5, 6, 13.1): deterministic, no I/O, no model.
//!
//! In reading order: `request` reads what is asked; `reading` reads each output once, with the help of
//! `text`, `markdown`, `arithmetic`, `answer` and `screen`; `disagree` compares the outputs by their
//! answers and `claims`; one file per axis turns that into named features with points;
//! `limit` keeps refusals, attacks and the like out of reach of VALID; `judge` puts it together.
//! Hostile input is bounded: texts are cut at `text::MAX_BYTES`, claims and equations are capped in number.
//!
//! Scores say how far an output can be relied on. They do not say which words to use, and never assemble an answer.

mod alignment;
mod answer;
mod arithmetic;
mod claims;
mod coherence;
mod compliance;
mod density;
mod disagree;
#[cfg(test)]
mod features_tests;
mod from_text;
mod limit;
mod markdown;
mod normal;
mod pattern;
mod reading;
mod request;
mod screen;
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod verifiability;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::domain::{AnswerGroup, Judgement};
pub use from_text::report_from_text;
pub use screen::{Flag, FlagKind, Screening, screen};

use crate::domain::{AgentReport, Axes, Obtained, Score, Status, TaskType, Thresholds};
use disagree::Comparison;
use limit::Limit;
use reading::Reading;
use request::Request;

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
}

/// What is to be judged: a request and the latest report of each agent.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    pub message: &'a str,
    pub task_type: Option<TaskType>,
    pub outputs: Vec<Output<'a>>,
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
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            thresholds: Thresholds { tau_hard: 0.35, tau_soft: 0.55 },
            weights: BTreeMap::new(),
            max_conflict_penalty: 0.30,
            max_coverage_bonus: 0.10,
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
    let readings: Vec<Reading<'_>> =
        panel.outputs.iter().map(|output| Reading::new(output, &request, policy.weight(output.agent))).collect();
    let comparison = disagree::compare(&readings);
    let scores: Vec<Score> = (0..readings.len())
        .filter_map(|at| score(at, &readings, &request, &comparison, panel.task_type, policy))
        .collect();
    let covered = covered(&readings, &scores, &request);
    let share = text::ratio(covered.iter().filter(|covered| **covered).count(), covered.len());
    Judgement {
        base_score: base_score(&scores, policy),
        conflict_penalty: policy.max_conflict_penalty * disagree::conflict(&comparison.disagreements),
        coverage_bonus: policy.max_coverage_bonus * share,
        answer_groups: disagree::named_groups(&readings, &comparison.groups),
        disagreements: comparison.disagreements,
        scores,
        parts: request.parts,
        covered,
    }
}

/// Weighted mean of Cred over the VALID scores; 0 with none.
pub fn base_score(scores: &[Score], policy: &Policy) -> f64 {
    let valid = || scores.iter().filter(|score| score.status == Status::Valid);
    let weight: f64 = valid().map(|score| policy.weight(&score.agent)).sum();
    if weight > 0.0 { valid().map(|score| score.cred * policy.weight(&score.agent)).sum::<f64>() / weight } else { 0.0 }
}

fn score(
    at: usize,
    readings: &[Reading<'_>],
    request: &Request,
    comparison: &Comparison,
    task: Option<TaskType>,
    policy: &Policy,
) -> Option<Score> {
    let reading = readings.get(at)?;
    let axes = Axes {
        coherence: coherence::measure(at, readings, comparison).finish(),
        alignment: alignment::measure(reading, request, task).finish(),
        verifiability: verifiability::measure(reading).finish(),
        signal_density: density::measure(reading).finish(),
        compliance: compliance::measure(reading, request).finish(),
    };
    let unsupported = disagree::unsupported(at, readings, &comparison.groups);
    let limit = limit::of(reading, request, task)
        .or_else(|| unsupported.then_some(Limit { reason: "no_support", best: Status::Quarantine }));
    let axes = match limit {
        Some(limit) => limit::apply(axes, limit, policy.thresholds),
        None => axes,
    };
    let cred = axes.cred();
    Some(Score { agent: reading.agent().to_owned(), status: policy.thresholds.status(cred), cred, axes })
}

/// For each part of the request, whether a VALID output covers it.
fn covered(readings: &[Reading<'_>], scores: &[Score], request: &Request) -> Vec<bool> {
    let mut out = vec![false; request.parts.len()];
    for (reading, _) in readings.iter().zip(scores).filter(|(_, score)| score.status == Status::Valid) {
        for (all, own) in out.iter_mut().zip(alignment::covered(reading, request)) {
            *all |= own;
        }
    }
    out
}
