//! `memory.add`: something to be remembered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::sheet_create::check_bytes;
use super::{Action, Command, CommandOutcome, Inputs, Refusal, SideEffect, read, schema, text_of};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};
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

pub(super) fn command() -> Command {
    Command {
        name: CommandName::MemoryAdd,
        help: "Remember something for you.",
        permission: Scope::Act,
        reach: SideEffect::WritesOwn,
        examples: &[
            "remember that the duke hates dogs",
            "/memory add the password is swordfish",
        ],
        schema: schema::<MemoryAddArguments>,
        read: |arguments| {
            let read: MemoryAddArguments = read(arguments)?;
            Ok(Action::MemoryAdd(MemoryAddArguments {
                content: text_of(
                    "a memory",
                    &read.content,
                    2000,
                    "/memory add the duke hates dogs",
                )?,
            }))
        },
    }
}

pub(super) fn execute(
    arguments: &MemoryAddArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    if facts.memory_count >= MAX_MEMORIES {
        let message = format!(
            "{MAX_MEMORIES} things are remembered for you, which is all that there is room for."
        );
        return Err(Refusal::too_many(message));
    }
    let content = arguments.content.clone();
    check_bytes(content.len() as u64, facts.bytes_left, facts)?;
    let result = json!({ "id": facts.id, "text": format!("Remembered: {}", sanitize(&content)), "content": content });
    Ok(CommandOutcome::changing(result, Effect::Memory { content }))
}
