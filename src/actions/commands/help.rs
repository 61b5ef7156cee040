//! `help`: the commands, from the registry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Command, CommandOutcome, Inputs, REGISTRY, Refusal, named};
use crate::actions::sanitize::sanitize;
use crate::domain::CommandName;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Help")]
pub struct HelpArguments {
    /// The command, or the group such as `memory`, that help is wanted with; default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40))]
    pub command: Option<String>,
}

/// Returns the command of this name, or those of the group of this name, such as `memory`.
pub fn of_group(name: &str) -> Vec<CommandName> {
    let name = name.to_lowercase().replace(' ', ".");
    let is_meant = |command: &&CommandName| {
        let rest = command.into_str().strip_prefix(&name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    CommandName::ALL.iter().filter(is_meant).copied().collect()
}

/// Returns the name of the command that a word means, or the word if it means a group or nothing.
pub fn topic(word: &str) -> &str {
    match of_group(word).as_slice() {
        [one] => one.into_str(),
        [] => named(&word.to_lowercase()).map_or(word, |name| name.into_str()),
        _ => word,
    }
}

pub(super) fn execute(
    arguments: &HelpArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let wanted = arguments.command.as_deref();
    let wanted = wanted.map(|name| name.trim().trim_start_matches(['/', '!']));
    let meant = wanted.map(|name| of_group(topic(name)));
    let is_listed = |command: &&Command| {
        let is_wanted = meant
            .as_ref()
            .is_none_or(|meant| meant.contains(&command.name));
        is_wanted && facts.allowed.contains(&command.name)
    };
    let listed: Vec<&Command> = REGISTRY.iter().filter(is_listed).collect();
    if listed.is_empty() {
        let name = sanitize(wanted.unwrap_or_default());
        return Err(Refusal::not_found(format!(
            "There is no command \"{name}\" here. Say \"help\" to see all that there are."
        )));
    }
    let line = |command: &&Command| {
        let count = wanted.as_ref().map_or(1, |_| command.examples.len());
        let examples = command.examples.iter().take(count);
        let examples: Vec<String> = examples.map(|it| format!("`{it}`")).collect();
        let (name, help) = (command.name, command.help);
        format!("**{name}** {help} {}", examples.join(" "))
    };
    let text = listed.iter().map(line).collect::<Vec<_>>().join("\n");
    let commands: Vec<Value> = listed
        .iter()
        .map(|command| json!({ "name": command.name, "help": command.help, "examples": command.examples }))
        .collect();
    Ok(CommandOutcome::reply(
        json!({ "text": text, "commands": commands, "ephemeral": true }),
    ))
}
