//! The scoring engine (SPEC 5, 6, 13.1): deterministic, without I/O, without a model. It judges by
//! evidence, not by prose: the tags of units, the findings of the cross-check, the concessions of
//! agents, and machine checks. docs/scoring.md explains each figure.
//!
//! In reading order:
//!
//! - `parsed_output` reads each output once, before or after the cross-check, with `answer` (final
//!   answers), the expression engine and `checks`.
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
mod reply_answer;
mod status_caps;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use crate::domain::{AnswerGroup, Judgement};
pub use batch::parse as parse_record;
pub use checks::{declines, repeats_instructions};
pub use from_text::report_from_text;
pub use reply_answer::{is_supported, may_give, states};
pub use status_caps::is_disproved;
pub use terms::MAX_UNCHECKED;

use crate::domain::{
    AgentName, AgentReport, CrossCheck, Demand, Obtained, PartAnswered, Resolution, Score,
    ScoringPolicy, Status, TaskType,
};
use agreement::{Agreement, Compared};
use answer::Answer;
use axes::Context;
use claims::Claim;
use expr::{Equation, Recomputed, equations};
use parsed_output::{MAX_UNITS, ParsedOutput, Reading, Request};
use terms::Gains;

use crate::text::{MAX_BYTES, clip, collapse_whitespace};

/// One agent's output before any analysis.
#[derive(Debug, Clone)]
pub struct Output<'a> {
    pub agent: AgentName,
    /// The report with the agent's concessions applied.
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
#[derive(Debug, Clone, Default)]
pub struct Panel<'a> {
    /// The whole request, with what the user answered.
    pub message: &'a str,
    pub task_type: Option<TaskType>,
    /// The countable demands of the request on its answer, as the master stated them.
    pub demands: &'a [Demand],
    /// The latest output of each agent.
    pub outputs: Vec<Output<'a>>,
    /// The number of agents that were asked and gave no output.
    pub lost: usize,
    /// The agents' independent outputs of round 1. Empty if `outputs` are those of round 1.
    pub first_round: Vec<Output<'a>>,
    /// The findings of the cross-check calls: none, one, or two. The second call saw everything in
    /// reverse order.
    pub cross_checks: &'a [CrossCheck],
    /// The agents' decisions on their own contested claims in later rounds.
    pub resolutions: &'a [Resolution],
}

/// The most bytes of an answer that show its decimal sign.
const MAX_ANSWER_BYTES: usize = 512;

/// What code finds in the texts of a panel. It needs neither the findings of the cross-check nor the
/// concessions, so the outputs can be read before there are any.
#[derive(Debug)]
pub struct Readings {
    request: Request,
    latest: Vec<Reading>,
    first_round: Vec<Reading>,
}

impl Readings {
    /// Reads the request of a panel, and none of its outputs yet.
    pub fn of(panel: &Panel<'_>) -> Self {
        Self {
            request: request_of(panel),
            latest: vec![],
            first_round: vec![],
        }
    }

    /// Reads the next output of the panel. Returns false if all are read.
    pub fn read_next(&mut self, panel: &Panel<'_>) -> bool {
        let lists = [
            (&mut self.latest, &panel.outputs),
            (&mut self.first_round, &panel.first_round),
        ];
        for (read, outputs) in lists {
            if let Some(output) = outputs.get(read.len()) {
                read.push(Reading::of(output, &self.request));
                return true;
            }
        }
        false
    }
}

/// Scores every output of a panel and measures the terms of c_final. The result depends only on the
/// panel and the policy.
pub fn judge(panel: &Panel<'_>, policy: &ScoringPolicy) -> Judgement {
    judge_read(panel, Readings::of(panel), policy)
}

