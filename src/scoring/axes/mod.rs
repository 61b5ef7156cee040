//! The five axes, each the sum of a base and named features. The bases add up to 60 of 125 points,
//! below tauSoft, so an output must earn points to become VALID. "Peers" are the other agents and
//! the cross-check; all other points come from the text itself.
//!
//! | axis | feature | value | points |
//! | --- | --- | --- | --- |
//! | Coherence | `base` | | 12 |
//! | | `false_equations` | stated equations that do not hold | -4 each, at most -8 |
//! | | `peer_answer` | share of the other voices with the same final answer; a failed agent counts as another answer | -10 to +9 |
//! | | `support`, `checked`, `cross_check` | input of `terms` on its final answer | 0 |
//! | | `claims_supported` | cross-check: share of key claims that a peer supports | -5 to +6 |
//! | | `claims_contradicted` | share of key claims that another agent contradicts | 0 to -10 |
//! | | `shared_figures` | share of its figures that the request or a peer has too | -2 to +3 |
//! | Alignment | `base` | | 12 |
//! | | `parts` | share of the request's parts that it answers, by the cross-check | -6 to +8 |
//! | | `on_topic` | if that is unknown: word pairs shared with request and peers | 0 to +8 |
//! | | `demands` | share of the request's countable demands that it satisfies | -6 to +2 |
//! | | `final_answer` | 1 if it gives the final answer that the request has, else 0 | -4 or +5 |
//! | Verifiability | `base` | | 8 |
//! | | `basis` | mean checked basis of key claims, -1 to 1: see `basis` | -3 to +5 |
//! | | `steps_hold` | equations on the way to the answer that hold | +3 each, at most +6 |
//! | | `steps_fail` | equations on that way that do not | -6 each, at most -12 |
//! | | `claims_hold` | mean verdict on key claims, -1 to 1 | -12 to +8, -4 if undecided |
//! | | `code_parses` | code blocks that their language's parser accepts | +3 each, at most +6 |
//! | | `code_broken` | code blocks that it rejects | -6 each, at most -12 |
//! | | `not_given` | claims said to be given whose figures the request lacks, by their share | -6 each, at most -12 |
//! | | `bad_dates` | dates that do not exist | -3 each, at most -6 |
//! | SignalDensity | `base` | | 12 |
//! | | `novelty` | share of word pairs that are new in the text; less of them without a final answer and below 20 pairs that the request lacks | 0 to +13 |
//! | | `copied` | share of its runs of six words that the request has | 0 to -12 |
//! | Compliance | `base` | | 16 |
//! | | `schema` | 1 clean, 0.7 extracted, 0.5 configured plain text, 0 repaired | 0 to +7 |
//! | | `truncated`, `wrong_role` | 1 if so | -5, -4 |
//! | | `leaked_prompt`, `injection`, `judge_attack` | weight of the flag | to -8, -12, -16 |

mod axis_builder;

use crate::scoring::agreement::support;

use super::Part;
use super::agreement::Agreement;
use super::checks::{FlagKind, Soundness};
use super::claims::{Claim, MEMORY};
use super::parsed_output::{ParsedOutput, Request};
use crate::domain::{Axes, Axis, Obtained, Tag, Unit};
use crate::text::{
    MAX_BYTES, WordRuns, clip, collapse_whitespace, figures, names, ratio, share_in,
};
pub(super) use axis_builder::Measure;
use axis_builder::{AxisBuilder, ramp};

/// The panel-wide data that the axes need.
pub(super) struct Context<'a> {
    pub request: &'a Request,
    pub readings: &'a [ParsedOutput<'a>],
    pub agreement: &'a Agreement,
    pub claims: &'a [Claim<'a>],
    pub cross_checked: bool,
    /// For each part of the request, the agents that answer it.
    pub parts: Vec<Part>,
    /// The countable demands of the request, each with the agents that satisfy it.
    pub demands: Vec<Part>,
}

