//! `memory.delete`: deletes one memory of the user, once the user has confirmed it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Action, Command, CommandOutcome, Inputs, MemorySearchArguments, Refusal, Requirements,
    SideEffect, read, schema, text_of,
};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, RunId, Scope};
use crate::journal::{Effect, MemoryRow};

/// One more than the one that may match.
const MAX_MATCHES: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemoryDelete")]
pub struct MemoryDeleteArguments {
    /// The memory: its number in `memory.list`, its id, or words that only it contains.
    #[schemars(length(min = 1, max = 500))]
    pub memory: String,
    /// What it says. An offer has it; it is ignored in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub content: Option<String>,
}

impl MemoryDeleteArguments {
    /// Returns what has to be loaded to find the memory.
    pub(super) fn needs(&self) -> Requirements {
        if let Ok(id) = self.memory.parse::<RunId>() {
            return Requirements::Memory(id);
        }
        match self.memory.trim_start_matches('#').parse::<usize>() {
            Ok(number) => Requirements::MemoryPage {
                skip: number.saturating_sub(1),
                most: u32::from(number > 0),
            },
            Err(_) => Requirements::Memories {
                terms: MemorySearchArguments::terms_of(&self.memory),
                most: MAX_MATCHES,
            },
        }
    }
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::MemoryDelete,
        help: "Delete something that is remembered for you; asks you to confirm.",
        permission: Scope::Act,
        reach: SideEffect::WritesOwn,
        examples: &["/memory delete 3", "/memory delete swordfish"],
        schema: schema::<MemoryDeleteArguments>,
        read: |arguments| {
            let read: MemoryDeleteArguments = read(arguments)?;
            Ok(Action::MemoryDelete(MemoryDeleteArguments {
                memory: text_of(
                    "this",
                    &read.memory,
                    500,
                    "/memory delete 3, /memory delete swordfish",
                )?,
                content: read.content,
            }))
        },
    }
}

/// Returns the deletion of one memory, by its id and with its content.
///
/// # Errors
/// If no memory or several fit.
pub(super) fn resolved(
    arguments: &MemoryDeleteArguments,
    facts: &Inputs,
) -> Result<MemoryDeleteArguments, Refusal> {
    found(arguments, facts).map(|row| MemoryDeleteArguments {
        memory: row.run.to_string(),
        content: Some(row.content.clone()),
    })
}

pub(super) fn execute(
    arguments: &MemoryDeleteArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let row = found(arguments, facts)?;
    let text = format!("No longer remembered: {}", sanitize(&row.content));
    Ok(CommandOutcome::changing(
        json!({ "text": text, "id": row.run.to_string(), "content": row.content }),
        Effect::MemoryDeleted { memory: row.run },
    ))
}

fn found<'a>(
    arguments: &MemoryDeleteArguments,
    facts: &'a Inputs,
) -> Result<&'a MemoryRow, Refusal> {
    match &facts.memories[..] {
        [row] => Ok(row),
        [] => Err(Refusal::not_found(format!(
            "Nothing is remembered under \"{}\".{}",
            sanitize(&arguments.memory),
            facts.advice(CommandName::MemoryList, "See: /memory list")
        ))),
        several => {
            let lines: Vec<String> = several
                .iter()
                .map(|row| format!("- {}", sanitize(&row.content)))
                .collect();
            let number = facts.advice(
                CommandName::MemoryList,
                "Or name it by its number in /memory list.",
            );
            let message = format!(
                "Several memories fit, such as:\n{}\nName one by a word that only it has.{number}",
                lines.join("\n")
            );
            Err(Refusal::invalid(message))
        }
    }
}
