//! The result of the rounds: each agent's outcome, and the judgement of all of them.

use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::open_claims;
use crate::domain::{Agent, AgentReport, Disagreement, FailureCause, Judgement, Position, Status};
use crate::journal::{AgentOutcome, Trimmed};

/// The result of the rounds.
pub struct Deliberation {
    /// Each agent of the panel with its last outcome, in the panel's order.
    pub panel: Vec<(Agent, AgentOutcome)>,
    pub judgement: Judgement,
    pub trimmed: Trimmed,
    pub evidence: Evidence,
}

impl Deliberation {
    /// Returns the agents that answered, with report, score and tokens, in the panel's order.
    pub fn answered(
        &self,
    ) -> impl Iterator<Item = (Agent, &AgentReport, &crate::domain::Score, u64)> {
        self.panel.iter().filter_map(|(agent, outcome)| {
            let AgentOutcome::Answered { report, tokens, .. } = outcome else {
                return None;
            };
            let score = self.judgement.score_of(*agent)?;
            Some((*agent, report, score, *tokens))
        })
    }

    pub fn with_status(&self, status: Status) -> Vec<Agent> {
        self.answered()
            .filter(|(_, _, score, _)| score.status == status)
            .map(|(agent, ..)| agent)
            .collect()
    }

    /// Returns the disagreements in which outputs that are not discarded hold at least two
    /// positions. The positions are worded as those outputs state them. Nothing of a discarded
    /// output is in them.
    pub fn visible_disagreements(&self) -> Vec<(&Disagreement, Vec<Position>)> {
        let reports: Vec<(Agent, &AgentReport)> = self
            .answered()
            .filter(|(_, _, score, _)| score.status != Status::Discard)
            .map(|(agent, report, ..)| (agent, report))
            .collect();
        open_claims::visible(&self.judgement.disagreements, &reports)
    }

    pub fn failed(&self) -> impl Iterator<Item = (Agent, &FailureCause, &str)> {
        self.panel
            .iter()
            .filter_map(|(agent, outcome)| match outcome {
                AgentOutcome::Failed { cause, detail, .. } => {
                    Some((*agent, cause, detail.as_str()))
                }
                AgentOutcome::Answered { .. } => None,
            })
    }
}