/// Returns the axes of the output at an index of the panel.
pub(super) fn measure(at: usize, reading: &ParsedOutput<'_>, context: &Context<'_>) -> Axes {
    let own: Vec<&Claim<'_>> = context
        .claims
        .iter()
        .filter(|claim| claim.agent == at && !claim.dropped)
        .collect();
    Axes {
        coherence: coherence(at, reading, &own, context).finish(),
        alignment: alignment(at, reading, context).finish(),
        verifiability: verifiability(reading, &own, context.request).finish(),
        signal_density: density(reading, context.request).finish(),
        compliance: compliance(reading).finish(),
    }
}

fn coherence(
    at: usize,
    reading: &ParsedOutput<'_>,
    own: &[&Claim<'_>],
    context: &Context<'_>,
) -> AxisBuilder {
    let mut tally = AxisBuilder::new(Axis::Coherence, 12.0);
    let wrong = (reading.path.wrong + reading.path.unconnected) as f64;
    tally.add(Measure::FalseEquations, wrong, -(4.0 * wrong).min(8.0));
    if !reading.counts() {
        return tally;
    }
    let others =
        |group: &super::agreement::Group| group.members.iter().filter(|m| **m != at).count();
    let answered: usize = context.agreement.groups.iter().map(others).sum();
    let one_answer = context.agreement.one_answer;
    let group = context.agreement.of(at).filter(|_| one_answer);
    if one_answer && answered > 0 && reading.answer.is_some() {
        // One that failed may have given another answer.
        let share = ratio(group.map_or(0, others), answered + context.agreement.lost);
        tally.add_from_peers(Measure::PeerAnswer, share, -10.0 + 19.0 * share);
    }
    if let Some(group) = group {
        tally.record(Measure::Support, support(group, context.agreement), 0.0);
        tally.record(Measure::Checked, group.checked, 0.0);
        tally.record(Measure::CrossCheck, group.verdict, 0.0);
    }
    if !own.is_empty() {
        let supported = share_of(own, |claim| !claim.supported_by.is_empty());
        tally.add_from_peers(Measure::ClaimsSupported, supported, -5.0 + 11.0 * supported);
        let contradicted = share_of(own, |claim| claim.is_contested());
        tally.add_from_peers(
            Measure::ClaimsContradicted,
            contradicted,
            -10.0 * contradicted,
        );
    }
    if peers(at, context).next().is_some() && !reading.figures.is_empty() {
        let is_of_peer = |it: &&String| peers(at, context).any(|peer| peer.figures.contains(*it));
        let is_known = |it: &&String| context.request.figures.contains(*it) || is_of_peer(it);
        let known = reading.figures.iter().filter(is_known).count();
        let share = ratio(known, reading.figures.len());
        tally.add_from_peers(Measure::SharedFigures, share, -2.0 + 5.0 * share);
    }
    tally
}

fn peers<'a>(at: usize, context: &Context<'a>) -> impl Iterator<Item = &'a ParsedOutput<'a>> {
    let others = context.readings.iter().enumerate();
    let others = others.filter(move |(n, peer)| *n != at && peer.counts());
    others.map(|(_, peer)| peer)
}

/// Returns the share of the items for which `holds` is true, 0 to 1.
fn share_of<T>(items: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    ratio(items.iter().filter(|item| holds(item)).count(), items.len())
}

/// The share of the shorter text's word pairs that texts on one topic have in common.
const ON_TOPIC: f64 = 0.06;

