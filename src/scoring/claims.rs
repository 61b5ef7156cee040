//! Merges the cross-check's findings on each claim, with agents by their index in the panel. If two
//! verdicts differ on a claim, of one call or of two, it stays unknown. Verdicts on unknown claims
//! are dropped, and so is a report's support of its own claims.

use std::collections::BTreeSet;

use super::answer::{self, Answer};
use super::expr::{Equation, Recomputed, equations};
use super::parsed_output::ParsedOutput;
use crate::domain::{
    AgentName, Basis, ClaimVerdict, CrossCheck, Holds, ReportRef, Resolution, Unit,
};

/// The weight of a verdict that rests on memory; 1 for one that rests on a check.
pub(super) const MEMORY: f64 = 0.7;
/// The weight of a verdict without evidence.
const NO_EVIDENCE: f64 = 0.5;

/// A claim and the findings about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim<'a> {
    /// The index of its agent in the panel.
    pub agent: usize,
    pub unit: &'a str,
    pub text: &'a str,
    pub is_answer: bool,
    pub supported_by: BTreeSet<usize>,
    /// The agents that contradict the claim: neither they nor its own agent conceded, or both did
    /// and still say different things. Each has the id of its own unit, if that is named.
    pub contradicted_by: BTreeSet<(usize, Option<String>)>,
    /// -1 (it fails) to 1 (it holds).
    pub verdict: f64,
    pub evidence: &'a str,
    /// True if its agent conceded it with a reason.
    pub conceded: bool,
    /// True if its agent conceded it or no longer states it. It still counts for the answer that it
    /// was about, but no longer for the agent.
    pub dropped: bool,
}

impl Claim<'_> {
    /// True if the agents of the claim and of another one contradict each other still.
    pub fn is_contested(&self) -> bool {
        !self.contradicted_by.is_empty()
    }

    /// True if its agent states the claim, or states the opposite after both sides conceded.
    pub fn is_held(&self) -> bool {
        !self.dropped || self.conceded && self.is_contested()
    }

    /// True if the cross-check itself found that the claim does not hold.
    pub fn is_refuted(&self) -> bool {
        !self.dropped && self.verdict <= -NO_EVIDENCE * MEMORY
    }

    /// True if every cross-check found, with evidence from more than memory, that it does not hold.
    pub fn is_disproved(&self) -> bool {
        !self.dropped && self.verdict <= -1.0
    }
}

/// Returns the claims of round 1 that were cross-checked, in the order of the panel and the
/// reports. `latest` is the panel.
pub(super) fn merge<'a>(
    readings: &[ParsedOutput<'a>],
    latest: &[ParsedOutput<'_>],
    calls: &'a [CrossCheck],
    resolutions: &[Resolution],
) -> Vec<Claim<'a>> {
    let mut out = Vec::new();
    for reading in readings.iter().filter(|reading| reading.counts()) {
        let Some(agent) = latest.iter().position(|now| now.agent() == reading.agent()) else {
            continue;
        };
        for unit in reading.key_units() {
            let is_about =
                |v: &&ClaimVerdict| v.claim.agent == *reading.agent() && v.claim.unit == unit.id;
            let all = calls.iter().flat_map(|call| &call.claims);
            let verdicts: Vec<&ClaimVerdict> = all.filter(is_about).collect();
            let Some(first) = verdicts.first() else {
                continue;
            };
            let named = |pick: fn(&ClaimVerdict) -> &Vec<ReportRef>| {
                named_by_all(verdicts.iter().map(|v| places(pick(v), latest, agent)))
            };
            let mut contradicted_by = named(|v| &v.contradicted_by);
            let conceded = has_conceded(resolutions, reading.agent(), Some(&unit.id));
            contradicted_by.retain(|(who, own)| {
                let other = latest.get(*who);
                let yields =
                    |it: &ParsedOutput<'_>| has_conceded(resolutions, it.agent(), own.as_deref());
                match (conceded, other.is_some_and(yields)) {
                    (false, false) => true,
                    // Both may have come to the position of a third.
                    (true, true) => {
                        let said = text_of(latest.get(agent), &unit.id);
                        let other = own.as_ref().and_then(|own| text_of(other, own));
                        said.zip(other).is_some_and(|(said, other)| said != other)
                    }
                    (true, false) | (false, true) => false,
                }
            });
            let supported_by = named(|v| &v.supported_by);
            let agree = verdicts.iter().all(|v| v.holds == first.holds);
            out.push(Claim {
                agent,
                unit: &unit.id,
                text: &unit.text,
                is_answer: unit.is_answer(),
                supported_by: supported_by.into_iter().map(|(who, _)| who).collect(),
                contradicted_by,
                verdict: if agree {
                    let values = verdicts.iter().map(|v| value(v, unit));
                    values.sum::<f64>() / verdicts.len() as f64
                } else {
                    0.0
                },
                evidence: &first.evidence,
                conceded,
                dropped: conceded || !states(latest.get(agent), &unit.text),
            });
        }
    }
    out
}

