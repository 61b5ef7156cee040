//! `sheet.create`: stores a character sheet, or replaces the one of the same name.

use serde_json::{Value, json};

use super::{Action, Command, CommandOutcome, Inputs, Refusal, SideEffect, read, schema};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::Sheet;
use crate::domain::{CommandName, Scope};
use crate::journal::Effect;

/// The most sheets of a user in one guild.
const MAX_SHEETS: usize = 20;

/// The sheet itself.
pub type SheetCreateArguments = Sheet;

pub(super) fn command() -> Command {
    Command {
        name: CommandName::SheetCreate,
        help: "Create your character's sheet, or replace it.",
        permission: Scope::Act,
        reach: SideEffect::WritesOwn,
        examples: &[
            "create a character named Aria the rogue",
            r#"/sheet create {"name": "Aria", "class": "rogue", "level": 3, "abilities": {"dex": 16}, "proficiencies": ["stealth"]}"#,
        ],
        schema: schema::<SheetCreateArguments>,
        read: |arguments| {
            let mut sheet: Sheet = read(arguments)?;
            sheet.name = sheet.name.trim().to_owned();
            let problems = sheet.problems();
            if problems.is_empty() {
                Ok(Action::SheetCreate(Box::new(sheet)))
            } else {
                Err(problems.join("; "))
            }
        },
    }
}

pub(super) fn execute(sheet: &Sheet, facts: &Inputs) -> Result<CommandOutcome, Refusal> {
    sheet.check_hit_points().map_err(Refusal::invalid)?;
    let row = facts
        .sheets
        .iter()
        .find(|row| row.name.to_lowercase() == sheet.name.to_lowercase());
    let known = row.is_some();
    if !known && facts.sheets.len() >= MAX_SHEETS {
        let message = format!("You have {MAX_SHEETS} sheets, which is all that there is room for.");
        return Err(Refusal::too_many(message));
    }
    // A few words must not replace a whole sheet.
    let bare = json!(sheet).as_object().is_some_and(|keys| {
        keys.keys()
            .all(|key| matches!(key.as_str(), "name" | "class" | "level"))
    });
    let name = sanitize(&sheet.name);
    if known && bare {
        let how = "/sheet create {\"name\": ..., \"abilities\": {...}}";
        let change = facts.advice(
            CommandName::SheetUpdate,
            "To change parts of it: /sheet update.",
        );
        let message = format!(
            "There is a sheet of {name} already.{change} To replace it, give the whole sheet: {how}"
        );
        return Err(Refusal::invalid(message));
    }
    let text = if known {
        format!("The sheet of {name} is replaced.")
    } else {
        format!("The sheet of {name} is kept.")
    };
    let stored = json!(sheet);
    check_room(&stored, row.map(|row| &row.sheet), facts)?;
    Ok(CommandOutcome::changing(
        json!({ "text": text, "name": name, "replaced": known, "sheet": sheet }),
        Effect::Sheet {
            name: sheet.name.clone(),
            sheet: stored,
        },
    ))
}

/// Checks that a sheet fits into the user's room, in which its earlier version no longer counts.
///
/// # Errors
/// If it does not fit.
pub(super) fn check_room(
    sheet: &Value,
    before: Option<&Value>,
    facts: &Inputs,
) -> Result<(), Refusal> {
    let bytes = |sheet: &Value| sheet.to_string().len() as u64;
    let freed = before.map_or(0, bytes);
    check_bytes(bytes(sheet), facts.bytes_left.saturating_add(freed), facts)
}

/// Checks that `bytes` are at most the bytes that are left.
///
/// # Errors
/// If they are more.
pub(super) fn check_bytes(bytes: u64, left: u64, facts: &Inputs) -> Result<(), Refusal> {
    if bytes <= left {
        return Ok(());
    }
    let memories = facts.advice(
        CommandName::MemoryDelete,
        "To delete a memory: /memory delete duke.",
    );
    let sheets = facts.advice(
        CommandName::SheetDelete,
        "To delete a sheet: /sheet delete Aria.",
    );
    Err(Refusal::too_many(format!(
        "This needs {bytes} bytes, and {left} are left for your sheets and memories.{memories}{sheets}"
    )))
}
