//! Steps of a run: effects whose output is recorded once, under a key of its own.

use super::event::{
    AgentFinished, CROSS_CHECKED, Event, Gated, Hinted, Planned, RoundSkipped, RoundStarted,
    Scored, Synthesized, Trimmed, agent_key, scored_key,
};
use super::evidence::CrossChecked;
use crate::domain::Agent;

/// One step, with the event that records its output. [`super::RunContext::step`] performs it.
pub trait Step {
    type Output;

    /// Returns the key of the recorded event.
    fn key(&self) -> String;

    /// Wraps an output into its event.
    fn record(output: Self::Output) -> Event;

    /// Returns the output that an event records, or `None` for an event of another kind.
    fn output(event: Event) -> Option<Self::Output>;
}

/// The signals that the request itself gives.
pub struct HintsStep;

impl Step for HintsStep {
    type Output = Hinted;

    fn key(&self) -> String {
        "hints".into()
    }

    fn record(output: Hinted) -> Event {
        Event::Hinted(output)
    }

    fn output(event: Event) -> Option<Hinted> {
        if let Event::Hinted(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// The plan of the panel.
pub struct PlanStep;

impl Step for PlanStep {
    type Output = Planned;

    fn key(&self) -> String {
        "plan".into()
    }

    fn record(output: Planned) -> Event {
        Event::Planned(output)
    }

    fn output(event: Event) -> Option<Planned> {
        if let Event::Planned(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// The panel as the cap allows it; with an epoch, fitted again by a resumed process.
pub struct TrimStep {
    pub epoch: Option<i64>,
}

impl Step for TrimStep {
    type Output = Trimmed;

    fn key(&self) -> String {
        self.epoch
            .map_or("trimmed".into(), |epoch| format!("trimmed/{epoch}"))
    }

    fn record(output: Trimmed) -> Event {
        Event::Trimmed(output)
    }

    fn output(event: Event) -> Option<Trimmed> {
        if let Event::Trimmed(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// The start of a later round.
pub struct RoundStep {
    pub round: u8,
}

impl Step for RoundStep {
    type Output = RoundStarted;

    fn key(&self) -> String {
        format!("r{}/started", self.round)
    }

    fn record(output: RoundStarted) -> Event {
        Event::RoundStarted(output)
    }

    fn output(event: Event) -> Option<RoundStarted> {
        if let Event::RoundStarted(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// A round that is not held, with its reason.
pub struct SkipStep {
    pub round: u8,
}

impl Step for SkipStep {
    type Output = RoundSkipped;

    fn key(&self) -> String {
        format!("r{}/skipped", self.round)
    }

    fn record(output: RoundSkipped) -> Event {
        Event::RoundSkipped(output)
    }

    fn output(event: Event) -> Option<RoundSkipped> {
        if let Event::RoundSkipped(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// What an agent wrote in a round, or why it failed.
pub struct AgentStep {
    pub round: u8,
    pub agent: Agent,
}

impl Step for AgentStep {
    type Output = Box<AgentFinished>;

    fn key(&self) -> String {
        agent_key(self.round, self.agent)
    }

    fn record(output: Box<AgentFinished>) -> Event {
        Event::AgentFinished(output)
    }

    fn output(event: Event) -> Option<Box<AgentFinished>> {
        if let Event::AgentFinished(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// The cross-check of the reports.
pub struct CrossCheckStep;

impl Step for CrossCheckStep {
    type Output = Box<CrossChecked>;

    fn key(&self) -> String {
        CROSS_CHECKED.into()
    }

    fn record(output: Box<CrossChecked>) -> Event {
        Event::CrossChecked(output)
    }

    fn output(event: Event) -> Option<Box<CrossChecked>> {
        if let Event::CrossChecked(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// The judgement after a round.
pub struct ScoreStep {
    pub round: u8,
}

impl Step for ScoreStep {
    type Output = Box<Scored>;

    fn key(&self) -> String {
        scored_key(self.round)
    }

    fn record(output: Box<Scored>) -> Event {
        Event::Scored(output)
    }

    fn output(event: Event) -> Option<Box<Scored>> {
        if let Event::Scored(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// The answer that the master writes, or the question in its place.
pub struct SynthesisStep;

impl Step for SynthesisStep {
    type Output = Box<Synthesized>;

    fn key(&self) -> String {
        "synthesis".into()
    }

    fn record(output: Box<Synthesized>) -> Event {
        Event::Synthesized(output)
    }

    fn output(event: Event) -> Option<Box<Synthesized>> {
        if let Event::Synthesized(output) = event {
            Some(output)
        } else {
            None
        }
    }
}

/// Whether the answer ships, with the figures behind it.
pub struct GateStep;

impl Step for GateStep {
    type Output = Gated;

    fn key(&self) -> String {
        "gate".into()
    }

    fn record(output: Gated) -> Event {
        Event::Gated(output)
    }

    fn output(event: Event) -> Option<Gated> {
        if let Event::Gated(output) = event {
            Some(output)
        } else {
            None
        }
    }
}
