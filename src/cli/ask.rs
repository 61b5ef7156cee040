//! `conclave ask`, `audit` and `deep`: ask the committee, in this process or on a server.

use super::input::text_with_input;
use super::output::{after_reply, print_reply, user};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt as _;

use super::attach::attachment;
use super::exit::{Done, Exit, fail, failing};
use super::local::{refused, start, with_prompts};
use super::progress::Progress;
use super::stop::{GOES_ON, cancelled, stop_signal};
use super::terminal::options;
use super::{models_line, remote};
use crate::app::{App, ChatInput, RequestIds};
use crate::clock::Clock;
use crate::config::{self, Env};
use crate::domain::{Context, Mode, Outcome, RunId, Salience, Source};
use crate::http::reply_body;
use crate::journal::{AckTiming, Ending, Event};

/// How long a run may take beyond its deadline: it ends itself then, unless its end cannot be written.
const BEYOND_DEADLINE: Duration = Duration::from_secs(30);

const CHANNEL: &str = "terminal";

#[derive(Debug, Args)]
pub(super) struct AskArguments {
    /// The question; "-" or nothing reads it from standard input. While the committee waits for
    /// your answer to a question of its own, this is that answer ("B", or your own words).
    question: Option<String>,
    /// Adds standard input to the question: `git diff | conclave ask "Review this" -`.
    #[arg(value_name = "-", value_parser = ["-"])]
    input: Option<String>,
    /// Begin a new request even if a question of the committee is pending.
    #[arg(long)]
    new: bool,
    /// Attach an image: an https address on an allowed host, or a file. May be repeated. With
    /// --server, files are part of the request, which may have 256 KiB.
    #[arg(long, value_name = "URL|FILE")]
    attach: Vec<String>,
    /// A wrong answer does much harm: the whole committee answers, whatever the decision strategy.
    #[arg(long)]
    grave: bool,
    /// An answer is needed soon: `heuristic_first` trusts learned answers a little more.
    #[arg(long)]
    urgent: bool,
    /// Print the reply as JSON, as the API gives it, and no progress.
    #[arg(long)]
    json: bool,
    /// Print no progress.
    #[arg(long, short)]
    quiet: bool,
    /// Ask a running service instead of working in this process; CONCLAVE_TOKEN is its token.
    #[arg(long, value_name = "URL", value_parser = remote::server_address)]
    server: Option<String>,
    /// Who asks: a pending question belongs to one user in one channel. Default: $USER.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The channel of the conversation.
    #[arg(long, value_name = "ID", default_value = CHANNEL)]
    channel: String,
}

pub(super) async fn run(env: &Env, mode: Mode, arguments: AskArguments) -> Done {
    let question = question(env, mode, &arguments)?;
    let progress = Progress::new(arguments.json || arguments.quiet);
    match &arguments.server {
        Some(server) => {
            let answer = (!arguments.json).then(|| answer_command(env, mode, &arguments));
            remote::ask(env, server, &question, answer.as_deref(), progress).await
        }
        None => here(env, question, &arguments, progress).await,
    }
}

fn question(env: &Env, mode: Mode, arguments: &AskArguments) -> Result<ChatInput, Exit> {
    let (given, follows) = (arguments.question.as_deref(), arguments.input.is_some());
    let message = text_with_input(given, follows, "question");
    let mut message = message.map_err(failing(Exit::Usage))?;
    if message.trim().is_empty() {
        return Err(fail(Exit::Usage, "the question is empty"));
    }
    if arguments.new {
        message = format!("new: {message}");
    }
    let attachments = arguments.attach.iter().map(|given| attachment(given));
    let attachments: Result<_, String> = attachments.collect();
    let attachments = attachments.map_err(failing(Exit::Refused))?;
    Ok(ChatInput {
        source: Source::Cli,
        mode,
        user: user(env, arguments.user.as_ref()),
        context: Context {
            channel_id: Some(arguments.channel.clone()),
            ..Context::default()
        },
        message,
        attachments,
        salience: Salience {
            urgency: f64::from(u8::from(arguments.urgent)),
            gravity: f64::from(u8::from(arguments.grave)),
        },
    })
}

/// Executes the question in this process, on the same journal as the service.
async fn here(
    env: &Env,
    question: ChatInput,
    arguments: &AskArguments,
    mut progress: Progress,
) -> Done {
    let mode = question.mode;
    let config = with_prompts(env, config::load(env)).map_err(failing(Exit::Configuration))?;
    for notice in models_line::notices(&config, Clock::System.now()) {
        progress.line(&notice);
    }
    let app = start(config).await?;
    let chat = app.chat_request(question).map_err(|why| refused(&why))?;
    let stop = stop_signal();
    let submitted = app
        .submit(chat, RequestIds::default(), AckTiming::Immediate)
        .await;
    let run = submitted.map_err(|why| refused(&why))?;
    let most = app.config.policy.deadline(mode) + BEYOND_DEADLINE;
    let followed = tokio::time::timeout(most, followed(&app, run, stop, &mut progress)).await;
    let ending = followed.unwrap_or_else(|_| {
        let why = "did not end by its deadline: its journal could not be written (see the log)";
        Err(fail(
            Exit::Unexpected,
            format!("run {run} {why}. {GOES_ON}"),
        ))
    })?;
    match ending {
        Ending::Replied { reply } => {
            print_reply(&reply_body(&reply), &reply.text, arguments.json);
            if !arguments.json {
                let asks = reply.outcome == Outcome::Clarification;
                let answer = asks.then(|| answer_command(env, mode, arguments));
                after_reply(run, None, answer.as_deref());
            }
            Ok(())
        }
        Ending::Failed { cause, detail } => {
            let exit = fail(cause.into(), format!("run {run} failed: {detail}"));
            if exit == Exit::Provider
                && let Some(places) = models_line::places(&app.config)
            {
                tell!("Asked: {places}. \"conclave doctor\" probes every model.");
            }
            Err(exit)
        }
        Ending::Cancelled => Err(fail(Exit::Interrupted, format!("run {run} was cancelled"))),
        Ending::Acted { .. } => Err(fail(Exit::Unexpected, format!("run {run} is an action"))),
    }
}

/// Shows the progress of a run up to its end. A signal that ends the program cancels the run.
async fn followed(
    app: &Arc<App>,
    run: RunId,
    stop: impl Future<Output = &'static str>,
    progress: &mut Progress,
) -> Result<Ending, Exit> {
    let mut entries = app.follow(run, 0);
    let mut stop = std::pin::pin!(stop);
    let ending = loop {
        let entry = tokio::select! {
            entry = entries.next() => entry,
            _ = &mut stop => {
                progress.finish();
                break cancelled(app, run).await?;
            }
        };
        let Some(entry) = entry else {
            let detail = format!("the journal of run {run} ended without an end");
            return Err(fail(Exit::Unexpected, detail));
        };
        let entry = entry.map_err(failing(Exit::Unexpected))?;
        progress.entry(run, &entry);
        if let Event::Finished(finished) = entry.event {
            break finished.ending;
        }
    };
    progress.finish();
    Ok(ending)
}

/// Returns the command that answers a question: the same one with the same flags.
fn answer_command(env: &Env, mode: Mode, arguments: &AskArguments) -> String {
    let channel = Some(&arguments.channel).filter(|channel| *channel != CHANNEL);
    let config = env.config_option().map(str::to_owned);
    let flags = options(&[
        ("config", config.as_ref()),
        ("server", arguments.server.as_ref()),
        ("channel", channel),
        ("user", arguments.user.as_ref()),
    ]);
    format!("conclave {}{flags} \"B\"", mode.into_str())
}
