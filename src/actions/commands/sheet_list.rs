//! `sheet.list`: the names of the user's sheets, in pages.

use serde_json::{Value, json};

use super::page::{PAGE_SIZE, PageArguments};
use super::{Action, Command, CommandOutcome, Inputs, SideEffect, read, schema};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};

pub(super) fn command() -> Command {
    Command {
        name: CommandName::SheetList,
        help: "List your characters; the first one is active.",
        permission: Scope::Act,
        reach: SideEffect::ReadsOwn,
        examples: &["/sheet list", "/sheet list 2"],
        schema: schema::<PageArguments>,
        read: |arguments| {
            let page = read::<PageArguments>(arguments)?.checked()?;
            Ok(Action::SheetList(page))
        },
    }
}

pub(super) fn execute(page: PageArguments, facts: &Inputs) -> CommandOutcome {
    let all = facts.sheets.len();
    let shown: Vec<Value> = facts
        .sheets
        .iter()
        .enumerate()
        .skip(page.skipped())
        .take(PAGE_SIZE)
        .map(|(i, row)| {
            let of = |key: &str| row.sheet.get(key).cloned().unwrap_or_default();
            json!({ "name": sanitize(&row.name), "class": of("class"), "level": of("level"), "active": i == 0 })
        })
        .collect();
    let mut lines: Vec<String> = shown.iter().map(line).collect();
    if all == 0 {
        lines.push("You have no sheet yet. Say: create a character named Aria the rogue".into());
    }
    lines.extend(page.footer(all, "/sheet list"));
    CommandOutcome::saying(json!({ "text": lines.join("\n"), "sheets": shown, "count": all }))
}

fn line(sheet: &Value) -> String {
    let text = |key: &str| sheet.get(key).and_then(Value::as_str);
    let mut line = format!("- {}", text("name").unwrap_or_default());
    if let Some(level) = sheet.get("level").and_then(Value::as_i64) {
        line.push_str(&format!(", level {level}"));
    }
    if let Some(class) = text("class") {
        line.push_str(&format!(" {}", sanitize(class)));
    }
    if sheet.get("active") == Some(&json!(true)) {
        line.push_str(" (active)");
    }
    line
}
