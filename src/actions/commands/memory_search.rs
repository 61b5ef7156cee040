//! `memory.search`: the full-text search of the database over memories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, CommandOutcome, Inputs, read, trim_text};
use crate::actions::sanitize::sanitize;
use crate::domain::{search_terms, words_as_written};
use crate::journal::MemoryRow;

/// The most memories that are shown.
pub(super) const MAX_FOUND: usize = 10;

/// The most words that are searched for.
const MAX_WORDS: usize = 32;

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

/// Returns the words that find a text in the index, each with all terms for it, without stop words,
/// unless it has no others.
pub(super) fn words_of(text: &str) -> Vec<Vec<String>> {
    let words = words_as_written(text);
    let is_telling = |word: &String| !EMPTY.contains(&word.as_str());
    let has_others = words.iter().any(is_telling);
    let chosen = words.iter().filter(|word| !has_others || is_telling(word));
    let terms = chosen.flat_map(|word| {
        // A memory that an older version stored has its words as they were written.
        search_terms(word).into_iter().map(|term| {
            let mut terms = vec![term, word.clone()];
            terms.dedup();
            terms
        })
    });
    terms.take(MAX_WORDS).collect()
}

/// Returns the contents of memories, a line each.
pub(super) fn listed(memories: &[MemoryRow]) -> String {
    let lines = memories.iter();
    let lines = lines.map(|row| format!("- {}", sanitize(&row.content)));
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut read: MemorySearchArguments = read(arguments)?;
    trim_text(&mut read.query, "a search", 500, "/memory search duke")?;
    Ok(Action::MemorySearch(read))
}

pub(super) fn execute(arguments: &MemorySearchArguments, facts: &Inputs) -> CommandOutcome {
    let (memories, more) = facts.memories.split_at(facts.memories.len().min(MAX_FOUND));
    let found: Vec<Value> = memories
        .iter()
        .map(|row| json!({ "id": row.run.to_string(), "content": row.content, "at": row.at.to_string() }))
        .collect();
    let query = sanitize(&arguments.query);
    let mut text = if found.is_empty() {
        format!("Nothing is remembered about {query}.")
    } else {
        listed(memories)
    };
    if !more.is_empty() {
        text.push_str("\nThere are more. Search for a word that fewer memories have.");
    }
    CommandOutcome::reply(json!({ "text": text, "query": query, "memories": found }))
}