fn alignment(at: usize, reading: &ParsedOutput<'_>, context: &Context<'_>) -> AxisBuilder {
    let mut tally = AxisBuilder::new(Axis::Alignment, 12.0);
    if context.cross_checked && !context.parts.is_empty() {
        let share = share_of(&context.parts, |(_, agents)| agents.contains(&at));
        tally.add_from_peers(Measure::Parts, share, -6.0 + 14.0 * share);
    } else {
        let shared = |other: &WordRuns| {
            let shorter = reading.pairs.distinct().min(other.distinct());
            ratio(reading.pairs.shared(other), shorter)
        };
        let with_peers = peers(at, context).map(|peer| shared(&peer.pairs));
        let most = with_peers.fold(shared(&context.request.pairs), f64::max);
        tally.add_from_peers(Measure::OnTopic, most, 8.0 * ramp(most, 0.0, ON_TOPIC));
    }
    if !context.demands.is_empty() {
        let share = share_of(&context.demands, |(_, keep)| keep.contains(&at));
        tally.add(Measure::Demands, share, -6.0 + 8.0 * share);
    }
    if context.agreement.one_answer {
        let (gives, points) = match reading.answer {
            Some(_) => (1.0, 5.0),
            None => (0.0, -4.0),
        };
        tally.add(Measure::FinalAnswer, gives, points);
    }
    tally
}

/// The most checks of one kind that count.
const MAX_COUNTED: f64 = 2.0;

fn verifiability(reading: &ParsedOutput<'_>, own: &[&Claim<'_>], request: &Request) -> AxisBuilder {
    let mut tally = AxisBuilder::new(Axis::Verifiability, 8.0);
    let path = reading.path;
    let mut not_given = 0.0;
    let bases: Vec<f64> = reading
        .key_units()
        .filter_map(|unit| {
            let mut claims = own.iter();
            let claim = claims.find(|claim| claim.unit == unit.id);
            let is_confirmed = |least: f64| claim.is_some_and(|claim| claim.verdict > least);
            let stands = claim.is_none() || is_confirmed(0.0);
            let has = |tag: Tag| unit.tags.contains(&tag);
            let is_found = has(Tag::Calculated) || has(Tag::Tested) || has(Tag::Sourced);
            let given = (has(Tag::Given) && !is_found).then(|| Given::read(unit, request));
            if let Some(given) = given.as_ref().filter(|_| !is_confirmed(MEMORY)) {
                not_given += 1.0 - given.figures.unwrap_or(1.0);
            }
            basis(unit, path.verdict(), stands, given)
        })
        .collect();
    if !bases.is_empty() {
        let mean = bases.iter().sum::<f64>() / bases.len() as f64;
        let each = if mean < 0.0 { 3.0 } else { 5.0 };
        tally.add(Measure::Basis, mean, each * mean);
    }
    let code = |wanted: Soundness| {
        reading
            .code
            .iter()
            .filter(|found| **found == wanted)
            .count()
    };
    let steps_hold = if path.wrong > 0 { 0 } else { path.right };
    for (measure, count, each) in [
        (Measure::StepsHold, steps_hold, 3.0),
        (Measure::StepsFail, path.wrong, -6.0),
        (Measure::CodeParses, code(Soundness::Parsed), 3.0),
        (Measure::CodeBroken, code(Soundness::Broken), -6.0),
        (Measure::BadDates, reading.bad_dates, -3.0),
    ] {
        tally.add(measure, count as f64, each * MAX_COUNTED.min(count as f64));
    }
    tally.add(
        Measure::NotGiven,
        not_given,
        -6.0 * MAX_COUNTED.min(not_given),
    );
    if !own.is_empty() {
        let mean = own.iter().map(|claim| claim.verdict).sum::<f64>() / own.len() as f64;
        tally.add_from_peers(
            Measure::ClaimsHold,
            mean,
            -4.0 + if mean < 0.0 { 8.0 * mean } else { 12.0 * mean },
        );
    }
    tally
}

