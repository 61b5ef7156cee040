//! Starts the committee's narration of an action, and records finished actions.

use super::action::{Acted, PendingAction, ProposalGone, SCENE_LINES, rejected_by};
use super::{App, Rejected};
use crate::actions::commands::{Action, CommandOutcome, narration};
use crate::actions::parser::{self, ParsedMessage};
use crate::actions::reply::Reply;
use crate::app::{ChatInput, RequestIds};
use crate::domain::{Context, Question, RunId, Usd};
use crate::journal::{
    AcceptThen, AckTiming, DataStamp, Ending, Event, Finished, Requester, StartOutcome,
};
use serde_json::{Value, json};
use std::sync::Arc;

impl App {
    /// Starts a run that narrates a `do` action, if the rules ask for narration. The run continues
    /// in the background. Returns its id and also adds it to the action's result.
    pub(super) async fn narrate(
        self: &Arc<Self>,
        action: &Action,
        pending: &PendingAction,
        done: &mut CommandOutcome,
    ) -> Option<RunId> {
        let Action::Do(arguments) = action else {
            return None;
        };
        if !pending.rules.narration {
            return None;
        }
        let question = &pending.question;
        let place = question.context.channel_id.as_deref().unwrap_or("scene");
        let lines = self.public_lines(question).await;
        // The narration has a channel of its own. So messages in the user's channel do not answer
        // its questions.
        let context = Context {
            channel_id: Some(format!("{}/narration", crate::actions::cut(place, 180))),
            message_id: None,
            ..question.context.clone()
        };
        let prompts = &self.committee.prompts;
        let prompt = narration(prompts, &arguments.text, &done.result, &lines);
        let chat = prompt.map_err(Rejected::Defect).and_then(|prompt| {
            self.chat_request(ChatInput {
                source: question.source,
                mode: question.mode,
                user: question.user.clone(),
                context,
                message: format!("new: {prompt}"),
                attachments: vec![],
                salience: question.salience,
            })
        });
        let ids = RequestIds {
            idempotency_key: Some(format!("narration:{}", pending.id)),
            correlation_id: pending.correlation_id.clone(),
        };
        let submitted = match chat {
            Ok(chat) => {
                Box::pin(self.take_on(chat.0, ids, Some(pending.id), AckTiming::Immediate)).await
            }
            Err(rejected) => Err(rejected),
        };
        let (run, why) = match submitted {
            Ok(run) => (Some(run), None),
            Err(rejected) => {
                tracing::info!(%rejected, "the outcome is not narrated");
                let why = match rejected {
                    Rejected::Spent(_) => "the spending limit is reached",
                    _ => "no model can tell the outcome now",
                };
                (None, Some(why))
            }
        };
        if let Value::Object(result) = &mut done.result {
            let narration = json!({ "run": run.map(|run| run.to_string()), "unavailable": why });
            result.insert("narration".into(), narration);
        }
        run
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
        let concluded = self.conclude(pending, events, reply, seed, None).await?;
        concluded.ok_or(Rejected::Busy)
    }

    /// Writes an action that is over. Returns `None`, and writes nothing, if `stamp` is given and
    /// the user's data changed since.
    pub(super) async fn conclude(
        &self,
        pending: PendingAction,
        mut events: Vec<Event>,
        reply: &Reply,
        seed: u64,
        stamp: Option<DataStamp>,
    ) -> Result<Option<Acted>, Rejected> {
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
        let new = self.new_action(pending, seed, Usd::ZERO, vec![]);
        let end = AcceptThen::Finish {
            events,
            if_stamp: stamp,
        };
        match self.store.begin(new, end).await? {
            StartOutcome::Finished | StartOutcome::Leased(_) => Ok(Some(Acted {
                run: Some(id),
                response,
            })),
            StartOutcome::Conflict => Ok(None),
            StartOutcome::Refused(_) if confirms.is_some() => {
                Err(Rejected::ProposalGone(ProposalGone::Confirmed))
            }
            StartOutcome::Refused(not) => {
                let run = self.joined(not, Usd::ZERO, vec![]).await?;
                self.stored_response(run).await.map(Some)
            }
        }
    }
}
