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
mod narrated;
mod notation;
mod rolls;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::commands::Action;
use super::sheet::Ability;
use crate::domain::CommandName;
use crate::text::listed;

/// The patterns of this folder, by name.
const PATTERNS: &str = include_str!("patterns.tsv");

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
    if let Some(rest) = text.strip_prefix('/') {
        return explicit(rest);
    }
    // The prefix of other bots.
    if let Some(rest) = text.strip_prefix('!') {
        return explicit(rest);
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
}

/// A command's name with its arguments, not validated.
pub(super) type Found = (CommandName, Value);

fn reading(command: CommandName, arguments: Value) -> ParsedMessage {
    match Action::read(command, arguments) {
        Ok(action) => ParsedMessage::Clear(action),
        Err(problem) => ParsedMessage::Wrong { command, problem },
    }
}

/// Reads `/name arguments`, `/sheet create arguments` for `/sheet.create`, and short forms such as
/// `/r 2d6`.
fn explicit(text: &str) -> ParsedMessage {
    let word_end = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
    let (first, rest) = text.split_at(word_end(text));
    let rest = rest.trim();
    let (second, after) = rest.split_at(word_end(rest));
    let two = format!("{first}.{second}").to_lowercase();
    let named = first.to_lowercase().replace(':', ".");
    let command = match (two.parse::<CommandName>(), short_form(&named)) {
        (Ok(command), _) => return explicit_command(command, after.trim()),
        (_, Some(command)) => command,
        (_, None) => match named.parse() {
            Ok(command) => command,
            Err(_) => return ParsedMessage::Unclear,
        },
    };
    match named.as_str() {
        "rr" => repeated_roll(rest),
        "s" | "save" => check(rest, true),
        _ => explicit_command(command, rest),
    }
}

/// Returns the command of a short form that dice bots have.
fn short_form(name: &str) -> Option<CommandName> {
    Some(match name {
        "r" | "rr" => CommandName::Roll,
        "c" | "s" | "save" => CommandName::Check,
        "me" => CommandName::Do,
        "sheet" => CommandName::SheetShow,
        _ => return None,
    })
}

/// `6 4d6kh3`: the same roll several times.
fn repeated_roll(text: &str) -> ParsedMessage {
    let command = CommandName::Roll;
    let parts = text.split_once(char::is_whitespace);
    let Some((Ok(times), dice)) = parts.map(|(times, dice)| (times.parse::<u32>(), dice.trim()))
    else {
        let problem = "say how many times, and what: /rr 6 4d6kh3".to_owned();
        return ParsedMessage::Wrong { command, problem };
    };
    let mut arguments = self::dice(dice);
    let before = arguments
        .as_object_mut()
        .and_then(|arguments| arguments.insert("times".into(), json!(times)));
    if before.is_some() {
        let problem = "how many times is said twice".to_owned();
        return ParsedMessage::Wrong { command, problem };
    }
    reading(command, arguments)
}

/// Reads the dice behind a command's name. No dice at all are a d20.
fn dice(text: &str) -> Value {
    if text.is_empty() {
        return json!({ "expression": "1d20" });
    }
    rolls::expression(text)
        .or_else(|| notation::read(text, notation::Place::Explicit))
        .unwrap_or_else(|| json!({ "expression": text }))
}

/// `dex 15`, `perc adv`: the arguments of a check, or of a saving throw.
fn check(text: &str, save: bool) -> ParsedMessage {
    let command = CommandName::Check;
    let wrong = |problem: &str| ParsedMessage::Wrong {
        command,
        problem: problem.to_owned(),
    };
    let Some(mut arguments) = checks::words(text, true) else {
        return wrong(if save {
            "say it like this: /save dex 15, /save wis with advantage"
        } else {
            "say it like this: /check dex 15, /check stealth with advantage"
        });
    };
    if let (true, Some(arguments)) = (save, arguments.as_object_mut()) {
        if arguments.contains_key("skill") {
            return wrong("a saving throw has an ability and no skill: /save dex 15");
        }
        arguments.insert("save".into(), json!(true));
    }
    reading(command, arguments)
}

