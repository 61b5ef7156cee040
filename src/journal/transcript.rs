//! A run as its journal tells it: the one fold over a run's events.

use std::collections::{BTreeMap, HashMap};

use super::{
    Accepted, AgentFinished, CallSent, CallSettled, CallView, Continues, CrossChecked, Decided,
    Draft, Entry, Event, Executed, Explained, Feedback, Finished, Gated, Hinted, Learned, Parsed,
    Planned, Proposed, RoundSkipped, RoundStarted, Scored, SolverJudged, StepFinished, StepStarted,
    Synthesized, ToolPlanned, Trimmed,
};
use crate::domain::{Agent, AgentReport, Assumption, CallName, Judgement, TaskType};

/// A later or first round, as the journal has it.
#[derive(Debug, Clone, Copy)]
pub enum Round<'a> {
    Started(&'a RoundStarted),
    Skipped(&'a RoundSkipped),
}

/// The outputs of a run, typed. What has not happened yet is `None` or empty. Where the journal has
/// several events of a kind, such as fits of the panel, a single value is the last one.
#[derive(Debug, Clone, Default)]
pub struct Transcript<'a> {
    pub accepted: Option<&'a Accepted>,
    pub hinted: Option<&'a Hinted>,
    pub planned: Option<&'a Planned>,
    pub trimmed: Option<&'a Trimmed>,
    /// In the order of the journal.
    pub rounds: Vec<Round<'a>>,
    /// Every outcome of every round, in the order of the journal.
    pub outcomes: Vec<&'a AgentFinished>,
    pub cross_checked: Option<&'a CrossChecked>,
    /// One for each round that was scored.
    pub scored: Vec<&'a Scored>,
    pub synthesized: Option<&'a Synthesized>,
    pub gated: Option<&'a Gated>,
    pub finished: Option<&'a Finished>,
    /// Oldest first.
    pub feedback: Vec<&'a Feedback>,
    pub decided: Option<&'a Decided>,
    pub solver_judged: Option<&'a SolverJudged>,
    /// Oldest first.
    pub learned: Vec<&'a Learned>,
    /// Of an action.
    pub parsed: Option<&'a Parsed>,
    pub proposed: Option<&'a Proposed>,
    pub executed: Option<&'a Executed>,
    pub tool_planned: Option<&'a ToolPlanned>,
    pub steps_started: Vec<&'a StepStarted>,
    pub steps_finished: Vec<&'a StepFinished>,
    pub explained: Option<&'a Explained>,
    /// In the order of their intents.
    pub calls: Vec<CallView<'a>>,
    /// The number of outcomes before round 2, if it was held.
    first_outcomes: Option<usize>,
}

impl<'a> Transcript<'a> {
    /// Folds events in the order of the journal.
    pub fn of(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut transcript = Self::default();
        let mut sent: HashMap<&str, usize> = HashMap::new();
        for event in events {
            match event {
                Event::CallSent(call) => {
                    sent.insert(&call.call, transcript.calls.len());
                    transcript.calls.push(CallView {
                        sent: call,
                        settled: None,
                    });
                }
                Event::CallSettled(settled) => transcript.settle(settled, &sent),
                other => transcript.take(other),
            }
        }
        transcript
    }

    /// Folds the entries of a journal.
    pub fn of_entries(entries: &'a [Entry]) -> Self {
        Self::of(entries.iter().map(|entry| &entry.event))
    }

    fn settle(&mut self, settled: &'a CallSettled, sent: &HashMap<&str, usize>) {
        let at = sent.get(settled.call.as_str());
        if let Some(call) = at.and_then(|at| self.calls.get_mut(*at)) {
            call.settled = Some(settled);
        }
    }

