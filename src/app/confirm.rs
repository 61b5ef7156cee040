//! Confirmations of proposed actions.

use super::action::{
    Acted, Confirmation, PendingAction, ProposalGone, confirmed_by, disabled, observe,
};
use super::narrated::SameTransaction;
use super::request::{check_names, is_own};
use super::{App, FieldProblem, Rejected, count};
use crate::actions::commands::Action;
use crate::actions::reply::{ProposalReason, ProposalReply, Reply};
use crate::domain::{Context, Question, RunId, RunKind, Source, User, fingerprint};
use crate::journal::{ActionOutcome, ActionSubmission, Ending, Event, Transcript};
use jiff::Timestamp;
use serde::Deserialize as _;
use std::sync::Arc;
use tokio::time::Instant;

/// The most choices of a proposal.
const MAX_CHOICES: usize = 3;

/// The command that a user confirms.
#[derive(Clone, Copy)]
struct ChosenCommand<'a> {
    proposal: RunId,
    /// Counts from 1.
    choice: usize,
    idempotency_key: Option<&'a str>,
}

impl App {
    /// Executes a proposal that its user has confirmed, once. A repetition with the same idempotency
    /// key gets the stored answer.
    ///
    /// # Errors
    /// [`Rejected::NoSuchProposal`] also for another user's proposal, [`Rejected::ProposalGone`] if
    /// it was confirmed before or has expired.
    pub async fn confirm(
        self: &Arc<Self>,
        proposal: RunId,
        confirmation: Confirmation,
        idempotency_key: Option<&str>,
    ) -> Result<Acted, Rejected> {
        let arrived = Instant::now();
        let acted = self
            .take_confirmation(proposal, confirmation, idempotency_key, arrived)
            .await;
        observe(&acted, arrived);
        acted.map_err(count)
    }

    async fn take_confirmation(
        self: &Arc<Self>,
        proposal: RunId,
        confirmation: Confirmation,
        idempotency_key: Option<&str>,
        arrived: Instant,
    ) -> Result<Acted, Rejected> {
        let chosen = ChosenCommand {
            proposal,
            choice: confirmation.choice,
            idempotency_key,
        };
        let Confirmation {
            source,
            user,
            context,
            ..
        } = confirmation;
        let given = context.clone().unwrap_or_default();
        check_names(&user, &given).map_err(Rejected::Invalid)?;
        self.check_action_rate(source, &user)?;
        let entries = self.store.entries(proposal, 0).await?;
        let transcript = Transcript::of_entries(&entries);
        let question = own_question(&transcript, source, user, context)?;
        let rules = self
            .config
            .policy
            .actions
            .rules(question.context.guild_id.as_deref());
        if !rules.enabled {
            return Ok(disabled());
        }
        let at = self.clock.now();
        let key = confirmed_by(proposal);
        if let Some((run, known)) = self.store.by_key(&key).await? {
            return self.confirmed(run, &known, chosen).await;
        }
        let offer = open_offer(&transcript, at)?;
        let action = chosen.command(&offer)?;
        let pending = PendingAction {
            question,
            // There is one key per proposal: the second execution finds it taken, even if both are
            // concurrent.
            key: Some(key.clone()),
            body_hash: chosen.hash(),
            correlation_id: None,
            id: RunId::from_uuid(self.clock.new_id()),
            at,
            arrived,
            rules,
            submission: ActionSubmission {
                confirms: Some(proposal),
            },
        };
        let proposed = Some(why(&transcript, &offer));
        match self.perform(pending, &action, proposed).await {
            // Another confirmation was faster.
            Err(Rejected::ProposalGone(why)) => match self.store.by_key(&key).await? {
                Some((run, known)) => self.confirmed(run, &known, chosen).await,
                None => Err(Rejected::ProposalGone(why)),
            },
            acted => acted,
        }
    }

    /// Returns the answer to a confirmation that was made before: that of the first one to a repetition
    /// with the same idempotency key. `known` is the hash of the first one.
    async fn confirmed(
        &self,
        run: RunId,
        known: &str,
        chosen: ChosenCommand<'_>,
    ) -> Result<Acted, Rejected> {
        let is_of = |choice: &usize| {
            let choice = *choice;
            chosen.idempotency_key.is_some() && known == ChosenCommand { choice, ..chosen }.hash()
        };
        match (1..=MAX_CHOICES).find(is_of) {
            Some(confirmed) if confirmed == chosen.choice => self.stored_response(run).await,
            Some(_) => Err(Rejected::KeyReused { run }),
            None => Err(Rejected::ProposalGone(ProposalGone::Confirmed)),
        }
    }

