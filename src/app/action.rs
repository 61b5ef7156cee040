//! What the handlers of actions share: the action while it is handled, and its rules.

use jiff::Timestamp;
use metrics::{counter, histogram};
use serde_json::Value;
use tokio::time::Instant;

use super::Rejected;
use crate::actions::commands::Action;
use crate::actions::reply::{Reply, not_understood};
use crate::actions::{gates, unread};
use crate::config::{ActionRules, ActionsPolicy};
use crate::domain::{ActionGate, CommandName, Context, Question, RunId, Source, User};
use crate::journal::{ActionSubmission, Event, GateChecked, Proposed};

/// The number of lines of the scene that a narration is given.
pub(super) const SCENE_LINES: u32 = 8;

/// Why a proposal can no longer be confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProposalGone {
    #[error("the proposal was confirmed already")]
    Confirmed,
    #[error("the proposal has expired")]
    Expired,
}

/// The result of an action request.
#[derive(Debug, Clone, PartialEq)]
pub struct Acted {
    /// `None` if actions are switched off; then nothing was stored.
    pub run: Option<RunId>,
    /// The body of the response.
    pub response: Value,
}

/// The confirmation of the user for whom a command was proposed.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pub source: Source,
    pub user: User,
    /// Default: that of the proposal.
    pub context: Option<Context>,
    /// Which choice of the proposal, counted from 1.
    pub choice: usize,
}

/// An action that was checked and is not in the journal yet.
#[derive(Clone)]
pub(super) struct PendingAction {
    pub question: Question,
    pub key: Option<String>,
    pub body_hash: String,
    pub correlation_id: Option<String>,
    pub id: RunId,
    pub at: Timestamp,
    pub arrived: Instant,
    pub rules: ActionRules,
    pub submission: ActionSubmission,
}

impl PendingAction {
    /// Returns the reply for a text that is no command.
    pub fn unknown(&self) -> Reply {
        let message = not_understood(&self.question.message, &self.rules.commands);
        Reply::declined("unknown_intent", message)
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
    pending: &PendingAction,
    how: &'static str,
) -> Result<(), (String, Reply)> {
    if let Err(why) = gates::policy(action, &pending.rules) {
        return Err((why, not_allowed(action.name())));
    }
    if pending.rules.shadow {
        counter!("conclave_act_shadow_total", "command" => action.name().into_str(), "how" => how)
            .increment(1);
        let reply = Reply::shadow(action, &pending.question.user.id, how);
        return Err(("shadow mode".into(), reply));
    }
    Ok(())
}

pub(super) fn not_allowed(command: CommandName) -> Reply {
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
    let (mut outcome, mut mode) = ("refused", "none");
    if let Ok(Acted { run, response }) = acted {
        outcome = match response.get("executed").and_then(Value::as_bool) {
            Some(true) => "executed",
            Some(false) => "offered",
            None if response.get("would").is_some() => "shadow",
            None => "declined",
        };
        mode = match response.get("mode").and_then(Value::as_str) {
            Some("deterministic") => "deterministic",
            Some(_) => "llm_proposal",
            None => "none",
        };
        if let Some(run) = run {
            let command = response.pointer("/intent/action").and_then(Value::as_str);
            let command = command.unwrap_or("none");
            let took_ms = u64::try_from(arrived.elapsed().as_millis()).unwrap_or(u64::MAX);
            tracing::error_span!("run", requestId = %run).in_scope(|| {
                tracing::info!(command, mode, outcome, took_ms, "an action");
            });
        }
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
        let outcome = gates::pass(
            &alternative.action,
            &alternative.args,
            0.0,
            rules,
            &policy.proposer,
        );
        match outcome.action {
            Some(action) if action != *first && !others.contains(&action) => others.push(action),
            Some(_) => {}
            None => {
                let verdict = outcome
                    .checked
                    .last()
                    .map(|verdict| verdict.why.as_str())
                    .unwrap_or_default();
                let why = if unread(alternative) {
                    "it is not of the form that was pending for"
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