    fn take(&mut self, event: &'a Event) {
        match event {
            Event::Accepted(accepted) => self.accepted = Some(accepted),
            Event::Hinted(hinted) => self.hinted = Some(hinted),
            Event::Planned(planned) => self.planned = Some(planned),
            Event::Trimmed(trimmed) => self.trimmed = Some(trimmed),
            Event::RoundStarted(started) => {
                if started.round == 2 {
                    self.first_outcomes = Some(self.outcomes.len());
                }
                self.rounds.push(Round::Started(started));
            }
            Event::RoundSkipped(skipped) => self.rounds.push(Round::Skipped(skipped)),
            Event::SolverJudged(judged) => self.solver_judged = Some(judged),
            Event::AgentFinished(finished) => self.outcomes.push(finished),
            Event::CrossChecked(checked) => self.cross_checked = Some(checked),
            Event::Scored(scored) => self.scored.push(scored),
            Event::Synthesized(synthesized) => self.synthesized = Some(synthesized),
            Event::Gated(gated) => self.gated = Some(gated),
            Event::Finished(finished) => self.finished = Some(finished),
            Event::Feedback(feedback) => self.feedback.push(feedback),
            Event::Decided(decided) => self.decided = Some(decided),
            Event::Learned(learned) => self.learned.push(learned),
            Event::Parsed(parsed) => self.parsed = Some(parsed),
            Event::Proposed(proposed) => self.proposed = Some(proposed),
            Event::Executed(executed) => self.executed = Some(executed),
            Event::ToolPlanned(planned) => self.tool_planned = Some(planned),
            Event::StepStarted(started) => self.steps_started.push(started),
            Event::StepFinished(finished) => self.steps_finished.push(finished),
            Event::Explained(explained) => self.explained = Some(explained),
            // Claims, calls, verdicts of gates, and what only older versions recorded.
            Event::Claimed(_)
            | Event::ComputeStarted(_)
            | Event::CallSent(_)
            | Event::CallSettled(_)
            | Event::Reviewed(_)
            | Event::Converged(_)
            | Event::GateChecked(_) => {}
        }
    }

    /// Returns the agents that take part.
    pub fn panel(&self) -> &'a [Agent] {
        self.trimmed.map_or(&[], |trimmed| &trimmed.agents)
    }

    /// Returns the judgement of the last round that was scored.
    pub fn judgement(&self) -> Option<&'a Judgement> {
        self.scored.last().map(|scored| &*scored.judgement)
    }

    /// True if the question is about attached images, and no agent that sees images has reported.
    pub fn rests_on_unseen(&self) -> bool {
        let has_image = |hinted: &Hinted| !hinted.unseen.is_empty() || hinted.images > 0;
        let is_visual = |planned: &Planned| planned.plan.task_type == TaskType::VisualAnalysis;
        let mut outcomes = self.outcomes.iter();
        let is_seen = outcomes.any(|it| it.agent == Agent::Visual && it.outcome.is_answered());
        self.hinted.is_some_and(has_image) && self.planned.is_some_and(is_visual) && !is_seen
    }

    /// Returns the ancestors that the run continues: none if its message asks something new.
    pub fn ancestors<'e, T>(&self, ancestors: &'e [T]) -> &'e [T] {
        match self.planned {
            Some(planned) if planned.is_new_request() => &[],
            _ => ancestors,
        }
    }

    /// Returns what the run continues: nothing if its message asks something new.
    pub fn continues(&self) -> Option<&'a Continues> {
        let accepted = self.accepted?;
        let anew = self.planned.is_some_and(Planned::is_new_request);
        accepted.continues.as_ref().filter(|_| !anew)
    }

    /// Returns the master's draft of the answer.
    pub fn draft(&self) -> Option<&'a Draft> {
        self.synthesized?.draft.as_ref()
    }

    /// Returns the assumptions of the reply. A reply from memory has those of the learned answer.
    pub fn assumptions(&self) -> &'a [Assumption] {
        let recalled = || self.decided?.answer.as_deref();
        self.draft()
            .or_else(recalled)
            .map_or(&[], |draft| &draft.assumptions)
    }

    /// Returns each agent's outcome that counts. A later failure does not replace an earlier
    /// report.
    pub fn standing(&self) -> BTreeMap<Agent, &'a AgentFinished> {
        standing(&self.outcomes)
    }

    /// Returns each agent's outcome of round 1, if round 2 was held.
    pub fn first_round(&self) -> Option<BTreeMap<Agent, &'a AgentFinished>> {
        self.outcomes.get(..self.first_outcomes?).map(standing)
    }

    /// Returns each agent's last report.
    pub fn reports(&self) -> BTreeMap<Agent, &'a AgentReport> {
        let answered = self
            .standing()
            .into_iter()
            .filter_map(|(agent, finished)| Some((agent, finished.outcome.report()?)));
        answered.collect()
    }

    /// Returns the last answered call whose name satisfies `wanted`.
    pub fn last_answered(&self, wanted: impl Fn(CallName) -> bool) -> Option<&'a CallSent> {
        let answered = self.calls.iter().rev().filter(|call| call.is_answered());
        let mut sent = answered.map(|call| call.sent);
        sent.find(|sent| sent.name().is_some_and(&wanted))
    }
}

