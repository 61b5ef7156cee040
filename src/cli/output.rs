//! What the commands share that ask: the user, the printed reply, and how to go on from it.

use serde_json::Value;

use super::terminal::{say, say_json};
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

/// How the user answers a question of the committee: the same command with the same flags, and a
/// time limit.
pub(super) struct Hint {
    pub command: String,
    /// The time limit, such as "within 30 minutes" or "in time".
    pub when: String,
}

/// Prints the run's id on standard error, so that standard output has only the reply. Also prints a
/// hint if the committee asks a question.
pub(super) fn after_reply(run: RunId, asks: Option<&Hint>) {
    if let Some(Hint { command, when }) = asks {
        tell!("\nThe committee asks before it answers. Answer {when}:  {command}");
        tell!("or in your own words; \"new: ...\" begins something else.");
    }
    tell!("\nrun {run}  (conclave show {run})");
}
