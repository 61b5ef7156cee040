//! How likely a final answer is right, from how the panel came to it: a calibrated figure for requests that have one
//! final answer. What agents said before they saw each other counts; who moved later adds no support, for agents
//! conform whatever the truth. The weights are fitted on recorded committees (`scripts/eval/fit.py`, docs/scoring.md).
//!
//! | feature | value | range |
//! | --- | --- | --- |
//! | `support` | log odds of the first-round votes for the answer against the others, each side with half a vote more; 0 if there is but one vote | about -3 to 3 |
//! | `spread` | different first-round answers beyond the first, per vote: 0 if all agree | 0 to 1 |
//! | `moved` | share of the agents whose answer is no longer their first | 0 to 1 |
//! | `disputed` | ln(1 + words such as "incorrect" or "mistake" per text after the first round) | 0 to about 3 |
//! | `hedged` | hedges per 200 characters in what its holders wrote | 0 to about 3 |
//! | `checked` | equations that hold in what its holders wrote, at most four of each, times its share of the votes: right sums do not carry an answer alone | 0 to 4 |
//! | `miscalculated` | share of its holders with an equation or conversion that does not hold | 0 to 1 |
//! | `reviewed` | what reviewers found of the answer, -1 it fails, 1 it holds; weighed by `policy.review.answer`, which is a caution and not a fit | -1 to 1 |
//! | `notation` | 1 if the request is set in mathematical signs: on such tasks models agree on wrong answers more often | 0 or 1 |
//! | `minority` | 1 if most of the first-round votes went against it | 0 or 1 |
//! | `argued` | topics of the claims in an output beyond six, on average over the latest ones: a question that takes more argument is answered wrongly more often | 0 to 18 |
//!
//! Votes of one model family after the first count `sameFamilyVote` each: such agents err together.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::normal::Answer;
use super::pattern::pattern;
use super::reading::Reading;
use super::request::{Expect, Request};
use super::text::ratio;
use crate::domain::Calibration;

/// No panel is surer than a few hundred records can show.
const CEILING: f64 = 0.97;
/// An answer that most of the first votes went against does not ship, whatever else speaks for it.
const MINORITY_CEILING: f64 = 0.65;

/// What speaks for an output's final answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Support {
    /// Each feature's name, value, and share of the log odds.
    pub features: Vec<(&'static str, f64, f64)>,
    /// How likely the answer is right, 0 to 1.
    pub probability: f64,
}

/// What reviewers found of the answer of the named agents, and its weight in log odds.
pub(super) type PeerFindings<'a> = dyn Fn(&[&str]) -> Option<(f64, f64)> + 'a;

