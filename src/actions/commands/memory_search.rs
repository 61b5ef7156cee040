//! `memory.search`: the full-text search of the database over memories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, Command, CommandOutcome, Inputs, SideEffect, read, schema, text_of};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope, search_terms};

/// The most memories that are shown.
pub(super) const MAX_FOUND: u32 = 10;

/// The most terms that are searched for.
const MAX_TERMS: usize = 32;

/// Stop words.
const EMPTY: [&str; 40] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "i", "in", "is", "it", "me", "my", "of", "on", "or", "our", "that",
    "the", "their", "they", "this", "to", "us", "was", "we", "what", "which", "who", "with",
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemorySearch")]
pub struct MemorySearchArguments {
    /// Words to look for; any of them will do.
    #[schemars(length(min = 1, max = 500))]
    pub query: String,
}

impl MemorySearchArguments {
    /// Returns the search terms, each once.
    pub fn terms(&self) -> Vec<String> {
        Self::terms_of(&self.query)
    }

    /// Returns the terms that find a text in the index, without stop words, unless it has no others.
    pub(super) fn terms_of(text: &str) -> Vec<String> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let telling: Vec<&str> = words
            .iter()
            .copied()
            .filter(|word| !EMPTY.contains(word))
            .collect();
        let chosen = if telling.is_empty() { words } else { telling };
        let mut terms: Vec<String> = vec![];
        // A memory that an older version stored has its words as they were written.
        for term in chosen.into_iter().flat_map(|word| {
            let mut terms = search_terms(word);
            terms.push(word.to_owned());
            terms
        }) {
            if terms.len() < MAX_TERMS && !terms.contains(&term) {
                terms.push(term);
            }
        }
        terms
    }
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::MemorySearch,
        help: "Search what was remembered for you.",
        permission: Scope::Act,
        reach: SideEffect::ReadsOwn,
        examples: &[
            "what do you remember about the duke?",
            "/memory search duke",
        ],
        schema: schema::<MemorySearchArguments>,
        read: |arguments| {
            let read: MemorySearchArguments = read(arguments)?;
            Ok(Action::MemorySearch(MemorySearchArguments {
                query: text_of("a search", &read.query, 500, "/memory search duke")?,
            }))
        },
    }
}

pub(super) fn execute(arguments: &MemorySearchArguments, facts: &Inputs) -> CommandOutcome {
    let found: Vec<Value> = facts
        .memories
        .iter()
        .map(|row| json!({ "id": row.run.to_string(), "content": row.content, "at": row.at.to_string() }))
        .collect();
    let text = if found.is_empty() {
        format!(
            "Nothing is remembered about {}.",
            sanitize(&arguments.query)
        )
    } else {
        facts
            .memories
            .iter()
            .map(|row| format!("- {}", sanitize(&row.content)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    CommandOutcome::saying(
        json!({ "text": text, "query": sanitize(&arguments.query), "memories": found }),
    )
}
