//! Taking an action in: its guards, and the way by fixed rules, which ends in one transaction.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use metrics::{counter, histogram};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::rate::Rate;
use super::{App, Rejected, Submission, check, header_without_secrets, intake, without_secrets};
use crate::act::commands::{Action, Done, Facts, Needs, execute, narration};
use crate::act::phrases::{self, Reading};
use crate::act::reply::{self, Reply};
use crate::act::{Plans, gates, unread};
use crate::config::{ActionRules, ActionsPolicy};
use crate::domain::{ActionGate, ActionMode, CommandName, Question, RunId, RunKind, Usd, fingerprint};
use crate::journal::{
    Acceptance, Accepted, ActionIntake, ActionOutcome, Asker, Begun, Ending, Event, Executed, Finished, GateChecked,
    NewRun, Owner, Parsed, Proposed, SpendingLimit, Then, views,
};

/// So many lines of a scene are told to whoever narrates.
const SCENE_LINES: u32 = 8;

/// Why a proposal cannot be confirmed again.
const CONFIRMED: &str = "the proposal was confirmed already";

/// What guards actions, in this process.
pub(super) struct ActGuards {
    pub plans: Plans,
    rate: Rate<(&'static str, String)>,
}

impl ActGuards {
    pub fn new(policy: &ActionsPolicy) -> Self {
        let some = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            plans: Plans::new(policy.cache),
            rate: Rate::per_minute(some(policy.user_per_minute), some(policy.user_burst)),
        }
    }
}

/// What became of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Acted {
    /// `None` when actions are switched off: then nothing was stored.
    pub run: Option<RunId>,
    /// The response's body.
    pub response: Value,
}

/// Who confirms a proposal, and which of its readings.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pub proposal: RunId,
    /// Who and where; its message is empty.
    pub question: Question,
    /// Where was not said: it is confirmed where it was proposed.
    pub in_place: bool,
    /// From 1.
    pub choice: usize,
}

/// An action that was checked and is not in the journal yet.
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

/// How a command was understood.
struct Understood<'a> {
    action: &'a Action,
    confidence: f64,
    /// What a model said, if it was a model.
    reason: Option<&'a str>,
}

impl App {
    /// Understands a text and does what it says, or says why not. It is in the journal when this returns.
    ///
    /// # Errors
    /// [`Rejected`]: then nothing was done.
    pub async fn act(self: &Arc<Self>, submission: Submission) -> Result<Acted, Rejected> {
        let arrived = Instant::now();
        let acted = self.take_action_on(submission, arrived).await;
        observe(&acted, arrived);
        acted
    }

    async fn take_action_on(self: &Arc<Self>, submission: Submission, arrived: Instant) -> Result<Acted, Rejected> {
        let Submission { mut question, idempotency_key, correlation_id } = submission;
        let problems = check(&mut question, &self.config.policy.limits);
        if !problems.is_empty() {
            return Err(Rejected::Invalid(problems));
        }
        without_secrets(&mut question, &self.committee.secrets);
        let idempotency_key = header_without_secrets(idempotency_key, &self.committee.secrets);
        let correlation_id = header_without_secrets(correlation_id, &self.committee.secrets);
        let rules = self.config.policy.actions.rules(question.context.guild_id.as_deref());
        if !rules.enabled {
            return Ok(disabled());
        }
        let body = serde_json::to_string(&question).unwrap_or_default();
        let body_hash = fingerprint(&[b"act", body.as_bytes()]);
        let key = intake::idempotency_key(&question, idempotency_key.as_deref()).map(|key| format!("act:{key}"));
        if let Some(known) = self.known(key.as_deref(), &body_hash).await? {
            return self.told(known?.run).await;
        }
        self.pace_action(&question)?;
        let (id, at) = (RunId::from_uuid(self.clock.new_id()), self.clock.now());
        let intake = ActionIntake::default();
        let asked = Asked { question, key, body_hash, correlation_id, id, at, arrived, rules, intake };
        match phrases::read(&asked.question.message) {
            Reading::Clear(action) => {
                let understood = Understood { action: &action, confidence: 1.0, reason: None };
                self.perform(asked, understood).await
            }
            Reading::Wrong { command, problem } => {
                let reply = if asked.rules.commands.contains(&command) {
                    Reply::declined("invalid_arguments", format!("{command}: {problem}"))
                } else {
                    not_allowed(command)
                };
                self.conclude(asked, vec![], &reply).await
            }
            Reading::Unclear => self.propose(asked).await,
        }
    }

