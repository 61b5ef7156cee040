//! The part of the config that scoring depends on.

use std::collections::BTreeMap;

use super::{Agent, AgentName, Calibration, Thresholds};

/// How scores and the terms of `c_final` are computed (SPEC 5, 6). The defaults are those of the
/// config.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoringPolicy {
    /// The least `cred` of a QUARANTINE and of a VALID output, 0 to 1.
    pub thresholds: Thresholds,
    /// The weight of an agent in BaseScore; 1 for an agent that is not listed.
    pub weights: BTreeMap<Agent, f64>,
    /// Points of `c_final`, 0 to 1.
    pub max_conflict_penalty: f64,
    /// Points of `c_final`, 0 to 1.
    pub max_coverage_bonus: f64,
    /// A `c_final` below this threshold leads to a question; 0 to 1.
    pub ask_threshold: f64,
    /// The weights of the evidence for a final answer.
    pub calibration: Calibration,
}

impl Default for ScoringPolicy {
    fn default() -> Self {
        Self {
            thresholds: Thresholds {
                tau_hard: 0.35,
                tau_soft: 0.55,
            },
            weights: BTreeMap::new(),
            max_conflict_penalty: 0.60,
            max_coverage_bonus: 0.10,
            ask_threshold: 0.70,
            calibration: Calibration::default(),
        }
    }
}

impl ScoringPolicy {
    /// Returns the weight of an agent in BaseScore.
    pub fn weight(&self, agent: &AgentName) -> f64 {
        let listed = agent.agent().and_then(|agent| self.weights.get(&agent));
        listed.copied().unwrap_or(1.0)
    }
}
