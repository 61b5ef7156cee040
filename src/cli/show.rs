//! `conclave show`: prints a run from its journal.

use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::colour::appendix;
use super::exit::{Done, Exit, fail};
use super::printable::without_controls;
use super::terminal::{say, say_json, say_styled};
use crate::app::{App, open_store};
use crate::clock::Clock;
use crate::committee::{audit_markdown, audit_view};
use crate::config::{self, Config, Env};
use crate::domain::{RunId, RunKind};
use crate::http::reply_body;
use crate::journal::{Ending, Store, Transcript};

/// The start of the audit appendix in a reply.
const APPENDIX: &str = "\n## Audit appendix\n";

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// The run's id.
    run: RunId,
    /// Print reply, meta and audit as JSON.
    #[arg(long)]
    json: bool,
}

/// Fails if a line of a `.env` file cannot be read.
pub(super) fn check_files(env: &Env) -> Done {
    if env.problems().is_empty() {
        return Ok(());
    }
    let problems = config::Problems(env.problems().to_vec());
    Err(fail(Exit::Configuration, problems))
}

/// Starts the service in this process.
pub(super) async fn start(config: Config) -> Result<Arc<App>, Exit> {
    App::start(config, Clock::System)
        .await
        .map_err(|error| fail(Exit::from(&error), error))
}

/// Opens the journal that the environment names.
pub(super) async fn open(env: &Env) -> Result<Arc<dyn Store>, Exit> {
    // A line that cannot be read could name another database.
    check_files(env)?;
    let owner = Clock::System.new_id().to_string();
    open_store(&config::database_url(env), &owner)
        .await
        .map_err(|error| fail(Exit::Unexpected, error))
}

pub(super) async fn run(env: &Env, arguments: ShowArguments) -> Done {
    let store = open(env).await?;
    let id = arguments.run;
    let (row, entries) = match (store.run(id).await, store.entries(id, 0).await) {
        (Ok(Some(row)), Ok(entries)) => (row, entries),
        (Ok(None), _) => return Err(fail(Exit::Refused, format!("there is no run {id}"))),
        (Err(error), _) | (_, Err(error)) => return Err(fail(Exit::Unexpected, error)),
    };
    let transcript = Transcript::of_entries(&entries);
    let audit = audit_view(id, &transcript);
    let ending = transcript.finished.map(|finished| &finished.ending);
    if arguments.json {
        let body = match ending {
            Some(Ending::Replied { reply }) => reply_body(reply),
            Some(Ending::Acted { response, .. }) => json!({ "action": response }),
            _ => json!({}),
        };
        let shown = json!({ "id": id.to_string(), "state": row.state, "cause": row.cause, "reply": body.get("reply"),
                            "meta": body.get("meta"), "audit": audit.filter(|_| row.kind == RunKind::Chat), "action": body.get("action") });
        say_json(&serde_json::to_string_pretty(&shown).unwrap_or_default());
        return Ok(());
    }
    print(&format!("> {}\n", row.message.replace('\n', "\n> ")));
    let gate = transcript.gated.map(|gated| gated.gate);
    let mut shown = false;
    match ending {
        Some(Ending::Replied { reply }) => {
            // The text of an answer in audit and deep already ends with the appendix.
            let (answer, audited) = reply
                .text
                .split_at(reply.text.find(APPENDIX).unwrap_or(reply.text.len()));
            say_styled(format_args!(
                "{}{}",
                without_controls(answer),
                appendix(&without_controls(audited), gate)
            ));
            shown = !audited.is_empty();
        }
        Some(Ending::Failed { detail, .. }) => print(&format!("The run failed: {detail}")),
        Some(Ending::Acted { response, .. }) => print(&super::act::shown(response)),
        Some(Ending::Cancelled) => say(format_args!("The run was cancelled.")),
        None => say(format_args!("The run is {}.", row.state.into_str())),
    }
    if let Some(audit) = audit.filter(|_| !shown && row.kind == RunKind::Chat) {
        say_styled(format_args!(
            "\n{}",
            appendix(&without_controls(&audit_markdown(&audit)), gate)
        ));
    }
    Ok(())
}

fn print(text: &str) {
    say(format_args!("{text}"));
}