    fn pace_action(&self, question: &Question) -> Result<(), Rejected> {
        let key = (question.source.as_str(), question.user.id.clone());
        self.acting.rate.take(&key).map_err(|retry_after| Rejected::TooOften { retry_after })
    }

    /// Executes what its user has confirmed, once.
    ///
    /// # Errors
    /// [`Rejected::NoSuchProposal`] also for that of somebody else, [`Rejected::ProposalGone`] when it was confirmed already
    /// or has expired.
    pub async fn confirm(self: &Arc<Self>, confirmation: Confirmation) -> Result<Acted, Rejected> {
        let arrived = Instant::now();
        let acted = self.take_confirmation(confirmation, arrived).await;
        observe(&acted, arrived);
        acted
    }

    async fn take_confirmation(self: &Arc<Self>, asks: Confirmation, arrived: Instant) -> Result<Acted, Rejected> {
        let Confirmation { proposal, mut question, in_place, choice } = asks;
        // The rules of a request, with a message that keeps them.
        question.message = "confirm".into();
        let problems = check(&mut question, &self.config.policy.limits);
        if !problems.is_empty() {
            return Err(Rejected::Invalid(problems));
        }
        self.pace_action(&question)?;
        let entries = self.store.entries(proposal, 0).await?;
        let Some(accepted) = views::accepted(&entries).filter(|accepted| accepted.kind() == RunKind::Action) else {
            return Err(Rejected::NoSuchProposal);
        };
        if in_place {
            question.context = accepted.question.context.clone();
        }
        let asker = |q: &Question| (q.source, q.user.id.clone(), q.context.guild_id.clone());
        if asker(&accepted.question) != asker(&question) {
            return Err(Rejected::NoSuchProposal);
        }
        let rules = self.config.policy.actions.rules(question.context.guild_id.as_deref());
        if !rules.enabled {
            return Ok(disabled());
        }
        let offer = match views::finished(&entries).map(|finished| &finished.ending) {
            Some(Ending::Acted { outcome: ActionOutcome::Offered, response }) => response,
            _ => return Err(Rejected::NoSuchProposal),
        };
        let at = self.clock.now();
        let expires =
            offer.pointer("/proposal/expiresAt").and_then(Value::as_str).and_then(|at| at.parse::<Timestamp>().ok());
        if expires.is_none_or(|expires| at >= expires) {
            return Err(Rejected::ProposalGone("the proposal has expired"));
        }
        let Some((action, args)) = reading(offer, choice) else {
            let problem =
                super::FieldProblem { pointer: "/choice".into(), detail: "the proposal has no such choice".into() };
            return Err(Rejected::Invalid(vec![problem]));
        };
        let Ok(action) =
            action.parse::<CommandName>().map_err(drop).and_then(|name| Action::read(name, args).map_err(drop))
        else {
            return Err(Rejected::NoSuchProposal);
        };
        let proposed =
            entries.iter().find_map(|entry| if let Event::Proposed(p) = &entry.event { Some(p) } else { None });
        let (confidence, reason) = proposed.map_or((0.0, String::new()), |p| (p.confidence, p.reason.clone()));
        question.message.clone_from(&accepted.question.message);
        let key = confirmed_by(proposal);
        if self.store.by_key(&key).await?.is_some() {
            return Err(Rejected::ProposalGone(CONFIRMED));
        }
        let asked = Asked {
            question,
            // One key per proposal: the second to execute it finds it taken, however close they are.
            key: Some(key),
            body_hash: fingerprint(&[b"confirm", proposal.to_string().as_bytes()]),
            correlation_id: None,
            id: RunId::from_uuid(self.clock.new_id()),
            at,
            arrived,
            rules,
            intake: ActionIntake { confirms: Some(proposal) },
        };
        self.perform(asked, Understood { action: &action, confidence, reason: Some(&reason) }).await
    }