fn standing<'a>(outcomes: &[&'a AgentFinished]) -> BTreeMap<Agent, &'a AgentFinished> {
    let mut standing: BTreeMap<Agent, &AgentFinished> = BTreeMap::new();
    for finished in outcomes {
        let known = standing.get(&finished.agent);
        if finished.outcome.is_answered() || !known.is_some_and(|k| k.outcome.is_answered()) {
            standing.insert(finished.agent, finished);
        }
    }
    standing
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{FailureCause, Obtained};
    use crate::journal::AgentOutcome;

    fn finished(round: u8, agent: Agent, answer: Option<&str>) -> Event {
        let outcome = match answer {
            Some(answer) => AgentOutcome::Answered {
                report: Arc::new(AgentReport {
                    answer_summary: vec![answer.into()],
                    agent: agent.to_string(),
                    ..AgentReport::default()
                }),
                obtained: Obtained::Clean,
                truncated: false,
                notes: vec![],
                tokens: 1,
            },
            None => AgentOutcome::Failed {
                cause: FailureCause::TimedOut,
                detail: "d".into(),
                by_deadline: false,
            },
        };
        Event::AgentFinished(Arc::new(AgentFinished {
            round,
            agent,
            outcome,
            reused_from: None,
            resolved: None,
        }))
    }

    fn started(round: u8) -> Event {
        Event::RoundStarted(RoundStarted {
            ahead: false,
            round,
            agents: vec![],
            why: "w".into(),
        })
    }

    fn answers<'a>(standing: &BTreeMap<Agent, &'a AgentFinished>) -> Vec<(Agent, &'a str)> {
        let answer = |(agent, finished): (&Agent, &&'a AgentFinished)| match &finished.outcome {
            AgentOutcome::Answered { report, .. } => (*agent, report.answer_summary[0].as_str()),
            AgentOutcome::Failed { .. } => (*agent, "failed"),
        };
        standing.iter().map(answer).collect()
    }

    #[test]
    fn a_later_failure_does_not_replace_an_earlier_report() {
        let events = [
            started(1),
            finished(1, Agent::Solver, Some("a")),
            finished(1, Agent::Critic, None),
            started(2),
            finished(2, Agent::Solver, None),
            finished(2, Agent::Critic, Some("b")),
        ];
        let transcript = Transcript::of(&events);
        assert_eq!(
            answers(&transcript.standing()),
            [(Agent::Solver, "a"), (Agent::Critic, "b")]
        );
        assert_eq!(
            answers(&transcript.first_round().unwrap()),
            [(Agent::Solver, "a"), (Agent::Critic, "failed")]
        );
        assert_eq!(transcript.reports().len(), 2);
    }
}
