//! Handles actions: their guards, and the commands that fixed rules understand. Such a command is
//! written in one transaction.

use std::num::NonZeroU32;
use std::sync::Arc;

use metrics::counter;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::action::{Acted, PendingAction, disabled, not_allowed, observe, permitted};
use super::narrated::{Conclusion, SameTransaction};
use super::offer::OfferReason;
use super::rate::Rate;
use super::{ActionInput, ActionRequest, App, Rejected, RequestIds, continuation, count};
use crate::actions::ProposalCache;
use crate::actions::commands::{Action, Inputs, Requirements, execute};
use crate::actions::parser::{self, ParsedMessage};
use crate::actions::reply::{self, ProposalReason, Reply};
use crate::config::ActionsPolicy;
use crate::domain::{ActionGate, ActionMode, Question, RunId, Source, Usd, User, fingerprint};
use crate::journal::{
    Accepted, ActionSubmission, Ending, Event, Executed, GateChecked, NewRun, Owner, Parsed,
    SpendingLimit,
};

/// How often an action is executed anew because another one of its user came between. Of a hundred
/// at once, each attempt lets at least one through.
pub(super) const MAX_ATTEMPTS: u32 = 100;

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

/// What a command did, before it is written.
pub(super) struct Execution {
    /// [`Event::Executed`]; `None` if the command was refused.
    pub executed: Option<Event>,
    pub reply: Reply,
    /// What is written with it.
    pub same_transaction: SameTransaction,
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
        let key = continuation::idempotency_key(&question, idempotency_key.as_deref())
            .map(|key| format!("act:{key}"));
        if let Some(known) = self.known(key.as_deref(), &body_hash).await? {
            return self.stored_response(known).await;
        }
        self.check_action_rate(question.source, &question.user)?;
        let (id, at) = (RunId::from_uuid(self.clock.new_id()), self.clock.now());
        let submission = ActionSubmission::default();
        let pending = PendingAction {
            question,
            key,
            body_hash,
            correlation_id,
            id,
            at,
            arrived,
            rules,
            submission,
        };
        self.answer(pending).await
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
    async fn answer(self: &Arc<Self>, pending: PendingAction) -> Result<Acted, Rejected> {
        let message = &pending.question.message;
        let read = || parser::read(message);
        match self.read_text(message.len(), read).await {
            ParsedMessage::Clear(action) if action.name().is_deletion() => {
                self.offer(pending, &action, OfferReason::Deletion).await
            }
            ParsedMessage::Clear(action) => self.perform(pending, &action, None).await,
            ParsedMessage::FirstPerson(action) => {
                self.offer(pending, &action, OfferReason::FirstPerson).await
            }
            ParsedMessage::Wrong { command, problem } => {
                let reply = if pending.rules.commands.contains(&command) {
                    Reply::declined("invalid_arguments", format!("{command}: {problem}"))
                } else {
                    not_allowed(command)
                };
                self.finish(pending, vec![], &reply).await
            }
            ParsedMessage::Unclear => self.propose(pending).await,
        }
    }

    pub(super) fn check_action_rate(&self, source: Source, user: &User) -> Result<(), Rejected> {
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
        mut pending: PendingAction,
        action: &Action,
        proposed: Option<ProposalReason<'_>>,
    ) -> Result<Acted, Rejected> {
        let mut events = vec![parsed(action, proposed)];
        let seed = self.clock.new_seed();
        if let Err((why, reply)) = permitted(action, &pending, "execute") {
            events.push(Event::GateChecked(GateChecked {
                gate: ActionGate::Policy,
                passed: false,
                why,
            }));
            return self.decline(pending, events, &reply, seed).await;
        }
        for _ in 0..MAX_ATTEMPTS {
            let attempt = self.attempt(&pending, action, proposed, events.clone(), seed);
            if let Some(acted) = attempt.await? {
                return Ok(acted);
            }
            // Its data is newer than that of the action that came between.
            pending.at = self.clock.now();
        }
        Err(Rejected::Busy)
    }

