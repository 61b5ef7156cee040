//! Confirmations of proposed actions.

use super::act::{
    Acted, Asked, CONFIRMED, Confirmation, Understood, confirmed_by, disabled, observe, reading,
};
use super::request::check_names;
use super::{App, Rejected, count};
use crate::actions::commands::Action;
use crate::actions::reply::{Reply, Why};
use crate::domain::{ActionMode, CommandName, Question, RunId, RunKind, fingerprint};
use crate::journal::{ActionIntake, ActionOutcome, Ending, Event, Transcript};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

impl App {
    /// Executes a proposal that its user has confirmed, once.
    ///
    /// # Errors
    /// [`Rejected::NoSuchProposal`] also for another user's proposal, [`Rejected::ProposalGone`] if
    /// it was confirmed before or has expired.
    pub async fn confirm(self: &Arc<Self>, confirmation: Confirmation) -> Result<Acted, Rejected> {
        let arrived = Instant::now();
        let acted = self.take_confirmation(confirmation, arrived).await;
        observe(&acted, arrived);
        acted.map_err(count)
    }

    pub(super) async fn take_confirmation(
        self: &Arc<Self>,
        asks: Confirmation,
        arrived: Instant,
    ) -> Result<Acted, Rejected> {
        let Confirmation {
            proposal,
            source,
            user,
            context,
            choice,
        } = asks;
        let given = context.clone().unwrap_or_default();
        check_names(&user, &given).map_err(Rejected::Invalid)?;
        self.pace_action(source, &user)?;
        let entries = self.store.entries(proposal, 0).await?;
        let transcript = Transcript::of_entries(&entries);
        let Some(accepted) = transcript
            .accepted
            .filter(|accepted| accepted.kind() == RunKind::Action)
        else {
            return Err(Rejected::NoSuchProposal);
        };
        let proposed = &accepted.question;
        let context = context.unwrap_or_else(|| proposed.context.clone());
        if (
            proposed.source,
            &proposed.user.id,
            &proposed.context.guild_id,
        ) != (source, &user.id, &context.guild_id)
        {
            return Err(Rejected::NoSuchProposal);
        }
        let question = Question {
            source,
            user,
            context,
            ..proposed.clone()
        };
        let rules = self
            .config
            .policy
            .actions
            .rules(question.context.guild_id.as_deref());
        if !rules.enabled {
            return Ok(disabled());
        }
        let offer = match transcript.finished.map(|finished| &finished.ending) {
            Some(Ending::Acted {
                outcome: ActionOutcome::Offered,
                response,
            }) => response,
            _ => return Err(Rejected::NoSuchProposal),
        };
        let at = self.clock.now();
        let expires = offer
            .pointer("/proposal/expiresAt")
            .and_then(Value::as_str)
            .and_then(|at| at.parse::<Timestamp>().ok());
        if expires.is_none_or(|expires| at >= expires) {
            return Err(Rejected::ProposalGone("the proposal has expired"));
        }
        let Some((action, args)) = reading(offer, choice) else {
            let problem = super::FieldProblem {
                pointer: "/choice".into(),
                detail: "the proposal has no such choice".into(),
            };
            return Err(Rejected::Invalid(vec![problem]));
        };
        let Ok(action) = action
            .parse::<CommandName>()
            .map_err(drop)
            .and_then(|name| Action::read(name, args).map_err(drop))
        else {
            return Err(Rejected::NoSuchProposal);
        };
        let proposed = entries.iter().find_map(|entry| {
            if let Event::Proposed(p) = &entry.event {
                Some(p)
            } else {
                None
            }
        });
        let (confidence, reason) =
            proposed.map_or((0.0, String::new()), |p| (p.confidence, p.reason.clone()));
        let key = confirmed_by(proposal);
        if self.store.by_key(&key).await?.is_some() {
            return Err(Rejected::ProposalGone(CONFIRMED));
        }
        let asked = Asked {
            question,
            // There is one key per proposal: the second execution finds it taken, even if both are
            // concurrent.
            key: Some(key),
            body_hash: fingerprint(&[b"confirm", proposal.to_string().as_bytes()]),
            correlation_id: None,
            id: RunId::from_uuid(self.clock.new_id()),
            at,
            arrived,
            rules,
            intake: ActionIntake {
                confirms: Some(proposal),
            },
        };
        let why = Why {
            mode: proposed_by(offer),
            confidence,
            reason: &reason,
        };
        let understood = Understood {
            action: &action,
            proposed: Some(why),
        };
        self.perform(asked, understood).await
    }

    /// Records that a command was not executed. A declined confirmation leaves the proposal as it
    /// was, because only an execution takes its key.
    pub(super) async fn decline(
        &self,
        mut asked: Asked,
        events: Vec<Event>,
        reply: &Reply,
        seed: u64,
    ) -> Result<Acted, Rejected> {
        if let Some(proposal) = asked.intake.confirms {
            asked.key = None;
            // The refusal may result from another confirmation that has just been executed.
            if self.store.by_key(&confirmed_by(proposal)).await?.is_some() {
                return Err(Rejected::ProposalGone(CONFIRMED));
            }
        }
        self.conclude_seeded(asked, events, reply, seed).await
    }
}

/// Returns whether a rule or a model made an offer.
fn proposed_by(offer: &Value) -> ActionMode {
    offer
        .get("mode")
        .and_then(|mode| ActionMode::deserialize(mode).ok())
        .unwrap_or(ActionMode::LlmProposal)
}
