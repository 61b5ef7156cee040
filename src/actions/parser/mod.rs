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

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::commands::{Action, of_group, topic};
use super::speech::is_quotation_mark;
use crate::domain::CommandName;
use crate::text::listed;

/// The patterns of this folder: a name, a tab and a regular expression.
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
    let text = trimmed(message);
    let text = text.strip_prefix("/act ").map_or(text, unquoted);
    // Other bots have commands with "!".
    if let Some(command) = text.strip_prefix(['/', '!']) {
        return explicit::read(command);
    }
    if let Some((name, arguments)) = phrasing(text).or_else(|| first_person(text)) {
        return match reading(name, arguments) {
            ParsedMessage::Clear(action) if is_first_person(text) => {
                ParsedMessage::FirstPerson(action)
            }
            parsed => parsed,
        };
    }
    match narrated::read(text) {
        Some((name, arguments)) => reading(name, arguments),
        None => ParsedMessage::Unclear,
    }
}

/// Returns a text without spaces and invisible characters around it.
fn trimmed(text: &str) -> &str {
    let inner = regex("text.trimmed").captures(text);
    inner
        .and_then(|inner| inner.get(1))
        .map_or(text, |it| it.as_str())
}

/// The phrasings that order dice or a check.
const ORDERS: [&str; 4] = ["roll.order", "check.order", "roll.coin", "roll.give"];

/// The most words between "I" and a verb of dice.
const MAX_BETWEEN: usize = 4;

/// True if a text, or the label in brackets before dice, begins with "I" or "we".
fn is_first_person(text: &str) -> bool {
    let text = text.trim_start_matches(['(', '[', ' ']);
    regex("text.first_person").is_match(text)
}

/// Reads dice or a check in first-person prose: "I", a few words that negate nothing, and an order.
fn first_person(text: &str) -> Option<Found> {
    let mut rest = text.get(regex("text.first_person").find(text)?.end()..)?;
    for _ in 0..=MAX_BETWEEN {
        let found = is_order(rest).then(|| rolls::read(rest).or_else(|| checks::read(rest)));
        if let Some(found) = found.flatten() {
            return Some(found);
        }
        let (word, after) = rest.split_once(' ')?;
        if !word.chars().all(char::is_alphabetic) || rolls::may_change_a_roll(&word.to_lowercase())
        {
            return None;
        }
        rest = after.trim_start();
    }
    None
}

/// True if a text begins with an order to roll or to make a check.
fn is_order(text: &str) -> bool {
    let lower = text.trim_end_matches(['.', '!', '?']).to_lowercase();
    ORDERS.iter().any(|order| regex(order).is_match(&lower))
}

/// Returns a text without the quotation marks around it: what follows `/act`, or a name.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let opened = text.strip_prefix(is_quotation_mark);
    let inner = opened.and_then(|rest| rest.strip_suffix(is_quotation_mark));
    inner.map_or(text, str::trim)
}

/// Returns what the first rule finds that takes the text. A phrasing is one line. Courtesy before and
/// after it changes nothing, and is part of what is remembered only if nothing else is.
fn phrasing(text: &str) -> Option<Found> {
    if text.contains('\n') {
        return None;
    }
    let (courtesy, asked) = text.split_at_checked(regex("text.courtesy").find(text)?.end())?;
    let thanks = regex("text.thanks").find(asked);
    let plain = thanks.and_then(|thanks| asked.get(..thanks.start()));
    let plain = plain.unwrap_or(asked);
    // "Can you show my sheet?" is a request.
    let unasked = plain.trim_end_matches(['?', ' ']);
    let of_sheet = if courtesy.is_empty() { plain } else { unasked };
    // What is remembered may end with the word: "Bob said no thanks".
    let is_thanks = thanks.is_some_and(|it| it.as_str().starts_with(','));
    rolls::read(plain)
        .or_else(|| checks::read(plain))
        .or_else(|| remarks(text))
        .or_else(|| {
            let found = memories(plain);
            found.filter(|(name, _)| is_thanks || *name == CommandName::MemorySearch)
        })
        .or_else(|| memories(asked))
        .filter(|(name, _)| {
            *name != CommandName::MemoryAdd || !regex("text.conditional").is_match(text)
        })
        .or_else(|| sheets(of_sheet))
        .or_else(|| help(text))
        .or_else(|| rolls::labelled(plain))
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

/// Returns the pattern of this name.
#[expect(
    clippy::expect_used,
    reason = "the table and the names are in the source, and the tests look up every one"
)]
fn regex(name: &str) -> &'static Regex {
    static COMPILED: LazyLock<HashMap<&str, Regex>> = LazyLock::new(|| {
        let rows = PATTERNS.lines().filter_map(|line| line.split_once('\t'));
        rows.map(|(name, _)| (name, listed(PATTERNS, name)))
            .collect()
    });
    let found = COMPILED.get(name);
    found.expect("the table has a pattern of this name")
}