/// For each output its support; `None` where there is no final answer to compare.
pub(super) fn measure(
    latest: &[Reading<'_>],
    first: &[Reading<'_>],
    request: &Request,
    weights: &Calibration,
    found: &PeerFindings<'_>,
) -> Vec<Option<Support>> {
    let votes = if first.is_empty() { latest } else { first };
    if !comparable(votes, request) && !comparable(latest, request) {
        return latest.iter().map(|_| None).collect();
    }
    let parties = parties(votes);
    let cast: f64 = parties.iter().map(|party| ballots(party, votes, weights)).sum();
    let spread = ratio(parties.len().saturating_sub(1), parties.iter().map(Vec::len).sum());
    let argued = argued(latest);
    let (moved, disputed) = if first.is_empty() { (0.0, 0.0) } else { (moved(latest, first), disputed(latest, first)) };
    latest
        .iter()
        .map(|reading| {
            if !reading.counts() || (reading.answer.is_none() && !request.has_one_answer()) {
                return None;
            }
            let own = reading.answer.as_ref();
            let party = parties
                .iter()
                .find(|party| own.is_some_and(|own| answer_of(party, votes).is_some_and(|a| a.same(own))));
            let backing = party.map_or(0.0, |party| ballots(party, votes, weights));
            let share = if cast > 0.0 { backing / cast } else { 0.0 };
            let holders: Vec<&Reading<'_>> = match party {
                Some(party) => party.iter().filter_map(|at| votes.get(*at)).collect(),
                None => vec![reading],
            };
            let mean =
                |value: fn(&Reading<'_>) -> f64| holders.iter().map(|r| value(r)).sum::<f64>() / holders.len() as f64;
            // Nobody stands by an answer that is the only one.
            let odds = if cast > 1.0 { (backing + 0.5) / ((cast - backing).max(0.0) + 0.5) } else { 1.0 };
            let values = [
                ("support", odds.ln(), weights.support),
                ("spread", spread, weights.spread),
                ("moved", moved, weights.moved),
                ("disputed", disputed, weights.disputed),
                ("hedged", mean(hedged), weights.hedged),
                ("checked", share * mean(|r| r.holding().min(4) as f64), weights.checked),
                ("miscalculated", mean(|r| f64::from(u8::from(r.failing() > 0))), weights.miscalculated),
                ("argued", argued, weights.argued),
                ("minority", f64::from(u8::from(odds < 1.0)), weights.minority),
                ("notation", f64::from(u8::from(request.notation)), weights.notation),
            ];
            let mut features: Vec<_> =
                values.iter().map(|(name, value, weight)| (*name, *value, value * weight)).collect();
            let names: Vec<&str> = holders.iter().map(|reading| reading.agent()).collect();
            features.extend(found(&names).map(|(found, weight)| ("reviewed", found, found * weight)));
            let against = features.iter().any(|(name, value, _)| *name == "support" && *value < 0.0);
            let ceiling = if against { MINORITY_CEILING } else { CEILING };
            let odds = weights.intercept + features.iter().map(|(_, _, odds)| odds).sum::<f64>();
            Some(Support { features, probability: (1.0 / (1.0 + (-odds).exp())).min(ceiling) })
        })
        .collect()
}

/// As many topics as half of the recorded outputs need: fewer say nothing for an answer.
const USUAL_TOPICS: f64 = 6.0;

/// The mean number of topics in the latest outputs that count, beyond the usual one.
fn argued(latest: &[Reading<'_>]) -> f64 {
    let counting = latest.iter().filter(|reading| reading.counts());
    let (topics, outputs) =
        counting.fold((0, 0), |(topics, outputs), reading| (topics + reading.topics(), outputs + 1));
    (ratio(topics, outputs) - USUAL_TOPICS).max(0.0)
}

/// Whether the answers can be held against each other: the request has one final answer and somebody gave it, or most
/// of the outputs mark one.
fn comparable(readings: &[Reading<'_>], request: &Request) -> bool {
    let counting = readings.iter().filter(|reading| reading.counts()).count();
    let answered = readings.iter().filter(|reading| reading.counts() && reading.answer.is_some()).count();
    if request.has_one_answer() { answered >= 1 } else { answered >= 2 && 2 * answered > counting }
}

impl Request {
    /// Whether the request asks for one value, letter, or yes or no.
    pub fn has_one_answer(&self) -> bool {
        matches!(self.expect, Expect::Value | Expect::Choice | Expect::YesNo)
    }
}

/// The voters of each answer, as positions among the readings.
fn parties(votes: &[Reading<'_>]) -> Vec<Vec<usize>> {
    let mut parties: Vec<Vec<usize>> = Vec::new();
    for (at, reading) in votes.iter().enumerate().filter(|(_, reading)| reading.counts()) {
        let Some(answer) = &reading.answer else { continue };
        match parties.iter_mut().find(|party| answer_of(party, votes).is_some_and(|known| known.same(answer))) {
            Some(party) => party.push(at),
            None => parties.push(vec![at]),
        }
    }
    parties
}

fn answer_of<'a>(party: &[usize], votes: &'a [Reading<'_>]) -> Option<&'a Answer> {
    party.first().and_then(|first| votes.get(*first)).and_then(|reading| reading.answer.as_ref())
}

/// The family of a model: the letters that its name begins with, without the vendor's prefix ("claude" of
/// "anthropic/claude-sonnet-4.5", "gpt" of "gpt-4.1-mini"). Members of one family make the same mistakes more often.
pub fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let letters: String = name.chars().take_while(|c| c.is_alphabetic()).collect();
    if letters.is_empty() { name } else { letters }
}

/// How many votes a party has; further ones of a family that has voted count less.
fn ballots(party: &[usize], votes: &[Reading<'_>], weights: &Calibration) -> f64 {
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    let mut alone = 0.0;
    for reading in party.iter().filter_map(|at| votes.get(*at)) {
        match reading.output.family {
            Some(family) => *families.entry(family).or_default() += 1,
            None => alone += 1.0,
        }
    }
    let kin = weights.same_family_vote.clamp(0.0, 1.0);
    alone + families.values().map(|count| 1.0 + kin * (count.saturating_sub(1)) as f64).sum::<f64>()
}

/// The share of the agents with an answer then and now whose answer is another one.
fn moved(latest: &[Reading<'_>], first: &[Reading<'_>]) -> f64 {
    let pairs = latest.iter().filter_map(|now| {
        let then = first.iter().find(|then| then.agent() == now.agent())?;
        Some(!then.answer.as_ref()?.same(now.answer.as_ref()?))
    });
    let moves: Vec<bool> = pairs.collect();
    ratio(moves.iter().filter(|moved| **moved).count(), moves.len())
}

/// How much the texts that were written after the first round speak of errors.
fn disputed(latest: &[Reading<'_>], first: &[Reading<'_>]) -> f64 {
    static ERROR: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)incorrect|mistake|error|wrong"));
    let later = latest.iter().filter(|now| {
        first.iter().find(|then| then.agent() == now.agent()).is_none_or(|then| then.output.report != now.output.report)
    });
    let found: Vec<usize> = later.map(|reading| ERROR.find_iter(&reading.body).count()).collect();
    ratio(found.iter().sum(), found.len()).ln_1p()
}

/// Hedges per 200 characters.
fn hedged(reading: &Reading<'_>) -> f64 {
    static HEDGE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:perhaps|maybe|might|may be|could be|possibly|probably|likely|i think|i believe|not sure|unsure|seems?|appears?|cannot|not able|although|assum(?:e|ing|ption))\b",
        )
    });
    let length = (reading.body.len() as f64 / 200.0).max(1.0);
    HEDGE.find_iter(&reading.body).count() as f64 / length
}

#[cfg(test)]
mod tests {
    use super::super::{Output, report_from_text, request};
    use super::*;
    use crate::domain::{AgentReport, Obtained};

    fn output<'a>(report: &'a AgentReport, family: Option<&'a str>) -> Output<'a> {
        Output { agent: &report.agent, report, obtained: Obtained::Text, truncated: false, role_matches: true, family }
    }

    fn reports(texts: &[&str]) -> Vec<AgentReport> {
        texts.iter().enumerate().map(|(n, text)| report_from_text(&format!("a{n}"), text)).collect()
    }

    /// The support of the first agent's latest answer.
    fn of(message: &str, first: &[&str], latest: &[&str], family: Option<&str>) -> Support {
        let request = request::read(message);
        let (first, latest) = (reports(first), reports(latest));
        let first: Vec<Output<'_>> = first.iter().map(|report| output(report, family)).collect();
        let latest: Vec<Output<'_>> = latest.iter().map(|report| output(report, family)).collect();
        let then: Vec<Reading<'_>> = first.iter().map(|output| Reading::new(output, &request, 1.0)).collect();
        let now: Vec<Reading<'_>> = latest.iter().map(|output| Reading::new(output, &request, 1.0)).collect();
        measure(&now, &then, &request, &Calibration::default(), &|_| None).remove(0).unwrap()
    }

    fn value(support: &Support, name: &str) -> f64 {
        support.features.iter().find(|(own, ..)| *own == name).unwrap().1
    }

    const ASKED: &str = "How many packs does he need?";

    #[test]
    fn each_feature_tells_a_better_case_from_a_worse_one() {
        let alone = |texts: &[&str]| of(ASKED, &[], texts, None);
        for (feature, more, less) in [
            ("support", alone(&["8", "8", "8"]), alone(&["8", "9", "9"])),
            ("spread", alone(&["8", "9", "7"]), alone(&["8", "8", "8"])),
            ("moved", of(ASKED, &["9", "8"], &["8", "8"], None), of(ASKED, &["8", "8"], &["8", "8"], None)),
            (
                "disputed",
                of(ASKED, &["8", "8"], &["Agent 2 made a mistake, so it is 8.", "8 is wrong, but 8."], None),
                of(ASKED, &["8", "8"], &["I keep 8.", "Still 8."], None),
            ),
            ("hedged", alone(&["Perhaps it might be 8.", "8"]), alone(&["He needs 8.", "8"])),
            ("checked", alone(&["120 / 15 = 8", "120 / 15 = 8"]), alone(&["It is 8", "8"])),
            ("miscalculated", alone(&["120 / 15 = 9, so 8", "8"]), alone(&["120 / 15 = 8", "8"])),
            ("minority", alone(&["8", "9", "9"]), alone(&["8", "8", "9"])),
            (
                "argued",
                alone(&[
                    "He buys gum. Each pack holds pieces. Every day takes four. Thirty days pass. Shops sell boxes. \
                     Boxes cost money. Money is short. Kids chew more. So it is 8.",
                    "We count days. A month has thirty. Pieces add up. Packs hold fifteen. Divide them now. Round it up. \
                     Check the rest. Nothing is left. So it is 8.",
                ]),
                alone(&["He needs 8.", "8"]),
            ),
            ("notation", of("Find $x$ if $2x = 16$.", &[], &["8", "8"], None), alone(&["8", "8"])),
        ] {
            assert!(value(&more, feature) > value(&less, feature), "{feature}: {more:?} {less:?}");
        }
    }

    #[test]
    fn agreement_counts_when_it_was_given_independently() {
        let agreed = of(ASKED, &["8", "8", "8"], &["8", "8", "8"], None);
        let conformed = of(ASKED, &["9", "8", "9"], &["8", "8", "8"], None);
        let split = of(ASKED, &["8", "9", "7"], &["8", "8", "8"], None);
        assert!(agreed.probability >= 0.8, "{agreed:?}");
        assert!(conformed.probability < agreed.probability - 0.2, "{conformed:?}");
        assert!(split.probability < 0.5, "{split:?}");
    }

    #[test]
    fn one_agent_or_one_family_supports_less_than_several() {
        let strangers = of(ASKED, &[], &["8", "8", "8"], None);
        let family = of(ASKED, &[], &["8", "8", "8"], Some("claude"));
        let alone = of(ASKED, &[], &["8"], None);
        assert!(strangers.probability > family.probability && family.probability > alone.probability);
        assert_eq!(value(&alone, "support"), 0.0);
    }

    #[test]
    fn right_sums_carry_no_answer_that_stands_alone() {
        let lone = of(ASKED, &[], &["120 / 15 = 8, 4 * 30 = 120, 60 + 60 = 120, 2 * 4 = 8", "9", "7"], None);
        assert!(lone.probability < 0.7, "{lone:?}");
    }
}
