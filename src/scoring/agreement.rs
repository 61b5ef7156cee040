//! Compares final answers: groups that mean the same, and the number of independent voices for
//! each.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Panel;
use super::answer::Answer;
use super::claims::Claim;
use super::parsed_output::{Given, ParsedOutput, Request};
use crate::domain::{AgentName, Basis, Calibration, CrossCheck, Obtained, Resolution};
use crate::text::words;

/// The number of agents of the core, each with a voice. Fewer count as missing voices.
pub(super) const CORE_SIZE: usize = 3;

/// Agents with the same final answer. Agents are named by their index in the panel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// The shortest wording of the answer.
    pub label: String,
    /// The answers as given, as in [`crate::domain::AnswerGroup`].
    pub wordings: Vec<String>,
    /// The agents whose latest answer it is.
    pub members: Vec<usize>,
    /// The agents whose whole vote it has: by their first answer, or by a later one that they prove.
    pub voters: Vec<usize>,
    /// The agents whose vote it has wholly or in part.
    pub backers: Vec<usize>,
    /// The number of independent voices for it, with half votes.
    pub voices: f64,
    /// The mean over the members of the verdicts on their recomputed last steps, -1 to 1.
    pub checked: f64,
    /// The mean verdict of the cross-check on the members' answers, -1 to 1.
    pub verdict: f64,
}

/// The groups of final answers of a panel.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// The leading group first.
    pub groups: Vec<Group>,
    /// True if most of the outputs that count give one final answer, or would with those lost.
    pub one_answer: bool,
    /// The number of outputs that count.
    pub counting: usize,
    /// The number of agents that were asked and gave no output that counts.
    pub lost: usize,
    /// The number of voices that the whole core would have beside those given, and at least one for
    /// each agent that was lost: it may have disagreed.
    pub missing: usize,
}

impl Agreement {
    pub fn of(&self, agent: usize) -> Option<&Group> {
        self.groups
            .iter()
            .find(|group| group.members.contains(&agent))
    }

    pub fn voices(&self) -> f64 {
        self.groups.iter().map(|group| group.voices).sum()
    }
}

/// The outputs of a panel, and the findings about them.
pub(super) struct Compared<'a> {
    pub latest: &'a [ParsedOutput<'a>],
    /// The outputs of round 1, in their own order; empty if there was no later round.
    pub first: &'a [ParsedOutput<'a>],
    /// The panel, with the findings of its cross-check and the lost agents.
    pub given: &'a Panel<'a>,
    pub claims: &'a [Claim<'a>],
    pub request: &'a Request,
    pub calibration: &'a Calibration,
}

/// Compares the latest answers of a panel.
pub(super) fn compare(panel: &Compared<'_>) -> Agreement {
    let Compared { latest, first, .. } = *panel;
    // Both rounds share the groups: each answer is a node, and equal answers are joined.
    let nodes = nodes(latest, first);
    let same = |a: &Node<'_>, b: &Node<'_>| a.answer.normal.same(&b.answer.normal);
    let excludes = |a: &Node<'_>, b: &Node<'_>| a.answer.normal.excludes(&b.answer.normal);
    let equal = without_bridges(&nodes, components(&nodes, same), excludes);
    // The cross-check joins what is equal already, so it cannot tear that apart.
    let any = |a: &[usize], b: &[usize], holds: &dyn Fn(&Node<'_>, &Node<'_>) -> bool| {
        let mut pairs = a.iter().flat_map(|x| b.iter().map(move |y| (*x, *y)));
        pairs.any(|(x, y)| {
            let pair = nodes.get(x).zip(nodes.get(y));
            pair.is_some_and(|(x, y)| holds(x, y))
        })
    };
    let differ =
        |a: &[usize], b: &[usize]| any(a, b, &|x, y| x.answer.normal.differs(&y.answer.normal));
    let merged = |a: &Vec<usize>, b: &Vec<usize>| {
        any(a, b, &|x, y| panel.found_same_by_cross_check(x, y)) && !differ(a, b)
    };
    let joined = without_bridges(&equal, components(&equal, merged), |a, b| differ(a, b));
    let flat = |parts: Vec<usize>| {
        let parts = parts.into_iter().filter_map(|at| equal.get(at));
        parts.flatten().copied().collect::<Vec<usize>>()
    };
    let components: Vec<Vec<usize>> = joined.into_iter().map(flat).collect();
    let group = |component: &Vec<usize>| {
        let here: Vec<&Node<'_>> = component.iter().filter_map(|at| nodes.get(*at)).collect();
        panel.group(&here)
    };
    let mut groups: Vec<Group> = components.iter().map(group).collect();
    // Where no answer has half of the votes, all that the cross-check does not call the same differ.
    let votes = groups.iter().map(|group| group.members.len());
    let is_split = 2 * votes.clone().max().unwrap_or_default() < votes.sum();
    let differing = |a: usize, b: usize| {
        let pair = components.get(a).zip(components.get(b));
        a != b && is_split || pair.is_some_and(|(a, b)| differ(a, b))
    };
    without_contradictions(&mut groups, differing);
    // A group without members and voices has no supporter left, because all its agents conceded.
    groups.retain(|group| !group.members.is_empty() || group.voices > 0.0);
    groups.sort_by(|a, b| order(a, b, latest));
    let counting = latest.iter().filter(|now| now.counts());
    let answered = counting.clone().filter_map(|now| answer_of(now, first));
    let (counting, answered) = (counting.count(), answered.count());
    // An output that does not count is lost as one that never came: it may have given an answer.
    let lost = panel.given.lost + latest.len() - counting;
    let one_answer = answered > 0 && 2 * answered + lost > counting;
    Agreement {
        groups,
        one_answer,
        counting,
        lost,
        missing: CORE_SIZE
            .saturating_sub(answered_count(latest, &nodes))
            .max(lost),
    }
}

