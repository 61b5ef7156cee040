//! Actions: free text to one command of the registry, by fixed rules first, else as a model's proposal that has to pass four
//! gates. What is not clear does nothing.
//!
//! In reading order: `commands/` has the registry and what each command does, as pure functions; [`phrases`] is the
//! deterministic parser; [`Proposal`] is what a model may say and [`gates`] what becomes of it; [`reply`] is what the client is
//! told; [`Plans`] remembers for a while what texts were taken to mean. Who executes, and when, is in `app`.

pub mod catalog;
pub mod commands;
pub mod dice;
pub mod gates;
pub mod parser;
mod proposal;
mod proposal_cache;
pub mod reply;
mod sanitize;
mod sheet;

pub use proposal::{MAX_PROPOSED_CHARS, Proposal, declined_by_stub, propose, unread};
pub use proposal_cache::{CachedProposal, Interpretation, ProposalCache, ProposalKey, Scene};
pub use sanitize::cut;

use crate::journal::{ActionOutcome, Cause, Ending, Event};

/// The ending of an action whose process has died. What it had executed stays executed, and is not done again.
pub fn left_behind(events: &[Event]) -> Ending {
    match reply::of_execution(events) {
        Some(reply) => Ending::Acted {
            outcome: ActionOutcome::Executed,
            response: reply.value(),
        },
        None => Ending::Failed {
            cause: Cause::Internal,
            detail: "the process ended while the text was being understood; nothing was done"
                .into(),
        },
    }
}