/// As [`judge`], for a panel of which some outputs are read.
pub fn judge_read(panel: &Panel<'_>, mut read: Readings, policy: &ScoringPolicy) -> Judgement {
    while read.read_next(panel) {}
    let readings = parsed_outputs(&panel.outputs, &read.latest, panel, policy);
    let first = parsed_outputs(&panel.first_round, &read.first_round, panel, policy);
    let checked = if first.is_empty() { &readings } else { &first };
    let claims = claims::merge(checked, &readings, panel.cross_checks, panel.resolutions);
    let agreement = agreement::compare(&Compared {
        latest: &readings,
        first: &first,
        given: panel,
        claims: &claims,
        request: &read.request,
        calibration: &policy.calibration,
    });
    let demands = satisfied_demands(panel.demands, &readings);
    let context = Context {
        request: &read.request,
        readings: &readings,
        agreement: &agreement,
        claims: &claims,
        cross_checked: !panel.cross_checks.is_empty(),
        parts: parts(panel.cross_checks, &readings).unwrap_or_else(|| demands.clone()),
        demands,
    };
    let scores = scores(&context, panel.task_type, policy);
    let coverage = coverage(&context, &scores);
    let gains = Gains {
        base: base_score(&scores, policy),
        bonus: bonus(&coverage, &agreement, policy),
    };
    let answer_groups = groups(&context, gains, &scores, policy);
    // The leading answer has the least penalty, whatever the votes say.
    let of_groups = answer_groups.iter().filter_map(|it| it.conflict_penalty);
    let open = || terms::open_penalty(gains, &scores, &context, policy);
    let penalty = of_groups.min_by(f64::total_cmp).unwrap_or_else(open);
    // Without a VALID output there is no base score to change.
    let any_valid = scores.iter().any(|score| score.status == Status::Valid);
    let changes = |term: f64| if any_valid { term } else { 0.0 };
    Judgement {
        base_score: gains.base,
        conflict_penalty: changes(penalty),
        coverage_bonus: changes(gains.bonus),
        cross_checked: context.cross_checked,
        rests_on_unseen: false,
        disagreements: disagreements::all(&agreement, &claims, &readings, &first),
        answer_groups,
        parts: context.parts.into_iter().map(|(part, _)| part).collect(),
        covered: coverage.iter().map(|share| *share > 0.0).collect(),
        scores,
    }
}

/// Reads the request of a panel. Its answers show which decimal sign the request means.
fn request_of(panel: &Panel<'_>) -> Request {
    let outputs = panel.outputs.iter().chain(&panel.first_round);
    let units = outputs.flat_map(|output| output.report.units.iter().take(MAX_UNITS));
    let answers = units.filter(|unit| unit.is_answer());
    let answers = answers.map(|unit| clip(&unit.text, MAX_ANSWER_BYTES));
    Request::read(panel.message, answers)
}

/// Returns the scores of the outputs.
fn scores(context: &Context<'_>, task: Option<TaskType>, policy: &ScoringPolicy) -> Vec<Score> {
    let score = |(at, reading): (usize, &ParsedOutput<'_>)| {
        let axes = axes::measure(at, reading, context);
        let is_disproved = is_disproved_at(at, reading, context);
        let axes = match status_caps::of(reading, &context.request.text, task, is_disproved) {
            Some(cap) => status_caps::apply(axes, cap, policy.thresholds),
            None => axes,
        };
        let cred = axes.cred();
        Score {
            agent: reading.agent().clone(),
            status: policy.thresholds.status(cred),
            cred,
            axes,
        }
    };
    context.readings.iter().enumerate().map(score).collect()
}

/// True if the cross-check disproved the final answer of the output at an index of the panel, or all of
/// its key claims where the request has no final answer.
fn is_disproved_at(at: usize, reading: &ParsedOutput<'_>, context: &Context<'_>) -> bool {
    if !context.agreement.one_answer {
        let held = context
            .claims
            .iter()
            .filter(|it| it.agent == at && !it.dropped);
        let mut held = held.peekable();
        return held.peek().is_some() && held.all(Claim::is_disproved);
    }
    let own = |claim: &&Claim<'_>| claim.agent == at && claim.is_answer && !claim.dropped;
    // Another agent's claim of the same answer may hold.
    let group = context.agreement.of(at).filter(|group| group.verdict < 0.0);
    group.is_some()
        && reading.path.last != Some(true)
        && context.claims.iter().filter(own).any(Claim::is_disproved)
}

