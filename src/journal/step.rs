//! Steps of a run: effects whose output is recorded once, under a key of its own.

use std::sync::Arc;

use super::event::{
    AgentFinished, CROSS_CHECKED, Event, Gated, Hinted, Planned, RoundSkipped, RoundStarted,
    SOLVER_JUDGED, Scored, SolverJudged, Synthesized, Trimmed, agent_key, scored_key, trimmed_key,
};
use super::evidence::CrossChecked;
use crate::domain::Agent;

/// One step, with the event that records its output. [`super::RunContext::step`] performs it.
pub trait Step {
    type Output;

    /// Wraps an output into its event.
    const RECORD: fn(Self::Output) -> Event;

    /// Returns the key of the recorded event.
    fn key(&self) -> String;

    /// Returns the output that an event records, or `None` for an event of another kind.
    fn output(event: Event) -> Option<Self::Output>;
}

/// The signals that the request itself gives.
pub struct HintsStep;

impl Step for HintsStep {
    type Output = Hinted;
    const RECORD: fn(Self::Output) -> Event = Event::Hinted;

    fn key(&self) -> String {
        "hints".into()
    }

    fn output(event: Event) -> Option<Hinted> {
        match event {
            Event::Hinted(output) => Some(output),
            _ => None,
        }
    }
}

/// The plan of the panel.
pub struct PlanStep;

impl Step for PlanStep {
    type Output = Planned;
    const RECORD: fn(Self::Output) -> Event = Event::Planned;

    fn key(&self) -> String {
        "plan".into()
    }

    fn output(event: Event) -> Option<Planned> {
        match event {
            Event::Planned(output) => Some(output),
            _ => None,
        }
    }
}

/// The panel as the cap allows it; with an epoch, fitted again by a resumed process; with a wave,
/// because calls cost less than they were reserved for.
pub struct TrimStep {
    pub epoch: Option<i64>,
    pub wave: Option<u32>,
}

impl Step for TrimStep {
    type Output = Trimmed;
    const RECORD: fn(Self::Output) -> Event = Event::Trimmed;

    fn key(&self) -> String {
        trimmed_key(self.epoch, self.wave)
    }

    fn output(event: Event) -> Option<Trimmed> {
        match event {
            Event::Trimmed(output) => Some(output),
            _ => None,
        }
    }
}

/// The start of a later round.
pub struct RoundStep {
    pub round: u8,
}

impl Step for RoundStep {
    type Output = RoundStarted;
    const RECORD: fn(Self::Output) -> Event = Event::RoundStarted;

    fn key(&self) -> String {
        format!("r{}/started", self.round)
    }

    fn output(event: Event) -> Option<RoundStarted> {
        match event {
            Event::RoundStarted(output) => Some(output),
            _ => None,
        }
    }
}

/// Whether the solver's report is enough.
pub struct SolverStep;

impl Step for SolverStep {
    type Output = Arc<SolverJudged>;
    const RECORD: fn(Self::Output) -> Event = Event::SolverJudged;

    fn key(&self) -> String {
        SOLVER_JUDGED.to_owned()
    }

    fn output(event: Event) -> Option<Arc<SolverJudged>> {
        match event {
            Event::SolverJudged(output) => Some(output),
            _ => None,
        }
    }
}

/// A round that is not held, with its reason.
pub struct SkipStep {
    pub round: u8,
}

impl Step for SkipStep {
    type Output = RoundSkipped;
    const RECORD: fn(Self::Output) -> Event = Event::RoundSkipped;

    fn key(&self) -> String {
        format!("r{}/skipped", self.round)
    }

    fn output(event: Event) -> Option<RoundSkipped> {
        match event {
            Event::RoundSkipped(output) => Some(output),
            _ => None,
        }
    }
}

/// What an agent wrote in a round, or why it failed.
pub struct AgentStep {
    pub round: u8,
    pub agent: Agent,
}

impl Step for AgentStep {
    type Output = Arc<AgentFinished>;
    const RECORD: fn(Self::Output) -> Event = Event::AgentFinished;

    fn key(&self) -> String {
        agent_key(self.round, self.agent)
    }

    fn output(event: Event) -> Option<Arc<AgentFinished>> {
        match event {
            Event::AgentFinished(output) => Some(output),
            _ => None,
        }
    }
}

/// The cross-check of the reports.
pub struct CrossCheckStep;

impl Step for CrossCheckStep {
    type Output = Arc<CrossChecked>;
    const RECORD: fn(Self::Output) -> Event = Event::CrossChecked;

    fn key(&self) -> String {
        CROSS_CHECKED.into()
    }

    fn output(event: Event) -> Option<Arc<CrossChecked>> {
        match event {
            Event::CrossChecked(output) => Some(output),
            _ => None,
        }
    }
}

/// The judgement after a round.
pub struct ScoreStep {
    pub round: u8,
}

impl Step for ScoreStep {
    type Output = Arc<Scored>;
    const RECORD: fn(Self::Output) -> Event = Event::Scored;

    fn key(&self) -> String {
        scored_key(self.round)
    }

    fn output(event: Event) -> Option<Arc<Scored>> {
        match event {
            Event::Scored(output) => Some(output),
            _ => None,
        }
    }
}

/// The answer that the master writes, or the question in its place.
pub struct SynthesisStep;

impl Step for SynthesisStep {
    type Output = Arc<Synthesized>;
    const RECORD: fn(Self::Output) -> Event = Event::Synthesized;

    fn key(&self) -> String {
        "synthesis".into()
    }

    fn output(event: Event) -> Option<Arc<Synthesized>> {
        match event {
            Event::Synthesized(output) => Some(output),
            _ => None,
        }
    }
}

/// Whether the answer ships, with the figures behind it.
pub struct GateStep;

impl Step for GateStep {
    type Output = Gated;
    const RECORD: fn(Self::Output) -> Event = Event::Gated;

    fn key(&self) -> String {
        "gate".into()
    }

    fn output(event: Event) -> Option<Gated> {
        match event {
            Event::Gated(output) => Some(output),
            _ => None,
        }
    }
}
