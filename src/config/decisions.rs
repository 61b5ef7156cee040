//! Checks the settings of decision strategies and learned answers.

use std::collections::BTreeMap;

use super::checker::Check;
use super::file::PolicyFile;

/// The share of users in an A/B test is a whole number of these.
const PARTS: u64 = 100;

/// How a request is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Strategy {
    /// Always the committee.
    CommitteeFirst,
    /// A learned answer that fits and is trusted, else the committee.
    HeuristicFirst,
    /// The solver, and the rest of the committee only if its report is not clearly VALID.
    Escalate,
}

/// The settings of decision strategies.
#[derive(Debug, Clone)]
pub struct Decisions {
    /// The strategies with their shares of users, which sum to [`PARTS`].
    arms: Vec<(Strategy, u64)>,
    /// The least confidence of a learned answer that replies, 0 to 1, before it is shifted.
    pub threshold: f64,
    /// The most learned answers that the master is shown.
    pub max_candidates: usize,
    /// What the operator wants of every answer. The master reads them.
    pub goals: Vec<String>,
    pub personality_biases: BTreeMap<String, f64>,
}

impl Decisions {
    /// Returns the strategy of a user, and the name of the arm in an A/B test. `fingerprint` is a
    /// hex text that identifies the user, so a user always gets the same arm.
    pub fn strategy_for(&self, fingerprint: &str) -> (Strategy, Option<&'static str>) {
        let digits = fingerprint.get(..8).unwrap_or_default();
        let mut part = u64::from_str_radix(digits, 16).unwrap_or(0) % PARTS;
        for (strategy, share) in &self.arms {
            if part < *share {
                let is_test = self.arms.len() > 1;
                return (*strategy, is_test.then(|| strategy.into_str()));
            }
            part -= share;
        }
        (Strategy::CommitteeFirst, None)
    }
}

impl Check<'_> {
    pub(super) fn decisions(&mut self, policy: &PolicyFile) -> Decisions {
        let strategy = self.first(&["DECISION_STRATEGY", "EXECUTIVE_DECISION_STRATEGY"]);
        let arms = match strategy {
            None => vec![(Strategy::CommitteeFirst, PARTS)],
            Some((name, text)) => arms(&text).unwrap_or_else(|| {
                let detail = format!(
                    "{text:?} is not committee_first, heuristic_first, escalate, or an A/B test whose shares sum to 100, such as \
                     split:committee_first=50,heuristic_first=50"
                );
                self.add(name, detail);
                vec![]
            }),
        };
        let names = ["HEURISTIC_THRESHOLD", "EXECUTIVE_HEURISTIC_THRESHOLD"];
        let threshold = self.number(&names, 0.7, 1.0, "a number from 0 to 1");
        let goals = self.first(&["GOALS", "EXECUTIVE_GOALS"]);
        let goals = goals.map(|(_, text)| text).unwrap_or_default();
        let goals = goals.split(';').map(|goal| goal.trim().to_owned());
        Decisions {
            arms,
            threshold: threshold.unwrap_or(0.7),
            max_candidates: usize::from(policy.max_candidates.unwrap_or(3)),
            goals: goals.filter(|goal| !goal.is_empty()).collect(),
            personality_biases: policy.personality_biases.clone(),
        }
    }
}

/// Reads one strategy, or the arms of an A/B test.
fn arms(text: &str) -> Option<Vec<(Strategy, u64)>> {
    let Some(split) = text.strip_prefix("split:") else {
        return Some(vec![(text.parse().ok()?, PARTS)]);
    };
    let read = |arm: &str| {
        let (name, share) = arm.split_once('=')?;
        Some((name.trim().parse().ok()?, share.trim().parse().ok()?))
    };
    let arms: Option<Vec<(Strategy, u64)>> = split.split(',').map(read).collect();
    arms.filter(|arms| arms.iter().map(|(_, share)| share).sum::<u64>() == PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ab_test_has_shares_that_sum_to_100() {
        let halves = arms("split:committee_first=50,heuristic_first=50").unwrap();
        assert_eq!(halves.len(), 2);
        for wrong in [
            "split:committee_first=50",
            "split:committee_first=50,heuristic_first=51",
            "split:",
            "split:other=100",
            "HEURISTIC_FIRST",
            "",
        ] {
            assert_eq!(arms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_user_always_gets_the_same_arm() {
        let decisions = Decisions {
            arms: arms("split:committee_first=30,heuristic_first=70").unwrap(),
            threshold: 0.7,
            max_candidates: 3,
            goals: vec![],
            personality_biases: BTreeMap::new(),
        };
        let arm = |user: u32| {
            let user = crate::domain::fingerprint(&[format!("u{user}").as_bytes()]);
            decisions.strategy_for(&user)
        };
        let is_heuristic = |user: &u32| arm(*user).1 == Some("heuristic_first");
        let heuristic = (0..1000).filter(is_heuristic).count();
        assert!((640..=760).contains(&heuristic), "{heuristic}");
        assert_eq!(arm(7), arm(7));
    }
}
