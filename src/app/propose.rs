//! Handles a text that no rule understands: one model call, four gates, and the user's
//! confirmation.

use std::sync::Arc;
use std::time::Duration;

use metrics::counter;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::act::{MAX_ATTEMPTS, count_accepted, parsed};
use super::action::{self, Acted, PendingAction};
use super::{App, Rejected, spending};
use crate::actions::commands::Action;
use crate::actions::gates::{self, GateOutcome};
use crate::actions::reply::{self, Offer, ProposalReason, Reply, SURE_ENOUGH};
use crate::actions::{
    CachedProposal, Interpretation, MAX_PROPOSED_CHARS, ProposalKey, Scene, declined_by_stub,
    propose,
};
use crate::domain::{ActionGate, ActionMode, CommandName};
use crate::journal::{
    AckTiming, Ending, Event, GateChecked, Lease, Proposed, RunContext, StartOutcome, Stop,
};

/// What the gates say of a proposal.
struct Checked {
    verdicts: Vec<GateChecked>,
    /// The command, or the reply if it is neither executed nor offered.
    action: Result<Action, Reply>,
    execute: bool,
    others: Vec<Action>,
}

impl App {
    /// Asks a model for a command if the proposer is enabled, and checks the proposal against the
    /// gates.
    pub(super) async fn propose(
        self: &Arc<Self>,
        pending: PendingAction,
    ) -> Result<Acted, Rejected> {
        let policy = &self.config.policy;
        let proposer = &policy.actions.proposer;
        let too_long = pending.question.message.chars().count() > MAX_PROPOSED_CHARS;
        let asks = proposer.enabled && !pending.rules.proposable().is_empty();
        if !asks || too_long {
            let reply = if asks {
                Reply::declined("unknown_intent", reply::TOO_LONG)
            } else {
                let bytes = pending.question.message.len();
                self.read_text(bytes, || pending.unknown()).await
            };
            return self.finish(pending, vec![], &reply).await;
        }
        if proposer.provider.is_none() {
            let events = vec![Event::Proposed(Box::new(declined_by_stub()))];
            let reply = pending.unknown();
            return self.finish(pending, events, &reply).await;
        }
        if self.runner.is_draining() {
            return Err(Rejected::Draining);
        }
        let slot = self.runner.slot().ok_or(Rejected::Busy)?;
        let (cap, until) = (policy.actions.max, pending.arrived + policy.actions.timeout);
        let limits = spending::limits(policy, &pending.question, pending.at);
        // The lease lasts as long as the model call may.
        let lease = policy
            .lease
            .max(policy.actions.timeout + Duration::from_secs(10));
        let claim = self.claim(lease, AckTiming::WithReply);
        let new = self.new_action(pending.clone(), self.clock.new_seed(), cap, limits.clone());
        let lease = match self.store.begin(new, claim).await? {
            StartOutcome::Leased(lease) => lease,
            StartOutcome::Refused(not) => {
                let earlier = self.joined(not, cap, limits).await?;
                return self.stored_response(earlier).await;
            }
            StartOutcome::Finished | StartOutcome::Conflict => {
                return self.stored_response(pending.id).await;
            }
        };
        // The action is finished even if the client disconnects.
        let (id, app) = (pending.id, Arc::clone(self));
        let own = self.runner.own_action(id);
        let (sender, receiver) = oneshot::channel();
        self.runner.spawn_task(
            async move {
                let response = app.call_proposer(lease, &pending, until, &own.cancel).await;
                drop((slot, own));
                let _ = sender.send(response);
            }
            .instrument(tracing::error_span!("action", requestId = %id)),
        );
        match receiver.await {
            Ok(Ok(response)) => Ok(Acted {
                run: Some(id),
                response,
            }),
            Ok(Err(Stop::Store(error))) => Err(Rejected::Journal(error)),
            Ok(Err(Stop::Cancelled | Stop::Lost)) | Err(_) => self.stored_response(id).await,
        }
    }

