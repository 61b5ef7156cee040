//! Offers a command that fixed rules found, for the user's confirmation: dice in first-person prose
//! and deletions.

use std::sync::Arc;

use metrics::counter;

use super::action::{Acted, PendingAction, permitted};
use super::{App, Rejected};
use crate::actions::commands::{Action, resolved};
use crate::actions::gates;
use crate::actions::reply::{Offer, ProposalReason, Reply};
use crate::domain::{ActionGate, ActionMode};
use crate::journal::{Event, GateChecked, Proposed};

/// Why a command that fixed rules found is offered and not executed.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfferReason {
    FirstPerson,
    Deletion,
}

impl OfferReason {
    /// Returns the proposal that the rule makes. Its confidence is too high for a list of choices.
    /// For dice it is below the default minimum of auto-execution.
    fn proposed(self, action: &Action) -> Proposed {
        let (confidence, reason) = match self {
            OfferReason::FirstPerson => (0.8, "dice in first-person prose"),
            OfferReason::Deletion => (1.0, "a deletion needs a confirmation"),
        };
        Proposed {
            ok: true,
            confidence,
            action: action.name().into_str().to_owned(),
            args: action.arguments(),
            reason: reason.into(),
            alternatives: vec![],
            raw: String::new(),
            was_repaired: false,
            reused_from: None,
        }
    }

    fn why(self) -> &'static str {
        match self {
            OfferReason::FirstPerson => "first-person prose is never executed by a rule",
            OfferReason::Deletion => "a deletion is executed only if its user confirms it",
        }
    }
}

impl App {
    /// Offers a command that fixed rules found: the user confirms it as they confirm a model's
    /// proposal. No model is asked.
    pub(super) async fn offer(
        self: &Arc<Self>,
        pending: PendingAction,
        action: &Action,
        reason: OfferReason,
    ) -> Result<Acted, Rejected> {
        // A command that the rules forbid reads nothing.
        let found = match gates::policy(action, &pending.rules) {
            Err(_) => Ok(action.clone()),
            Ok(_) => resolved(action, &self.facts(action, &pending).await?),
        };
        let action = match found {
            Ok(action) => action,
            Err(refusal) => {
                let reply = Reply::declined(refusal.error, refusal.message);
                return self.finish(pending, vec![], &reply).await;
            }
        };
        let permitted = permitted(&action, &pending, "offer");
        let proposed = reason.proposed(&action);
        let mut events = vec![Event::Proposed(Box::new(proposed.clone()))];
        let policy = GateChecked {
            gate: ActionGate::Policy,
            passed: permitted.is_ok(),
            why: permitted
                .as_ref()
                .err()
                .map(|(why, _)| why.clone())
                .unwrap_or_default(),
        };
        events.push(Event::GateChecked(policy));
        if let Err((_, reply)) = permitted {
            return self.finish(pending, events, &reply).await;
        }
        events.push(Event::GateChecked(GateChecked {
            gate: ActionGate::AutoExecution,
            passed: false,
            why: reason.why().into(),
        }));
        counter!("conclave_act_offered_total", "command" => action.name().into_str()).increment(1);
        let offer = Offer::new(
            pending.id,
            self.config.policy.actions.expiry(self.clock.now()),
        );
        let why = ProposalReason::of(&proposed, ActionMode::Deterministic);
        let reply = Reply::offered(&action, &[], why, pending.question.source, offer);
        self.finish(pending, events, &reply).await
    }
}
