//! Compares the agents: groups of equal final answers, claims that agree or contradict across agents, and what that
//! takes from the committee's confidence.

use std::collections::{BTreeMap, BTreeSet};

use super::AnswerGroup;
use super::claims::{Relation, relate};
use super::reading::Reading;
use super::support::Support;
use super::text::clip;
use crate::domain::{Disagreement, Position};

/// What comparing the agents found. Indices are positions in the panel.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Each group of equal answers: who gave it, heaviest group first.
    pub groups: Vec<Vec<usize>>,
    /// For each output, how many of its claims another agent shares, contests, or leaves alone.
    pub standing: Vec<Standing>,
    pub disagreements: Vec<Disagreement>,
    /// How the first answers split, as a severity.
    pub first_split: f64,
}

/// How a report's claims stand with the other agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub agreed: usize,
    pub contested: usize,
    pub lone: usize,
}

/// At most this many disagreements on details are reported.
const MAX_DETAILS: usize = 12;

pub(super) fn compare(readings: &[Reading<'_>], first: &[Reading<'_>]) -> Comparison {
    let groups = answer_groups(readings, first);
    let links = links(readings);
    let mut disagreements: Vec<Disagreement> = final_answers(readings, &groups).into_iter().collect();
    let at_first = final_answers(first, &answer_groups(first, &[]));
    let first_split = at_first.as_ref().map_or(0.0, |split| split.severity);
    if let Some(split) = at_first.filter(|_| disagreements.is_empty()) {
        let positions = split.positions.into_iter().map(|position| Position { units: vec![], ..position }).collect();
        disagreements.push(Disagreement { settled: true, positions, ..split });
    }
    disagreements.extend(details(readings, &groups, &links));
    Comparison { standing: standing(readings, &links), groups, disagreements, first_split }
}