/// Returns the basis of a key claim; `None` if the claim does not state one.
///
/// - 0 for memory, and for any other basis of a claim that the cross-check did not confirm.
/// - 1 for a calculation whose steps hold, -1 for one whose steps fail.
/// - 1 for a calculation, test or source that `stands`: the cross-check confirms it, or was not asked.
/// - From 1 to -1 for a claim tagged as given, by how far the request has its figures and names.
fn basis(unit: &Unit, steps: f64, stands: bool, given: Option<Given>) -> Option<f64> {
    let has = |tag: Tag| unit.tags.contains(&tag);
    if has(Tag::Calculated) && steps != 0.0 {
        return Some(steps.signum());
    }
    if has(Tag::Calculated) || has(Tag::Tested) || has(Tag::Sourced) {
        return Some(f64::from(u8::from(stands)));
    }
    let Some(given) = given else {
        return has(Tag::Memory).then_some(0.0);
    };
    if given.names.is_none() && given.figures.is_none() {
        return Some(f64::from(u8::from(stands)));
    }
    let named = 2.0 * given.names.unwrap_or(1.0) - 1.0;
    let stated = given.figures.unwrap_or(1.0);
    // Right names do not make up for a wrong figure.
    Some(if stated < 1.0 {
        (3.0 * (stated - 1.0) + named) / 4.0
    } else {
        named
    })
}

/// The shares of a claim's names and figures that the request has; `None` for a claim without any.
struct Given {
    names: Option<f64>,
    /// As written, or in another unit.
    figures: Option<f64>,
}

impl Given {
    fn read(unit: &Unit, request: &Request) -> Self {
        let text = collapse_whitespace(clip(&unit.text, MAX_BYTES));
        let figures = share_in(&figures(&text), &request.figures);
        let names = share_in(&names(&text), &request.stated);
        let in_other_units = |written: f64| {
            if written >= 1.0 {
                return written;
            }
            let stated = request.stated_numbers(&text);
            stated.map_or(written, |stated| stated.max(written))
        };
        Self {
            // Where all nouns are capitalized, a word that the request lacks need not be a name.
            names: names.filter(|share| *share >= 1.0 || !request.capitalizes_nouns()),
            figures: figures.map(in_other_units),
        }
    }
}

fn density(reading: &ParsedOutput<'_>, request: &Request) -> AxisBuilder {
    let mut tally = AxisBuilder::new(Axis::SignalDensity, 12.0);
    let novel = ratio(
        reading.pairs.distinct(),
        reading.words.len().saturating_sub(1),
    );
    // A text of one or two words cannot repeat itself.
    let novel = if reading.words.len() < 3 { 1.0 } else { novel };
    // A final answer needs no sentence.
    let news = if reading.answer.is_some() {
        1.0
    } else {
        reading.news
    };
    let informative = news * ramp(novel, 0.25, 0.6);
    tally.add(Measure::Novelty, informative, 13.0 * informative);
    let runs = reading.words.len().saturating_sub(5);
    let copied = ratio(request.sixes.count_in(&reading.words), runs);
    tally.add(Measure::Copied, copied, -12.0 * ramp(copied, 0.2, 0.8));
    tally
}

fn compliance(reading: &ParsedOutput<'_>) -> AxisBuilder {
    let mut tally = AxisBuilder::new(Axis::Compliance, 16.0);
    let output = reading.output;
    let schema = match output.obtained {
        Obtained::Clean => 1.0,
        Obtained::Extracted => 0.7,
        Obtained::Text => 0.5,
        Obtained::Repaired => 0.0,
    };
    tally.add(Measure::Schema, schema, 7.0 * schema);
    if output.truncated {
        tally.add(Measure::Truncated, 1.0, -5.0);
    }
    if !output.role_matches {
        tally.add(Measure::WrongRole, 1.0, -4.0);
    }
    for (kind, most) in [
        (FlagKind::LeakedPrompt, -8.0),
        (FlagKind::Injection, -12.0),
        (FlagKind::JudgeAttack, -16.0),
    ] {
        let weight = reading.screening.weight(kind);
        tally.add(Measure::Flag(kind), weight, most * weight);
    }
    tally
}