    /// Writes that a command was not executed. A confirmation of it leaves the proposal as it was: only an execution takes
    /// its key.
    async fn decline(&self, mut asked: Asked, events: Vec<Event>, reply: &Reply, seed: u64) -> Result<Acted, Rejected> {
        if let Some(proposal) = asked.intake.confirms {
            asked.key = None;
            // What is in the way may be what another confirmation has just done.
            if self.store.by_key(&confirmed_by(proposal)).await?.is_some() {
                return Err(Rejected::ProposalGone(CONFIRMED));
            }
        }
        self.conclude_seeded(asked, events, reply, seed).await
    }

    /// Executes a command that is beyond doubt, if the rules allow it, and writes all of it in one transaction.
    async fn perform(self: &Arc<Self>, asked: Asked, understood: Understood<'_>) -> Result<Acted, Rejected> {
        let Understood { action, confidence, reason } = understood;
        let mode = if reason.is_some() { ActionMode::LlmProposal } else { ActionMode::Deterministic };
        let mut events = vec![Event::Parsed(Parsed {
            command: action.name(),
            arguments: action.arguments(),
            mode,
            confidence,
            reason: reason.map(str::to_owned),
        })];
        let seed = self.clock.new_seed();
        if let Err((why, reply)) = permitted(action, &asked.rules) {
            events.push(Event::GateChecked(GateChecked { gate: ActionGate::Policy, passed: false, why }));
            return self.decline(asked, events, &reply, seed).await;
        }
        let facts = self.facts(action, &asked).await?;
        let mut done = match execute(action, &facts, seed) {
            Ok(done) => done,
            Err(refusal) => {
                let reply = Reply::declined(refusal.error, refusal.message);
                return self.decline(asked, events, &reply, seed).await;
            }
        };
        let narrator = self.narrate(action, &asked, &mut done).await;
        let result = done.result;
        let reply = match reason {
            None => Reply::done(action, result.clone()),
            Some(reason) => Reply::proposed_and_done(action, confidence, reason, asked.question.source, result.clone()),
        };
        events.push(Event::Executed(Box::new(Executed { command: action.name(), result, effect: done.effect })));
        counter!("conclave_act_accepted_total", "command" => action.name().as_str(), "mode" => mode.as_str())
            .increment(1);
        let (id, key) = (asked.id, asked.key.clone());
        let acted = self.conclude_seeded(asked, events, &reply, seed).await;
        if let (Some(narrator), true) = (narrator, acted.as_ref().map_or(true, |acted| acted.run != Some(id))) {
            tracing::info!(?key, "the action was not written: its narration is not wanted");
            let _ = self.cancel(narrator).await;
        }
        acted
    }

    /// What a command has to know of its user.
    pub(super) async fn facts(&self, action: &Action, asked: &Asked) -> Result<Facts, Rejected> {
        let question = &asked.question;
        let owner = Owner {
            source: question.source,
            user_id: question.user.id.clone(),
            guild_id: question.context.guild_id.clone(),
        };
        let mut facts = Facts { id: asked.id.to_string(), ..Facts::default() };
        match action.needs() {
            Needs::Nothing => facts.allowed.clone_from(&asked.rules.commands),
            Needs::Sheets => facts.sheets = self.store.sheets(&owner).await?,
            Needs::MemoryCount => facts.memory_count = self.store.memory_count(&owner).await?,
            Needs::Memories { terms, most } => facts.memories = self.store.memories(&owner, &terms, most).await?,
        }
        Ok(facts)
    }

