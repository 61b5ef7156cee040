//! `conclave act`: maps free text to one command, in this process or on a server.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::exit::{Done, Exit, failing};
use super::input::text_of;
use super::local::{refused, start, with_prompts};
use super::output::user;
use super::printable::without_controls;
use super::remote;
use super::stop::interruptible;
use super::terminal::{options, say, say_json};
use crate::actions::catalog;
use crate::actions::reply;
use crate::app::{ActionInput, App, Confirmation, RequestIds};
use crate::config::{self, Config, Env, Problems};
use crate::domain::{Context, RunId, Source};
use crate::journal::Ending;

/// How often a server is asked for a narration.
const POLL: Duration = Duration::from_millis(500);

/// How long to wait for a narration.
const NARRATION_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub(super) struct ActArguments {
    /// What you want to do, in your own words, such as "roll 2d6+3"; "-" or nothing reads it from
    /// standard input.
    message: Option<String>,
    /// The same as an option.
    #[arg(long = "message", value_name = "TEXT", conflicts_with_all = ["message", "confirm"])]
    message_option: Option<String>,
    /// Have a proposed command executed.
    #[arg(long, value_name = "ID", conflicts_with = "message")]
    confirm: Option<RunId>,
    /// With --confirm: which choice of the proposal.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "confirm")]
    choice: usize,
    /// Print what the API answers.
    #[arg(long)]
    json: bool,
    /// Ask a running service instead of working in this process; CONCLAVE_TOKEN is its token.
    #[arg(long, value_name = "URL", value_parser = remote::server_address)]
    server: Option<String>,
    /// Who acts: sheets, memories and proposals belong to one user in one guild. Default: $USER.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The guild in which it happens.
    #[arg(long, value_name = "ID")]
    guild: Option<String>,
    /// The channel in which it happens.
    #[arg(long, value_name = "ID", default_value = "terminal")]
    channel: String,
    /// Print the commands with their schemas as JSON.
    #[arg(long, exclusive = true)]
    catalog: bool,
    /// Print the definitions of the commands for Discord as JSON.
    #[arg(long, exclusive = true)]
    discord_commands: bool,
}

/// Returns the list of commands for the help of `conclave act`.
pub(super) fn listed() -> String {
    format!("Commands:\n{}", catalog::as_text())
}

pub(super) async fn run(env: &Env, arguments: ActArguments) -> Done {
    if arguments.catalog {
        say_json(&format!("{:#}", catalog::as_json()));
        return Ok(());
    }
    if arguments.discord_commands {
        say_json(&format!("{:#}", catalog::for_discord()));
        return Ok(());
    }
    let input = input(env, &arguments).map_err(failing(Exit::Usage))?;
    match &arguments.server {
        Some(server) => there(env, server, &input, &arguments).await,
        None => here(env, input, &arguments).await,
    }
}

fn input(env: &Env, arguments: &ActArguments) -> Result<ActionInput, String> {
    let given = arguments.message.as_deref();
    let message = match given.or(arguments.message_option.as_deref()) {
        _ if arguments.confirm.is_some() => String::new(),
        given => Some(text_of(given, "text")?)
            .filter(|text| !text.trim().is_empty())
            .ok_or("the text is empty")?,
    };
    let context = Context {
        channel_id: Some(arguments.channel.clone()),
        guild_id: arguments.guild.clone(),
        message_id: None,
    };
    Ok(ActionInput {
        source: Source::Cli,
        user: user(env, arguments.user.as_ref()),
        context,
        message,
    })
}

/// Loads the configuration for actions. If no model will be asked, it is loaded without models and
/// so needs no keys.
fn configured(env: &Env) -> Result<Config, Problems> {
    let bare = config::without_models(env)?;
    let actions = &bare.policy.actions;
    let rules = || actions.guilds.values().chain([&actions.rules]);
    let narrates = rules().any(|rules| rules.narration);
    if narrates || (actions.proposer.enabled && actions.proposer.provider.is_some()) {
        with_prompts(env, config::load(env))
    } else {
        with_prompts(env, Ok(bare))
    }
}

async fn here(env: &Env, input: ActionInput, arguments: &ActArguments) -> Done {
    let config = configured(env).map_err(failing(Exit::Configuration))?;
    let app = start(config).await?;
    interruptible(&app, Box::pin(acted(&app, input, arguments))).await
}

