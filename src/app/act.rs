//! Handles actions: their guards, and the commands that fixed rules understand. Such a command is
//! written in one transaction.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use metrics::counter;
use tokio::time::Instant;

use super::action::{Acted, Asked, disabled, not_allowed, observe, owner, permitted};
use super::offer::OfferReason;
use super::rate::Rate;
use super::{ActionInput, ActionRequest, App, Rejected, RequestIds, admission, count};
use crate::actions::ProposalCache;
use crate::actions::commands::{Action, Inputs, Requirements, execute};
use crate::actions::parser::{self, ParsedMessage};
use crate::actions::reply::{self, Reply, Why};
use crate::config::ActionsPolicy;
use crate::domain::{ActionGate, ActionMode, Question, RunId, Source, Usd, User, fingerprint};
use crate::journal::{
    Accepted, ActionIntake, Ending, Event, Executed, GateChecked, NewRun, Parsed, SpendingLimit,
};

/// How often an action is executed anew because another one of its user came between. Of a hundred
/// at once, each attempt lets at least one through.
const MAX_ATTEMPTS: u32 = 100;

/// A text of at most this length is read in a few milliseconds.
const MAX_SHORT_BYTES: usize = 2000;

/// The proposal cache and the rate limit of actions in this process.
pub(super) struct ActGuards {
    pub plans: ProposalCache,
    rate: Rate<(&'static str, String)>,
}

impl ActGuards {
    pub fn new(policy: &ActionsPolicy) -> Self {
        let some = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            plans: ProposalCache::new(policy.cache),
            rate: Rate::per_minute(some(policy.user_per_minute), some(policy.user_burst)),
        }
    }
}

impl App {
    /// Checks the rules of an action.
    ///
    /// # Errors
    /// [`Rejected::Invalid`].
    pub fn action_request(&self, input: ActionInput) -> Result<ActionRequest, Rejected> {
        let limits = &self.config.policy.limits;
        let parsed = ActionRequest::parse(input, limits, &self.committee.secrets);
        parsed.map_err(|problems| {
            counter!("conclave_act_requests_total", "outcome" => "refused", "mode" => "none")
                .increment(1);
            count(Rejected::Invalid(problems))
        })
    }

    /// Interprets a text and executes its command, or declines it. The action is in the journal
    /// when this returns, unless actions are switched off.
    ///
    /// # Errors
    /// [`Rejected`]; then nothing was done.
    pub async fn act(
        self: &Arc<Self>,
        action: ActionRequest,
        ids: RequestIds,
    ) -> Result<Acted, Rejected> {
        let arrived = Instant::now();
        let acted = self.take_action_on(action.0, ids, arrived).await;
        observe(&acted, arrived);
        acted.map_err(count)
    }

    async fn take_action_on(
        self: &Arc<Self>,
        question: Question,
        ids: RequestIds,
        arrived: Instant,
    ) -> Result<Acted, Rejected> {
        let RequestIds {
            idempotency_key,
            correlation_id,
        } = ids.redacted(&self.committee.secrets);
        let rules = self
            .config
            .policy
            .actions
            .rules(question.context.guild_id.as_deref());
        if !rules.enabled {
            return Ok(disabled());
        }
        let body = serde_json::to_string(&question).unwrap_or_default();
        let body_hash = fingerprint(&[b"act", body.as_bytes()]);
        let key = admission::idempotency_key(&question, idempotency_key.as_deref())
            .map(|key| format!("act:{key}"));
        if let Some(known) = self.known(key.as_deref(), &body_hash).await? {
            return self.told(known).await;
        }
        self.pace_action(question.source, &question.user)?;
        let (id, at) = (RunId::from_uuid(self.clock.new_id()), self.clock.now());
        let intake = ActionIntake::default();
        let asked = Asked {
            question,
            key,
            body_hash,
            correlation_id,
            id,
            at,
            arrived,
            rules,
            intake,
        };
        self.answer(asked).await
    }

