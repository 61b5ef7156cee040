//! What the commands share that ask: the user, the printed reply, and how to go on from it.

use serde_json::Value;

use super::terminal::{options, say, say_json};
use crate::config::Env;
use crate::domain::{RunId, User};

/// Returns the user who asks: the one given, or `$USER`.
pub(super) fn user(env: &Env, given: Option<&String>) -> User {
    let id = given.map_or_else(|| env.get_or("USER", "cli"), String::as_str);
    User {
        id: id.to_owned(),
        name: id.to_owned(),
    }
}

/// Prints a reply: its text, or its whole body as JSON.
pub(super) fn print_reply(body: &Value, text: &str, as_json: bool) {
    if as_json {
        say_json(&format!("{body:#}"));
    } else {
        say(format_args!("{text}"));
    }
}

/// Prints the run's id on standard error, so that standard output has only the reply. If the
/// committee asks a question, it also prints the command that answers it.
pub(super) fn after_reply(run: RunId, server: Option<&String>, answer: Option<&str>) {
    if let Some(command) = answer {
        tell!("\nThe committee asks before it answers. Answer with:  {command}");
        tell!("or in your own words; \"new: ...\" begins something else.");
    }
    tell!("\nrun {run}  ({})", show_command(run, server));
}

/// Returns the command that shows a run of this machine or of a server.
pub(super) fn show_command(run: RunId, server: Option<&String>) -> String {
    format!("conclave show{} {run}", options(&[("server", server)]))
}