/// Acts in this process, and waits for the narration.
async fn acted(app: &Arc<App>, input: ActionInput, arguments: &ActArguments) -> Done {
    let acted = match arguments.confirm {
        Some(proposal) => {
            let confirmation = Confirmation {
                context: confirmed_in(&input, arguments),
                source: input.source,
                user: input.user,
                choice: arguments.choice,
            };
            app.confirm(proposal, confirmation, None).await
        }
        None => match app.action_request(input) {
            Ok(request) => app.act(request, RequestIds::default()).await,
            Err(rejected) => Err(rejected),
        },
    };
    let acted = match acted {
        Ok(acted) => acted,
        Err(rejected) => return Err(refused(&rejected)),
    };
    let exit = print_response(&acted.response, arguments);
    if let Some(run) = narration(&acted.response) {
        let narration = match app.finished(run).await {
            Ok(Some(finished)) => match finished.ending {
                Ending::Replied { reply } => Ok(reply.text),
                Ending::Failed { detail, .. } => Err(detail),
                Ending::Cancelled | Ending::Acted { .. } => Err("it was cancelled".to_owned()),
            },
            Ok(None) => Err("it is not there".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        narrated(narration, arguments.json);
    }
    exit
}

async fn there(env: &Env, server: &str, input: &ActionInput, arguments: &ActArguments) -> Done {
    let (path, body) = match arguments.confirm {
        Some(proposal) => {
            let path = format!("/api/act/proposals/{proposal}/confirm");
            (path, confirmation(input, arguments))
        }
        None => ("/api/act".to_owned(), json!(input)),
    };
    let response = remote::post(env, server, &path, &body).await?;
    let exit = print_response(&response, arguments);
    if let Some(run) = narration(&response) {
        let deadline = tokio::time::Instant::now() + NARRATION_TIMEOUT;
        let narration = loop {
            let row = remote::get(env, server, &format!("/api/runs/{run}")).await?;
            let state = row.get("state").and_then(Value::as_str).unwrap_or_default();
            if !matches!(state, "queued" | "running") {
                let reply = row.get("reply").and_then(Value::as_str).map(str::to_owned);
                break reply.ok_or_else(|| format!("it is {state}"));
            }
            if tokio::time::Instant::now() >= deadline {
                break Err(format!("it is not there yet: {server}/api/runs/{run}"));
            }
            tokio::time::sleep(POLL).await;
        };
        narrated(narration, arguments.json);
    }
    exit
}

/// Returns where a proposal is confirmed; `None`: where it was made.
fn confirmed_in(input: &ActionInput, arguments: &ActArguments) -> Option<Context> {
    arguments.guild.as_ref().map(|_| input.context.clone())
}

/// Returns the body of a confirmation.
fn confirmation(input: &ActionInput, arguments: &ActArguments) -> Value {
    let mut body =
        json!({ "source": input.source, "user": input.user, "choice": arguments.choice });
    let context = confirmed_in(input, arguments);
    if let (Some(context), Some(fields)) = (context, body.as_object_mut()) {
        fields.insert("context".to_owned(), json!(context));
    }
    body
}

fn narration(response: &Value) -> Option<RunId> {
    response
        .pointer("/actions/0/result/narration/run")?
        .as_str()?
        .parse()
        .ok()
}

/// Prints the response. A text that was not understood or is not allowed has an exit code of its
/// own.
fn print_response(response: &Value, arguments: &ActArguments) -> Done {
    if arguments.json {
        say_json(&format!("{response:#}"));
    } else if response.get("error").is_some() {
        tell!("conclave: {}", without_controls(&reply::shown(response)));
    } else {
        let options = confirm_options(response, arguments);
        say(format_args!("{}{options}", reply::shown(response)));
    }
    if response.get("error").is_some() {
        Err(Exit::Refused)
    } else {
        Ok(())
    }
}

/// Returns the options that the confirmation of an offer needs besides its id.
fn confirm_options(response: &Value, arguments: &ActArguments) -> String {
    if response.get("proposal").is_none() {
        return String::new();
    }
    options(&[
        ("user", arguments.user.as_ref()),
        ("guild", arguments.guild.as_ref()),
        ("server", arguments.server.as_ref()),
    ])
}

fn narrated(narration: Result<String, String>, as_json: bool) {
    match narration {
        Ok(text) if !as_json => say(format_args!("\n{text}")),
        Ok(_) => {}
        Err(why) => tell!(
            "conclave: the outcome is not narrated: {}",
            without_controls(&why)
        ),
    }
}