/// The order of answers: the leading one first.
fn order(a: &Group, b: &Group, latest: &[ParsedOutput<'_>]) -> Ordering {
    let refuted = |group: &Group| group.members.is_empty() || group.verdict < -0.25;
    let weight = |group: &Group| -> f64 {
        let members = group.members.iter().filter_map(|at| latest.get(*at));
        members.map(|reading| reading.weight).sum()
    };
    refuted(a)
        .cmp(&refuted(b))
        .then(b.voices.total_cmp(&a.voices))
        .then(weight(b).total_cmp(&weight(a)))
        .then(b.checked.total_cmp(&a.checked))
        .then_with(|| a.label.cmp(&b.label))
}

/// Returns the number of outputs that have a voice on the answer. Plain texts that say something
/// count too: they have no field for the answer, so it may only not have been found. An output that
/// leaves the field empty is a missing voice: it supports no answer.
fn answered_count(latest: &[ParsedOutput<'_>], nodes: &[Node<'_>]) -> usize {
    let has_answered = |now: &&ParsedOutput<'_>| {
        let mut own = nodes.iter().filter(|node| !node.in_first);
        let may_hide_it = now.output.obtained == Obtained::Text && now.news >= 1.0;
        own.any(|node| node.agent == now.agent()) || now.counts() && may_hide_it
    };
    latest.iter().filter(has_answered).count()
}

/// Verdicts that differ by less are equally strong. One that rests on memory is 0.3 weaker than one
/// that rests on a check.
const EQUALLY_STRONG: f64 = 0.25;

/// Takes back the cross-check's verdicts on answers that differ, if it found more than one
/// of them true: it contradicts itself. A verdict that is clearly the strongest stands.
fn without_contradictions(groups: &mut [Group], differing: impl Fn(usize, usize) -> bool) {
    let found: Vec<f64> = groups.iter().map(|group| group.verdict).collect();
    for (at, group) in groups.iter_mut().enumerate() {
        let denies = |(other, verdict): (usize, &f64)| {
            *verdict > 0.0 && *verdict > group.verdict - EQUALLY_STRONG && differing(at, other)
        };
        if group.verdict > 0.0 && found.iter().enumerate().any(denies) {
            group.verdict = 0.0;
        }
    }
}

