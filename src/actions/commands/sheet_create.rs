//! `sheet.create`: stores a character sheet. Only a sheet as a JSON object replaces the one of the same
//! name.

use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization as _;

use super::check::row_of;
use super::{Action, CommandOutcome, Inputs, Refusal, read};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::Sheet;
use crate::domain::CommandName;
use crate::journal::Effect;

/// The most sheets of a user in one guild.
const MAX_SHEETS: usize = 20;

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut sheet: Sheet = read(arguments)?;
    // One name in composed and in separate characters is one.
    sheet.name = sheet.name.trim().nfc().collect();
    sheet.check()?;
    Ok(Action::SheetCreate(Box::new(sheet)))
}

/// Stores a new sheet. Words have only a part of a sheet, so they replace none.
pub(super) fn created(sheet: &Sheet, facts: &Inputs) -> Result<CommandOutcome, Refusal> {
    let Ok(row) = row_of(facts, &sheet.name) else {
        return stored(sheet, facts);
    };
    let name = sanitize(&row.name);
    let how = "/sheet create {\"name\": ..., \"abilities\": {...}}";
    let change = "To change parts of it: /sheet update.";
    let change = facts.advice(CommandName::SheetUpdate, change);
    Err(Refusal::invalid(format!(
        "There is a sheet of {name} already.{change} To replace it, give the whole sheet: {how}"
    )))
}

/// Stores a sheet in place of the one of the same name, if there is one.
pub(super) fn stored(sheet: &Sheet, facts: &Inputs) -> Result<CommandOutcome, Refusal> {
    sheet.check_name().map_err(Refusal::invalid)?;
    let row = row_of(facts, &sheet.name).ok();
    let known = row.is_some();
    if !known && facts.sheets.len() >= MAX_SHEETS {
        let message = format!("You have {MAX_SHEETS} sheets, the maximum.");
        return Err(Refusal::too_many(message));
    }
    let stored = json!(sheet);
    let name = sanitize(&sheet.name);
    let done = if known { "replaced" } else { "kept" };
    let idle = sheet.idle_proficiencies();
    let text = format!("The sheet of {name} is {done}.{idle}");
    check_room(&stored, row.map(|row| &row.sheet), facts)?;
    Ok(CommandOutcome::with_effect(
        json!({ "text": text, "name": name, "replaced": known, "sheet": sheet }),
        Effect::Sheet {
            name: sheet.name.clone(),
            sheet: stored,
        },
    ))
}

/// Checks that a sheet fits into the bytes that the user may still store. Its earlier version does not count.
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
    let memories = "To delete a memory: /memory delete duke.";
    let memories = facts.advice(CommandName::MemoryDelete, memories);
    let sheets = "To delete a sheet: /sheet delete Aria.";
    let sheets = facts.advice(CommandName::SheetDelete, sheets);
    Err(Refusal::too_many(format!(
        "This needs {bytes} bytes, and {left} are left for your sheets and memories.{memories}{sheets}"
    )))
}