    /// Records that a command was not executed. A declined confirmation leaves the proposal as it
    /// was, because only an execution takes its key.
    pub(super) async fn decline(
        &self,
        mut pending: PendingAction,
        events: Vec<Event>,
        reply: &Reply,
        seed: u64,
    ) -> Result<Acted, Rejected> {
        if let Some(proposal) = pending.submission.confirms {
            pending.key = None;
            // The refusal may result from another confirmation that has just been executed.
            if self.store.by_key(&confirmed_by(proposal)).await?.is_some() {
                return Err(Rejected::ProposalGone(ProposalGone::Confirmed));
            }
        }
        let concluded = self.conclude(pending, events, reply, seed, SameTransaction::default());
        concluded.await?.ended()
    }
}

impl ChosenCommand<'_> {
    /// Returns the hash of a confirmation, which includes its idempotency key.
    fn hash(&self) -> String {
        let (proposal, choice) = (self.proposal.to_string(), self.choice.to_string());
        match self.idempotency_key {
            None => fingerprint(&[b"confirm", proposal.as_bytes()]),
            Some(key) => fingerprint(&[
                b"confirm",
                proposal.as_bytes(),
                choice.as_bytes(),
                key.as_bytes(),
            ]),
        }
    }

    /// Returns the command of this choice of an offer.
    fn command(&self, offer: &ProposalReply) -> Result<Action, Rejected> {
        let only = &offer.proposed_action;
        let mut choices = offer.choices.iter();
        let chosen = match choices.find(|choice| choice.choice == self.choice) {
            Some(choice) => Some((choice.action, &choice.args)),
            None if offer.choices.is_empty() && self.choice == 1 => Some((only.action, &only.args)),
            None => None,
        };
        let Some((name, args)) = chosen else {
            let problem = FieldProblem::new("/choice", "the proposal has no such choice");
            return Err(Rejected::Invalid(vec![problem]));
        };
        Action::read(name, args.clone()).map_err(|_| Rejected::NoSuchProposal)
    }
}

/// Returns the question of a proposal that the user may confirm, in its present context.
fn own_question(
    transcript: &Transcript<'_>,
    source: Source,
    user: User,
    context: Option<Context>,
) -> Result<Question, Rejected> {
    let accepted = transcript
        .accepted
        .filter(|accepted| accepted.kind() == RunKind::Action)
        .ok_or(Rejected::NoSuchProposal)?;
    let proposed = &accepted.question;
    let context = context.unwrap_or_else(|| proposed.context.clone());
    if !is_own(proposed, source, &user, &context) {
        return Err(Rejected::NoSuchProposal);
    }
    Ok(Question {
        source,
        user,
        context,
        ..proposed.clone()
    })
}

/// Returns the offer of a proposal that has not expired.
fn open_offer(transcript: &Transcript<'_>, at: Timestamp) -> Result<ProposalReply, Rejected> {
    let Some(Ending::Acted {
        outcome: ActionOutcome::Offered,
        response,
    }) = transcript.finished.map(|finished| &finished.ending)
    else {
        return Err(Rejected::NoSuchProposal);
    };
    let offer = ProposalReply::deserialize(response).map_err(|_| Rejected::NoSuchProposal)?;
    let expires = offer.proposal.as_ref().map(|it| it.expires_at.parse());
    let expires: Option<Timestamp> = expires.and_then(Result::ok);
    if expires.is_none_or(|expires| at >= expires) {
        return Err(Rejected::ProposalGone(ProposalGone::Expired));
    }
    Ok(offer)
}

/// Returns who made a proposal, and why.
fn why<'a>(transcript: &Transcript<'a>, offer: &ProposalReply) -> ProposalReason<'a> {
    let proposed = transcript.proposed;
    ProposalReason {
        mode: offer.mode,
        confidence: proposed.map_or(0.0, |proposed| proposed.confidence),
        reason: proposed.map_or("", |proposed| &proposed.reason),
    }
}