impl Compared<'_> {
    /// True if every call of the cross-check found two answers to be the same. The cross-check
    /// compared the answers of round 1.
    fn found_same_by_cross_check(&self, a: &Node<'_>, b: &Node<'_>) -> bool {
        let compared = self.first.is_empty() || a.in_first && b.in_first;
        let both = |call: &CrossCheck| {
            let mut groups = call.same_answers.iter();
            groups.any(|group| group.contains(a.agent) && group.contains(b.agent))
        };
        compared && !self.given.cross_checks.is_empty() && self.given.cross_checks.iter().all(both)
    }

    /// Returns the group of these answers.
    fn group(&self, here: &[&Node<'_>]) -> Group {
        let given_now = here.iter().filter(|node| !node.in_first);
        let members: Vec<usize> = given_now.map(|node| node.at).collect();
        let votes = self.votes(here, &members);
        let is_whole = |(at, vote): &(usize, f64)| (*vote == 1.0).then_some(*at);
        let labels = here.iter().map(|node| node.answer.label());
        let label = labels.min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        let checked = |at: &usize| self.latest.get(*at).map_or(0.0, |now| now.path.verdict());
        // A verdict on an answer of round 1 applies to all agents that give the answer now.
        let judged = here
            .iter()
            .filter(|node| node.in_first || self.first.is_empty());
        let verdict = |node: &&Node<'_>| {
            let name = |at: usize| self.latest.get(at).map(ParsedOutput::agent);
            let is_own = |claim: &&Claim<'_>| name(claim.agent) == Some(node.agent);
            let claim = self.claims.iter().find(|it| it.is_answer && is_own(it))?;
            Some(claim.verdict)
        };
        let label = label.unwrap_or_default();
        Group {
            wordings: wordings(here, &label),
            label,
            voices: voices(&votes, self.latest, self.calibration),
            checked: mean(&members.iter().map(checked).collect::<Vec<_>>()),
            verdict: mean(&judged.filter_map(verdict).collect::<Vec<_>>()),
            members,
            voters: votes.iter().filter_map(is_whole).collect(),
            backers: votes.iter().map(|(at, _)| *at).collect(),
        }
    }

    /// Returns the agents that vote for a group, each with the part of its vote, at most 1. The vote of
    /// an agent is its answer of round 1. If the agent changed its answer, a whole proof moves the vote,
    /// and half a proof takes half of it from the earlier answer. A change alone adds no support, because
    /// agents conform.
    fn votes(&self, here: &[&Node<'_>], members: &[usize]) -> Vec<(usize, f64)> {
        let name = |at: usize| self.latest.get(at).map(ParsedOutput::agent);
        let voted_here = |at: usize| {
            here.iter()
                .any(|node| node.in_first && Some(node.agent) == name(at))
        };
        let had_vote = |at: usize| {
            self.first.iter().any(|reading| {
                Some(reading.agent()) == name(at) && reading.counts() && reading.answer.is_some()
            })
        };
        let known = here.iter().any(|node| node.in_first);
        let proof = |at: usize| {
            let reading = self.latest.get(at);
            reading.map_or(0.0, |reading| self.proof(reading, known))
        };
        let vote = |at: usize| match (had_vote(at), members.contains(&at), voted_here(at)) {
            (false, true, _) | (true, true, true) => 1.0,
            // Only a whole proof adds support.
            (true, true, false) => proof(at).floor(),
            (true, false, true) => 1.0 - proof(at),
            (_, false, false) | (false, false, true) => 0.0,
        };
        let all = (0..self.latest.len()).map(|at| (at, vote(at)));
        all.filter(|(_, vote)| *vote > 0.0).collect()
    }

    /// Returns how far an agent proves a changed answer:
    ///
    /// - 1 by a last step that holds, if the answer is `known` from round 1.
    /// - 1 by a concession whose evidence was checked: a calculation, or words of the request that
    ///   have the answer. Half if the last step of the earlier answer holds, because an equation can
    ///   be found for each number.
    /// - Half by a concession with other evidence, as for a verdict without evidence.
    fn proof(&self, reading: &ParsedOutput<'_>, known: bool) -> f64 {
        if known && reading.path.last == Some(true) {
            return 1.0;
        }
        let mut first = self.first.iter();
        let earlier = first.find(|then| then.agent() == reading.agent());
        let was_computed = earlier.is_some_and(|then| then.path.verdict() > 0.0);
        let resolutions = self.given.resolutions.iter();
        let own = resolutions.filter(|it| it.concedes() && it.claim.agent == *reading.agent());
        let has_answer = |evidence: &str| {
            let (said, label) = (words(evidence), reading.answer.as_ref().map(Given::label));
            label.is_some_and(|label| words(&label).iter().all(|word| said.contains(word)))
        };
        let is_proof = |it: &Resolution| match it.by {
            Basis::Calculation => true,
            Basis::Given => self.request.is_quoted_in(&it.evidence) && has_answer(&it.evidence),
            Basis::Test | Basis::Source | Basis::Memory => false,
        };
        let proofs = own.map(|it| {
            if !was_computed && is_proof(it) {
                1.0
            } else {
                0.5
            }
        });
        proofs.fold(0.0, f64::max)
    }
}

/// Returns the mean; 0 for no values.
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the different wordings of answers, the most frequent first, then the shortest. None if
/// the label is the only one.
fn wordings(here: &[&Node<'_>], label: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in here {
        *counts.entry(&node.answer.text).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(text, count)| (std::cmp::Reverse(*count), text.len()));
    match counts.as_slice() {
        [(only, _)] if *only == label => vec![],
        all => all.iter().map(|(text, _)| (*text).to_owned()).collect(),
    }
}

/// An answer of one agent in one round.
struct Node<'a> {
    in_first: bool,
    /// The index of the agent among the readings of its round.
    at: usize,
    agent: &'a AgentName,
    answer: &'a Given,
}