/// The answers as the caller sees them.
pub(super) fn named_groups(readings: &[Reading<'_>], groups: &[Vec<usize>]) -> Vec<AnswerGroup> {
    groups
        .iter()
        .map(|members| AnswerGroup {
            answer: group_label(readings, members),
            agents: agents(readings, members.iter().copied()),
            conflict_penalty: None,
        })
        .collect()
}

/// Groups of equal answers, the heaviest first, then the one that more agents gave on their own, then by who came
/// first. Only outputs that count.
fn answer_groups(readings: &[Reading<'_>], first: &[Reading<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, reading) in readings.iter().enumerate().filter(|(_, reading)| reading.counts()) {
        let Some(answer) = &reading.answer else { continue };
        let home = groups.iter_mut().find(|group| {
            group
                .first()
                .and_then(|first| readings.get(*first))
                .and_then(|first| first.answer.as_ref())
                .is_some_and(|first| first.same(answer))
        });
        match home {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let backing = |group: &[usize]| {
        let answer = group.first().and_then(|at| readings.get(*at)).and_then(|reading| reading.answer.as_ref());
        let backs = |vote: &&Reading<'_>| {
            vote.counts() && answer.zip(vote.answer.as_ref()).is_some_and(|(own, first)| own.same(first))
        };
        first.iter().filter(backs).count()
    };
    groups.sort_by(|a, b| {
        let by_weight = weight(readings, b).total_cmp(&weight(readings, a));
        by_weight.then(backing(b).cmp(&backing(a))).then(a.first().cmp(&b.first()))
    });
    groups
}

/// The shortest way in which a member put the answer; the first of equals.
fn group_label(readings: &[Reading<'_>], members: &[usize]) -> String {
    let labels = members.iter().filter_map(|at| readings.get(*at)?.answer.as_ref()).map(super::normal::Answer::label);
    labels.min_by_key(String::len).unwrap_or_default()
}

fn weight(readings: &[Reading<'_>], members: &[usize]) -> f64 {
    members.iter().filter_map(|at| readings.get(*at)).map(|reading| reading.weight).sum()
}

fn agents(readings: &[Reading<'_>], members: impl Iterator<Item = usize>) -> Vec<String> {
    members.filter_map(|at| readings.get(at)).map(|reading| reading.agent().to_owned()).collect()
}

fn final_answers(readings: &[Reading<'_>], groups: &[Vec<usize>]) -> Option<Disagreement> {
    if groups.len() < 2 {
        return None;
    }
    let total: f64 = groups.iter().map(|group| weight(readings, group)).sum();
    let largest = groups.first().map_or(0.0, |group| weight(readings, group));
    let positions = groups
        .iter()
        .map(|group| {
            let text = group_label(readings, group);
            let units = group.iter().filter_map(|at| readings.get(*at)).flat_map(|reading| {
                let needle = text.to_lowercase();
                let stating = reading.claims.iter().filter(move |claim| states(&claim.text, &needle));
                stating.map(|claim| format!("{}:{}", reading.agent(), claim.id)).collect::<Vec<_>>()
            });
            Position { units: units.collect(), agents: agents(readings, group.iter().copied()), text }
        })
        .collect();
    let severity = if total > 0.0 { 1.0 - largest / total } else { 0.0 };
    Some(Disagreement { topic: "final answer".to_owned(), on_final_answer: true, settled: false, severity, positions })
}

/// Whether a claim's text contains an answer as whole words.
fn states(claim: &str, answer: &str) -> bool {
    let plain = |text: &str| {
        format!(" {} ", super::text::words(text).into_iter().map(|word| word.lower).collect::<Vec<_>>().join(" "))
    };
    !answer.is_empty() && plain(claim).contains(&plain(answer))
}

/// A claim by the place of its agent in the panel and its own place in the report.
type Place = (usize, usize);

/// Two claims of different agents that relate.
struct Link {
    a: Place,
    b: Place,
    relation: Relation,
}

/// Compares claims that share a content word; all others cannot relate.
fn links(readings: &[Reading<'_>]) -> Vec<Link> {
    let mut out = Vec::new();
    for (i, one) in readings.iter().enumerate().filter(|(_, reading)| reading.counts()) {
        for (j, other) in readings.iter().enumerate().skip(i + 1).filter(|(_, reading)| reading.counts()) {
            for (m, a) in one.claims.iter().enumerate() {
                for (n, b) in other.claims.iter().enumerate() {
                    let relation = relate(a, b);
                    if relation != Relation::Unrelated {
                        out.push(Link { a: (i, m), b: (j, n), relation });
                    }
                }
            }
        }
    }
    out
}

fn standing(readings: &[Reading<'_>], links: &[Link]) -> Vec<Standing> {
    let mut agreed: BTreeSet<Place> = BTreeSet::new();
    let mut contested = BTreeSet::new();
    for link in links {
        let set = if link.relation == Relation::Agree { &mut agreed } else { &mut contested };
        set.extend([link.a, link.b]);
    }
    readings
        .iter()
        .enumerate()
        .map(|(at, reading)| {
            let mut out = Standing::default();
            for claim in 0..reading.claims.len() {
                match (contested.contains(&(at, claim)), agreed.contains(&(at, claim))) {
                    (true, _) => out.contested += 1,
                    (false, true) => out.agreed += 1,
                    (false, false) => out.lone += 1,
                }
            }
            out
        })
        .collect()
}

/// Contradictions between claims, put together where they hang together. Claims that merely repeat different final
/// answers are left to the disagreement on the final answer.
fn details(readings: &[Reading<'_>], groups: &[Vec<usize>], links: &[Link]) -> Vec<Disagreement> {
    let group_of = |agent: usize| groups.iter().position(|group| group.contains(&agent));
    let split = groups.len() >= 2;
    let mut clusters: Vec<BTreeSet<Place>> = Vec::new();
    let clashes: Vec<&Link> = links
        .iter()
        .filter(|link| link.relation == Relation::Contradict)
        // Who comes to one answer by other steps does not quarrel.
        .filter(|link| group_of(link.a.0).is_none() || group_of(link.a.0) != group_of(link.b.0))
        .filter(|link| {
            !(split
                && group_of(link.a.0) != group_of(link.b.0)
                && repeats_answer(readings, link.a)
                && repeats_answer(readings, link.b))
        })
        .collect();
    for link in &clashes {
        let (touching, mut rest): (Vec<_>, Vec<_>) =
            clusters.into_iter().partition(|cluster| cluster.contains(&link.a) || cluster.contains(&link.b));
        let mut merged: BTreeSet<_> = touching.into_iter().flatten().collect();
        merged.extend([link.a, link.b]);
        rest.push(merged);
        clusters = rest;
    }
    let total: f64 = readings.iter().filter(|reading| reading.counts()).map(|reading| reading.weight).sum();
    let against: BTreeSet<(Place, Place)> =
        clashes.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]).collect();
    let mut out: Vec<Disagreement> =
        clusters.iter().filter_map(|cluster| detail(readings, cluster, &against, total)).collect();
    out.sort_by(|a, b| b.severity.total_cmp(&a.severity).then_with(|| a.topic.cmp(&b.topic)));
    out.truncate(MAX_DETAILS);
    out
}

fn repeats_answer(readings: &[Reading<'_>], (agent, claim): Place) -> bool {
    readings.get(agent).is_some_and(|reading| {
        let answer = reading.answer.as_ref().map(super::normal::Answer::label).unwrap_or_default().to_lowercase();
        reading.claims.get(claim).is_some_and(|claim| states(&claim.text, &answer))
    })
}

/// The positions of one cluster: a claim joins the first position that it does not contradict; an agent holds one.
fn detail(
    readings: &[Reading<'_>],
    cluster: &BTreeSet<Place>,
    against: &BTreeSet<(Place, Place)>,
    total: f64,
) -> Option<Disagreement> {
    let mut positions: Vec<Vec<Place>> = Vec::new();
    for claim in cluster {
        if positions.iter().flatten().any(|held| held.0 == claim.0) {
            continue;
        }
        match positions.iter_mut().find(|position| position.iter().all(|held| !against.contains(&(*held, *claim)))) {
            Some(position) => position.push(*claim),
            None => positions.push(vec![*claim]),
        }
    }
    let of = |claim: &(usize, usize)| {
        readings.get(claim.0).and_then(|reading| reading.claims.get(claim.1).map(|claim| (reading, claim)))
    };
    let weighed: Vec<f64> = positions
        .iter()
        .map(|position| position.iter().filter_map(of).map(|(reading, _)| reading.weight).sum())
        .collect();
    let (sum, largest) = (weighed.iter().sum::<f64>(), weighed.iter().copied().fold(0.0, f64::max));
    if positions.len() < 2 || total <= 0.0 {
        return None;
    }
    let topics: BTreeMap<&str, usize> =
        cluster.iter().filter_map(of).fold(BTreeMap::new(), |mut counts, (_, claim)| {
            *counts.entry(claim.topic.as_str()).or_default() += 1;
            counts
        });
    let topic =
        topics.into_iter().rev().max_by_key(|(_, n)| *n).map(|(topic, _)| topic).filter(|topic| !topic.is_empty());
    Some(Disagreement {
        topic: topic.unwrap_or("claims").to_owned(),
        on_final_answer: false,
        settled: false,
        severity: ((sum - largest) / total).clamp(0.0, 1.0),
        positions: positions
            .iter()
            .map(|position| Position {
                text: position
                    .first()
                    .and_then(of)
                    .map(|(_, claim)| clip(&claim.text, 240).to_owned())
                    .unwrap_or_default(),
                agents: agents(readings, position.iter().map(|claim| claim.0)),
                units: position
                    .iter()
                    .filter_map(of)
                    .map(|(reading, claim)| format!("{}:{}", reading.agent(), claim.id))
                    .collect(),
            })
            .collect(),
    })
}

/// Answers whose support is this close to the leading one's stand beside it.
const LEVEL: f64 = 0.02;

/// Whether another answer leads with clearly more support than this output's has: such a position is kept, but the reply
/// is not built on it.
pub(super) fn outvoted(at: usize, groups: &[Vec<usize>], supports: &[Option<Support>]) -> bool {
    let probability = |at: usize| supports.get(at).and_then(Option::as_ref).map_or(0.0, |support| support.probability);
    let leading = groups.first().filter(|group| !group.contains(&at));
    leading.and_then(|group| group.first()).is_some_and(|first| {
        let level = groups.first().map(Vec::len) == groups.iter().find(|group| group.contains(&at)).map(Vec::len);
        !level || probability(at) + LEVEL < probability(*first)
    })
}

/// A split of two to one on the final answer takes `SPLIT_WEIGHT * 1/3` of the full penalty, an even split all of it.
const SPLIT_WEIGHT: f64 = 2.4;
/// What a detail adds at most, as a share of the full penalty, however many there are.
const DETAILS_SHARE: f64 = 0.3;

/// The share of the full conflict penalty that the disagreements call for, 0 to 1: the worst split on the final answer
/// counts most, details together at most [`DETAILS_SHARE`].
pub(super) fn conflict(comparison: &Comparison) -> f64 {
    let disagreements = &comparison.disagreements;
    let on_answer = disagreements.iter().filter(|d| d.on_final_answer).map(|d| d.severity);
    let worst = on_answer.fold(comparison.first_split, f64::max);
    let details: f64 = disagreements.iter().filter(|d| !d.on_final_answer).map(|d| d.severity).sum();
    ((worst * SPLIT_WEIGHT).min(1.0) + DETAILS_SHARE * details.min(1.0)).clamp(0.0, 1.0)
}
