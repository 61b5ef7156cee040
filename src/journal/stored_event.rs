//! Reads the stored body of an event.

use std::str::FromStr;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::event::{Event, EventKind};

/// An event as it is stored, before its data is read.
#[derive(Deserialize)]
struct StoredEvent<'a> {
    kind: EventKind,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Reads a stored body. A derived `Deserialize` would have the code of every event twice: for a
/// `kind` before its `data`, and after it.
impl FromStr for Event {
    type Err = serde_json::Error;

    fn from_str(body: &str) -> Result<Self, Self::Err> {
        let StoredEvent { kind, data } = serde_json::from_str(body)?;
        Ok(match kind {
            EventKind::Accepted => Event::Accepted(read(data)?),
            EventKind::Claimed => Event::Claimed(read(data)?),
            EventKind::ComputeStarted => Event::ComputeStarted(read(data)?),
            EventKind::Hinted => Event::Hinted(read(data)?),
            EventKind::Planned => Event::Planned(read(data)?),
            EventKind::Trimmed => Event::Trimmed(read(data)?),
            EventKind::RoundStarted => Event::RoundStarted(read(data)?),
            EventKind::SolverJudged => Event::SolverJudged(read(data)?),
            EventKind::RoundSkipped => Event::RoundSkipped(read(data)?),
            EventKind::CallSent => Event::CallSent(read(data)?),
            EventKind::CallSettled => Event::CallSettled(read(data)?),
            EventKind::Reviewed => Event::Reviewed(read(data)?),
            EventKind::CrossChecked => Event::CrossChecked(read(data)?),
            EventKind::AgentFinished => Event::AgentFinished(read(data)?),
            EventKind::Scored => Event::Scored(read(data)?),
            EventKind::Synthesized => Event::Synthesized(read(data)?),
            EventKind::Gated => Event::Gated(read(data)?),
            EventKind::Finished => Event::Finished(read(data)?),
            EventKind::Feedback => Event::Feedback(read(data)?),
            EventKind::Parsed => Event::Parsed(read(data)?),
            EventKind::Proposed => Event::Proposed(read(data)?),
            EventKind::GateChecked => Event::GateChecked(read(data)?),
            EventKind::Executed => Event::Executed(read(data)?),
            EventKind::ToolPlanned => Event::ToolPlanned(read(data)?),
            EventKind::StepStarted => Event::StepStarted(read(data)?),
            EventKind::StepFinished => Event::StepFinished(read(data)?),
            EventKind::Explained => Event::Explained(read(data)?),
            EventKind::Decided => Event::Decided(read(data)?),
            EventKind::Converged => Event::Converged(read(data)?),
            EventKind::Learned => Event::Learned(read(data)?),
        })
    }
}

fn read<T: DeserializeOwned>(data: &RawValue) -> Result<T, serde_json::Error> {
    serde_json::from_str(data.get())
}
