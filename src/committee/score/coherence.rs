//! Coherence: does the output agree with itself, and with what the other agents found on their own?
//!
//! | feature | value | points |
//! | --- | --- | --- |
//! | `base` | | 14 |
//! | `self_contradiction` | pairs of own claims that contradict | -4 each, at most -10 |
//! | `answer_against_reasoning` | 1 if the summary and the reasoning conclude differently | -6 |
//! | `answer_follows` | 1 if they conclude alike | +2 |
//! | `arithmetic_wrong` | wrong equations and conversions, mixed units | -4 each, at most -8 |
//! | `peer_answer` | weight share of the other agents with an answer who give the same | -13 to +9 |
//! | `peer_no_answer` | weight share of the others who agree on an answer while this output has none | 0 to -6 |
//! | `peer_claims_agreed` | share of own claims that another agent makes too | 0 to +4 |
//! | `peer_claims_contested` | share of own claims that another agent contradicts | 0 to -5 |
//! | `peer_review` | what reviewers found of the own contested claims, -1 all fail, 1 all hold (`reviewed`) | -4 to +4, by `policy.review.points` |

use super::claims::{Relation, relate};
use super::disagree::Comparison;
use super::reading::Reading;
use super::tally::{Tally, ramp};
use super::text::ratio;
use crate::domain::Axis;

const MAX_OWN_PAIRS: usize = 12;

/// `found` is what reviewers found, with the points that it is worth.
pub(super) fn measure(
    at: usize,
    readings: &[Reading<'_>],
    comparison: &Comparison,
    found: Option<(f64, f64)>,
) -> Tally {
    let mut tally = Tally::new(Axis::Coherence, 14.0);
    let Some(reading) = readings.get(at) else { return tally };
    let clashes = own_contradictions(reading);
    tally.add("self_contradiction", clashes as f64, -(4.0 * clashes as f64).min(10.0));
    if let (Some(answer), Some(reasoned)) = (&reading.answer, &reading.reasoned) {
        if answer.same(reasoned) {
            tally.add("answer_follows", 1.0, 2.0);
        } else {
            tally.add("answer_against_reasoning", 1.0, -6.0);
        }
    }
    let wrong = reading.failing() as f64;
    tally.add("arithmetic_wrong", wrong, -(4.0 * wrong).min(8.0));
    if reading.counts() {
        peers(at, readings, comparison, &mut tally);
    }
    if let Some((found, points)) = found {
        tally.add_from_peers("peer_review", found, found * points);
    }
    tally
}

/// Contradictions among the first claims. Reasoning that weighs "A or not A" is not caught by this; it takes two
/// unconditional statements.
fn own_contradictions(reading: &Reading<'_>) -> usize {
    let claims: Vec<_> = reading.claims.iter().filter(|claim| !conditional(&claim.text)).take(MAX_OWN_PAIRS).collect();
    let pairs = claims.iter().enumerate().flat_map(|(n, a)| claims.iter().skip(n + 1).map(move |b| (a, b)));
    pairs
        .filter(|(a, b)| !a.text.contains('=') && !b.text.contains('=') && relate(a, b) == Relation::Contradict)
        .count()
}

fn conditional(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["if ", "unless ", "suppose", "option", "statement", "however", "instead", " or "]
        .iter()
        .any(|word| lower.contains(word))
}

fn peers(at: usize, readings: &[Reading<'_>], comparison: &Comparison, tally: &mut Tally) {
    let weight = |members: &[usize]| {
        members.iter().filter(|m| **m != at).filter_map(|m| readings.get(*m)).map(|r| r.weight).sum::<f64>()
    };
    let answered: f64 = comparison.groups.iter().map(|group| weight(group)).sum();
    let own = comparison.groups.iter().find(|group| group.contains(&at));
    if answered > 0.0 {
        match own {
            Some(group) => {
                let share = weight(group) / answered;
                tally.add_from_peers("peer_answer", share, -13.0 + 22.0 * share);
            }
            None => {
                let all: f64 =
                    readings.iter().enumerate().filter(|(n, r)| *n != at && r.counts()).map(|(_, r)| r.weight).sum();
                let largest = comparison.groups.iter().map(|group| weight(group)).fold(0.0, f64::max);
                let share = if all > 0.0 { largest / all } else { 0.0 };
                tally.add_from_peers("peer_no_answer", share, -6.0 * share);
            }
        }
    }
    let standing = comparison.standing.get(at).copied().unwrap_or_default();
    let all = standing.agreed + standing.contested + standing.lone;
    let (agreed, contested) = (ratio(standing.agreed, all), ratio(standing.contested, all));
    tally.add_from_peers("peer_claims_agreed", agreed, 4.0 * ramp(agreed, 0.0, 0.6));
    tally.add_from_peers("peer_claims_contested", contested, -5.0 * ramp(contested, 0.0, 0.6));
}