/// Returns outputs of the panel with what was read in them and what its cross-checks found.
fn parsed_outputs<'a>(
    outputs: &'a [Output<'a>],
    readings: &'a [Reading],
    panel: &Panel<'_>,
    policy: &ScoringPolicy,
) -> Vec<ParsedOutput<'a>> {
    let calls = panel.cross_checks;
    // The cross-check read the reports of round 1.
    let checked = if panel.first_round.is_empty() {
        &panel.outputs
    } else {
        &panel.first_round
    };
    // Both calls must agree that a report does not count.
    let conduct = |agent: &AgentName| {
        let found = calls
            .iter()
            .map(|call| call.conduct.iter().find(|c| c.agent == *agent));
        let found: Option<Vec<_>> = found.collect();
        Some(found?.first()?.kind)
    };
    let answers_all = |agent: &AgentName| {
        let names = |part: &PartAnswered| part.answered_by.contains(agent);
        let found = |call: &CrossCheck| !call.parts.is_empty() && call.parts.iter().all(names);
        calls.iter().all(found)
    };
    let is_named = |agent: &AgentName| {
        let mut found = calls.iter().flat_map(|call| &call.conduct);
        found.any(|it| it.agent == *agent)
    };
    let parsed = |(output, reading): (&'a Output<'a>, &'a Reading)| {
        let agent = &output.agent;
        let is_checked = |it: &Output<'_>| it.agent == *agent && it.report == output.report;
        let is_cleared = !calls.is_empty() && checked.iter().any(is_checked) && !is_named(agent);
        let mut screening = reading.screening.clone();
        if is_cleared && answers_all(agent) {
            // "I can't pay the rent on time" may be the letter that was asked for, and a sentence of
            // the request the quotation.
            screening.clear_answers();
        }
        if is_cleared && panel.task_type == Some(TaskType::PromptEngineering) {
            screening.quote_attacks();
        }
        ParsedOutput {
            output,
            reading,
            weight: policy.weight(agent),
            screening,
            conduct: conduct(agent),
            is_cleared,
        }
    };
    outputs.iter().zip(readings).map(parsed).collect()
}

/// Returns the answer groups for the caller; none for a request without one final answer.
fn groups(
    context: &Context<'_>,
    gains: Gains,
    scores: &[Score],
    policy: &ScoringPolicy,
) -> Vec<AnswerGroup> {
    let agreement = context.agreement;
    if !agreement.one_answer {
        return vec![];
    }
    let name = |at: &usize| Some(context.readings.get(*at)?.agent().clone());
    let held = agreement
        .groups
        .iter()
        .filter(|group| !group.members.is_empty());
    // A reply may name an option by its text: "Nitrogen" for B.
    let wordings = |group: &agreement::Group| {
        let mut wordings = group.wordings.clone();
        if let Some(text) = context.request.options.text(&group.label) {
            let label = wordings.is_empty().then(|| group.label.clone());
            wordings.extend(label);
            wordings.push(text.to_owned());
        }
        wordings
    };
    held.map(|group| AnswerGroup {
        answer: group.label.clone(),
        wordings: wordings(group),
        agents: group.members.iter().filter_map(name).collect(),
        conflict_penalty: Some(terms::answer_penalty(gains, group, scores, context, policy)),
    })
    .collect()
}

/// A part of the request, with the agents that answer it.
type Part = (String, BTreeSet<usize>);

