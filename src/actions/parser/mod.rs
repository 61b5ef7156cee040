//! The deterministic parser: explicit commands, narrated actions, and phrasings that can mean only
//! one command.
//!
//! It calls no model and costs nothing. It must account for every word of a phrasing: a text with a
//! word too many is unclear and goes to the proposer. So it may miss a command, and it never takes
//! one for another.
//!
//! First-person prose is never executed. Dice in it ("I roll 2d6") are offered, and the user
//! confirms them.

mod checks;
mod explicit;
mod hints;
mod narrated;
mod rolls;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::commands::Action;
use crate::domain::CommandName;
use crate::text::listed;

/// The patterns of this folder, by name.
const PATTERNS: &str = include_str!("patterns.tsv");

pub use hints::hint;

/// How a text was parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedMessage {
    /// To be executed.
    Clear(Action),
    /// To be offered: dice in first-person prose.
    FirstPerson(Action),
    /// A command, beyond doubt, that cannot be executed as it stands.
    Wrong {
        command: CommandName,
        problem: String,
    },
    Unclear,
}

/// Parses a text.
pub fn read(message: &str) -> ParsedMessage {
    let text = message.trim();
    let text = text.strip_prefix("/act ").map_or(text, unquoted);
    // Other bots have commands with "!".
    if let Some(command) = text.strip_prefix(['/', '!']) {
        return explicit::read(command);
    }
    if let Some((name, arguments)) = phrasing(text) {
        return match reading(name, arguments) {
            ParsedMessage::Clear(action) if FIRST_PERSON.is_match(text) => {
                ParsedMessage::FirstPerson(action)
            }
            parsed => parsed,
        };
    }
    narrated::read(text).map_or(ParsedMessage::Unclear, |(name, arguments)| {
        reading(name, arguments)
    })
}

/// Returns the text behind `/act`, without the quotation marks around it.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = [('"', '"'), ('\u{201c}', '\u{201d}')]
        .into_iter()
        .find_map(|(from, to)| text.strip_prefix(from)?.strip_suffix(to));
    inner.map_or(text, str::trim)
}

/// Returns what the first rule finds that takes the text. A phrasing is one line.
fn phrasing(text: &str) -> Option<Found> {
    if text.contains('\n') {
        return None;
    }
    rolls::read(text)
        .or_else(|| checks::read(text))
        .or_else(|| remarks(text))
        .or_else(|| memories(text))
        .or_else(|| sheets(text))
        .or_else(|| help(text))
        .or_else(|| rolls::labelled(text))
}

/// A command's name with its arguments, not validated.
pub(super) type Found = (CommandName, Value);

fn reading(command: CommandName, arguments: Value) -> ParsedMessage {
    match Action::read(command, arguments) {
        Ok(action) => ParsedMessage::Clear(action),
        Err(problem) => wrong(command, problem),
    }
}

fn wrong(command: CommandName, problem: impl Into<String>) -> ParsedMessage {
    let problem = problem.into();
    ParsedMessage::Wrong { command, problem }
}

/// Returns the known word that differs least from a misspelt one, if few letters differ.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |known: &&str| strsim::osa_distance(word, known);
    let nearest = known.min_by_key(distance)?;
    (3 * distance(&nearest) <= nearest.len()).then_some(nearest)
}

static FIRST_PERSON: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.first_person"));
static BRACKETS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.brackets"));
static OOC: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.ooc"));
static ABOUT_OOC: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.about_ooc"));
static REMEMBER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.remember"));
static SHARED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.shared"));
static RECALL: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.recall"));
static LIST_MEMORIES: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.list_memories"));
static FORGET: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.forget"));
static LIST_SHEETS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.list_sheets"));
static SET: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.set"));
static SWITCH: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.switch"));
static DELETE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.delete"));
static SHOW_SHEET: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.show_sheet"));
static SHOW_NAMED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.show_named"));
static CREATE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.create"));
static NAME: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.name"));
static NO_NAME: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.no_name"));
static QUOTED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.quoted"));
static CHARACTER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.character"));
static HELP: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.help"));
static HELP_WITH: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.help_with"));

fn capture(pattern: &Regex, text: &str) -> Option<String> {
    let captures = pattern.captures(text)?;
    let found = captures.get(1)?.as_str().trim();
    (!found.is_empty()).then(|| found.to_owned())
}

fn remarks(text: &str) -> Option<Found> {
    let remark = capture(&BRACKETS, text)
        .or_else(|| capture(&OOC, text).filter(|_| !ABOUT_OOC.is_match(text)))?;
    Some((CommandName::Ooc, json!({ "remark": remark })))
}