    /// Reads text of users: at once if it is short, so that no action waits behind other pieces of work,
    /// else off the async workers.
    pub(super) async fn read_text<T>(&self, bytes: usize, read: impl FnOnce() -> T + Send) -> T {
        if bytes <= MAX_SHORT_BYTES {
            read()
        } else {
            self.compute(read).await
        }
    }

    /// Performs, offers or refuses an action, as the parser reads its text.
    async fn answer(self: &Arc<Self>, asked: Asked) -> Result<Acted, Rejected> {
        let message = &asked.question.message;
        let read = || parser::read(message);
        match self.read_text(message.len(), read).await {
            ParsedMessage::Clear(action) if action.name().is_deletion() => {
                self.offer(asked, &action, OfferReason::Deletion).await
            }
            ParsedMessage::Clear(action) => self.perform(asked, &action, None).await,
            ParsedMessage::FirstPerson(action) => {
                self.offer(asked, &action, OfferReason::FirstPerson).await
            }
            ParsedMessage::Wrong { command, problem } => {
                let reply = if asked.rules.commands.contains(&command) {
                    Reply::declined("invalid_arguments", format!("{command}: {problem}"))
                } else {
                    not_allowed(command)
                };
                self.finish(asked, vec![], &reply).await
            }
            ParsedMessage::Unclear => self.propose(asked).await,
        }
    }

    pub(super) fn pace_action(&self, source: Source, user: &User) -> Result<(), Rejected> {
        let key = (source.into_str(), user.id.clone());
        self.acting
            .rate
            .take(&key)
            .map_err(|retry_after| Rejected::TooOften { retry_after })
    }

    /// Executes an understood command if the rules allow it, and writes all its events in one
    /// transaction. `proposed` is the reason of the proposal, if it was proposed.
    pub(super) async fn perform(
        self: &Arc<Self>,
        mut asked: Asked,
        action: &Action,
        proposed: Option<Why<'_>>,
    ) -> Result<Acted, Rejected> {
        let mode = proposed.map_or(ActionMode::Deterministic, |why| why.mode);
        let mut events = vec![Event::Parsed(Parsed {
            command: action.name(),
            arguments: action.arguments(),
            mode,
            confidence: proposed.map_or(1.0, |why| why.confidence),
            reason: proposed.map(|why| why.reason.to_owned()),
        })];
        let seed = self.clock.new_seed();
        if let Err((why, reply)) = permitted(action, &asked, "execute") {
            events.push(Event::GateChecked(GateChecked {
                gate: ActionGate::Policy,
                passed: false,
                why,
            }));
            return self.decline(asked, events, &reply, seed).await;
        }
        for _ in 0..MAX_ATTEMPTS {
            let attempt = self.attempt(&asked, (action, proposed), events.clone(), seed);
            if let Some(acted) = attempt.await? {
                let executed = acted.response.get("executed");
                if acted.run == Some(asked.id) && executed.is_some_and(|it| it == true) {
                    counter!("conclave_act_accepted_total", "command" => action.name().into_str(), "mode" => mode.into_str())
                        .increment(1);
                }
                return Ok(acted);
            }
            // Its data is newer than that of the action that came between.
            asked.at = self.clock.now();
        }
        Err(Rejected::Busy)
    }