/// Returns the parts of the request that the first cross-check call names. Each has the agents that
/// answer it and, according to every other call that names parts, any part. `None` without a
/// cross-check.
fn parts(calls: &[CrossCheck], readings: &[ParsedOutput<'_>]) -> Option<Vec<Part>> {
    let answers = |part: &PartAnswered| -> BTreeSet<usize> {
        let is_named = |r: &ParsedOutput<'_>| part.answered_by.contains(r.agent());
        let named = readings
            .iter()
            .enumerate()
            .filter(|(_, r)| r.counts() && is_named(r));
        named.map(|(at, _)| at).collect()
    };
    let (first, rest) = calls.split_first()?;
    let rest: Vec<BTreeSet<usize>> = rest
        .iter()
        .filter(|call| !call.parts.is_empty())
        .map(|call| call.parts.iter().flat_map(answers).collect())
        .collect();
    let parts = first.parts.iter().map(|part| {
        let mut agents = answers(part);
        agents.retain(|at| rest.iter().all(|others| others.contains(at)));
        (part.part.clone(), agents)
    });
    Some(parts.collect())
}

/// Returns the stated demands, each with the outputs that satisfy it by counting. Without a
/// cross-check they are the only known parts.
fn satisfied_demands(demands: &[Demand], readings: &[ParsedOutput<'_>]) -> Vec<Part> {
    let keeps = |demand: &Demand, reading: &ParsedOutput<'_>| {
        let is_text = reading.output.obtained == Obtained::Text;
        reading.counts() && checks::satisfies(*demand, reading.output.report, is_text)
    };
    let with_keepers = demands.iter().map(|demand| {
        let all = readings.iter().enumerate();
        let keepers = all.filter(|(_, reading)| keeps(demand, reading));
        (demand.to_string(), keepers.map(|(at, _)| at).collect())
    });
    with_keepers.collect()
}

/// Returns for each part how far a VALID output that answers it has a checked basis, 0 to 1: the mean
/// verdict of the cross-check on its key claims, or 1 if its own last step was recomputed. A key claim
/// without a verdict counts as unknown. For a demand, the count itself is the check.
fn coverage(context: &Context<'_>, scores: &[Score]) -> Vec<f64> {
    let checked = |(at, reading): (usize, &ParsedOutput<'_>)| {
        if !context.cross_checked || reading.path.verdict() > 0.0 {
            return 1.0;
        }
        let claims = context.claims.iter();
        let own = claims.filter(|claim| claim.agent == at && !claim.dropped);
        let claimed = own.clone().count().max(reading.key_units().count());
        let verdicts: f64 = own.map(|claim| claim.verdict).sum();
        (verdicts / claimed.max(1) as f64).max(0.0)
    };
    let shares: Vec<f64> = context.readings.iter().enumerate().map(checked).collect();
    let share = |at: &usize| {
        let valid = scores.get(*at).filter(|it| it.status == Status::Valid);
        valid.and(shares.get(*at)).copied()
    };
    let of_part = |(_, agents): &Part| agents.iter().filter_map(share).fold(0.0, f64::max);
    context.parts.iter().map(of_part).collect()
}

/// Returns the coverage bonus: the share of the request that is answered with a checked basis. Without
/// parts, it depends on whether the leading answer's last step was recomputed.
fn bonus(coverage: &[f64], agreement: &Agreement, policy: &ScoringPolicy) -> f64 {
    let share = if coverage.is_empty() {
        let leading = agreement.groups.first().filter(|_| agreement.one_answer);
        leading.map_or(0.0, |group| group.checked.max(0.0))
    } else {
        coverage.iter().sum::<f64>() / coverage.len() as f64
    };
    policy.max_coverage_bonus * share
}

/// What the equations of a text say of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calculation {
    /// One holds and none is wrong. If the position is a number, one has it as its result, else it
    /// has a figure of the position.
    Gives,
    /// One is wrong, or the position is a number that none has as its result.
    Fails,
    /// The position is no number, and no equation that can be recomputed has a figure of it: "17 days
    /// later is a Friday".
    Unknown,
}