    /// Has the committee tell what comes of a deed, where that is wanted. The run goes on by itself; its id is in the result.
    async fn narrate(self: &Arc<Self>, action: &Action, asked: &Asked, done: &mut Done) -> Option<RunId> {
        let Action::Do(arguments) = action else { return None };
        if !asked.rules.narration {
            return None;
        }
        let question = &asked.question;
        let place = question.context.channel_id.as_deref().unwrap_or("scene");
        let scene = Asker {
            source: question.source,
            user_id: question.user.id.clone(),
            guild_id: question.context.guild_id.clone(),
            channel_id: question.context.channel_id.clone(),
        };
        let lines = self.store.scene(&scene, SCENE_LINES).await.unwrap_or_default();
        // Deeds are seen by everybody; what somebody has noted for himself, or said out of character, is not told on.
        let spoken = |message: &str| matches!(phrases::read(message), Reading::Clear(Action::Do(_)));
        let lines: Vec<String> =
            lines.iter().filter(|line| spoken(&line.message)).map(|line| crate::act::cut(&line.message, 300)).collect();
        let mut told = question.clone();
        told.message = format!("new: {}", narration(&arguments.deed, &done.result, &lines));
        // A conversation of its own: a question of the committee about it is not answered by what is said in the channel.
        told.context.channel_id = Some(format!("{}/narration", crate::act::cut(place, 180)));
        told.context.message_id = None;
        let key = Some(format!("narration:{}", asked.id));
        let submission =
            Submission { question: told, idempotency_key: key, correlation_id: asked.correlation_id.clone() };
        let (run, why) = match Box::pin(self.submit(submission)).await {
            Ok(submitted) => (Some(submitted.run), None),
            Err(rejected) => {
                tracing::info!(%rejected, "nobody narrates");
                (None, Some("nobody can tell it now"))
            }
        };
        if let Value::Object(result) = &mut done.result {
            let narration = json!({ "run": run.map(|run| run.to_string()), "unavailable": why });
            result.insert("narration".into(), narration);
        }
        run
    }

    /// Writes an action that is over.
    pub(super) async fn conclude(&self, asked: Asked, events: Vec<Event>, reply: &Reply) -> Result<Acted, Rejected> {
        let seed = self.clock.new_seed();
        self.conclude_seeded(asked, events, reply, seed).await
    }

    async fn conclude_seeded(
        &self,
        asked: Asked,
        mut events: Vec<Event>,
        reply: &Reply,
        seed: u64,
    ) -> Result<Acted, Rejected> {
        let response = reply.value();
        let ending = Ending::Acted { outcome: reply.outcome(), response: response.clone() };
        events.push(Event::Finished(Box::new(Finished { ending, spent: Usd::ZERO })));
        for event in &events {
            rejected_by(event);
        }
        let (id, confirms) = (asked.id, asked.intake.confirms);
        let new = self.new_action(asked, seed, Usd::ZERO, vec![]);
        match self.store.begin(new, Then::End(events)).await? {
            Begun::Ended | Begun::Held(_) => Ok(Acted { run: Some(id), response }),
            Begun::Not(_) if confirms.is_some() => Err(Rejected::ProposalGone(CONFIRMED)),
            Begun::Not(not) => self.not_begun(not, Usd::ZERO, vec![]).await,
        }
    }

    pub(super) fn new_action(&self, asked: Asked, seed: u64, cap: Usd, limits: Vec<SpendingLimit>) -> NewRun {
        let accepted = Accepted {
            question: asked.question,
            action: Some(asked.intake),
            continues: None,
            correlation_id: asked.correlation_id,
            cap,
            seed,
            config_hash: self.config.hash.clone(),
            prompts_hash: self.committee.prompts.hash().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        NewRun { id: asked.id, at: asked.at, accepted, idempotency_key: asked.key, body_hash: asked.body_hash, limits }
    }

    /// What is said of an action that was not begun.
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
                let now = self.clock.now();
                let limit = limits.into_iter().find(|limit| limit.scope == scope);
                let limit = limit.unwrap_or(SpendingLimit { scope, since: now, most: left });
                let (store, policy) = (&*self.store, &self.config.policy);
                let spent = super::spending::spent(store, policy, (limit, left, needed), now).await?;
                Err(Rejected::Spent(Box::new(spent)))
            }
            Acceptance::New => Err(Rejected::Draining),
        }
    }

    /// What the client of an action was told, once it is over.
    pub(super) async fn told(&self, run: RunId) -> Result<Acted, Rejected> {
        let finished = self.finished(run).await?;
        let response = match finished.map(|finished| finished.ending) {
            Some(Ending::Acted { response, .. }) => response,
            _ => Reply::declined("unknown_intent", reply::TOO_SLOW).value(),
        };
        Ok(Acted { run: Some(run), response })
    }

    /// When a proposal made now expires.
    pub(super) fn expiry(&self, at: Timestamp) -> Timestamp {
        let lasts =
            SignedDuration::try_from(self.config.policy.actions.proposal).unwrap_or(SignedDuration::from_mins(15));
        at.saturating_add(lasts).unwrap_or(Timestamp::MAX)
    }
}

