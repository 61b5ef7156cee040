//! What peers found when they checked an output's contested claims: evidence beside the mechanical checks, weighed by
//! `policy.review`. A judge of his own position is not heard, one of the author's model family counts as a further vote of
//! that family does, and a finding that turned with the order of what was shown counts little.

use super::Output;
use crate::domain::{Calibration, Review, ReviewWeights};

/// The weighed mean of the findings on positions that one of `holders` takes, from -1 (all fail) to 1 (all hold): the sum of
/// weight times finding over the number of reviews, so that doubtful reviews pull towards 0. `None` without a review.
pub(super) fn mean(
    reviews: &[&Review],
    holders: &[&str],
    outputs: &[Output<'_>],
    weights: &ReviewWeights,
    calibration: &Calibration,
) -> Option<f64> {
    let about: Vec<&&Review> = reviews
        .iter()
        .filter(|review| review.counts() && review.holders.iter().any(|own| holders.contains(&own.as_str())))
        .collect();
    if about.is_empty() {
        return None;
    }
    let family = |agent: &str| outputs.iter().find(|output| output.agent == agent).and_then(|output| output.family);
    let weight = |review: &Review| {
        let steady = if review.is_consistent() { 1.0 } else { weights.inconsistent.clamp(0.0, 1.0) };
        let own = family(review.reviewer.as_str());
        let kin = own.is_some() && holders.iter().any(|holder| family(holder) == own);
        let near = if kin { calibration.same_family_vote.clamp(0.0, 1.0) } else { 1.0 };
        steady * near
    };
    let sum: f64 = about.iter().map(|review| weight(review) * review.value()).sum();
    Some((sum / about.len() as f64).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Agent, AgentReport, Finding, Obtained};

    fn review(reviewer: Agent, finding: Finding, swapped: Option<Finding>) -> Review {
        Review {
            reviewer,
            claim: "C1".into(),
            topic: "final answer".into(),
            on_final_answer: true,
            position: "60".into(),
            holders: vec!["solver".into()],
            own: reviewer == Agent::Solver,
            finding,
            swapped,
            reason: "March has 31 days.".into(),
        }
    }

    fn of(reviews: &[Review], families: [Option<&str>; 2]) -> Option<f64> {
        let reports = [AgentReport::empty(Agent::Solver), AgentReport::empty(Agent::Critic)];
        let outputs: Vec<Output<'_>> = reports
            .iter()
            .zip(families)
            .map(|(report, family)| Output {
                agent: &report.agent,
                report,
                obtained: Obtained::Clean,
                truncated: false,
                role_matches: true,
                family,
            })
            .collect();
        let reviews: Vec<&Review> = reviews.iter().collect();
        mean(&reviews, &["solver"], &outputs, &ReviewWeights::default(), &Calibration::default())
    }

    #[test]
    fn peers_that_find_it_holds_speak_for_it_and_others_against_it() {
        let holds = review(Agent::Critic, Finding::Holds, Some(Finding::Holds));
        let fails = review(Agent::Critic, Finding::Fails, Some(Finding::Fails));
        assert_eq!(of(std::slice::from_ref(&holds), [None; 2]), Some(1.0));
        assert_eq!(of(std::slice::from_ref(&fails), [None; 2]), Some(-1.0));
        assert_eq!(of(&[holds, fails], [None; 2]), Some(0.0));
        assert_eq!(of(&[], [None; 2]), None);
    }

    #[test]
    fn one_who_turns_with_the_order_or_is_of_the_family_counts_less_and_the_author_not_at_all() {
        let steady = review(Agent::Critic, Finding::Fails, Some(Finding::Fails));
        let turned = review(Agent::Critic, Finding::Fails, Some(Finding::Holds));
        let wavering = review(Agent::Critic, Finding::Fails, Some(Finding::Undecided));
        assert_eq!(of(&[turned], [None; 2]), Some(0.0));
        assert_eq!(of(&[wavering], [None; 2]), Some(-0.125));
        assert_eq!(of(&[steady], [Some("claude"), Some("claude")]), Some(-0.5));
        assert_eq!(of(&[review(Agent::Solver, Finding::Holds, None)], [None; 2]), None);
    }
}