    /// Executes a leased action to its end.
    async fn call_proposer(
        self: &Arc<Self>,
        lease: Lease,
        pending: &PendingAction,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Result<serde_json::Value, Stop> {
        let run = RunContext::open(self.process.clone(), lease).await?;
        match self.understand(&run, pending, until, cancel).await {
            Err(Stop::Cancelled) => {
                run.finish(Ending::Cancelled).await?;
                Err(Stop::Cancelled)
            }
            conducted => conducted,
        }
    }

    async fn understand(
        self: &Arc<Self>,
        run: &RunContext,
        pending: &PendingAction,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Result<serde_json::Value, Stop> {
        let meaning = match timeout_at(until, self.plan(run, pending, until, cancel)).await {
            Ok(meaning) => meaning?,
            Err(_) => Interpretation::TooSlow,
        };
        // The user may have cancelled the action meanwhile.
        let row = self.store.run(pending.id).await?;
        if row.is_some_and(|row| row.cancel_requested) {
            return Err(Stop::Cancelled);
        }
        let reply = match meaning {
            Interpretation::Proposed(proposed) => self.decide(run, pending, &proposed).await?,
            Interpretation::TooSlow => {
                tracing::warn!("the proposal did not come in time");
                Reply::declined("unknown_intent", reply::TOO_SLOW)
            }
            Interpretation::Unreadable(why) => {
                tracing::warn!("the proposal cannot be read");
                record_verdict(run, gates::unreadable(why))?;
                pending.unknown()
            }
            Interpretation::Nothing(cause) => {
                tracing::warn!(cause, "there is no proposal");
                pending.unknown()
            }
            Interpretation::Unavailable(cause) => {
                tracing::warn!(cause, "the proposer's provider fails");
                Reply::declined("unavailable", reply::UNAVAILABLE)
            }
        };
        let response = reply.value();
        run.finish(Ending::Acted {
            outcome: reply.outcome(),
            response: response.clone(),
        })
        .await?;
        Ok(response)
    }

    /// Returns what the text means: from the cache if the same scene had the same text recently,
    /// else from the model. Of concurrent requests only one asks the model, and the others share
    /// its answer.
    async fn plan(
        &self,
        run: &RunContext,
        pending: &PendingAction,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Result<Interpretation, Stop> {
        let plans = &self.acting.plans;
        let cell = plans.cell(Scene::of(&pending.question), &pending.question.message);
        let (mut kept, asker) = match cell.try_lock() {
            Ok(kept) => (kept, ProposalKey::Later),
            Err(_) => (cell.lock().await, ProposalKey::Waiting),
        };
        if let Some(meaning) = plans.read(kept.as_ref(), asker) {
            return Ok(meaning);
        }
        // If this caller is stopped while it waits for the model, the entry stays. The call may be
        // billed, so it must not be repeated.
        *kept = Some(CachedProposal::lasting(pending.id, Interpretation::TooSlow));
        let allowed = pending.rules.proposable();
        let message = &pending.question.message;
        let proposal = tokio::select! {
            () = cancel.cancelled() => Err(Stop::Cancelled),
            proposal = propose(run, &self.committee, &allowed, message, until) => proposal,
        };
        let (meaning, lasting) = match proposal {
            Ok(found) => found,
            // The call may be billed, so those who wait do not repeat it. A later message may.
            Err(stop @ Stop::Cancelled) => {
                let none = Interpretation::Nothing("the call was cancelled".to_owned());
                *kept = Some(CachedProposal::passing(pending.id, none));
                return Err(stop);
            }
            Err(stop) => {
                *kept = None;
                return Err(stop);
            }
        };
        if matches!(meaning, Interpretation::Unreadable(_)) {
            counter!("conclave_act_parse_failures_total").increment(1);
        }
        let found = if lasting {
            CachedProposal::lasting
        } else {
            CachedProposal::passing
        };
        *kept = Some(found(pending.id, meaning.clone()));
        Ok(meaning)
    }

    /// Checks a proposal against the gates, and executes it or offers it for confirmation.
    async fn decide(
        self: &Arc<Self>,
        run: &RunContext,
        pending: &PendingAction,
        proposed: &Proposed,
    ) -> Result<Reply, Stop> {
        let Proposed {
            ok,
            confidence,
            action,
            reason,
            ..
        } = proposed;
        // Of the model's words, the log shows only a known command name and the truncated reason.
        let known = action
            .parse::<CommandName>()
            .map_or("unknown", |command| command.into_str());
        tracing::info!(ok, command = known, confidence, reason, "a proposal");
        run.record(Event::Proposed(Box::new(proposed.clone())))?;
        if !ok {
            return Ok(pending.unknown());
        }
        let Checked {
            verdicts,
            action,
            execute,
            others,
        } = self.checked(pending, proposed);
        for verdict in verdicts {
            record_verdict(run, verdict)?;
        }
        let action = match action {
            Ok(action) => action,
            Err(reply) => return Ok(reply),
        };
        if execute {
            return self.execute_now(run, pending, proposed, &action).await;
        }
        counter!("conclave_act_offered_total", "command" => action.name().into_str()).increment(1);
        let others = if *confidence < SURE_ENOUGH {
            others
        } else {
            vec![]
        };
        let offer = Offer::new(
            pending.id,
            self.config.policy.actions.expiry(self.clock.now()),
        );
        let why = ProposalReason::of(proposed, ActionMode::LlmProposal);
        let source = pending.question.source;
        Ok(Reply::offered(&action, &others, why, source, offer))
    }

    /// Passes a proposal and its alternatives through the gates.
    fn checked(&self, pending: &PendingAction, proposed: &Proposed) -> Checked {
        let (policy, rules) = (&self.config.policy.actions, &pending.rules);
        let (name, args) = (&proposed.action, &proposed.args);
        let GateOutcome {
            mut checked,
            action,
            mut execute,
        } = gates::pass(name, args, proposed.confidence, rules, &policy.proposer);
        if execute && proposed.was_repaired {
            execute = false;
            if let Some(last) = checked.last_mut() {
                (last.passed, last.why) =
                    (false, "the model's answer had to be repaired".to_owned());
            }
        }
        let (others, dropped) = action.as_ref().map_or_else(Default::default, |first| {
            action::others(proposed, rules, policy, first)
        });
        let action = match action {
            None => Err(pending.unknown()),
            // In shadow mode a proposal that passes is recorded but not executed.
            Some(action) => {
                match action::permitted(&action, pending, if execute { "execute" } else { "offer" })
                {
                    Ok(()) => Ok(action),
                    Err((why, reply)) => {
                        checked.pop();
                        if let Some(last) = checked.last_mut() {
                            (last.passed, last.why) = (false, why);
                        }
                        Err(reply)
                    }
                }
            }
        };
        let mut passed = checked.iter_mut().filter(|verdict| verdict.passed);
        if let Some(schema) = passed.find(|verdict| verdict.gate == ActionGate::Schema) {
            schema.why = dropped.join("; ");
        }
        Checked {
            verdicts: checked,
            action,
            execute,
            others,
        }
    }

    /// Executes a proposal without confirmation, because it passed the last gate.
    async fn execute_now(
        self: &Arc<Self>,
        run: &RunContext,
        pending: &PendingAction,
        proposed: &Proposed,
        action: &Action,
    ) -> Result<Reply, Stop> {
        let why = Some(ProposalReason::of(proposed, ActionMode::LlmProposal));
        for _ in 0..MAX_ATTEMPTS {
            let execution = self.execute_command(pending, action, why, run.accepted().seed, None);
            let done = match execution.await {
                Ok(done) => done,
                Err(Rejected::Journal(error)) => return Err(error.into()),
                Err(_) => return Ok(pending.unknown()),
            };
            let Some(executed) = done.executed else {
                return Ok(done.reply);
            };
            run.record(parsed(action, why))?;
            let is_written = match &done.same_transaction.stamp {
                Some(stamp) => run.store_if(stamp, executed).await?,
                None => run.store(executed).await.map(|_| true)?,
            };
            if is_written {
                count_accepted(action, why);
                return Ok(done.reply);
            }
        }
        Ok(Reply::declined("unknown_intent", reply::TOO_SLOW))
    }
}

/// Records the verdict of a gate, and counts it if the gate was not passed.
fn record_verdict(run: &RunContext, verdict: GateChecked) -> Result<(), Stop> {
    let event = Event::GateChecked(verdict);
    action::rejected_by(&event);
    run.record(event)?;
    Ok(())
}