/// Recomputes what a text calculates for a position.
pub fn calculation(text: &str, position: &str) -> Calculation {
    let plain = |text| collapse_whitespace(clip(text, MAX_BYTES)).into_owned();
    let found = equations(&plain(text));
    let mut right = found.iter().filter(|it| it.recomputed == Recomputed::Right);
    if found.iter().any(|it| it.recomputed == Recomputed::Wrong) {
        return Calculation::Fails;
    }
    match answer::parse(&plain(position)) {
        Some(Answer::Number(number)) if right.any(|it| number.may_be(it.stated)) => {
            Calculation::Gives
        }
        Some(Answer::Number(_)) => Calculation::Fails,
        _ => {
            let figures = answer::numbers(&plain(position), None);
            let has = |value: f64| figures.iter().any(|figure| figure.may_be(value));
            let is_about = |it: &Equation| has(it.stated) || it.operands.iter().copied().any(has);
            if right.any(is_about) {
                Calculation::Gives
            } else {
                Calculation::Unknown
            }
        }
    }
}

/// Returns the weighted mean of Cred over the VALID scores; 0 with none.
pub fn base_score(scores: &[Score], policy: &ScoringPolicy) -> f64 {
    let valid = scores.iter().filter(|score| score.status == Status::Valid);
    let (sum, weights) = valid.fold((0.0, 0.0), |(sum, weights), score| {
        let weight = policy.weight(&score.agent);
        (sum + score.cred * weight, weights + weight)
    });
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// Returns the index of the group whose answer means the same as `answer`, in its normal form or
/// any of its wordings; `None` if there is none.
pub fn answer_group(groups: &[AnswerGroup], answer: &str) -> Option<usize> {
    let is_written = |group: &AnswerGroup| group.texts().any(|known| known == answer);
    if let Some(at) = groups.iter().position(is_written) {
        return Some(at);
    }
    let wanted = answer::parse(answer)?;
    let as_meant = |mut read: Answer, group: &AnswerGroup| {
        read.read_meaning(&answer::parse(&group.answer)?);
        Some(read)
    };
    let is_same = |group: &AnswerGroup| {
        let known = group.texts().filter_map(answer::parse);
        let mut known = known.filter_map(|known| as_meant(known, group));
        known.any(|known| known.is_given_by(&wanted))
    };
    // "2.962 m" is the answer of a group that says 2962 m, if no group says 2.962 m.
    let may_be = |group: &AnswerGroup| {
        let meant = as_meant(wanted.clone(), group);
        let normal = answer::parse(&group.answer);
        normal
            .zip(meant)
            .is_some_and(|(normal, meant)| normal.is_given_by(&meant))
    };
    let mut groups = groups.iter();
    let same = groups.clone().position(is_same);
    same.or_else(|| groups.position(may_be))
}

/// True if a text has the answer of a group in one of its wordings, as whole words.
pub fn mentions(text: &str, group: &AnswerGroup) -> bool {
    let plain = |text: &str| {
        collapse_whitespace(text)
            .replace(['*', '_', '`'], "")
            .to_lowercase()
    };
    let text = plain(text);
    // "5" is not in "1.5".
    let goes_on = |chars: &mut dyn Iterator<Item = char>| match chars.next() {
        Some('.' | ',') => chars.next().is_some_and(|c| c.is_ascii_digit()),
        c => c.is_some_and(char::is_alphanumeric),
    };
    let has = |wording: &str| {
        let wording = plain(wording);
        text.match_indices(&wording).any(|(at, found)| {
            let (before, behind) = (text.get(..at), text.get(at + found.len()..));
            let mut before = before.unwrap_or_default().chars().rev();
            let mut behind = behind.unwrap_or_default().chars();
            !wording.is_empty() && !goes_on(&mut before) && !goes_on(&mut behind)
        })
    };
    group.texts().any(has)
}

/// Returns the family of a model: the leading letters of its name, without the vendor's prefix
/// ("claude" of "anthropic/claude-sonnet-5.5", "gpt" of "gpt-6-luna"). Members of one family often
/// make the same mistakes.
pub fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    let letters = name.split(|c: char| !c.is_alphabetic()).next();
    letters
        .filter(|it| !it.is_empty())
        .unwrap_or(name)
        .to_lowercase()
}
