//! The scoring engine (SPEC 5, 6, 13.1): deterministic, without I/O, without a model. It judges by
//! evidence, not by prose: the tags of units, the findings of the cross-check, the concessions of
//! agents, and machine checks. docs/scoring.md explains each figure.
//!
//! In reading order:
//!
//! - `parsed_output` reads each output once, with `answer` (final answers), the expression engine
//!   and `checks`.
//! - `claims` merges the findings of the cross-check calls.
//! - `agreement` compares the final answers.
//! - `axes` turns all of it into named features with points.
//! - `status_caps` keeps refusals, attacks and failed deliverables from becoming VALID.
//! - `terms` computes the terms of c_final.
//! - `judge` combines the parts.
//!
//! Hostile input is bounded: texts are cut at `text::MAX_BYTES`, units and equations are capped.
//!
//! Scores say how far an output can be relied on. They do not say which words to use, and never
//! assemble an answer.

mod agreement;
mod answer;
mod axes;
mod batch;
mod checks;
mod claims;
mod disagreements;
mod expr;
mod from_text;
mod parsed_output;
mod status_caps;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use crate::domain::{AnswerGroup, Judgement};
pub use batch::parse as parse_record;
pub use from_text::report_from_text;
pub use terms::MAX_UNCHECKED;

use crate::domain::{
    AgentReport, Calibration, CrossCheck, Demand, Obtained, Resolution, Score, Status, TaskType,
    Thresholds,
};
use agreement::{Agreement, Compared};
use axes::Context;
use claims::Claim;
use parsed_output::{ParsedOutput, Request};
use status_caps::Limit;

/// One agent's output before any analysis.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    pub agent: &'a str,
    pub report: &'a AgentReport,
    pub obtained: Obtained,
    /// True if the model was cut off at its token limit.
    pub truncated: bool,
    /// True if the report named the role that the agent was asked to take.
    pub role_matches: bool,
    /// The family of the model that wrote the output, if known. Members of one family err together.
    pub family: Option<&'a str>,
}

/// The input of [`judge`]: a request, the latest report of each agent, and the evidence about them.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    pub message: &'a str,
    pub task_type: Option<TaskType>,
    /// The countable demands of the request on its answer, as the master stated them.
    pub demands: &'a [Demand],
    /// The latest output of each agent.
    pub outputs: Vec<Output<'a>>,
    /// The agents' independent outputs of round 1. Empty if `outputs` are those of round 1.
    pub first_round: Vec<Output<'a>>,
    /// The findings of the cross-check calls: none, one, or two. The second call saw everything in
    /// reverse order.
    pub cross_checks: &'a [CrossCheck],
    /// The agents' decisions on their own contested claims in later rounds.
    pub resolutions: &'a [Resolution],
}

/// The part of the config that scoring depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub thresholds: Thresholds,
    /// The weight of a role in BaseScore; 1 for a role that is not listed.
    pub weights: BTreeMap<String, f64>,
    pub max_conflict_penalty: f64,
    pub max_coverage_bonus: f64,
    /// A c_final below this threshold leads to a question.
    pub ask_threshold: f64,
    pub calibration: Calibration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            thresholds: Thresholds {
                tau_hard: 0.35,
                tau_soft: 0.55,
            },
            weights: BTreeMap::new(),
            max_conflict_penalty: 0.60,
            max_coverage_bonus: 0.10,
            ask_threshold: 0.70,
            calibration: Calibration::default(),
        }
    }
}

impl Policy {
    /// Returns the weight of an agent: the configured one if it is finite and not negative, else 1.
    pub fn weight(&self, agent: &str) -> f64 {
        self.weights
            .get(agent)
            .copied()
            .filter(|weight| weight.is_finite() && *weight >= 0.0)
            .unwrap_or(1.0)
    }
}

