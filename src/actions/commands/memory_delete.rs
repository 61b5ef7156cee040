//! `memory.delete`: deletes one memory of the user, once the user has confirmed it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Action, CommandOutcome, Inputs, Refusal, Requirements, memory_search, read, trim_text,
};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, RunId, words_as_written};
use crate::journal::{Effect, MemoryRow};

/// The most memories that are compared with a text. The one with exactly this text may rank after
/// others.
const MAX_MATCHES: u32 = 1000;

/// The most memories that are shown if several fit.
const MAX_SHOWN: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemoryDelete")]
pub struct MemoryDeleteArguments {
    /// The memory: its number in `memory.list`, its id, its text, or words that only it contains together.
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
                words: memory_search::words_of(&self.memory),
                most: MAX_MATCHES,
            },
        }
    }
}

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut read: MemoryDeleteArguments = read(arguments)?;
    let example = "/memory delete 3, /memory delete swordfish";
    trim_text(&mut read.memory, "this", 500, example)?;
    Ok(Action::MemoryDelete(read))
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
    Ok(CommandOutcome::with_effect(
        json!({ "text": text, "id": row.run.to_string(), "content": row.content }),
        Effect::MemoryDeleted { memory: row.run },
    ))
}

fn found<'a>(
    arguments: &MemoryDeleteArguments,
    facts: &'a Inputs,
) -> Result<&'a MemoryRow, Refusal> {
    let words = words_as_written(&arguments.memory);
    let is_exact = |row: &&MemoryRow| words_as_written(&row.content) == words;
    let mut exact = facts.memories.iter().filter(is_exact);
    if let (Some(row), None) = (exact.next(), exact.next()) {
        return Ok(row);
    }
    match &facts.memories[..] {
        [row] => Ok(row),
        [] => {
            let named = sanitize(&arguments.memory);
            let see = facts.advice(CommandName::MemoryList, "See: /memory list");
            let message = format!("Nothing is remembered under \"{named}\".{see}");
            Err(Refusal::not_found(message))
        }
        several => {
            let shown = several.get(..MAX_SHOWN).unwrap_or(several);
            let listed = memory_search::listed(shown);
            let how = "Or name it by its number in /memory list.";
            let number = facts.advice(CommandName::MemoryList, how);
            Err(Refusal::invalid(format!(
                "Several memories fit, such as:\n{listed}\nName one by its text, or by words that only it has together.{number}"
            )))
        }
    }
}
