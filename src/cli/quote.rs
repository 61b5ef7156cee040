//! `conclave quote`: prints the price of a question before it is asked.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::exit::{Done, Exit, fail, failing};
use super::local::refused;
use super::terminal::{say, text_of};
use crate::app::{App, ChatInput};
use crate::clock::Clock;
use crate::committee::Quote;
use crate::config::{self, Env};
use crate::domain::{Context, Mode, Salience, Source, Usd, User, counted};

#[derive(Debug, Args)]
pub(super) struct QuoteArguments {
    /// The question; `-` or nothing reads it from standard input.
    question: Option<String>,
    #[arg(long, value_enum, default_value_t = QuotedMode::Ask)]
    mode: QuotedMode,
    /// Print the quote as JSON, as the API gives it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum QuotedMode {
    Ask,
    Audit,
    Deep,
}

pub(super) async fn run(env: &Env, arguments: QuoteArguments) -> Done {
    let message = text_of(arguments.question.as_deref(), "question");
    let message = message.map_err(failing(Exit::Usage))?;
    let config = config::load(env).map_err(failing(Exit::Configuration))?;
    let app = App::start(config, Clock::System).await;
    let app = app.map_err(failing(Exit::Unexpected))?;
    let input = ChatInput {
        source: Source::Cli,
        mode: match arguments.mode {
            QuotedMode::Ask => Mode::Ask,
            QuotedMode::Audit => Mode::Audit,
            QuotedMode::Deep => Mode::Deep,
        },
        user: User {
            id: "cli".into(),
            name: "cli".into(),
        },
        context: Context::default(),
        message,
        attachments: vec![],
        salience: Salience::default(),
    };
    let chat = app.chat_request(input).map_err(|rejected| {
        refused(&rejected);
        Exit::Usage
    })?;
    let quote = app.quote(&chat);
    print(&quote, arguments.json)
}

/// Prints a price, or fails if the cap has no room.
fn print(quote: &Quote, as_json: bool) -> Done {
    if let Some(why) = quote.no_room() {
        return Err(fail(Exit::Budget, why));
    }
    let body = json!({ "capUsd": quote.cap.dollars(), "expectedUsd": quote.expected.dollars(),
                       "worstUsd": quote.worst.dollars(), "calls": quote.calls });
    print_body(&body, "", as_json);
    Ok(())
}

/// Prints a price as the API gives it. `of_cap` says what the cap is for.
pub(super) fn print_body(body: &Value, of_cap: &str, as_json: bool) {
    if as_json {
        say(format_args!("{body}"));
        return;
    }
    let usd = |name: &str| {
        let dollars = body.get(name).and_then(Value::as_f64);
        Usd::from_dollars(dollars.unwrap_or_default())
    };
    let calls = body
        .get("calls")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let calls = counted(
        usize::try_from(calls).unwrap_or(usize::MAX),
        "call",
        "calls",
    );
    say(format_args!("expected  {} for {calls}", usd("expectedUsd")));
    say(format_args!("at worst  {}", usd("worstUsd")));
    say(format_args!("cap       {}{of_cap}", usd("capUsd")));
}
