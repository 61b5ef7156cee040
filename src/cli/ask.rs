//! `conclave ask`, `audit` and `deep`: in this process, or on a server.

use std::io::{IsTerminal as _, Read as _};

use clap::Args;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::attach::attachment;
use super::exit::{Exit, fail};
use super::progress::Progress;
use super::remote;
use crate::app::{App, Rejected, Submission};
use crate::clock::Clock;
use crate::config::{self, Env};
use crate::domain::{Context, Mode, Outcome, Question, RunId, Source, User};
use crate::http::reply_body;
use crate::journal::{Ending, Event};

#[derive(Debug, Args)]
pub(super) struct AskArguments {
    /// The question; "-" or nothing reads it from standard input. While the committee waits for your answer to a
    /// question of its own, this is that answer ("B", or your own words).
    question: Option<String>,
    /// Begin a new request even if a question of the committee is pending.
    #[arg(long)]
    new: bool,
    /// Attach an image: an https address on an allowed host, or a file. May be repeated.
    #[arg(long, value_name = "URL|FILE")]
    attach: Vec<String>,
    /// Print the reply as JSON, as the API gives it, and no progress.
    #[arg(long)]
    json: bool,
    /// Print no progress.
    #[arg(long, short)]
    quiet: bool,
    /// Ask a running service instead of working in this process; CONCLAVE_TOKEN is its token.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Who asks: a pending question belongs to one user in one channel. Default: $USER.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The channel of the conversation.
    #[arg(long, value_name = "ID", default_value = "terminal")]
    channel: String,
}

pub(super) async fn run(env: &Env, mode: Mode, arguments: AskArguments) -> Exit {
    let question = match question(env, mode, &arguments) {
        Ok(question) => question,
        Err(error) => return fail(Exit::Usage, error),
    };
    let progress = Progress::new(arguments.json || arguments.quiet);
    match &arguments.server {
        Some(server) => remote::ask(env, server, &question, arguments.json, progress).await,
        None => here(env, question, &arguments, progress).await,
    }
}

fn question(env: &Env, mode: Mode, arguments: &AskArguments) -> Result<Question, String> {
    let mut message = match arguments.question.as_deref() {
        Some(text) if text != "-" => text.to_owned(),
        _ => {
            if std::io::stdin().is_terminal() {
                return Err("no question: give it as an argument or on standard input".into());
            }
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| format!("standard input: {error}"))?;
            text
        }
    };
    if message.trim().is_empty() {
        return Err("the question is empty".into());
    }
    if arguments.new {
        message = format!("new: {message}");
    }
    let user = arguments.user.clone().unwrap_or_else(|| env.get_or("USER", "cli").to_owned());
    let attachments = arguments.attach.iter().map(|given| attachment(given)).collect::<Result<_, _>>()?;
    Ok(Question {
        source: Source::Cli,
        mode,
        user: User { id: user.clone(), name: user },
        context: Context { channel_id: Some(arguments.channel.clone()), ..Context::default() },
        message,
        attachments,
    })
}

/// Works on the question in this process, on the same journal as the service.
async fn here(env: &Env, question: Question, arguments: &AskArguments, mut progress: Progress) -> Exit {
    let mode = question.mode;
    let config = match config::load(env) {
        Ok(config) => config,
        Err(problems) => return fail(Exit::Configuration, problems),
    };
    let app = match App::start(config, Clock::System).await {
        Ok(app) => app,
        Err(error) => return fail(Exit::Unexpected, error),
    };
    let submission = Submission { question, idempotency_key: None, correlation_id: None };
    let run = match app.submit(submission).await {
        Ok(submitted) => submitted.run,
        Err(rejected) => return refused(&rejected),
    };
    let mut entries = app.follow(run, 0);
    let ending = loop {
        tokio::select! {
            entry = entries.next() => match entry {
                Some(Ok(entry)) => {
                    if let Event::Accepted(accepted) = &entry.event
                        && let Some(continues) = &accepted.continues
                    {
                        progress.line(&format!("continuing run {} (begin with \"new:\" for a new request)", continues.parent));
                    }
                    progress.entry(&entry);
                    if let Event::Finished(finished) = entry.event {
                        break finished.ending;
                    }
                }
                Some(Err(error)) => return fail(Exit::Unexpected, error),
                None => return fail(Exit::Unexpected, format!("the journal of run {run} ended without an end")),
            },
            _ = tokio::signal::ctrl_c() => {
                let _ = app.cancel(run).await;
                progress.finish();
                return fail(Exit::Interrupted, format!("run {run} was cancelled"));
            }
        }
    };
    progress.finish();
    match ending {
        Ending::Replied { reply } => {
            let text = reply.text.clone();
            print_reply(&reply_body(&reply), &text, arguments.json);
            if !arguments.json {
                after_reply(run, mode, reply.outcome == Outcome::Clarification);
            }
            Exit::Done
        }
        Ending::Failed { cause, detail } => fail(cause.into(), format!("run {run} failed: {detail}")),
        Ending::Cancelled => fail(Exit::Interrupted, format!("run {run} was cancelled")),
    }
}

fn refused(rejected: &Rejected) -> Exit {
    match rejected {
        Rejected::Invalid(problems) => {
            for problem in problems {
                eprintln!("conclave: {} {}", problem.pointer.trim_start_matches('/'), problem.detail);
            }
            Exit::Refused
        }
        Rejected::KeyReused { .. } | Rejected::Busy | Rejected::Draining => fail(Exit::Refused, rejected),
        Rejected::Journal(error) => fail(Exit::Unexpected, error),
    }
}

pub(super) fn print_reply(body: &Value, text: &str, as_json: bool) {
    if as_json {
        println!("{}", serde_json::to_string_pretty(&json!(body)).unwrap_or_default());
    } else {
        println!("{text}");
    }
}

/// On standard error, so that what is on standard output is the reply and nothing else.
pub(super) fn after_reply(run: RunId, mode: Mode, asks: bool) {
    if asks {
        let mode = mode.as_str();
        eprintln!("\nThe committee asks before it answers. Answer within 30 minutes:  conclave {mode} \"B\"");
        eprintln!("or in your own words; \"new: ...\" begins something else.");
    }
    eprintln!("\nrun {run}  (conclave show {run})");
}