/// Returns the trimmed first group of a pattern of this name.
fn capture(name: &str, text: &str) -> Option<String> {
    let captures = regex(name).captures(text)?;
    let found = captures.get(1)?.as_str().trim();
    (!found.is_empty()).then(|| found.to_owned())
}

fn remarks(text: &str) -> Option<Found> {
    let remark = capture("text.brackets", text).or_else(|| capture("text.ooc", text))?;
    Some((CommandName::Ooc, json!({ "remark": remark })))
}

fn memories(text: &str) -> Option<Found> {
    if let Some(query) = capture("text.recall", text) {
        return Some((CommandName::MemorySearch, json!({ "query": query })));
    }
    if regex("text.list_memories").is_match(text) {
        return Some((CommandName::MemoryList, json!({})));
    }
    if let Some(words) = capture("text.forget", text) {
        return Some((CommandName::MemoryDelete, json!({ "memory": words })));
    }
    // A question stores nothing.
    let content = capture("text.remember", text).filter(|content| !content.contains('?'))?;
    Some((CommandName::MemoryAdd, json!({ "content": content })))
}

fn sheets(text: &str) -> Option<Found> {
    if regex("text.show_sheet").is_match(text) {
        return Some((CommandName::SheetShow, json!({})));
    }
    if let Some(captures) = regex("text.show_named").captures(text) {
        let name = captures.name("of").or(captures.name("own"))?;
        let name = unquoted(name.as_str());
        let pronouns = [
            "my", "your", "the", "this", "that", "his", "her", "their", "it", "what", "who", "here",
        ];
        let is_name = !pronouns.contains(&name.to_lowercase().as_str());
        return is_name.then(|| (CommandName::SheetShow, json!({ "name": name })));
    }
    let captures = regex("text.create").captures(text)?;
    let (how, who) = (captures.name("how"), captures.name("who")?.as_str().trim());
    if how.is_some_and(|how| !how.as_str().eq_ignore_ascii_case("for")) {
        return Some((CommandName::SheetCreate, character(who)?));
    }
    // After "for" there may be a purpose. Only a capitalised or quoted word is a name.
    let name = who.starts_with(['"', '“'])
        || (regex("text.name").is_match(who) && !regex("text.no_name").is_match(who));
    Some((CommandName::SheetCreate, character(who).filter(|_| name)?))
}

/// Reads a name with an ancestry, a class and a level: "Aria", "Aria the rogue", "Sir Kay, a level 3
/// fighter", "Thalia, elf ranger level 3".
fn character(text: &str) -> Option<Value> {
    let text = text.trim();
    // A number alone is no name.
    let is_name = |captures: &Captures<'_>| {
        let name = captures.name("name");
        name.is_some_and(|name| name.as_str().contains(char::is_alphabetic))
    };
    let plain = regex("text.character").captures(text).filter(is_name);
    let captures = plain.or_else(|| regex("text.quoted").captures(text))?;
    let level = captures.name("level").or(captures.name("after"));
    // "Aria, please" names no class.
    let has = |name: &str| captures.name(name).is_some();
    if has("class") && !has("article") && !has("ancestry") && level.is_none() {
        return None;
    }
    let mut sheet = Map::new();
    for key in ["name", "ancestry", "class"] {
        if let Some(part) = captures.name(key) {
            let value = match key {
                "name" => part.as_str().to_owned(),
                _ => part.as_str().to_lowercase(),
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
    if regex("text.help").is_match(text) {
        return Some((CommandName::Help, json!({})));
    }
    let command = capture("text.help_with", text)?;
    let is_known = !of_group(&command).is_empty();
    is_known.then(|| (CommandName::Help, json!({ "command": topic(&command) })))
}

#[cfg(test)]
mod tests;