/// Scores every output of a panel and measures the terms of c_final. The result depends only on the
/// panel and the policy.
pub fn judge(panel: &Panel<'_>, policy: &Policy) -> Judgement {
    let request = Request::read(panel.message);
    let read = |outputs| read_all(outputs, &request, panel.cross_checks, policy);
    let (readings, first): (Vec<ParsedOutput<'_>>, Vec<ParsedOutput<'_>>) =
        (read(&panel.outputs), read(&panel.first_round));
    let checked = if first.is_empty() { &readings } else { &first };
    let claims = claims::merge(checked, &readings, panel.cross_checks, panel.resolutions);
    let agreement = agreement::compare(&Compared {
        latest: &readings,
        first: &first,
        calls: panel.cross_checks,
        claims: &claims,
        resolutions: panel.resolutions,
        calibration: &policy.calibration,
    });
    let cross_checked = !panel.cross_checks.is_empty();
    let kept = satisfied_demands(panel.demands, &readings);
    let parts = if cross_checked {
        parts(panel.cross_checks, &readings)
    } else {
        kept.clone()
    };
    let answered: Vec<BTreeSet<usize>> = parts.iter().map(|(_, agents)| agents.clone()).collect();
    let context = Context {
        request: &request,
        readings: &readings,
        agreement: &agreement,
        claims: &claims,
        cross_checked,
        parts: &answered,
        demands: &kept,
    };
    let scores: Vec<Score> = readings
        .iter()
        .enumerate()
        .map(|(at, reading)| {
            let axes = axes::measure(at, reading, &context);
            let limit: Option<Limit> = status_caps::of(reading, &request.text, panel.task_type);
            let axes = limit.map_or(axes.clone(), |limit| {
                status_caps::apply(axes, limit, policy.thresholds)
            });
            let cred = axes.cred();
            Score {
                agent: reading.agent().to_owned(),
                status: policy.thresholds.status(cred),
                cred,
                axes,
            }
        })
        .collect();
    let base = base_score(&scores, policy);
    let covered = covered(&parts, cross_checked, &scores, &readings, &claims);
    let bonus = bonus(&covered, &agreement, policy);
    let answer_groups: Vec<AnswerGroup> =
        groups(&agreement, &readings, &claims, (base, bonus), policy);
    let penalty = match answer_groups.first() {
        Some(leading) => leading.conflict_penalty.unwrap_or_default(),
        None => terms::open_penalty((base, bonus), &scores, &context, policy),
    };
    // Without a VALID output there is no base score to change.
    let any_valid = scores.iter().any(|score| score.status == Status::Valid);
    let (penalty, bonus) = if any_valid {
        (penalty, bonus)
    } else {
        (0.0, 0.0)
    };
    Judgement {
        base_score: base,
        conflict_penalty: penalty,
        coverage_bonus: bonus,
        cross_checked,
        rests_on_unseen: false,
        disagreements: disagreements::all(&agreement, &claims, &readings, &first),
        answer_groups,
        parts: parts.into_iter().map(|(part, _)| part).collect(),
        covered,
        scores,
    }
}

fn read_all<'a>(
    outputs: &'a [Output<'a>],
    request: &Request,
    calls: &[CrossCheck],
    policy: &Policy,
) -> Vec<ParsedOutput<'a>> {
    let conduct = |agent: &str| {
        let said = |call: &CrossCheck| {
            call.conduct
                .iter()
                .find(|c| c.agent == agent)
                .map(|c| c.kind)
        };
        // Both calls must agree that a report does not count.
        let first = calls.first().and_then(said)?;
        calls
            .iter()
            .all(|call| said(call).is_some())
            .then_some(first)
    };
    let read = |output: &'a Output<'a>| {
        ParsedOutput::new(
            output,
            request,
            policy.weight(output.agent),
            conduct(output.agent),
        )
    };
    outputs.iter().map(read).collect()
}

