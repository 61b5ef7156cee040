//! What agents say of each other's contested claims.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Agent;

/// What a reviewer found when he checked one position on a contested claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    Holds,
    Fails,
    Undecided,
}

impl Finding {
    pub fn as_str(self) -> &'static str {
        match self {
            Finding::Holds => "holds",
            Finding::Fails => "fails",
            Finding::Undecided => "undecided",
        }
    }

    /// 1, -1 or 0.
    pub fn sign(self) -> f64 {
        match self {
            Finding::Holds => 1.0,
            Finding::Fails => -1.0,
            Finding::Undecided => 0.0,
        }
    }
}

/// One reviewer's finding on one position. He was not told who holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    pub reviewer: Agent,
    /// The claim's id in its round, such as "C1".
    pub claim: String,
    pub topic: String,
    pub on_final_answer: bool,
    /// The position as it was shown to him.
    pub position: String,
    /// Who held it when it was reviewed.
    pub holders: Vec<String>,
    /// The reviewer held it himself: the review counts for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    pub finding: Finding,
    /// What he found when he was shown everything again in reverse order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped: Option<Finding>,
    pub reason: String,
}

impl Review {
    /// Whether he found the same both times; true for one pass.
    pub fn is_consistent(&self) -> bool {
        self.swapped.is_none_or(|second| second == self.finding)
    }

    /// Whether it is evidence: nobody is a judge of his own position.
    pub fn counts(&self) -> bool {
        !self.own
    }

    /// -1 to 1: the mean of both findings.
    pub fn value(&self) -> f64 {
        self.swapped.map_or(self.finding.sign(), |second| f64::midpoint(self.finding.sign(), second.sign()))
    }
}

/// How much peer review counts (SPEC 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReviewWeights {
    /// Points of Coherence that an output gains if all that count find its contested claims to hold, and loses if all
    /// find them to fail; 0 turns peer review off.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub points: f64,
    /// Log odds that the same adds to or takes from the support of a final answer.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub answer: f64,
    /// What a review counts if its two passes found differently.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub inconsistent: f64,
}

impl Default for ReviewWeights {
    fn default() -> Self {
        Self { points: 4.0, answer: 0.3, inconsistent: 0.25 }
    }
}

impl ReviewWeights {
    pub fn is_off(&self) -> bool {
        self.points <= 0.0 && self.answer <= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(holders: &[&str], finding: Finding, swapped: Option<Finding>) -> Review {
        Review {
            reviewer: Agent::Critic,
            claim: "C1".into(),
            topic: "release year".into(),
            on_final_answer: false,
            position: "It came out in 2015.".into(),
            holders: holders.iter().map(|name| (*name).to_owned()).collect(),
            own: holders.contains(&"critic"),
            finding,
            swapped,
            reason: "The notes of version 1.0 say so.".into(),
        }
    }

    #[test]
    fn a_finding_that_turns_with_the_order_says_half_as_much_and_is_inconsistent() {
        let steady = review(&["solver"], Finding::Fails, Some(Finding::Fails));
        let turned = review(&["solver"], Finding::Fails, Some(Finding::Holds));
        assert_eq!((steady.value(), steady.is_consistent()), (-1.0, true));
        assert_eq!((turned.value(), turned.is_consistent()), (0.0, false));
        assert!(review(&["solver"], Finding::Holds, None).is_consistent());
    }

    #[test]
    fn nobody_is_a_judge_of_his_own_position() {
        assert!(!review(&["solver", "critic"], Finding::Holds, None).counts());
        assert!(review(&["solver"], Finding::Holds, None).counts());
    }
}