fn memories(text: &str) -> Option<Found> {
    if let Some(query) = capture(&RECALL, text) {
        return Some((CommandName::MemorySearch, json!({ "query": query })));
    }
    if LIST_MEMORIES.is_match(text) {
        return Some((CommandName::MemoryList, json!({})));
    }
    if let Some(words) = capture(&FORGET, text) {
        return Some((CommandName::MemoryDelete, json!({ "memory": words })));
    }
    // A question stores nothing. "Remember that time when ..." recalls a shared event.
    let content =
        capture(&REMEMBER, text).filter(|content| !content.contains('?') && !is_shared(content))?;
    Some((CommandName::MemoryAdd, json!({ "content": content })))
}

/// True if "that" points at something and begins no clause: "(remember that) night in the tavern".
fn is_shared(content: &str) -> bool {
    let verbs = [
        "is", "are", "was", "were", "has", "have", "had", "will", "can", "must", "costs", "takes",
        "starts", "begins", "ends", "runs", "flies", "opens", "closes", "owes", "hates", "likes",
        "wants", "needs",
    ];
    SHARED.captures(content).is_some_and(|captures| {
        captures
            .name("next")
            .is_none_or(|next| !verbs.contains(&next.as_str().to_lowercase().as_str()))
    })
}

fn sheets(text: &str) -> Option<Found> {
    if SHOW_SHEET.is_match(text) {
        return Some((CommandName::SheetShow, json!({})));
    }
    if LIST_SHEETS.is_match(text) {
        return Some((CommandName::SheetList, json!({})));
    }
    if let Some(captures) = SET.captures(text) {
        let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
        let changed = format!("{}{} {}", part("part"), part("ability"), part("value"));
        return Some((CommandName::SheetUpdate, explicit::sheet_parts(&changed)?));
    }
    for (pattern, command) in [
        (&SWITCH, CommandName::SheetUse),
        (&DELETE, CommandName::SheetDelete),
    ] {
        if let Some(name) = capture(pattern, text) {
            return Some((command, json!({ "name": name })));
        }
    }
    if let Some(captures) = SHOW_NAMED.captures(text) {
        let name = captures
            .name("of")
            .or(captures.name("own"))?
            .as_str()
            .trim();
        let pronouns = [
            "my", "your", "the", "this", "that", "his", "her", "their", "it", "what", "who", "here",
        ];
        return (!pronouns.contains(&name.to_lowercase().as_str()))
            .then(|| (CommandName::SheetShow, json!({ "name": name })));
    }
    let captures = CREATE.captures(text)?;
    let (how, who) = (captures.name("how"), captures.name("who")?.as_str().trim());
    if how.is_some_and(|how| !how.as_str().eq_ignore_ascii_case("for")) {
        return Some((CommandName::SheetCreate, character(who)?));
    }
    // After "for" there may be a purpose. Only a capitalised or quoted word is a name.
    let name = who.starts_with(['"', '“']) || (NAME.is_match(who) && !NO_NAME.is_match(who));
    Some((CommandName::SheetCreate, character(who).filter(|_| name)?))
}

/// Reads a name with an ancestry, a class and a level: "Aria", "Aria the rogue", "Sir Kay, a level 3
/// fighter", "Thalia, elf ranger level 3".
fn character(text: &str) -> Option<Value> {
    let captures = [&CHARACTER, &QUOTED]
        .into_iter()
        .find_map(|pattern| pattern.captures(text.trim()))?;
    let level = captures.name("level").or(captures.name("after"));
    // "Aria, please" names no class.
    let has = |name: &str| captures.name(name).is_some();
    if has("class") && !has("article") && !has("ancestry") && level.is_none() {
        return None;
    }
    let mut sheet = Map::new();
    for key in ["name", "ancestry", "class"] {
        if let Some(part) = captures.name(key) {
            let part = part.as_str();
            let value = if key == "name" {
                part.to_owned()
            } else {
                part.to_lowercase()
            };
            sheet.insert(key.into(), json!(value));
        }
    }
    if let Some(level) = level.and_then(|level| level.as_str().parse::<i64>().ok()) {
        sheet.insert("level".into(), json!(level));
    }
    Some(Value::Object(sheet))
}

fn help(text: &str) -> Option<Found> {
    if HELP.is_match(text) {
        return Some((CommandName::Help, json!({})));
    }
    let command = capture(&HELP_WITH, text)?.to_lowercase().replace(' ', ".");
    let command: CommandName = command.parse().ok()?;
    Some((CommandName::Help, json!({ "command": command.into_str() })))
}

#[cfg(test)]
mod tests;