/// The key of the action that executes a proposal.
fn confirmed_by(proposal: RunId) -> String {
    format!("confirm:{proposal}")
}

/// Whether the rules let a command happen here.
///
/// # Errors
/// The rule, for the journal, and what the client is told.
pub(super) fn permitted(action: &Action, rules: &ActionRules) -> Result<(), (String, Reply)> {
    if let Err(why) = gates::policy(action, rules) {
        return Err((why, not_allowed(action.name())));
    }
    if rules.shadow {
        let message = "Actions are on trial here: this one was understood, and nothing was done.";
        return Err(("shadow mode".into(), Reply::declined("shadow_mode", message)));
    }
    Ok(())
}

fn not_allowed(command: CommandName) -> Reply {
    Reply::declined("not_allowed", format!("The command {command} is not allowed here."))
}

fn disabled() -> Acted {
    let message = "Actions are switched off here. Nothing was done.";
    Acted { run: None, response: Reply::declined("disabled", message).value() }
}

/// A reading of an offer by its number: the command's name and its arguments.
fn reading(offer: &Value, choice: usize) -> Option<(String, Value)> {
    let of = |value: &Value| Some((value.get("action")?.as_str()?.to_owned(), value.get("args")?.clone()));
    match offer.get("choices").and_then(Value::as_array) {
        Some(choices) => of(choices.get(choice.checked_sub(1)?)?),
        None if choice == 1 => of(offer.get("proposed_action")?),
        None => None,
    }
}

/// Counts a gate that was not passed.
pub(super) fn rejected_by(event: &Event) {
    if let Event::GateChecked(GateChecked { gate, passed: false, .. }) = event {
        // The last gate only decides who has the last word.
        if *gate != ActionGate::AutoExecution {
            counter!("conclave_act_rejected_total", "gate" => gate.as_str()).increment(1);
        }
    }
}

fn observe(acted: &Result<Acted, Rejected>, arrived: Instant) {
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
                None => "declined",
            };
            (outcome, mode(&acted.response))
        }
        Err(rejected) => {
            counter!("conclave_refused_total", "reason" => rejected.reason()).increment(1);
            ("refused", "none")
        }
    };
    if let Ok(Acted { run: Some(run), response }) = acted {
        let command = response.pointer("/intent/action").and_then(Value::as_str).unwrap_or("none");
        let took_ms = arrived.elapsed().as_millis();
        let took_ms = u64::try_from(took_ms).unwrap_or(u64::MAX);
        tracing::info_span!("run", requestId = %run).in_scope(|| {
            tracing::info!(command, mode, outcome, took_ms, "an action");
        });
    }
    counter!("conclave_act_requests_total", "outcome" => outcome, "mode" => mode).increment(1);
    histogram!("conclave_act_seconds", "mode" => mode).record(arrived.elapsed().as_secs_f64());
}

/// The further readings of a proposal that pass, at most two and each once, and why others were dropped.
pub(super) fn others(
    proposed: &Proposed,
    rules: &ActionRules,
    policy: &ActionsPolicy,
    first: &Action,
) -> (Vec<Action>, Vec<String>) {
    let (mut others, mut dropped): (Vec<Action>, Vec<String>) = (vec![], vec![]);
    for (n, alternative) in proposed.alternatives.iter().enumerate() {
        let passage = gates::pass(&alternative.action, &alternative.args, 0.0, rules, &policy.proposer);
        match passage.action {
            Some(action) if action != *first && !others.contains(&action) => others.push(action),
            Some(_) => {}
            None => {
                let verdict = passage.checked.last().map(|verdict| verdict.why.as_str()).unwrap_or_default();
                let why = if unread(alternative) { "it is not of the form that was asked for" } else { verdict };
                dropped.push(format!("alternative {} was dropped: {why}", n + 1));
            }
        }
    }
    others.truncate(2);
    (others, dropped)
}

/// How long this process may hold an action whose model call is under way.
pub(super) fn lease(policy: &crate::config::Policy) -> Duration {
    policy.lease.max(policy.actions.timeout + Duration::from_secs(10))
}
