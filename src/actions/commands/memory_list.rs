//! `memory.list`: everything that is remembered for the user, the newest first, in pages.

use serde_json::{Value, json};

use super::page::PageArguments;
use super::{Action, Command, CommandOutcome, Inputs, SideEffect, read, schema};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};

pub(super) fn command() -> Command {
    Command {
        name: CommandName::MemoryList,
        help: "List what is remembered for you, the newest first.",
        permission: Scope::Act,
        reach: SideEffect::ReadsOwn,
        examples: &["/memory list", "/memory list 2"],
        schema: schema::<PageArguments>,
        read: |arguments| {
            let page = read::<PageArguments>(arguments)?.checked()?;
            Ok(Action::MemoryList(page))
        },
    }
}

/// `facts` has the memories of this page, and the number of all.
pub(super) fn execute(page: PageArguments, facts: &Inputs) -> CommandOutcome {
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
        lines.push("Nothing is remembered for you yet. Say: remember that ...".into());
    }
    lines.extend(page.footer(all, "/memory list"));
    CommandOutcome::saying(json!({ "text": lines.join("\n"), "memories": shown, "count": all }))
}