/// Reads the arguments behind a command's name.
fn explicit_command(command: CommandName, rest: &str) -> ParsedMessage {
    if rest.starts_with('{') {
        return match serde_json::from_str::<Value>(rest) {
            Ok(arguments) => reading(command, arguments),
            Err(error) => ParsedMessage::Wrong {
                command,
                problem: format!("the arguments are not JSON: {error}"),
            },
        };
    }
    if rest.starts_with("--") {
        return match options(command, rest) {
            Ok(arguments) => reading(command, arguments),
            Err(problem) => ParsedMessage::Wrong { command, problem },
        };
    }
    if rest.starts_with('[') && command != CommandName::Ooc {
        return ParsedMessage::Wrong {
            command,
            problem: "the arguments are a JSON object, {\"...\": ...}".to_owned(),
        };
    }
    let arguments = match command {
        CommandName::Roll => dice(rest),
        CommandName::Check => return check(rest, false),
        CommandName::Do => json!({ "deed": rest }),
        CommandName::Ooc => json!({ "remark": rest }),
        CommandName::MemoryAdd => json!({ "content": rest }),
        CommandName::MemorySearch => json!({ "query": rest }),
        CommandName::SheetCreate => match character(rest) {
            Some(arguments) => arguments,
            None => json!({ "name": rest }),
        },
        CommandName::SheetShow if rest.is_empty() => json!({}),
        CommandName::SheetShow | CommandName::SheetUse | CommandName::SheetDelete => {
            json!({ "name": rest })
        }
        CommandName::SheetUpdate => json!({}),
        CommandName::SheetList | CommandName::MemoryList if rest.is_empty() => json!({}),
        CommandName::SheetList | CommandName::MemoryList => match rest.parse::<u32>() {
            Ok(page) => json!({ "page": page }),
            Err(_) => {
                return ParsedMessage::Wrong {
                    command,
                    problem: "the page is a number, such as 2".to_owned(),
                };
            }
        },
        CommandName::MemoryDelete => json!({ "memory": rest }),
        CommandName::Help if rest.is_empty() => json!({}),
        CommandName::Help => json!({ "command": rest }),
    };
    reading(command, arguments)
}

/// Reads arguments as on a command line: `--expr 2d6+3`, `--ability DEX --dc 15`, `--json {...}`,
/// `--message ...`.
///
/// # Errors
/// What is wrong with them.
fn options(command: CommandName, text: &str) -> Result<Value, String> {
    let mut arguments = serde_json::Map::new();
    for part in text.split("--").filter(|part| !part.trim().is_empty()) {
        let (option, value) = part
            .trim()
            .split_once(char::is_whitespace)
            .unwrap_or((part.trim(), ""));
        let value = value.trim();
        let name = match (option, command) {
            ("json", _) => {
                let Ok(Value::Object(all)) = serde_json::from_str(value) else {
                    return Err("--json takes a JSON object".to_owned());
                };
                arguments.extend(all);
                continue;
            }
            ("expr" | "expression", CommandName::Roll) => "expression",
            ("message", CommandName::Do) => "deed",
            ("message", CommandName::Ooc) => "remark",
            ("message", CommandName::MemoryAdd) => "content",
            (part, CommandName::SheetUpdate) => {
                sheet_part(&mut arguments, part, value);
                continue;
            }
            (option, _) => option,
        };
        let lower = value.to_lowercase();
        let read = match (name, lower.parse::<i64>()) {
            ("dc" | "modifier" | "level", Ok(number)) => json!(number),
            ("ability" | "skill" | "advantage", _) => json!(lower),
            _ => json!(value.trim_matches('"')),
        };
        arguments.insert(name.to_owned(), read);
    }
    Ok(Value::Object(arguments))
}

/// Adds a part of a sheet: `--level 4`, `--dex 18`, `--hp 21`, `--ac 15`, `--class wizard`.
fn sheet_part(sheet: &mut Map<String, Value>, part: &str, text: &str) {
    let text = text.trim_matches('"');
    let value = text
        .parse::<i64>()
        .map_or(json!(text), |number| json!(number));
    let (outer, inner) = match (part, Ability::named(&part.to_lowercase())) {
        (_, Some(ability)) => ("abilities", Some(ability.into_str())),
        ("hp", _) => ("hitPoints", Some("current")),
        ("maxHp" | "maxhp", _) => ("hitPoints", Some("max")),
        ("ac", _) => ("armorClass", None),
        (part, _) => (part, None),
    };
    match inner {
        None => {
            sheet.insert(outer.to_owned(), value);
        }
        Some(inner) => {
            let parts = sheet.entry(outer).or_insert_with(|| json!({}));
            if let Some(parts) = parts.as_object_mut() {
                parts.insert(inner.to_owned(), value);
            }
        }
    }
}

static FIRST_PERSON: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.first_person"));
static BRACKETS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.brackets"));
static OOC: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.ooc"));
static ABOUT_OOC: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.about_ooc"));
static REMEMBER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.remember"));
static SHARED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.shared"));
static RECALL: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "text.recall"));
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

/// Reads a name with a class and a level: "Aria", "Aria the rogue", "Sir Kay, a level 3 fighter".
fn character(text: &str) -> Option<Value> {
    let captures = [&CHARACTER, &QUOTED]
        .into_iter()
        .find_map(|pattern| pattern.captures(text.trim()))?;
    let mut arguments =
        Map::from_iter([("name".to_owned(), json!(captures.name("name")?.as_str()))]);
    if let Some(class) = captures.name("class") {
        arguments.insert("class".into(), json!(class.as_str().to_lowercase()));
    }
    if let Some(level) = captures
        .name("level")
        .and_then(|level| level.as_str().parse::<i64>().ok())
    {
        arguments.insert("level".into(), json!(level));
    }
    Some(Value::Object(arguments))
}

fn help(text: &str) -> Option<Found> {
    if HELP.is_match(text) {
        return Some((CommandName::Help, json!({})));
    }
    let command = capture(&HELP_WITH, text)?.to_lowercase().replace(' ', ".");
    Some((CommandName::Help, json!({ "command": command })))
}

#[cfg(test)]
mod tests;