/// True if an agent conceded a claim. An objection without a unit counts as conceded with any claim
/// of its agent.
fn has_conceded(resolutions: &[Resolution], agent: &AgentName, unit: Option<&str>) -> bool {
    resolutions.iter().any(|r| {
        r.concedes() && r.claim.agent == *agent && unit.is_none_or(|unit| r.claim.unit == unit)
    })
}

type Places = BTreeSet<(usize, Option<String>)>;

/// Returns the agents that all calls name; the unit may differ.
fn named_by_all(calls: impl Iterator<Item = Places>) -> Places {
    let calls: Vec<Places> = calls.collect();
    let mut named = calls.first().cloned().unwrap_or_default();
    named.retain(|(who, _)| {
        let names = |places: &Places| places.iter().any(|(other, _)| other == who);
        calls.iter().all(names)
    });
    named
}

/// Returns what a unit of a report says now.
fn text_of<'a>(reading: Option<&ParsedOutput<'a>>, id: &str) -> Option<&'a str> {
    let units = &reading?.output.report.units;
    let unit = units.iter().find(|unit| unit.id == id)?;
    Some(&unit.text)
}

/// True if a report still has a unit with this text.
fn states(reading: Option<&ParsedOutput<'_>>, text: &str) -> bool {
    let units = reading.map(|reading| &reading.output.report.units);
    units.is_some_and(|units| units.iter().any(|unit| unit.text == text))
}

/// Returns the value of a verdict, -1 to 1.
fn value(verdict: &ClaimVerdict, claim: &Unit) -> f64 {
    let sign = match verdict.holds {
        Holds::Yes => 1.0,
        Holds::No => -1.0,
        Holds::Unknown => return 0.0,
    };
    let is_memory = verdict.by == Basis::Memory;
    sign * backing(verdict, claim) * if is_memory { MEMORY } else { 1.0 }
}

/// Returns the weight of a verdict's evidence, 0 to 1. What a machine can recompute of it is
/// recomputed: evidence that is wrong, or says the opposite, weighs nothing.
fn backing(verdict: &ClaimVerdict, claim: &Unit) -> f64 {
    let evidence = &verdict.evidence;
    if !evidence.contains(char::is_alphanumeric) {
        return NO_EVIDENCE;
    }
    let found = equations(evidence);
    if found.is_empty() {
        return 1.0;
    }
    let answer = claim.is_answer().then(|| answer::parse(&claim.text));
    let number = match answer.flatten() {
        Some(Answer::Number(number)) => Some(number),
        _ => None,
    };
    let states = |it: &Equation| number.as_ref().is_some_and(|own| own.may_be(it.stated));
    let (right, wrong): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(|it| it.recomputed != Recomputed::Unclear)
        .partition(|it| it.recomputed == Recomputed::Right);
    let (says_claim, others): (Vec<_>, Vec<_>) = right.into_iter().partition(|it| states(it));
    let is_yes = verdict.holds == Holds::Yes;
    // A refutation may quote the equation of the claim.
    let own_wrong = wrong.iter().any(|it| is_yes || !states(it));
    if is_yes && !says_claim.is_empty() {
        return 1.0;
    }
    if others.is_empty() && (own_wrong || !says_claim.is_empty()) {
        return 0.0;
    }
    // A calculation of another number does not show that this one is right.
    let is_calculated = number.is_some() && verdict.by == Basis::Calculation;
    if is_yes && is_calculated && !others.is_empty() {
        NO_EVIDENCE
    } else {
        1.0
    }
}

/// Returns the agents of these reports, with the units. The claim's own agent and agents that do not
/// count are left out.
fn places(named: &[ReportRef], readings: &[ParsedOutput<'_>], own: usize) -> Places {
    let at = |agent: &AgentName| {
        let mut all = readings.iter();
        all.position(|r| r.agent() == agent && r.counts())
    };
    // The name of a recorded agent may have a colon.
    let place = |it: &ReportRef| match at(&AgentName::from(it.to_string())) {
        Some(at) => Some((at, None)),
        None => Some((at(&it.agent)?, it.unit.clone())),
    };
    let places = named.iter().filter_map(place);
    places.filter(|(at, _)| *at != own).collect()
}
