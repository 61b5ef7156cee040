//! `sheet.use`: makes one of the user's characters the active one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::check::row_of;
use super::{Action, Command, CommandOutcome, Inputs, Refusal, SideEffect, read, schema, text_of};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::MAX_NAME_CHARS;
use crate::domain::{CommandName, Scope};
use crate::journal::Effect;

/// One of the user's sheets, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SheetNamed")]
pub struct SheetNamedArguments {
    /// The character's name.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
}

impl SheetNamedArguments {
    pub(super) fn read(arguments: serde_json::Value) -> Result<Self, String> {
        let read: Self = read(arguments)?;
        Ok(Self {
            name: text_of("name", &read.name, MAX_NAME_CHARS)?,
        })
    }
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::SheetUse,
        help: "Switch to another of your characters.",
        permission: Scope::Act,
        reach: SideEffect::WritesOwn,
        examples: &["/sheet use Aria"],
        schema: schema::<SheetNamedArguments>,
        read: |arguments| Ok(Action::SheetUse(SheetNamedArguments::read(arguments)?)),
    }
}

/// The active sheet is the one that was written last, so the sheet is written again.
pub(super) fn execute(
    arguments: &SheetNamedArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let row = row_of(facts, &arguments.name)?;
    let name = sanitize(&row.name);
    Ok(CommandOutcome {
        result: json!({ "text": format!("{name} is your active character."), "name": name }),
        effect: Some(Effect::Sheet {
            name: row.name.clone(),
            sheet: row.sheet.clone(),
        }),
    })
}
