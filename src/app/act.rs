//! Handles actions: their guards, and the commands that fixed rules understand. Such a command is
//! written in one transaction.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use metrics::{counter, histogram};
use serde_json::Value;
use tokio::time::Instant;

use super::offer::OfferReason;
use super::rate::Rate;
use super::{ActionInput, ActionRequest, App, Rejected, RequestIds, admission, count, spending};
use crate::actions::commands::{Action, Inputs, Requirements, execute};
use crate::actions::parser::{self, ParsedMessage};
use crate::actions::reply::{self, Reply, Why};
use crate::actions::{ProposalCache, gates, unread};
use crate::config::{ActionRules, ActionsPolicy};
use crate::domain::{
    ActionGate, ActionMode, CommandName, Context, Question, RunId, Source, Usd, User, fingerprint,
};
use crate::journal::{
    Acceptance, Accepted, ActionIntake, Ending, Event, Executed, GateChecked, NewRun, Owner,
    Parsed, Proposed, SpendingLimit,
};

/// The number of lines of the scene that a narration is given.
pub(super) const SCENE_LINES: u32 = 8;

/// How often an action is executed anew because another one of its user came between. Of a hundred
/// at once, each attempt lets at least one through.
const MAX_ATTEMPTS: u32 = 100;

/// The error for a proposal that was confirmed before.
pub(super) const CONFIRMED: &str = "the proposal was confirmed already";

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

/// The result of an action request.
#[derive(Debug, Clone, PartialEq)]
pub struct Acted {
    /// `None` if actions are switched off; then nothing was stored.
    pub run: Option<RunId>,
    /// The body of the response.
    pub response: Value,
}

/// A user's confirmation of a proposal.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pub proposal: RunId,
    pub source: Source,
    pub user: User,
    /// `None` for the place of the proposal.
    pub context: Option<Context>,
    /// The number of the confirmed choice, from 1.
    pub choice: usize,
    /// A repetition with the same key gets the stored answer.
    pub idempotency_key: Option<String>,
}

/// An action that was checked and is not in the journal yet.
#[derive(Clone)]
pub(super) struct Asked {
    pub question: Question,
    pub key: Option<String>,
    pub body_hash: String,
    pub correlation_id: Option<String>,
    pub id: RunId,
    pub at: Timestamp,
    pub arrived: Instant,
    pub rules: ActionRules,
    pub intake: ActionIntake,
}

