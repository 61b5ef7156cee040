//! Records finished actions, and starts the committee's narration of an action with it.

use super::action::{Acted, PendingAction, ProposalGone, SCENE_LINES, rejected_by};
use super::runner::Slot;
use super::{App, Rejected, count_run, labels};
use crate::actions::commands::{Action, narration};
use crate::actions::parser::{self, ParsedMessage};
use crate::actions::reply::Reply;
use crate::app::ChatInput;
use crate::domain::{Context, Question, Usd, fingerprint};
use crate::journal::{
    AcceptThen, Acceptance, Accepted, DataStamp, Ending, Event, Finished, NewRun, Requester,
    StartOutcome,
};
use serde_json::Value;

/// A run that narrates an action and is not accepted yet.
pub(super) struct Narration {
    pub run: NewRun,
    slot: Slot,
}

/// What belongs to the same transaction as an action that is over.
#[derive(Default)]
pub(super) struct SameTransaction {
    /// The state of the user's data, if the command changes it.
    pub stamp: Option<DataStamp>,
    pub narration: Option<Narration>,
}

/// The outcome of writing an action.
pub(super) enum Conclusion {
    /// The action is written, or an earlier one with its key was found.
    Ended(Acted),
    /// Another action changed the user's data; nothing was written.
    Conflict,
    /// A spending limit does not allow the narration; nothing was written.
    Unaffordable,
}

impl Conclusion {
    /// Returns the action that was written.
    ///
    /// # Errors
    /// [`Rejected::Busy`] if nothing was written.
    pub fn ended(self) -> Result<Acted, Rejected> {
        match self {
            Self::Ended(acted) => Ok(acted),
            Self::Conflict | Self::Unaffordable => Err(Rejected::Busy),
        }
    }
}

impl App {
    /// Prepares the run that narrates the outcome of a `do` action, or returns why it is not narrated.
    /// Returns `None` if the rules ask for no narration.
    ///
    /// # Errors
    /// [`Rejected::Draining`], because the client can send the action to another process.
    pub(super) async fn narration(
        &self,
        action: &Action,
        pending: &PendingAction,
        result: &Value,
    ) -> Result<Option<Result<Narration, &'static str>>, Rejected> {
        let Action::Do(arguments) = action else {
            return Ok(None);
        };
        if !pending.rules.narration {
            return Ok(None);
        }
        if self.runner.is_draining() {
            return Err(Rejected::Draining);
        }
        let question = &pending.question;
        let lines = self.public_lines(question).await;
        let prompts = &self.committee.prompts;
        let prompt = narration(prompts, &arguments.text, result, &lines);
        let narration = prompt
            .map_err(Rejected::Defect)
            .and_then(|prompt| self.narrator(pending, prompt));
        Ok(Some(narration.map_err(|rejected| {
            tracing::info!(%rejected, "the outcome is not narrated");
            "no model can tell the outcome now"
        })))
    }

    /// Returns the run that narrates an action, with its place among the runs in flight.
    fn narrator(&self, pending: &PendingAction, prompt: String) -> Result<Narration, Rejected> {
        let question = &pending.question;
        let place = question.context.channel_id.as_deref().unwrap_or("scene");
        // The narration has a channel of its own. So messages in the user's channel do not answer
        // its questions.
        let context = Context {
            channel_id: Some(format!("{}/narration", crate::actions::cut(place, 180))),
            message_id: None,
            ..question.context.clone()
        };
        let chat = self.chat_request(ChatInput {
            source: question.source,
            mode: question.mode,
            user: question.user.clone(),
            context,
            message: prompt,
            attachments: vec![],
            salience: question.salience,
        })?;
        let slot = self.runner.slot().ok_or(Rejected::Busy)?;
        let refused = |retry_after| Rejected::TooOften { retry_after };
        self.user_rate.take(&question.user.id).map_err(refused)?;
        let body = serde_json::to_string(&chat.0).unwrap_or_default();
        let cap = self.config.policy.cap(question.mode);
        let accepted = Accepted {
            ignores_learned: true,
            narrates: Some(pending.id),
            correlation_id: pending.correlation_id.clone(),
            ..self.accepted(chat.0, cap, self.clock.new_seed())
        };
        let run = self.new_run(accepted, None, fingerprint(&[body.as_bytes()]));
        Ok(Narration { run, slot })
    }

    /// Returns the latest narrated actions of the scene. Only these are public; notes and remarks
    /// out of character are not passed on.
    async fn public_lines(&self, question: &Question) -> Vec<String> {
        let scene = Requester::of(question);
        let lines = self.store.recent_lines(&scene, SCENE_LINES).await;
        let lines = lines.unwrap_or_default();
        let spoken =
            |message: &str| matches!(parser::read(message), ParsedMessage::Clear(Action::Do(_)));
        let public = || {
            let spoken = lines.iter().filter(|line| spoken(line));
            spoken.map(|line| crate::actions::cut(line, 300)).collect()
        };
        self.read_text(lines.iter().map(String::len).sum(), public)
            .await
    }

    /// Records an action that has ended.
    pub(super) async fn finish(
        &self,
        pending: PendingAction,
        events: Vec<Event>,
        reply: &Reply,
    ) -> Result<Acted, Rejected> {
        let seed = self.clock.new_seed();
        let concluded = self.conclude(pending, events, reply, seed, SameTransaction::default());
        concluded.await?.ended()
    }

    /// Writes an action that is over, and starts its narration. If the user's data changed since they
    /// were read, or the narration exceeds a spending limit, nothing is written.
    pub(super) async fn conclude(
        &self,
        pending: PendingAction,
        mut events: Vec<Event>,
        reply: &Reply,
        seed: u64,
        same_transaction: SameTransaction,
    ) -> Result<Conclusion, Rejected> {
        let response = reply.value();
        let ending = Ending::Acted {
            outcome: reply.outcome(),
            response: response.clone(),
        };
        events.push(Event::Finished(Box::new(Finished {
            ending,
            spent: Usd::ZERO,
        })));
        for event in &events {
            rejected_by(event);
        }
        let (id, confirms) = (pending.id, pending.submission.confirms);
        let SameTransaction { stamp, narration } = same_transaction;
        let (narrator, slot) = narration.map(|it| (it.run, it.slot)).unzip();
        let limits = narrator.as_ref().map(|run| run.limits.clone());
        let new = self.new_action(pending, seed, Usd::ZERO, limits.unwrap_or_default());
        let started = narrator.as_ref().map(|run| (run.id, labels(&run.accepted)));
        let end = AcceptThen::Finish {
            events,
            if_stamp: stamp,
            narrator: narrator.map(Box::new),
        };
        match self.store.begin(new, end).await? {
            StartOutcome::Finished | StartOutcome::Leased(_) => {
                if let Some(((narrator, labels), slot)) = started.zip(slot) {
                    count_run(labels);
                    self.runner.run_to_completion(narrator, slot, None);
                }
                Ok(Conclusion::Ended(Acted {
                    run: Some(id),
                    response,
                }))
            }
            StartOutcome::Conflict => Ok(Conclusion::Conflict),
            // The action costs nothing by itself.
            StartOutcome::Refused(Acceptance::OverLimit { .. }) => Ok(Conclusion::Unaffordable),
            StartOutcome::Refused(_) if confirms.is_some() => {
                Err(Rejected::ProposalGone(ProposalGone::Confirmed))
            }
            StartOutcome::Refused(not) => {
                let run = self.joined(not, Usd::ZERO, vec![]).await?;
                self.stored_response(run).await.map(Conclusion::Ended)
            }
        }
    }
}
