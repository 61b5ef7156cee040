//! Explicit commands: `/roll 2d6`, `/sheet create {...}`, and the spellings of other bots.

use serde_json::{Map, Value, json};

use super::{ParsedMessage, character, checks, nearest, phrasing, reading, rolls, wrong};
use crate::actions::sheet::Ability;
use crate::domain::CommandName;

/// Spellings of commands that bots and virtual tables document, or that the phrasings suggest.
const SPELLINGS: [(&str, CommandName); 15] = [
    ("r", CommandName::Roll),
    ("rr", CommandName::Roll),
    ("multiroll", CommandName::Roll),
    ("c", CommandName::Check),
    ("s", CommandName::Check),
    ("save", CommandName::Check),
    ("me", CommandName::Do),
    ("em", CommandName::Do),
    ("emote", CommandName::Do),
    ("sheet", CommandName::SheetShow),
    ("char", CommandName::SheetUse),
    ("character", CommandName::SheetUse),
    ("remember", CommandName::MemoryAdd),
    ("recall", CommandName::MemorySearch),
    ("forget", CommandName::MemoryDelete),
];

/// Other words for the parts of a name such as `sheet.update`.
const PARTS: [(&str, &str); 7] = [
    ("char", "sheet"),
    ("character", "sheet"),
    ("set", "update"),
    ("change", "update"),
    ("switch", "use"),
    ("remove", "delete"),
    ("find", "search"),
];

/// Returns the command that a word or a full name stands for.
pub(super) fn named(name: &str) -> Option<CommandName> {
    let spelling = SPELLINGS.iter().find(|(spelling, _)| *spelling == name);
    spelling
        .map(|(_, command)| *command)
        .or_else(|| name.parse().ok())
}

/// Returns the name or spelling of a command that is nearest to a misspelt one.
pub(super) fn nearest_name(name: &str) -> Option<&'static str> {
    let names = CommandName::ALL.into_iter().map(|name| name.into_str());
    nearest(
        name,
        names.chain(SPELLINGS.iter().map(|(spelling, _)| *spelling)),
    )
}

/// Splits off the first word, in lower case.
pub(super) fn first_word(text: &str) -> (String, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    (first.to_lowercase(), rest.trim())
}

/// Reads what stands behind `/` or `!`. A phrasing that is no command's name counts as well: `/flip a
/// coin`.
pub(super) fn read(text: &str) -> ParsedMessage {
    let (first, rest) = first_word(text);
    let first = first.replace(':', ".");
    let (second, after) = first_word(rest);
    let part = |word: &str| {
        let found = PARTS.iter().find(|(other, _)| *other == word);
        found.map_or(word.to_owned(), |(_, part)| (*part).to_owned())
    };
    if let Ok(command) = format!("{}.{}", part(&first), part(&second)).parse() {
        return arguments(command, after);
    }
    match (first.as_str(), named(&first)) {
        ("rr" | "multiroll", _) => repeated_roll(rest),
        ("s" | "save", _) => check(rest, true),
        ("char" | "character", _) if rest.is_empty() => arguments(CommandName::SheetShow, rest),
        (_, Some(command)) => arguments(command, rest),
        (_, None) => match phrasing(text) {
            Some((command, arguments)) => reading(command, arguments),
            None => ParsedMessage::Unclear,
        },
    }
}

/// `6 4d6kh3`: the same roll several times.
fn repeated_roll(text: &str) -> ParsedMessage {
    let parts = text.split_once(char::is_whitespace);
    match parts.filter(|(times, _)| times.parse::<u32>().is_ok()) {
        Some((times, dice)) => roll(&format!("{times}#{dice}")),
        None => wrong(
            CommandName::Roll,
            "say how many times, and what: /rr 6 4d6kh3",
        ),
    }
}

/// Reads what is rolled: dice, or the name of a check.
fn roll(text: &str) -> ParsedMessage {
    match rolls::explicit(text) {
        Ok(arguments) => reading(CommandName::Roll, arguments),
        Err(problem) => match checks::read(&format!("roll {text}")) {
            Some((command, arguments)) => reading(command, arguments),
            None => wrong(CommandName::Roll, problem),
        },
    }
}

/// `dex 15`, `perc adv`: the arguments of a check, or of a saving throw.
fn check(text: &str, save: bool) -> ParsedMessage {
    let command = CommandName::Check;
    let usage = if save {
        "say it like this: /save dex 15, /save wis with advantage"
    } else {
        "say it like this: /check dex 15, /check stealth with advantage"
    };
    let mut arguments = match checks::words(text, true) {
        Ok(arguments) => arguments,
        Err(_) if text.is_empty() => return wrong(command, usage),
        Err(problem) => return wrong(command, format!("{problem}; {usage}")),
    };
    if let (true, Some(arguments)) = (save, arguments.as_object_mut()) {
        if arguments.contains_key("skill") {
            let problem = "a saving throw has an ability and no skill: /save dex 15";
            return wrong(command, problem);
        }
        arguments.insert("save".into(), json!(true));
    }
    reading(command, arguments)
}