/// A command, and how it was understood.
#[derive(Clone, Copy)]
pub(super) struct Understood<'a> {
    pub action: &'a Action,
    /// The reason of the proposal, if it was proposed.
    pub proposed: Option<Why<'a>>,
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
        let acted = self
            .take_action_on(action.into_question(), ids, arrived)
            .await;
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
            return self.told(known.run).await;
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

    /// Performs, offers or refuses an action, as the parser reads its text.
    async fn answer(self: &Arc<Self>, asked: Asked) -> Result<Acted, Rejected> {
        match parser::read(&asked.question.message) {
            ParsedMessage::Clear(action) if action.name().is_deletion() => {
                self.offer(asked, &action, OfferReason::Deletion).await
            }
            ParsedMessage::Clear(action) => {
                let understood = Understood {
                    action: &action,
                    proposed: None,
                };
                self.perform(asked, understood).await
            }
            ParsedMessage::FirstPerson(action) => {
                self.offer(asked, &action, OfferReason::FirstPerson).await
            }
            ParsedMessage::Labelled(action) => {
                self.offer(asked, &action, OfferReason::Labelled).await
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
    /// transaction.
    pub(super) async fn perform(
        self: &Arc<Self>,
        mut asked: Asked,
        understood: Understood<'_>,
    ) -> Result<Acted, Rejected> {
        let Understood { action, proposed } = understood;
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
            let attempt = self.attempt(&asked, &understood, events.clone(), seed);
            if let Some(acted) = attempt.await? {
                counter!("conclave_act_accepted_total", "command" => action.name().into_str(), "mode" => mode.into_str())
                    .increment(1);
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
        Understood { action, proposed }: &Understood<'_>,
        mut events: Vec<Event>,
        seed: u64,
    ) -> Result<Option<Acted>, Rejected> {
        let stamp = match action.changes() {
            true => Some(self.store.stamp(&owner(&asked.question)).await?),
            false => None,
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
        let reply = match *proposed {
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
            ..Inputs::default()
        };
        if action.stores() {
            let used = self.store.stored_bytes(&owner).await?;
            facts.bytes_left = self.config.policy.actions.user_bytes.saturating_sub(used);
        }
        match action.needs() {
            Requirements::Nothing => facts.allowed.clone_from(&asked.rules.commands),
            Requirements::Sheets => facts.sheets = self.store.sheets(&owner).await?,
            Requirements::MemoryCount => {
                facts.memory_count = self.store.memory_count(&owner).await?;
            }
            Requirements::Memories { terms, most } => {
                facts.memories = self.store.memories(&owner, &terms, most).await?;
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

    /// Returns the response for an action that the store did not begin.
    pub(super) async fn not_begun(
        &self,
        not: Acceptance,
        needed: Usd,
        limits: Vec<SpendingLimit>,
    ) -> Result<Acted, Rejected> {
        match not {
            Acceptance::Joined(run) => self.told(run).await,
            Acceptance::KeyReused(run) => Err(Rejected::KeyReused { run }),
            Acceptance::OverLimit { scope, left } => {
                let (store, policy, now) = (&*self.store, &self.config.policy, self.clock.now());
                let spent = spending::spent(store, policy, limits, (scope, left, needed), now);
                Err(Rejected::Spent(Box::new(spent.await?)))
            }
            Acceptance::New => Err(Rejected::Draining),
        }
    }

    /// Waits for the end of an action and returns the response that its client was given.
    pub(super) async fn told(&self, run: RunId) -> Result<Acted, Rejected> {
        let finished = self.finished(run).await?;
        let response = match finished.map(|finished| finished.ending) {
            Some(Ending::Acted { response, .. }) => response,
            _ => Reply::declined("unknown_intent", reply::TOO_SLOW).value(),
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

fn owner(question: &Question) -> Owner {
    Owner {
        source: question.source,
        user_id: question.user.id.clone(),
        guild_id: question.context.guild_id.clone(),
    }
}

/// Returns the idempotency key of the action that executes a proposal.
pub(super) fn confirmed_by(proposal: RunId) -> String {
    format!("confirm:{proposal}")
}

/// Checks that the rules allow a command. `how` says what would happen then.
///
/// # Errors
/// The rule that forbids it, for the journal, and the reply for the client.
pub(super) fn permitted(
    action: &Action,
    asked: &Asked,
    how: &'static str,
) -> Result<(), (String, Reply)> {
    if let Err(why) = gates::policy(action, &asked.rules) {
        return Err((why, not_allowed(action.name())));
    }
    if asked.rules.shadow {
        counter!("conclave_act_shadow_total", "command" => action.name().into_str(), "how" => how)
            .increment(1);
        let reply = Reply::shadow(action, &asked.question.user.id, how);
        return Err(("shadow mode".into(), reply));
    }
    Ok(())
}

fn not_allowed(command: CommandName) -> Reply {
    Reply::declined(
        "not_allowed",
        format!("The command {command} is not allowed here."),
    )
}

pub(super) fn disabled() -> Acted {
    let message = "Actions are switched off here. Nothing was done.";
    Acted {
        run: None,
        response: Reply::declined("disabled", message).value(),
    }
}

/// Returns the command name and the arguments of one choice of an offer. Choices are numbered from
/// 1.
pub(super) fn reading(offer: &Value, choice: usize) -> Option<(String, Value)> {
    let of = |value: &Value| {
        Some((
            value.get("action")?.as_str()?.to_owned(),
            value.get("args")?.clone(),
        ))
    };
    match offer.get("choices").and_then(Value::as_array) {
        Some(choices) => of(choices.get(choice.checked_sub(1)?)?),
        None if choice == 1 => of(offer.get("proposed_action")?),
        None => None,
    }
}

/// Counts the gate of an event if the gate was not passed.
pub(super) fn rejected_by(event: &Event) {
    if let Event::GateChecked(GateChecked {
        gate,
        passed: false,
        ..
    }) = event
    {
        // The last gate rejects nothing: it only decides whether a confirmation is needed.
        if *gate != ActionGate::AutoExecution {
            counter!("conclave_act_rejected_total", "gate" => gate.into_str()).increment(1);
        }
    }
}

pub(super) fn observe(acted: &Result<Acted, Rejected>, arrived: Instant) {
    let mode = |response: &Value| match response.get("mode").and_then(Value::as_str) {
        Some("deterministic") => "deterministic",
        Some(_) => "llm_proposal",
        None => "none",
    };
    let (outcome, mode) = match acted {
        Ok(acted) => {
            let executed = acted.response.get("executed").and_then(Value::as_bool);
            let outcome = match executed {
                Some(true) => "executed",
                Some(false) => "offered",
                None if acted.response.get("would").is_some() => "shadow",
                None => "declined",
            };
            (outcome, mode(&acted.response))
        }
        Err(_) => ("refused", "none"),
    };
    if let Ok(Acted {
        run: Some(run),
        response,
    }) = acted
    {
        let command = response
            .pointer("/intent/action")
            .and_then(Value::as_str)
            .unwrap_or("none");
        let took_ms = arrived.elapsed().as_millis();
        let took_ms = u64::try_from(took_ms).unwrap_or(u64::MAX);
        tracing::info_span!("run", requestId = %run).in_scope(|| {
            tracing::info!(command, mode, outcome, took_ms, "an action");
        });
    }
    counter!("conclave_act_requests_total", "outcome" => outcome, "mode" => mode).increment(1);
    histogram!("conclave_act_seconds", "mode" => mode).record(arrived.elapsed().as_secs_f64());
}

/// Returns the alternatives of a proposal that pass the gates, at most two and without repetition.
/// Also returns why others were dropped.
pub(super) fn others(
    proposed: &Proposed,
    rules: &ActionRules,
    policy: &ActionsPolicy,
    first: &Action,
) -> (Vec<Action>, Vec<String>) {
    let (mut others, mut dropped): (Vec<Action>, Vec<String>) = (vec![], vec![]);
    for (n, alternative) in proposed.alternatives.iter().enumerate() {
        let passage = gates::pass(
            &alternative.action,
            &alternative.args,
            0.0,
            rules,
            &policy.proposer,
        );
        match passage.action {
            Some(action) if action != *first && !others.contains(&action) => others.push(action),
            Some(_) => {}
            None => {
                let verdict = passage
                    .checked
                    .last()
                    .map(|verdict| verdict.why.as_str())
                    .unwrap_or_default();
                let why = if unread(alternative) {
                    "it is not of the form that was asked for"
                } else {
                    verdict
                };
                dropped.push(format!("alternative {} was dropped: {why}", n + 1));
            }
        }
    }
    others.truncate(2);
    (others, dropped)
}

/// Returns the duration of the lease of an action during its model call.
pub(super) fn lease(policy: &crate::config::Policy) -> Duration {
    policy
        .lease
        .max(policy.actions.timeout + Duration::from_secs(10))
}
