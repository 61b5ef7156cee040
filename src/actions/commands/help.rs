//! `help`: the commands, from the registry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, Command, CommandOutcome, Inputs, Refusal, SideEffect, read, registry, schema};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Help")]
pub struct HelpArguments {
    /// The command that help is wanted with; default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40))]
    pub command: Option<String>,
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::Help,
        help: "Say what can be done here.",
        permission: Scope::Act,
        reach: SideEffect::Nothing,
        examples: &["help", "/help roll", "what can you do?"],
        schema: schema::<HelpArguments>,
        read: |arguments| Ok(Action::Help(read(arguments)?)),
    }
}

pub(super) fn execute(
    arguments: &HelpArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let here: Vec<Command> = registry()
        .into_iter()
        .filter(|command| facts.allowed.contains(&command.name))
        .collect();
    let wanted = arguments
        .command
        .as_deref()
        .map(|name| name.trim().trim_start_matches('/').replace(' ', "."));
    let listed: Vec<&Command> = match &wanted {
        None => here.iter().collect(),
        Some(name) => here
            .iter()
            .filter(|command| command.name.into_str() == name)
            .collect(),
    };
    if listed.is_empty() {
        let message = format!(
            "There is no command \"{}\" here. Say \"help\" to see all that there are.",
            sanitize(wanted.as_deref().unwrap_or(""))
        );
        return Err(Refusal::not_found(message));
    }
    let text = listed
        .iter()
        .map(|command| {
            let examples = if wanted.is_some() {
                command.examples.len()
            } else {
                1
            };
            let examples: Vec<String> = command
                .examples
                .iter()
                .take(examples)
                .map(|e| format!("`{e}`"))
                .collect();
            format!(
                "**{}** {} {}",
                command.name,
                command.help,
                examples.join(" ")
            )
        })
        .collect::<Vec<_>>()
        .join("\n");
    let commands: Vec<Value> = listed
        .iter()
        .map(|command| json!({ "name": command.name, "help": command.help, "examples": command.examples }))
        .collect();
    Ok(CommandOutcome::saying(
        json!({ "text": text, "commands": commands, "ephemeral": true }),
    ))
}
