//! `sheet.list` and `memory.list`: what the user has stored, in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, Command, CommandOutcome, Inputs, SideEffect, read, schema};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};

/// The most entries of a page.
pub const PAGE_SIZE: usize = 10;

/// The last page that may be asked for.
const MAX_PAGE: u32 = 1000;

/// The page of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Page")]
pub struct PageArguments {
    /// The page, from 1; default 1. A page has ten entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub page: Option<u32>,
}

impl PageArguments {
    fn read(arguments: Value) -> Result<Self, String> {
        let read: Self = read(arguments)?;
        match read.page {
            Some(page) if !(1..=MAX_PAGE).contains(&page) => {
                Err(format!("the page is from 1 to {MAX_PAGE}"))
            }
            _ => Ok(read),
        }
    }

    /// Returns how many entries are on earlier pages.
    pub(super) fn skipped(self) -> usize {
        (self.page.unwrap_or(1) as usize).saturating_sub(1) * PAGE_SIZE
    }

    /// Returns the last line of a page: which one it is, and how to get the next. `None` if the
    /// list has one page only.
    fn footer(self, all: usize, command: &str) -> Option<String> {
        let pages = all.div_ceil(PAGE_SIZE).max(1);
        let page = self.page.unwrap_or(1) as usize;
        if pages == 1 && page == 1 {
            return None;
        }
        if page > pages {
            return Some(format!("There is no page {page}; the last is {pages}."));
        }
        let next = if page < pages {
            format!(" Next: {command} {}", page + 1)
        } else {
            String::new()
        };
        Some(format!("Page {page} of {pages}.{next}"))
    }
}

pub(super) fn sheets() -> Command {
    Command {
        name: CommandName::SheetList,
        help: "List your characters; the first one is active.",
        permission: Scope::Act,
        reach: SideEffect::ReadsOwn,
        examples: &["/sheet list", "/sheet list 2"],
        schema: schema::<PageArguments>,
        read: |arguments| Ok(Action::SheetList(PageArguments::read(arguments)?)),
    }
}

pub(super) fn list_sheets(page: PageArguments, facts: &Inputs) -> CommandOutcome {
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
        lines.push(facts.no_sheet());
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

pub(super) fn memories() -> Command {
    Command {
        name: CommandName::MemoryList,
        help: "List what is remembered for you, the newest first.",
        permission: Scope::Act,
        reach: SideEffect::ReadsOwn,
        examples: &["/memory list", "/memory list 2"],
        schema: schema::<PageArguments>,
        read: |arguments| Ok(Action::MemoryList(PageArguments::read(arguments)?)),
    }
}

/// `facts` has the memories of this page, and the number of all.
pub(super) fn list_memories(page: PageArguments, facts: &Inputs) -> CommandOutcome {
    let all = usize::try_from(facts.memory_count).unwrap_or(usize::MAX);
    let numbered = facts
        .memories
        .iter()
        .enumerate()
        .map(|(i, row)| (page.skipped() + i + 1, row));
    let shown: Vec<Value> = numbered
        .clone()
        .map(|(number, row)| {
            json!({ "number": number, "id": row.run.to_string(), "content": row.content, "at": row.at.to_string() })
        })
        .collect();
    let mut lines: Vec<String> = numbered
        .map(|(number, row)| format!("{number}. {}", sanitize(&row.content)))
        .collect();
    if all == 0 {
        let how = facts.advice(CommandName::MemoryAdd, "Say: remember that ...");
        lines.push(format!("Nothing is remembered for you yet.{how}"));
    }
    lines.extend(page.footer(all, "/memory list"));
    CommandOutcome::saying(json!({ "text": lines.join("\n"), "memories": shown, "count": all }))
}
