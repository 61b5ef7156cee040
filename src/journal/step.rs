//! Steps of a run: effects whose output is recorded once, under a key of its own.

use std::sync::Arc;

use super::event::{
    AgentFinished, CROSS_CHECKED, CallSettled, DECIDED, Event, Gated, Hinted, Planned,
    RoundSkipped, RoundStarted, SOLVER_JUDGED, Scored, SolverJudged, Synthesized, Trimmed,
    agent_key, scored_key, settled_key, trimmed_key,
};
use super::evidence::CrossChecked;
use super::learned_event::Decided;
use super::tool_event::{
    Explained, StepFinished, StepStarted, step_finished_key, step_started_key,
};
use crate::domain::Agent;

/// One step, with the event that records its output. [`super::RunContext::step`] performs it.
pub struct Step<T> {
    /// The key of the recorded event.
    pub(super) key: String,
    /// Wraps an output into its event.
    pub(super) record: fn(T) -> Event,
    /// Returns the output that an event records, or `None` for an event of another kind.
    pub(super) output: fn(Event) -> Option<T>,
}

macro_rules! step {
    ($kind:ident, $key:expr) => {
        Step {
            key: $key.into(),
            record: Event::$kind,
            output: |event| match event {
                Event::$kind(output) => Some(output),
                _ => None,
            },
        }
    };
}

/// The signals that the request itself gives.
pub fn hints() -> Step<Hinted> {
    step!(Hinted, "hints")
}

/// The plan of the panel.
pub fn plan() -> Step<Planned> {
    step!(Planned, "plan")
}

/// The panel as the cap allows it; with an epoch, fitted again by a resumed process; with a refit,
/// because calls cost less than they were reserved for.
pub fn trim(epoch: Option<i64>, refit: Option<u32>) -> Step<Trimmed> {
    step!(Trimmed, trimmed_key(epoch, refit))
}

/// The start of a round.
pub fn round(round: u8) -> Step<RoundStarted> {
    step!(RoundStarted, format!("r{round}/started"))
}

/// Whether the solver's report is enough.
pub fn solver() -> Step<Arc<SolverJudged>> {
    step!(SolverJudged, SOLVER_JUDGED)
}

/// A round that is not held, with its reason.
pub fn skip(round: u8) -> Step<RoundSkipped> {
    step!(RoundSkipped, format!("r{round}/skipped"))
}

/// What an agent wrote in a round, or why it failed.
pub fn agent(round: u8, agent: Agent) -> Step<Arc<AgentFinished>> {
    step!(AgentFinished, agent_key(round, agent))
}

/// The cross-check of the reports.
pub fn cross_check() -> Step<Arc<CrossChecked>> {
    step!(CrossChecked, CROSS_CHECKED)
}

/// The judgement after a round.
pub fn score(round: u8) -> Step<Arc<Scored>> {
    step!(Scored, scored_key(round))
}

/// The answer that the master writes, or the question in its place.
pub fn synthesis() -> Step<Arc<Synthesized>> {
    step!(Synthesized, "synthesis")
}

/// Whether the answer ships, with its confidence.
pub fn gate() -> Step<Gated> {
    step!(Gated, "gate")
}

/// How the request is answered: by a learned answer, or by the committee.
pub fn decision() -> Step<Box<Decided>> {
    step!(Decided, DECIDED)
}

/// The end of a call.
pub fn settled(call: &str) -> Step<CallSettled> {
    step!(CallSettled, settled_key(call))
}

/// The start of a step of a tool plan.
pub fn tool_started(step_id: &str) -> Step<StepStarted> {
    step!(StepStarted, step_started_key(step_id))
}

/// The end of a step of a tool plan.
pub fn tool_finished(step_id: &str) -> Step<Box<StepFinished>> {
    step!(StepFinished, step_finished_key(step_id))
}

/// The explanation of the ended steps of a tool plan.
pub fn explanation() -> Step<Explained> {
    step!(Explained, "explanation")
}