/// Returns the answer groups for the caller; none for a request without one final answer.
fn groups(
    agreement: &Agreement,
    readings: &[ParsedOutput<'_>],
    claims: &[Claim<'_>],
    terms: (f64, f64),
    policy: &Policy,
) -> Vec<AnswerGroup> {
    if !agreement.one_answer {
        return vec![];
    }
    let name = |at: &usize| readings.get(*at).map(|reading| reading.agent().to_owned());
    let held = agreement
        .groups
        .iter()
        .filter(|group| !group.members.is_empty());
    held.map(|group| AnswerGroup {
        answer: group.label.clone(),
        agents: group.members.iter().filter_map(name).collect(),
        conflict_penalty: Some(terms::answer_penalty(
            terms, group, agreement, claims, policy,
        )),
    })
    .collect()
}

/// Returns the parts of the request that the first cross-check call names. Each has the agents that
/// answer it according to every call.
fn parts(calls: &[CrossCheck], readings: &[ParsedOutput<'_>]) -> Vec<(String, BTreeSet<usize>)> {
    let Some((first, rest)) = calls.split_first() else {
        return vec![];
    };
    let place = |name: &String| {
        readings
            .iter()
            .position(|r| r.agent() == name && r.counts())
    };
    let parts = first.parts.iter().map(|part| {
        let agents: BTreeSet<usize> = part.answered_by.iter().filter_map(place).collect();
        let answers_any = |call: &CrossCheck, at: usize| {
            call.parts.is_empty()
                || call
                    .parts
                    .iter()
                    .any(|part| part.answered_by.iter().filter_map(place).any(|p| p == at))
        };
        let agents = agents
            .into_iter()
            .filter(|at| rest.iter().all(|call| answers_any(call, *at)))
            .collect();
        (part.part.clone(), agents)
    });
    parts.collect()
}

/// Returns the stated demands, each with the outputs that satisfy it by counting. Without a
/// cross-check they are the only known parts.
fn satisfied_demands(
    demands: &[Demand],
    readings: &[ParsedOutput<'_>],
) -> Vec<(String, BTreeSet<usize>)> {
    let keeps = |demand: &Demand, reading: &ParsedOutput<'_>| {
        let is_text = reading.output.obtained == Obtained::Text;
        reading.counts() && checks::satisfies(*demand, reading.output.report, is_text)
    };
    let with_keepers = demands.iter().map(|demand| {
        let agents = readings
            .iter()
            .enumerate()
            .filter(|(_, reading)| keeps(demand, reading))
            .map(|(at, _)| at);
        (demand.to_string(), agents.collect())
    });
    with_keepers.collect()
}

/// Returns for each part whether a VALID output answers it with a checked basis. The basis is
/// checked if the cross-check found the output's key claims to hold, or if its own last step was
/// recomputed. For a demand, the count itself is the check.
fn covered(
    parts: &[(String, BTreeSet<usize>)],
    cross_checked: bool,
    scores: &[Score],
    readings: &[ParsedOutput<'_>],
    claims: &[Claim<'_>],
) -> Vec<bool> {
    let checked = |at: &usize| {
        let valid = scores
            .get(*at)
            .is_some_and(|score| score.status == Status::Valid);
        let own: Vec<f64> = claims
            .iter()
            .filter(|claim| claim.agent == *at)
            .map(|claim| claim.verdict)
            .collect();
        let holds = !own.is_empty() && own.iter().sum::<f64>() > 0.0;
        valid
            && (!cross_checked
                || holds
                || readings
                    .get(*at)
                    .is_some_and(|reading| reading.path.verdict() > 0.0))
    };
    parts
        .iter()
        .map(|(_, agents)| agents.iter().any(checked))
        .collect()
}

/// Returns the coverage bonus: the share of the parts that are answered with a checked basis.
/// Without parts, it depends on whether the leading answer's last step was recomputed.
fn bonus(covered: &[bool], agreement: &Agreement, policy: &Policy) -> f64 {
    let share = if covered.is_empty() {
        let leading = agreement.groups.first().filter(|_| agreement.one_answer);
        leading.map_or(0.0, |group| group.checked.max(0.0))
    } else {
        crate::text::ratio(
            covered.iter().filter(|covered| **covered).count(),
            covered.len(),
        )
    };
    policy.max_coverage_bonus * share
}

/// Returns the weighted mean of Cred over the VALID scores; 0 with none.
pub fn base_score(scores: &[Score], policy: &Policy) -> f64 {
    let valid = || scores.iter().filter(|score| score.status == Status::Valid);
    let weight: f64 = valid().map(|score| policy.weight(&score.agent)).sum();
    if weight > 0.0 {
        valid()
            .map(|score| score.cred * policy.weight(&score.agent))
            .sum::<f64>()
            / weight
    } else {
        0.0
    }
}

/// Returns the index of the group whose answer means the same as `answer`; `None` if there is none.
pub fn answer_group(groups: &[AnswerGroup], answer: &str) -> Option<usize> {
    let wanted = answer::parse(answer)?;
    groups
        .iter()
        .position(|group| answer::parse(&group.answer).is_some_and(|known| known.same(&wanted)))
}

/// Returns the family of a model: the leading letters of its name, without the vendor's prefix
/// ("claude" of "anthropic/claude-sonnet-5.5", "gpt" of "gpt-6-luna"). Members of one family often
/// make the same mistakes.
pub fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let letters: String = name.chars().take_while(|c| c.is_alphabetic()).collect();
    if letters.is_empty() { name } else { letters }
}
