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

use jiff::Timestamp;

use crate::config::ActionsPolicy;
use crate::domain::{ActionMode, RunId};
use crate::journal::{Cause, Ending, Event, Transcript};
use reply::{Offer, ProposalReason, Reply};

/// Returns the ending of an action whose process died. An executed command stays executed. Nothing is
/// executed late: a command that a model has proposed is offered.
pub fn left_behind(id: RunId, events: &[Event], policy: &ActionsPolicy, now: Timestamp) -> Ending {
    let offered = || offered_late(id, events, policy, now);
    match reply::of_execution(events).or_else(offered) {
        Some(reply) => Ending::Acted {
            outcome: reply.outcome(),
            response: reply.value(),
        },
        None => Ending::Failed {
            cause: Cause::Internal,
            detail: "the process ended while the text was being understood; nothing was done"
                .into(),
        },
    }
}

/// Returns the reply to a proposal that was recorded before the process died, if the rules still let
/// it be offered.
fn offered_late(
    id: RunId,
    events: &[Event],
    policy: &ActionsPolicy,
    now: Timestamp,
) -> Option<Reply> {
    let run = Transcript::of(events);
    let (question, proposed) = (&run.accepted?.question, run.proposed?);
    let rules = policy.rules(question.context.guild_id.as_deref());
    if !proposed.ok {
        let message = reply::not_understood(&question.message, &rules.commands);
        return Some(Reply::declined("unknown_intent", message));
    }
    let (name, args) = (&proposed.action, &proposed.args);
    let passed = gates::pass(name, args, proposed.confidence, &rules, &policy.proposer);
    let action = passed.action.filter(|_| rules.enabled && !rules.shadow)?;
    gates::policy(&action, &rules).ok()?;
    let why = ProposalReason::of(proposed, ActionMode::LlmProposal);
    let offer = Offer::new(id, policy.expiry(now));
    Some(Reply::offered(&action, &[], why, question.source, offer))
}
