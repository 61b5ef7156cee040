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
use crate::domain::RunKind;

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
    let (number, learned) = match journals {
        Journals::There { env, server } => {
            let body = json!({ "positive": positive, "comment": comment });
            let path = format!("/api/runs/{run}/feedback");
            let answer = remote::post(env, server, &path, &body).await?;
            let taught_by = answer.pointer("/learned/runId").and_then(Value::as_str);
            let confidence = answer.pointer("/learned/confidence");
            let learned = taught_by
                .map(str::to_owned)
                .zip(confidence.and_then(Value::as_f64));
            let number = answer.get("number").and_then(Value::as_u64);
            (number.unwrap_or(1), learned)
        }
        Journals::Here(store) => {
            let now = Clock::System.now();
            let given = give_feedback(&*store, now, run, positive, comment.as_deref()).await;
            let noted = given.map_err(|refused| match refused {
                FeedbackRefused::Journal(error) => fail(Exit::Unexpected, error),
                refused => fail(Exit::Refused, refused),
            })?;
            let learned = noted.learned;
            let learned = learned.map(|(run, learned)| (run.to_string(), learned.confidence));
            (u64::from(noted.feedback.number), learned)
        }
    };
    let earlier = "; the report counts it in place of what was said before";
    let earlier = if number > 1 { earlier } else { "" };
    say(format_args!("run {run}: noted{earlier}"));
    if let Some((taught_by, confidence)) = learned {
        tell!("the confidence of the answer learned from run {taught_by} is {confidence:.2} now");
    }
    Ok(())
}
