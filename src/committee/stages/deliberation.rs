//! The result of the rounds: each agent's outcome, and the judgement of all of them.

use std::sync::Arc;

use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::open_claims;
use crate::domain::{
    Agent, AgentReport, Disagreement, FailureCause, Judgement, Obtained, Position, Score, Status,
};
use crate::journal::{AgentOutcome, Trimmed};

/// The result of the rounds.
pub struct Deliberation {
    /// Each agent of the panel with its last outcome, in the panel's order.
    pub panel: Vec<(Agent, AgentOutcome)>,
    pub judgement: Arc<Judgement>,
    pub trimmed: Trimmed,
    pub evidence: Evidence,
}

/// A report with its score and the tokens that it took.
#[derive(Clone, Copy)]
pub struct ScoredReport<'a> {
    pub agent: Agent,
    pub report: &'a AgentReport,
    pub score: &'a Score,
    pub tokens: u64,
    pub obtained: Obtained,
}

impl Deliberation {
    /// Returns the reports of the agents that answered, in the panel's order.
    pub fn answered(&self) -> impl Iterator<Item = ScoredReport<'_>> {
        self.panel.iter().filter_map(|(agent, outcome)| {
            Some(ScoredReport {
                agent: *agent,
                report: outcome.report()?,
                score: self.judgement.score_of(*agent)?,
                tokens: outcome.tokens(),
                obtained: outcome.obtained()?,
            })
        })
    }

    /// Returns the summaries of the reports as one text.
    pub fn summaries(&self) -> String {
        let lines = self.answered().flat_map(|it| &it.report.answer_summary);
        lines.map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Returns the reports that are not discarded, in the panel's order.
    pub fn usable(&self) -> Vec<ScoredReport<'_>> {
        let is_usable = |it: &ScoredReport<'_>| it.score.status != Status::Discard;
        self.answered().filter(is_usable).collect()
    }

    pub fn with_status(&self, status: Status) -> Vec<Agent> {
        let of_status = self.answered().filter(|it| it.score.status == status);
        of_status.map(|it| it.agent).collect()
    }

    /// Returns the disagreements in which outputs that are not discarded hold at least two
    /// positions. The positions are worded as those outputs state them. Nothing of a discarded
    /// output is in them.
    pub fn visible_disagreements(&self) -> Vec<(&Disagreement, Vec<Position>)> {
        let usable = self.usable().into_iter();
        let reports: Vec<_> = usable.map(|it| (it.agent, it.report)).collect();
        open_claims::visible(&self.judgement.disagreements, &reports)
    }

    pub fn failed(&self) -> impl Iterator<Item = (Agent, &FailureCause, &str)> {
        self.panel
            .iter()
            .filter_map(|(agent, outcome)| match outcome {
                AgentOutcome::Failed { cause, detail, .. } => Some((*agent, cause, &**detail)),
                AgentOutcome::Answered { .. } => None,
            })
    }
}