    /// Executes a command on the user's present data, and writes it with `events` before it. Returns
    /// `None`, and writes nothing, if another action changed that data meanwhile.
    async fn attempt(
        self: &Arc<Self>,
        asked: &Asked,
        (action, proposed): (&Action, Option<Why<'_>>),
        mut events: Vec<Event>,
        seed: u64,
    ) -> Result<Option<Acted>, Rejected> {
        let stamp = if action.changes() {
            Some(self.store.stamp(&owner(&asked.question)).await?)
        } else {
            None
        };
        let facts = self.facts(action, asked).await?;
        let mut done = match execute(action, &facts, seed) {
            Ok(done) => done,
            Err(refusal) => {
                let reply = Reply::declined(refusal.error, refusal.message);
                let declined = self.decline(asked.clone(), events, &reply, seed).await;
                return declined.map(Some);
            }
        };
        let narrator = self.narrate(action, asked, &mut done).await;
        let result = done.result;
        let reply = match proposed {
            None => Reply::done(action, result.clone()),
            Some(why) => {
                Reply::proposed_and_done(action, why, asked.question.source, result.clone())
            }
        };
        events.push(Event::Executed(Box::new(Executed {
            command: action.name(),
            result,
            effect: done.effect,
        })));
        let (id, key) = (asked.id, &asked.key);
        let acted = self
            .conclude(asked.clone(), events, &reply, seed, stamp)
            .await;
        let is_written = |acted: &Acted| acted.run == Some(id);
        if let Some(narrator) = narrator
            && !acted
                .as_ref()
                .is_ok_and(|acted| acted.as_ref().is_some_and(is_written))
        {
            tracing::info!(
                ?key,
                "the action was not written: its narration is not wanted"
            );
            let _ = self.cancel(narrator).await;
        }
        acted
    }

    /// Loads the user's data that a command needs.
    pub(super) async fn facts(&self, action: &Action, asked: &Asked) -> Result<Inputs, Rejected> {
        let question = &asked.question;
        let owner = owner(question);
        let mut facts = Inputs {
            id: asked.id.to_string(),
            offered_at: asked.intake.confirms.and_then(RunId::made_at),
            allowed: asked.rules.commands.clone(),
            ..Inputs::default()
        };
        if action.stores() {
            let used = self.store.stored_bytes(&owner).await?;
            facts.bytes_left = self.config.policy.actions.user_bytes.saturating_sub(used);
        }
        match action.needs() {
            Requirements::Nothing => {}
            Requirements::Sheets => facts.sheets = self.store.sheets(&owner).await?,
            Requirements::MemoryCount => {
                facts.memory_count = self.store.memory_count(&owner).await?;
            }
            Requirements::Memories { words, most } => {
                facts.memories = self.store.memories(&owner, &words, most).await?;
            }
            Requirements::MemoryPage { skip, most } => {
                facts.memories = self.store.memory_page(&owner, skip, most).await?;
                facts.memory_count = self.store.memory_count(&owner).await?;
            }
            Requirements::Memory(run) => {
                facts.memories = self.store.memory(&owner, run).await?.into_iter().collect();
            }
        }
        Ok(facts)
    }

    pub(super) fn new_action(
        &self,
        asked: Asked,
        seed: u64,
        cap: Usd,
        limits: Vec<SpendingLimit>,
    ) -> NewRun {
        let accepted = Accepted {
            action: Some(asked.intake),
            correlation_id: asked.correlation_id,
            ..self.accepted(asked.question, cap, seed)
        };
        NewRun {
            id: asked.id,
            at: asked.at,
            accepted,
            idempotency_key: asked.key,
            body_hash: asked.body_hash,
            limits,
        }
    }

    /// Waits for the end of an action and returns the response that its client was given.
    pub(super) async fn told(&self, run: RunId) -> Result<Acted, Rejected> {
        let finished = self.ended(run).await?;
        let response = match finished.map(|finished| finished.ending) {
            Some(Ending::Acted { response, .. }) => response,
            ended => {
                let message = match ended {
                    Some(Ending::Failed { .. }) => reply::INTERRUPTED,
                    Some(Ending::Cancelled) => reply::CANCELLED,
                    _ => reply::TOO_SLOW,
                };
                Reply::declined("unknown_intent", message).value()
            }
        };
        Ok(Acted {
            run: Some(run),
            response,
        })
    }

    /// Returns when a proposal made at `at` expires.
    pub(super) fn expiry(&self, at: Timestamp) -> Timestamp {
        let lasts = SignedDuration::try_from(self.config.policy.actions.proposal)
            .unwrap_or(SignedDuration::from_mins(15));
        at.saturating_add(lasts).unwrap_or(Timestamp::MAX)
    }
}
