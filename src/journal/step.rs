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

/// The kind of event that records a step, and the type of its output.
macro_rules! recorded_as {
    ($kind:ident, $output:ty) => {
        type Output = $output;
        const RECORD: fn($output) -> Event = Event::$kind;

        fn output(event: Event) -> Option<$output> {
            match event {
                Event::$kind(output) => Some(output),
                _ => None,
            }
        }
    };
}

/// The signals that the request itself gives.
pub struct HintsStep;

impl Step for HintsStep {
    recorded_as!(Hinted, Hinted);

    fn key(&self) -> String {
        "hints".into()
    }
}

/// The plan of the panel.
pub struct PlanStep;

impl Step for PlanStep {
    recorded_as!(Planned, Planned);

    fn key(&self) -> String {
        "plan".into()
    }
}

/// The panel as the cap allows it; with an epoch, fitted again by a resumed process; with a wave,
/// because calls cost less than they were reserved for.
pub struct TrimStep {
    pub epoch: Option<i64>,
    pub wave: Option<u32>,
}

impl Step for TrimStep {
    recorded_as!(Trimmed, Trimmed);

    fn key(&self) -> String {
        trimmed_key(self.epoch, self.wave)
    }
}

/// The start of a round.
pub struct RoundStep {
    pub round: u8,
}

impl Step for RoundStep {
    recorded_as!(RoundStarted, RoundStarted);

    fn key(&self) -> String {
        format!("r{}/started", self.round)
    }
}

/// Whether the solver's report is enough.
pub struct SolverStep;

impl Step for SolverStep {
    recorded_as!(SolverJudged, Arc<SolverJudged>);

    fn key(&self) -> String {
        SOLVER_JUDGED.to_owned()
    }
}

/// A round that is not held, with its reason.
pub struct SkipStep {
    pub round: u8,
}

impl Step for SkipStep {
    recorded_as!(RoundSkipped, RoundSkipped);

    fn key(&self) -> String {
        format!("r{}/skipped", self.round)
    }
}

/// What an agent wrote in a round, or why it failed.
pub struct AgentStep {
    pub round: u8,
    pub agent: Agent,
}

impl Step for AgentStep {
    recorded_as!(AgentFinished, Arc<AgentFinished>);

    fn key(&self) -> String {
        agent_key(self.round, self.agent)
    }
}

/// The cross-check of the reports.
pub struct CrossCheckStep;

impl Step for CrossCheckStep {
    recorded_as!(CrossChecked, Arc<CrossChecked>);

    fn key(&self) -> String {
        CROSS_CHECKED.into()
    }
}

/// The judgement after a round.
pub struct ScoreStep {
    pub round: u8,
}

impl Step for ScoreStep {
    recorded_as!(Scored, Arc<Scored>);

    fn key(&self) -> String {
        scored_key(self.round)
    }
}

/// The answer that the master writes, or the question in its place.
pub struct SynthesisStep;

impl Step for SynthesisStep {
    recorded_as!(Synthesized, Arc<Synthesized>);

    fn key(&self) -> String {
        "synthesis".into()
    }
}

/// Whether the answer ships, with the figures behind it.
pub struct GateStep;

impl Step for GateStep {
    recorded_as!(Gated, Gated);

    fn key(&self) -> String {
        "gate".into()
    }
}
