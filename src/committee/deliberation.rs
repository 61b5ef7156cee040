//! What the rounds come to: each agent's outcome, and the judgement on all of them.

use super::evidence::Evidence;
use super::open_claims::{self};
use crate::domain::{Agent, AgentReport, Disagreement, Judgement, Position, Status};
use crate::journal::{AgentOutcome, Trimmed};

/// What the rounds left.
pub struct Deliberation {
    /// Each agent of the panel with its last outcome, in the panel's order.
    pub panel: Vec<(Agent, AgentOutcome)>,
    pub judgement: Judgement,
    pub trimmed: Trimmed,
    /// What later rounds should have given and did not, a line each.
    pub missed: Vec<String>,
    pub evidence: Evidence,
}

impl Deliberation {
    /// The agents that answered, with report and score, in the panel's order.
    pub fn answered(
        &self,
    ) -> impl Iterator<Item = (Agent, &AgentReport, &crate::domain::Score, u64)> {
        self.panel.iter().filter_map(|(agent, outcome)| {
            let AgentOutcome::Answered { report, tokens, .. } = outcome else {
                return None;
            };
            let score = self
                .judgement
                .scores
                .iter()
                .find(|s| s.agent == agent.as_str())?;
            Some((*agent, report, score, *tokens))
        })
    }

    pub fn with_status(&self, status: Status) -> Vec<Agent> {
        self.answered()
            .filter(|(_, _, score, _)| score.status == status)
            .map(|(agent, ..)| agent)
            .collect()
    }

    /// The disagreements in which two positions or more are held by outputs that are not discarded, with these positions
    /// as those outputs state them: nothing of a discarded output is in them.
    pub fn visible_disagreements(&self) -> Vec<(&Disagreement, Vec<Position>)> {
        let reports: Vec<(&str, &AgentReport)> = self
            .answered()
            .filter(|(_, _, score, _)| score.status != Status::Discard)
            .map(|(agent, report, ..)| (agent.as_str(), report))
            .collect();
        open_claims::visible(&self.judgement.disagreements, &reports)
    }

    pub fn failed(&self) -> impl Iterator<Item = (Agent, &str, &str)> {
        self.panel
            .iter()
            .filter_map(|(agent, outcome)| match outcome {
                AgentOutcome::Failed { cause, detail, .. } => {
                    Some((*agent, cause.as_str(), detail.as_str()))
                }
                AgentOutcome::Answered { .. } => None,
            })
    }
}
