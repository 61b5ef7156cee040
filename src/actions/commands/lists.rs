//! `sheet.list` and `memory.list`: what the user has stored, in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CommandOutcome, Inputs, read};
use crate::actions::sanitize::sanitize;
use crate::domain::CommandName;
use crate::journal::SheetRow;

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

pub(super) fn parse(arguments: Value) -> Result<PageArguments, String> {
    let read: PageArguments = read(arguments)?;
    match read.page {
        Some(page) if !(1..=MAX_PAGE).contains(&page) => {
            Err(format!("the page is from 1 to {MAX_PAGE}"))
        }
        _ => Ok(read),
    }
}

impl PageArguments {
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

pub(super) fn list_sheets(page: PageArguments, facts: &Inputs) -> CommandOutcome {
    let all = facts.sheets.len();
    let rows = facts.sheets.iter().enumerate();
    let rows = rows.skip(page.skipped()).take(PAGE_SIZE);
    let sheet = |(i, row): (usize, &SheetRow)| {
        let sheet = &row.sheet;
        let (class, level) = (&sheet["class"], &sheet["level"]);
        json!({ "name": sanitize(&row.name), "class": class, "level": level, "active": i == 0 })
    };
    let shown: Vec<Value> = rows.map(sheet).collect();
    let mut lines: Vec<String> = shown.iter().map(line).collect();
    if all == 0 {
        lines.push(facts.no_sheet());
    }
    lines.extend(page.footer(all, "/sheet list"));
    CommandOutcome::reply(json!({ "text": lines.join("\n"), "sheets": shown, "count": all }))
}

fn line(sheet: &Value) -> String {
    let mut line = format!("- {}", sheet["name"].as_str().unwrap_or_default());
    if let Some(level) = sheet["level"].as_i64() {
        line.push_str(&format!(", level {level}"));
    }
    if let Some(class) = sheet["class"].as_str() {
        line.push_str(&format!(" {}", sanitize(class)));
    }
    if sheet["active"] == true {
        line.push_str(" (active)");
    }
    line
}

/// `facts` has the memories of this page, and the number of all.
pub(super) fn list_memories(page: PageArguments, facts: &Inputs) -> CommandOutcome {
    let all = usize::try_from(facts.memory_count).unwrap_or(usize::MAX);
    let (mut shown, mut lines) = (vec![], vec![]);
    for (number, row) in (page.skipped() + 1..).zip(&facts.memories) {
        shown.push(json!({ "number": number, "id": row.run.to_string(), "content": row.content, "at": row.at.to_string() }));
        lines.push(format!("{number}. {}", sanitize(&row.content)));
    }
    if all == 0 {
        let how = facts.advice(CommandName::MemoryAdd, "Say: remember that ...");
        lines.push(format!("Nothing is remembered for you yet.{how}"));
    }
    lines.extend(page.footer(all, "/memory list"));
    CommandOutcome::reply(json!({ "text": lines.join("\n"), "memories": shown, "count": all }))
}