/// Returns an agent's answer. An agent that gives no answer now keeps its first one.
fn answer_of<'a>(now: &'a ParsedOutput<'_>, first: &'a [ParsedOutput<'_>]) -> Option<&'a Given> {
    let earlier = || {
        first
            .iter()
            .find(|then| then.agent() == now.agent() && then.counts())
    };
    now.answer.as_ref().or_else(|| earlier()?.answer.as_ref())
}

/// Returns the comparable answers of both rounds. Beside yes or no, words that were found in a plain
/// text are no vote: they may say either.
fn nodes<'a>(latest: &'a [ParsedOutput<'_>], first: &'a [ParsedOutput<'_>]) -> Vec<Node<'a>> {
    let node = |in_first, at, agent, answer| Node {
        in_first,
        at,
        agent,
        answer,
    };
    let now = latest.iter().enumerate().filter(|(_, now)| now.counts());
    let now =
        now.filter_map(|(at, now)| Some(node(false, at, now.agent(), answer_of(now, first)?)));
    let then = first.iter().enumerate().filter(|(_, then)| then.counts());
    let then =
        then.filter_map(|(at, then)| Some(node(true, at, then.agent(), then.answer.as_ref()?)));
    let mut nodes: Vec<Node<'_>> = now.chain(then).collect();
    let is_verdict = |node: &Node<'_>| matches!(node.answer.normal, Answer::YesNo(_));
    if nodes.iter().any(is_verdict) {
        nodes.retain(|node| {
            !(node.answer.is_found && matches!(node.answer.normal, Answer::Words(_)))
        });
    }
    nodes
}

/// Returns the connected components of the nodes. They do not depend on the order of the panel.
fn components<T>(nodes: &[T], joined: impl Fn(&T, &T) -> bool) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let touches = |group: &Vec<usize>| {
            group
                .iter()
                .any(|other| nodes.get(*other).is_some_and(|other| joined(node, other)))
        };
        let (near, mut rest): (Vec<_>, Vec<_>) = out.into_iter().partition(touches);
        let mut merged: Vec<usize> = near.into_iter().flatten().collect();
        merged.push(at);
        merged.sort_unstable();
        rest.push(merged);
        out = rest;
    }
    out
}

/// Splits components whose nodes exclude each other, and separates the nodes that joined them. For
/// example, "500" says neither "500 g" nor "500 kg", so it becomes a group of its own.
fn without_bridges<T>(
    nodes: &[T],
    components: Vec<Vec<usize>>,
    excludes: impl Fn(&T, &T) -> bool,
) -> Vec<Vec<usize>> {
    let excluded = |a: usize, b: usize| {
        let pair = nodes.get(a).zip(nodes.get(b));
        pair.is_some_and(|(a, b)| excludes(a, b))
    };
    let mut out: Vec<Vec<usize>> = Vec::new();
    for component in components {
        let is_end = |at: &usize| component.iter().any(|other| excluded(*at, *other));
        let (ends, bridges): (Vec<usize>, Vec<usize>) = component.iter().copied().partition(is_end);
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for end in ends {
            let fits = |group: &&mut Vec<usize>| !group.iter().any(|at| excluded(*at, end));
            match groups.iter_mut().find(fits) {
                Some(group) => group.push(end),
                None => groups.push(vec![end]),
            }
        }
        groups.extend((!bridges.is_empty()).then_some(bridges));
        out.extend(groups);
    }
    out
}

/// Returns the number of independent voices: `n / (1 + (n - 1) rho)` for the `n` votes of one model
/// family, summed over the families (SPEC 5). Up to one vote is as many voices.
fn voices(votes: &[(usize, f64)], latest: &[ParsedOutput<'_>], calibration: &Calibration) -> f64 {
    let mut families: BTreeMap<&str, f64> = BTreeMap::new();
    let mut alone = 0.0;
    for (at, vote) in votes {
        match latest.get(*at).and_then(|reading| reading.output.family) {
            Some(family) => *families.entry(family).or_default() += vote,
            None => alone += vote,
        }
    }
    let rho = calibration.family_correlation.clamp(0.0, 1.0);
    let independent = |n: f64| n / (1.0 + (n - 1.0).max(0.0) * rho);
    alone + families.into_values().map(independent).sum::<f64>()
}

/// Returns the log odds of the independent voices: those for the answer against those for another
/// answer and those that are missing. Half a voice is added to each side.
pub(super) fn support(group: &Group, agreement: &Agreement) -> f64 {
    let against = (agreement.voices() - group.voices).max(0.0) + agreement.missing as f64;
    ((group.voices + 0.5) / (against + 0.5)).ln()
}
