//! Actions: free text to one command of the registry. Fixed rules come first, then a model's
//! proposal, which passes four gates. A text that is not clear does nothing.
//!
//! In reading order: [`commands`] has the registry and executes each command, as pure functions.
//! [`parser`] is deterministic. [`Proposal`] is a model's reply, and [`gates`] checks it. [`reply`]
//! is the response. [`ProposalCache`] keeps recent proposals. `app` decides what is executed.

mod argument_schema;
pub mod catalog;
mod check_words;
pub mod commands;
pub mod gates;
mod misfit;
mod nearest;
pub mod parser;
mod proposal;
mod proposal_cache;
pub mod reply;
mod sanitize;
mod sheet;
mod speech;

pub use proposal::{MAX_PROPOSED_CHARS, Proposal, declined_by_stub, propose, unread};
pub use proposal_cache::{CachedProposal, Interpretation, ProposalCache, ProposalKey, Scene};
pub use sanitize::cut;

use crate::journal::{ActionOutcome, Cause, Ending, Event};

/// Returns the ending of an action whose process died. An executed command stays executed and is
/// not repeated.
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