    /// Executes a command on the user's present data, and writes it with `events` before it. Returns
    /// `None`, and writes nothing, if another action changed that data meanwhile.
    async fn attempt(
        self: &Arc<Self>,
        pending: &PendingAction,
        action: &Action,
        proposed: Option<ProposalReason<'_>>,
        events: Vec<Event>,
        seed: u64,
    ) -> Result<Option<Acted>, Rejected> {
        let mut silent = None;
        loop {
            let execution = self.execute_command(pending, action, proposed, seed, silent);
            let done = execution.await?;
            let Some(executed) = done.executed else {
                let declined = self.decline(pending.clone(), events, &done.reply, seed);
                return declined.await.map(Some);
            };
            let mut events = events.clone();
            events.push(executed);
            let concluded = self.conclude(
                pending.clone(),
                events,
                &done.reply,
                seed,
                done.same_transaction,
            );
            match concluded.await? {
                Conclusion::Ended(acted) => {
                    if acted.run == Some(pending.id) {
                        count_accepted(action, proposed);
                    }
                    return Ok(Some(acted));
                }
                Conclusion::Conflict => return Ok(None),
                Conclusion::Unaffordable => silent = Some("the spending limit is reached"),
            }
        }
    }

    /// Executes a command on the user's present data. Writes nothing. `silent` says why its outcome is
    /// not narrated, if that is known.
    pub(super) async fn execute_command(
        self: &Arc<Self>,
        pending: &PendingAction,
        action: &Action,
        proposed: Option<ProposalReason<'_>>,
        seed: u64,
        silent: Option<&'static str>,
    ) -> Result<Execution, Rejected> {
        let stamp = if action.changes() {
            Some(self.store.stamp(&Owner::of(&pending.question)).await?)
        } else {
            None
        };
        let facts = self.facts(action, pending).await?;
        let mut done = match execute(action, &facts, seed) {
            Ok(done) => done,
            Err(refusal) => {
                return Ok(Execution {
                    executed: None,
                    reply: Reply::declined(refusal.error, refusal.message),
                    same_transaction: SameTransaction::default(),
                });
            }
        };
        let narration = match silent {
            None => self.narration(action, pending, &done.result).await?,
            Some(why) => Some(Err(why)),
        };
        if let (Some(narration), Value::Object(result)) = (&narration, &mut done.result) {
            let run = narration.as_ref().ok().map(|it| it.run.id.to_string());
            let why = narration.as_ref().err();
            result.insert(
                "narration".into(),
                json!({ "run": run, "unavailable": why }),
            );
        }
        let result = done.result.clone();
        let reply = match proposed {
            None => Reply::done(action, result),
            Some(why) => Reply::proposed_and_done(action, why, pending.question.source, result),
        };
        let executed = Event::Executed(Box::new(Executed {
            command: action.name(),
            result: done.result,
            effect: done.effect,
        }));
        Ok(Execution {
            executed: Some(executed),
            reply,
            same_transaction: SameTransaction {
                stamp,
                narration: narration.and_then(Result::ok),
            },
        })
    }

    /// Loads the user's data that a command needs.
    pub(super) async fn facts(
        &self,
        action: &Action,
        pending: &PendingAction,
    ) -> Result<Inputs, Rejected> {
        let question = &pending.question;
        let owner = Owner::of(question);
        let mut facts = Inputs {
            id: pending.id.to_string(),
            offered_at: pending.submission.confirms.and_then(RunId::made_at),
            allowed: pending.rules.commands.clone(),
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
        pending: PendingAction,
        seed: u64,
        cap: Usd,
        limits: Vec<SpendingLimit>,
    ) -> NewRun {
        let accepted = Accepted {
            action: Some(pending.submission),
            correlation_id: pending.correlation_id,
            ..self.accepted(pending.question, cap, seed)
        };
        NewRun {
            id: pending.id,
            at: pending.at,
            accepted,
            idempotency_key: pending.key,
            body_hash: pending.body_hash,
            limits,
        }
    }

    /// Waits for the end of an action and returns the response that its client was given.
    pub(super) async fn stored_response(&self, run: RunId) -> Result<Acted, Rejected> {
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
}

/// Returns the event of an understood command. `proposed` is the reason of its proposal, if it was
/// proposed.
pub(super) fn parsed(action: &Action, proposed: Option<ProposalReason<'_>>) -> Event {
    Event::Parsed(Parsed {
        command: action.name(),
        arguments: action.arguments(),
        mode: mode_of(proposed),
        confidence: proposed.map_or(1.0, |why| why.confidence),
        reason: proposed.map(|why| why.reason.to_owned()),
    })
}

/// Counts a command whose execution was written.
pub(super) fn count_accepted(action: &Action, proposed: Option<ProposalReason<'_>>) {
    let mode = mode_of(proposed).into_str();
    counter!("conclave_act_accepted_total", "command" => action.name().into_str(), "mode" => mode)
        .increment(1);
}

fn mode_of(proposed: Option<ProposalReason<'_>>) -> ActionMode {
    proposed.map_or(ActionMode::Deterministic, |why| why.mode)
}
