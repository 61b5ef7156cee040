//! `conclave feedback`: records what a reader thinks of a reply.

use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::exit::{Done, Exit, fail};
use super::recorded::{Journals, find};
use super::remote;
use super::terminal::say;
use crate::app::{FeedbackRefused, give_feedback};
use crate::clock::Clock;
use crate::config::Env;
use crate::domain::{RunId, RunKind};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("verdict").required(true).args(["positive", "negative"])))]
pub(super) struct FeedbackArguments {
    /// The run: its id, the first characters of its id, or `last`.
    run: String,
    /// The reply was right and useful.
    #[arg(long)]
    positive: bool,
    /// The reply was wrong or of no use.
    #[arg(long)]
    negative: bool,
    /// Why, in at most 2,000 characters.
    #[arg(long)]
    comment: Option<String>,
    /// Send it to a running service instead of the journal on this machine.
    #[arg(long, value_name = "URL", value_parser = remote::server_address)]
    server: Option<String>,
}

pub(super) async fn run(env: &Env, arguments: FeedbackArguments) -> Done {
    let FeedbackArguments {
        run,
        positive,
        negative: _,
        comment,
        server,
    } = arguments;
    let kind = Some(RunKind::Chat);
    let (run, journals) = find(env, server.as_deref(), &run, kind).await?;
    let Journals::Here(store) = journals else {
        let server = server.as_deref().unwrap_or_default();
        let body = json!({ "positive": positive, "comment": comment });
        let path = format!("/api/runs/{run}/feedback");
        let answer = remote::post(env, server, &path, &body).await?;
        let number = answer.get("number").and_then(Value::as_u64);
        thanks(run, number.unwrap_or(1));
        let taught_by = answer.pointer("/learned/runId").and_then(Value::as_str);
        let confidence = answer.pointer("/learned/confidence");
        let confidence = confidence.and_then(Value::as_f64);
        if let (Some(taught_by), Some(confidence)) = (taught_by, confidence) {
            trust(taught_by, confidence);
        }
        return Ok(());
    };
    let now = Clock::System.now();
    match give_feedback(&*store, now, run, positive, comment.as_deref()).await {
        Ok(noted) => {
            thanks(run, u64::from(noted.feedback.number));
            if let Some((taught_by, learned)) = noted.learned {
                trust(&taught_by.to_string(), learned.confidence);
            }
            Ok(())
        }
        Err(FeedbackRefused::Journal(error)) => Err(fail(Exit::Unexpected, error)),
        Err(refused) => Err(fail(Exit::Refused, refused)),
    }
}

fn trust(taught_by: &str, confidence: f64) {
    tell!("the confidence of the answer learned from run {taught_by} is {confidence:.2} now");
}

fn thanks(run: RunId, number: u64) {
    let earlier = "; the report counts it in place of what was said before";
    let earlier = if number > 1 { earlier } else { "" };
    say(format_args!("run {run}: noted{earlier}"));
}
