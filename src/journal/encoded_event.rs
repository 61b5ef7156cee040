//! Events as they are stored: their text, and the change that each makes to its run's row.

use serde::Serialize;

use super::{Accepted, CallResult, Effect, Ending, Error, Event, Learned, RunState, VERSION};
use crate::domain::Outcome;

/// Characters of an action's message in lists, and in the recent lines that are shown to a
/// narrator.
const MAX_LISTED_ACTION_CHARS: usize = 1000;

/// A change that an event makes to its run's row.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Ended(End),
    /// An answer was learned, or changed.
    Learned(Box<Learned>),
    /// A command changed a sheet or memory of its user.
    Changed(Effect),
}

/// What the row of a run says of its end.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub state: RunState,
    pub cause: Option<String>,
    pub c_final: Option<f64>,
}

/// Returns the nano-dollars that an event adds to the spent amount of its run's row.
pub(super) fn spent(event: &Event) -> i64 {
    let Event::CallSettled(settled) = event else {
        return 0;
    };
    debug_assert!(!matches!(settled.result, CallResult::InDoubt) || settled.usage.is_none());
    settled.cost.nanos().cast_signed()
}

/// Returns what an event changes besides the journal and the spent amount.
pub(super) fn change(event: &Event) -> Option<Change> {
    match event {
        Event::Finished(finished) => {
            let (state, cause, c_final) = match &finished.ending {
                Ending::Replied { reply } => {
                    let state = match reply.outcome {
                        Outcome::Clarification => RunState::Clarification,
                        Outcome::Answered => RunState::Answered,
                        Outcome::Heuristic => RunState::Heuristic,
                    };
                    (state, None, Some(reply.meta.c_final))
                }
                Ending::Failed { cause, detail } => (
                    RunState::Failed,
                    Some(format!("{}: {detail}", cause.into_str())),
                    None,
                ),
                Ending::Cancelled => (RunState::Cancelled, None, None),
                Ending::Acted { .. } => (RunState::Answered, None, None),
            };
            Some(Change::Ended(End {
                state,
                cause,
                c_final,
            }))
        }
        Event::Accepted(_)
        | Event::Claimed(_)
        | Event::ComputeStarted(_)
        | Event::Hinted(_)
        | Event::Planned(_)
        | Event::Trimmed(_)
        | Event::RoundStarted(_)
        | Event::SolverJudged(_)
        | Event::RoundSkipped(_)
        | Event::CallSent(_)
        | Event::CallSettled(_)
        | Event::Reviewed(_)
        | Event::CrossChecked(_)
        | Event::AgentFinished(_)
        | Event::Scored(_)
        | Event::Synthesized(_)
        | Event::Gated(_)
        | Event::Feedback(_)
        | Event::Parsed(_)
        | Event::Proposed(_)
        | Event::GateChecked(_)
        | Event::ToolPlanned(_)
        | Event::StepStarted(_)
        | Event::StepFinished(_)
        | Event::Explained(_)
        | Event::Decided(_)
        | Event::Converged(_) => None,
        Event::Learned(learned) => Some(Change::Learned(learned.clone())),
        Event::Executed(executed) => executed.effect.clone().map(Change::Changed),
    }
}

/// An event as it is stored, before it gets its place in a chain.
pub(super) struct EncodedEvent {
    pub key: String,
    pub body: String,
    pub change: Option<Change>,
    /// In nano-dollars.
    pub spent: i64,
    /// True if the event may not be written while its run is being cancelled.
    pub needs_consent: bool,
    /// True if a view of the database reads the body.
    pub is_queried: bool,
}

impl EncodedEvent {
    pub fn of(event: &Event) -> Result<Self, Error> {
        Ok(Self {
            key: event.key(),
            body: body(event)?,
            change: change(event),
            spent: spent(event),
            needs_consent: event.is_intent(),
            is_queried: matches!(event, Event::StepFinished(_)),
        })
    }

    pub fn all<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Vec<Self>, Error> {
        events.into_iter().map(Self::of).collect()
    }
}

/// An event with the format version.
#[derive(Serialize)]
struct Versioned<'a> {
    #[serde(flatten)]
    event: &'a Event,
    v: u32,
}

/// Serializes an event with its tag, data and format version. Refuses an event that cannot be
/// parsed back, such as one with a number that JSON cannot represent, before it enters the chain.
fn body(event: &Event) -> Result<String, Error> {
    let unwritable =
        |error: serde_json::Error| Error::Unwritable(format!("{}: {error}", event.key()));
    let body = serde_json::to_string(&Versioned { event, v: VERSION }).map_err(unwritable)?;
    // A number that is not finite is written as null.
    if has_values(event) || body.contains("null") {
        body.parse::<Event>().map_err(unwritable)?;
    }
    Ok(body)
}

/// True if an event has JSON of any shape, which could be nested too deep.
fn has_values(event: &Event) -> bool {
    match event {
        Event::Accepted(accepted) => accepted.tools.is_some(),
        Event::Finished(finished) => match &finished.ending {
            Ending::Replied { reply } => reply.audit.is_some(),
            Ending::Acted { .. } => true,
            Ending::Failed { .. } | Ending::Cancelled => false,
        },
        Event::Claimed(_)
        | Event::ComputeStarted(_)
        | Event::Hinted(_)
        | Event::Planned(_)
        | Event::Trimmed(_)
        | Event::RoundStarted(_)
        | Event::RoundSkipped(_)
        | Event::SolverJudged(_)
        | Event::CallSent(_)
        | Event::CallSettled(_)
        | Event::CrossChecked(_)
        | Event::AgentFinished(_)
        | Event::Scored(_)
        | Event::Synthesized(_)
        | Event::Gated(_) => false,
        _ => true,
    }
}

/// Returns the event as it is read back once it is stored.
pub(super) fn as_stored(event: &Event) -> Result<Event, Error> {
    let body = body(event)?;
    body.parse()
        .map_err(|error: serde_json::Error| Error::Unwritable(error.to_string()))
}

/// Returns the message as the run's row has it. Actions are free, so their text is cut; the journal
/// has all of it.
pub(super) fn listed_message(accepted: &Accepted) -> String {
    let most = if accepted.action.is_some() {
        MAX_LISTED_ACTION_CHARS
    } else {
        usize::MAX
    };
    accepted.question.message.chars().take(most).collect()
}
