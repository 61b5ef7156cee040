//! `conclave quote`: prints the price of a question before it is asked.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use super::exit::{Done, Exit, fail, failing};
use super::input::text_with_input;
use super::local::{self, refused};
use super::terminal::say;
use crate::app::{App, ChatInput, QuoteError};
use crate::config::Env;
use crate::domain::{Context, Mode, Salience, Source, Usd, User, counted};

#[derive(Debug, Args)]
pub(super) struct QuoteArguments {
    /// The question; `-` or nothing reads it from standard input.
    question: Option<String>,
    /// Adds standard input to the question.
    #[arg(value_name = "-", value_parser = ["-"])]
    input: Option<String>,
    #[arg(long, default_value = "ask", value_parser = modes())]
    mode: Mode,
    /// Print the quote as JSON, as the API gives it.
    #[arg(long)]
    json: bool,
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    let names = PossibleValuesParser::new(["ask", "audit", "deep"]);
    names.try_map(|name| serde_json::from_value(json!(name)))
}

pub(super) async fn run(env: &Env, arguments: QuoteArguments) -> Done {
    let (given, follows) = (arguments.question.as_deref(), arguments.input.is_some());
    let message = text_with_input(given, follows, "question");
    let message = message.map_err(failing(Exit::Usage))?;
    if message.trim().is_empty() {
        return Err(fail(Exit::Usage, "the question is empty"));
    }
    let config = local::load(env)?;
    // Needs no journal, so that a price can be asked where no file can be written.
    let priced = App::quote_only(&config, question(arguments.mode, message)).await;
    let quote = priced.map_err(|error| match error {
        QuoteError::Start(error) => fail(Exit::from(&error), error),
        QuoteError::Rejected(rejected) => {
            refused(&rejected);
            Exit::Refused
        }
    })?;
    if let Some(why) = quote.refusal() {
        return Err(fail(Exit::Budget, why));
    }
    let body = json!({ "capUsd": quote.cap.dollars(), "expectedUsd": quote.expected.dollars(),
                       "worstUsd": quote.worst.dollars(), "calls": quote.calls });
    print_body(&body, "", arguments.json);
    Ok(())
}

fn question(mode: Mode, message: String) -> ChatInput {
    ChatInput {
        source: Source::Cli,
        mode,
        user: User {
            id: "cli".into(),
            name: "cli".into(),
        },
        context: Context::default(),
        message,
        attachments: vec![],
        salience: Salience::default(),
    }
}

/// Returns a warning for each mode whose cap has no room for the shortest question.
pub(super) fn warnings(app: &App) -> Vec<String> {
    let modes = [Mode::Ask, Mode::Audit, Mode::Deep].into_iter();
    let warning = |mode: Mode| {
        let chat = app.chat_request(question(mode, "?".to_owned())).ok()?;
        let why = app.quote(&chat).refusal()?;
        Some(format!(
            "no question can be asked in {}: {why}",
            mode.into_str()
        ))
    };
    modes.filter_map(warning).collect()
}

/// Prints a price as the API gives it. `of_cap` says what the cap is for.
pub(super) fn print_body(body: &Value, of_cap: &str, as_json: bool) {
    if as_json {
        say(format_args!("{body}"));
        return;
    }
    let usd = |name: &str| Usd::from_dollars(body[name].as_f64().unwrap_or_default());
    let calls = body["calls"].as_u64().unwrap_or_default();
    let calls = counted(calls, "call", "calls");
    say(format_args!("expected  {} for {calls}", usd("expectedUsd")));
    say(format_args!("at worst  {}", usd("worstUsd")));
    say(format_args!("cap       {}{of_cap}", usd("capUsd")));
}
