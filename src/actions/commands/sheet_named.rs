//! `sheet.use` and `sheet.delete`: a sheet by its name becomes the active one, or is deleted once the
//! user has confirmed it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::row_of;
use super::{CommandOutcome, Inputs, Refusal, read, trim_text};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::MAX_NAME_CHARS;
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

pub(super) fn parse(arguments: Value, example: &str) -> Result<SheetNamedArguments, String> {
    let mut read: SheetNamedArguments = read(arguments)?;
    trim_text(&mut read.name, "a name", MAX_NAME_CHARS, example)?;
    Ok(read)
}

/// The active sheet is the one that was written last, so the sheet is written again.
pub(super) fn switched(
    arguments: &SheetNamedArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let row = row_of(facts, &arguments.name)?;
    let name = sanitize(&row.name);
    Ok(CommandOutcome::with_effect(
        json!({ "text": format!("{name} is your active character."), "name": name }),
        Effect::Sheet {
            name: row.name.clone(),
            sheet: row.sheet.clone(),
        },
    ))
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

pub(super) fn deleted(
    arguments: &SheetNamedArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let row = row_of(facts, &arguments.name)?;
    let name = sanitize(&row.name);
    if facts.offered_at.is_some_and(|at| row.updated_at > at) {
        return Err(Refusal::invalid(format!(
            "the sheet of {name} was changed since its deletion was offered: say /sheet delete {name} again"
        )));
    }
    Ok(CommandOutcome::with_effect(
        json!({ "text": format!("The sheet of {name} is deleted."), "name": name, "sheet": row.sheet }),
        Effect::SheetDeleted {
            name: row.name.clone(),
        },
    ))
}
