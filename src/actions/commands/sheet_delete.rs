//! `sheet.delete`: deletes one of the user's sheets, once the user has confirmed it.

use serde_json::json;

use super::check::row_of;
use super::sheet_use::SheetNamedArguments;
use super::{Action, Command, CommandOutcome, Inputs, Refusal, SideEffect, schema};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};
use crate::journal::Effect;

pub(super) fn command() -> Command {
    Command {
        name: CommandName::SheetDelete,
        help: "Delete one of your sheets; asks you to confirm.",
        permission: Scope::Act,
        reach: SideEffect::WritesOwn,
        examples: &["/sheet delete Aria"],
        schema: schema::<SheetNamedArguments>,
        read: |arguments| Ok(Action::SheetDelete(SheetNamedArguments::read(arguments)?)),
    }
}

/// Returns the deletion of a sheet that exists, with its name as it is stored.
///
/// # Errors
/// If no sheet has this name.
pub(super) fn resolved(
    arguments: &SheetNamedArguments,
    facts: &Inputs,
) -> Result<SheetNamedArguments, Refusal> {
    row_of(facts, &arguments.name).map(|row| SheetNamedArguments {
        name: row.name.clone(),
    })
}

pub(super) fn execute(
    arguments: &SheetNamedArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let row = row_of(facts, &arguments.name)?;
    let name = sanitize(&row.name);
    Ok(CommandOutcome {
        result: json!({ "text": format!("The sheet of {name} is deleted."), "name": name, "sheet": row.sheet }),
        effect: Some(Effect::SheetDeleted {
            name: row.name.clone(),
        }),
    })
}
