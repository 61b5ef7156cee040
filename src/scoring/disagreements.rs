//! The disagreements that the rounds, the master and the reader see: the split on the final answer,
//! and contested key claims.

use std::collections::BTreeSet;

use super::agreement::{Agreement, Group};
use super::claims::Claim;
use super::parsed_output::ParsedOutput;
use crate::domain::{AgentName, Disagreement, Position, Unit, UnitRef};
use crate::text::clip;

/// The most contested claims that are reported.
const MAX_CLAIMS: usize = 12;
/// The most bytes of a position's text.
const MAX_TEXT: usize = 240;

pub(super) fn all(
    agreement: &Agreement,
    claims: &[Claim<'_>],
    readings: &[ParsedOutput<'_>],
    first: &[ParsedOutput<'_>],
) -> Vec<Disagreement> {
    let split = final_answers(agreement, readings, first).filter(|_| agreement.one_answer);
    let is_open =
        |claim: &&Claim<'_>| claim.is_contested() && !(split.is_some() && claim.is_answer);
    let mut open: Vec<&Claim<'_>> = claims.iter().filter(is_open).collect();
    // A claim against which several others stand adds nothing to theirs.
    open.sort_by_key(|claim| claim.contradicted_by.len());
    let mut details: Vec<Disagreement> = vec![];
    for claim in open {
        let new = detail(claim, readings);
        if !is_known(&details, &new) && !join(&mut details, &new) {
            details.push(new);
        }
    }
    details.sort_by(|a, b| {
        let by_severity = b.severity.total_cmp(&a.severity);
        by_severity.then_with(|| a.topic.cmp(&b.topic))
    });
    details.truncate(MAX_CLAIMS);
    split.into_iter().chain(details).collect()
}

/// True if these disagreements have each unit of a new one against each of its opposing units. Two
/// claims that contradict each other are one disagreement.
fn is_known(known: &[Disagreement], new: &Disagreement) -> bool {
    let [own, against] = new.positions.as_slice() else {
        return false;
    };
    let are_apart = |a: &UnitRef, b: &UnitRef| {
        known.iter().any(|it| {
            let side = |unit: &UnitRef| it.positions.iter().position(|p| p.units.contains(unit));
            side(a).zip(side(b)).is_some_and(|(a, b)| a != b)
        })
    };
    let against_all = |unit| against.units.iter().all(|other| are_apart(unit, other));
    has_a_unit_each(against) && own.units.iter().all(against_all)
}

/// True if each agent of a position states it in a unit that is named.
fn has_a_unit_each(position: &Position) -> bool {
    let named = |agent: &AgentName| position.units.iter().any(|unit| unit.agent == *agent);
    position.agents.iter().all(named)
}

/// Adds the agents of a new disagreement to one in which others say the same against the same units.
fn join(known: &mut [Disagreement], new: &Disagreement) -> bool {
    let [own, against] = new.positions.as_slice() else {
        return false;
    };
    let same = known
        .iter_mut()
        .find_map(|it| match it.positions.as_mut_slice() {
            [first, second] if first.text == own.text && second == against => Some(first),
            _ => None,
        });
    let Some(first) = same.filter(|_| has_a_unit_each(against)) else {
        return false;
    };
    first.units.extend(own.units.iter().cloned());
    for agent in &own.agents {
        if !first.agents.contains(agent) {
            first.agents.push(agent.clone());
        }
    }
    true
}

fn names(readings: &[ParsedOutput<'_>], agents: impl Iterator<Item = usize>) -> Vec<AgentName> {
    agents
        .filter_map(|at| readings.get(at))
        .map(|reading| reading.agent().clone())
        .collect()
}

/// Returns the disagreement on the final answer. If the answers differed only in round 1, it is
/// marked as settled.
fn final_answers(
    agreement: &Agreement,
    readings: &[ParsedOutput<'_>],
    first: &[ParsedOutput<'_>],
) -> Option<Disagreement> {
    if agreement.groups.len() < 2 {
        return None;
    }
    let is_held = |group: &&Group| !group.members.is_empty();
    let settled = agreement.groups.iter().filter(is_held).count() < 2 && !first.is_empty();
    let position = |group: &Group| {
        let unit = |at: &usize| {
            let reading = readings.get(*at).filter(|_| !settled)?;
            let unit = reading.answer_unit.as_deref()?;
            Some(UnitRef::new(reading.agent().clone(), unit))
        };
        let agents = if settled {
            &group.backers
        } else {
            &group.members
        };
        Position {
            units: group.members.iter().filter_map(unit).collect(),
            agents: names(readings, agents.iter().copied()),
            // As the agents wrote it: "1.380 €" and not "1380 euros".
            text: clip(group.wordings.first().unwrap_or(&group.label), MAX_TEXT).to_owned(),
        }
    };
    let voices = agreement.groups.iter().map(|group| group.voices);
    let (largest, all) = (voices.fold(0.0, f64::max), agreement.voices());
    let shown = agreement
        .groups
        .iter()
        .filter(|group| settled || is_held(group));
    Some(Disagreement {
        topic: "final answer".to_owned(),
        on_final_answer: true,
        settled,
        severity: if all > 0.0 { 1.0 - largest / all } else { 0.0 },
        positions: shown.map(position).collect(),
    })
}

/// Returns the disagreement on a claim: the claim, and the statements of the agents that contradict
/// it.
fn detail(claim: &Claim<'_>, readings: &[ParsedOutput<'_>]) -> Disagreement {
    let cut = |text: &str| clip(text.trim(), MAX_TEXT).to_owned();
    let unit = unit_of(readings, claim.agent, claim.unit);
    let topic = unit.map(|unit| unit.topic.as_str());
    let against: BTreeSet<usize> = claim.contradicted_by.iter().map(|(at, _)| *at).collect();
    // Where both sides conceded, its agent now says something else, and alone.
    let (said, mut agents) = match unit.filter(|_| claim.conceded) {
        Some(now) => (now.text.as_str(), BTreeSet::new()),
        None => (claim.text, claim.supported_by.clone()),
    };
    agents.insert(claim.agent);
    agents.retain(|at| !against.contains(at));
    let units: Vec<(usize, &str)> = claim
        .contradicted_by
        .iter()
        .filter_map(|(at, unit)| Some((*at, unit.as_deref()?)))
        .collect();
    let named = units.iter().find_map(|(at, id)| unit_of(readings, *at, id));
    // If an objection names no unit, its text is what its agent says on the same topic.
    let on_topic = || {
        let same = |unit: &&Unit| {
            topic.is_some_and(|topic| !topic.is_empty() && unit.topic.eq_ignore_ascii_case(topic))
        };
        let objectors = against.iter().filter_map(|at| readings.get(*at));
        objectors.flat_map(ParsedOutput::key_units).find(same)
    };
    // Without one, it is the summary of an agent that objects, and not what the cross-check says.
    let summary = || {
        let objectors = against.iter().filter_map(|at| readings.get(*at));
        let mut lines = objectors.flat_map(|it| &it.output.report.answer_summary);
        lines.find(|line| !line.trim().is_empty())
    };
    let unit = named.or_else(on_topic).map(|unit| unit.text.as_str());
    let own = unit.or_else(|| summary().map(String::as_str));
    let objection = own.unwrap_or(claim.evidence);
    let counting = readings.iter().filter(|reading| reading.counts()).count();
    let reference =
        |(at, id): (usize, &str)| Some(UnitRef::new(readings.get(at)?.agent().clone(), id));
    Disagreement {
        topic: topic
            .filter(|topic| !topic.trim().is_empty())
            .map_or_else(|| cut(said), str::to_owned),
        on_final_answer: claim.is_answer,
        settled: false,
        severity: crate::text::ratio(against.len().min(agents.len()), counting),
        positions: vec![
            Position {
                text: cut(said),
                agents: names(readings, agents.into_iter()),
                units: reference((claim.agent, claim.unit)).into_iter().collect(),
            },
            Position {
                text: cut(objection),
                agents: names(readings, against.into_iter()),
                units: units.into_iter().filter_map(reference).collect(),
            },
        ],
    }
}

fn unit_of<'a>(readings: &'a [ParsedOutput<'_>], at: usize, id: &str) -> Option<&'a Unit> {
    let report = readings.get(at)?.output.report;
    report.units.iter().find(|unit| unit.id == id)
}
