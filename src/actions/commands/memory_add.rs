//! `memory.add`: something to be remembered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sheet_create::check_bytes;
use super::{Action, CommandOutcome, Inputs, Refusal, not_executed, read, trim_text};
use crate::actions::sanitize::sanitize;
use crate::journal::Effect;

/// The most memories of a user in one guild.
const MAX_MEMORIES: u64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemoryAdd")]
pub struct MemoryAddArguments {
    /// What is to be remembered, in the user's words.
    #[schemars(length(min = 1, max = 2000))]
    pub content: String,
}

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut read: MemoryAddArguments = read(arguments)?;
    let example = "/memory add the duke hates dogs";
    trim_text(&mut read.content, "a memory", 2000, example)?;
    Ok(Action::MemoryAdd(read))
}

pub(super) fn execute(
    arguments: &MemoryAddArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    if facts.memory_count >= MAX_MEMORIES {
        let message = format!("You have {MAX_MEMORIES} memories, the maximum.");
        return Err(Refusal::too_many(message));
    }
    let content = arguments.content.clone();
    check_bytes(content.len() as u64, facts.bytes_left, facts)?;
    let mut lines = vec![format!("Remembered: {}", sanitize(&content))];
    lines.extend(not_executed(&content, "a memory", facts));
    let result = json!({ "id": facts.id, "text": lines.join("\n"), "content": content });
    Ok(CommandOutcome::with_effect(
        result,
        Effect::Memory { content },
    ))
}