/// Reads the arguments behind a command's name.
fn arguments(command: CommandName, rest: &str) -> ParsedMessage {
    if rest.starts_with('{') {
        return match serde_json::from_str::<Value>(rest) {
            Ok(arguments) => reading(command, arguments),
            Err(error) => wrong(command, format!("the arguments are not JSON: {error}")),
        };
    }
    if rest.starts_with("--") {
        return match options(command, rest) {
            Ok(arguments) => reading(command, arguments),
            Err(problem) => wrong(command, problem),
        };
    }
    if rest.starts_with('[') && !matches!(command, CommandName::Ooc | CommandName::Roll) {
        return wrong(command, "the arguments are a JSON object, {\"...\": ...}");
    }
    let arguments = match command {
        CommandName::Roll | CommandName::Check | CommandName::SheetShow
            if rest.eq_ignore_ascii_case("help") =>
        {
            return reading(CommandName::Help, json!({ "command": command.into_str() }));
        }
        CommandName::Roll => return roll(rest),
        CommandName::Check => return check(rest, false),
        CommandName::Do => json!({ "deed": rest }),
        CommandName::Ooc => json!({ "remark": rest }),
        CommandName::MemoryAdd => json!({ "content": rest }),
        CommandName::MemorySearch => json!({ "query": rest }),
        CommandName::SheetCreate => match character(rest) {
            Some(arguments) => arguments,
            // Parts of a sheet, which would all become its name.
            None if rest.contains(|c: char| c == '=' || c.is_ascii_digit()) => {
                let usage = r#"say it like this: /sheet create {"name": "Aria", "level": 3, "abilities": {"dex": 16}}"#;
                return wrong(command, usage);
            }
            None => json!({ "name": rest }),
        },
        CommandName::SheetShow if rest.is_empty() => json!({}),
        CommandName::SheetShow | CommandName::SheetUse | CommandName::SheetDelete => {
            json!({ "name": rest })
        }
        CommandName::SheetUpdate => sheet_parts(rest).unwrap_or_else(|| json!({})),
        CommandName::SheetList | CommandName::MemoryList if rest.is_empty() => json!({}),
        CommandName::SheetList | CommandName::MemoryList => match rest.parse::<u32>() {
            Ok(page) => json!({ "page": page }),
            Err(_) => return wrong(command, "the page is a number, such as 2"),
        },
        CommandName::MemoryDelete => json!({ "memory": rest }),
        CommandName::Help if rest.is_empty() => json!({}),
        CommandName::Help => {
            let name = named(rest.trim_start_matches('/'));
            json!({ "command": name.map_or(rest, |name| name.into_str()) })
        }
    };
    reading(command, arguments)
}

/// Reads arguments as on a command line: `--expr 2d6+3`, `--ability DEX --dc 15`, `--json {...}`,
/// `--message ...`.
///
/// # Errors
/// What is wrong with them.
fn options(command: CommandName, text: &str) -> Result<Value, String> {
    let mut arguments = Map::new();
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
    let lower = part.to_lowercase();
    let (outer, inner) = match (lower.as_str(), Ability::named(&lower)) {
        (_, Some(ability)) => ("abilities", Some(ability.into_str())),
        ("hp", _) => ("hitPoints", Some("current")),
        ("maxhp", _) => ("hitPoints", Some("max")),
        ("ac", _) => ("armorClass", None),
        ("level", _) => ("level", None),
        _ => (part, None),
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

/// Reads parts of a sheet with their numbers: `hp 24`, `level 4, dex 18`. Returns `None` if a word is
/// not understood.
pub(super) fn sheet_parts(text: &str) -> Option<Value> {
    let mut text = text.to_lowercase().replace([',', '=', ':'], " ");
    for (long, short) in [
        ("max hit points", "maxhp"),
        ("max hp", "maxhp"),
        ("hit points", "hp"),
        ("armor class", "ac"),
        ("armour class", "ac"),
    ] {
        text = text.replace(long, short);
    }
    let mut sheet = Map::new();
    let mut words = text.split_whitespace().filter(|word| *word != "to");
    while let Some(part) = words.next() {
        let is_known = matches!(part, "level" | "hp" | "maxhp" | "ac");
        let number = words.next().filter(|word| word.parse::<i64>().is_ok())?;
        if !is_known && Ability::named(part).is_none() {
            return None;
        }
        sheet_part(&mut sheet, part, number);
    }
    Some(Value::Object(sheet))
}
