//! Explicit commands: `/roll 2d6`, `/sheet create {...}`, and the spellings of other bots.

use std::collections::BTreeSet;

use conclave_lenient_json::Unambiguous;
use serde_json::{Map, Value, json};

use super::{ParsedMessage, character, checks, phrasing, reading, regex, rolls, unquoted, wrong};
use crate::actions::catalog::typed_value;
use crate::actions::check_words::{Wording, words};
use crate::actions::commands::{Action, named, spellings, topic};
use crate::actions::nearest::nearest;
use crate::actions::sheet::Ability;
use crate::actions::speech::is_quotation_mark;
use crate::domain::CommandName;

/// Returns what a word means: an `argument`, or a `part` of the name of a command.
fn meant<'a>(kind: &str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let begin = format!("{kind}\t{word}\t");
    let rows = include_str!("words.tsv").lines();
    rows.filter_map(move |row| row.strip_prefix(&begin))
}

/// Returns the name or spelling of an allowed command that is nearest to a misspelt one.
pub(super) fn nearest_name(name: &str, allowed: &BTreeSet<CommandName>) -> Option<&'static str> {
    let names = CommandName::ALL.iter().map(|name| (name.into_str(), *name));
    let known = names.chain(spellings());
    let here = known.filter(|(_, command)| allowed.contains(command));
    nearest(name, here.map(|(spelling, _)| spelling))
}

/// Splits off the first word, in lower case.
pub(super) fn first_word(text: &str) -> (String, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    (first.to_lowercase(), rest.trim())
}

/// Reads what follows `/` or `!`. A phrasing that is no command's name counts as well: `/flip a
/// coin`.
pub(super) fn read(text: &str) -> ParsedMessage {
    let (first, rest) = first_word(text);
    let first = first.trim_end_matches(':').replace(':', ".");
    let (second, after) = first_word(rest);
    let part = |word: &str| meant("part", word).next().unwrap_or(word).to_owned();
    if let Ok(command) = format!("{}.{}", part(&first), part(&second)).parse() {
        return arguments(command, after);
    }
    match (first.as_str(), named(&first)) {
        ("rr" | "multiroll", _) => repeated_roll(rest),
        ("s" | "save", _) => check(rest, true),
        ("char" | "character", _) if rest.is_empty() => arguments(CommandName::SheetShow, rest),
        // The word may name a group: "/memory help".
        (word, Some(command)) if asks_for_help(command, rest) => help(word),
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
        None => {
            let problem = "say how many times, and what: /rr 6 4d6kh3";
            wrong(CommandName::Roll, problem)
        }
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
    let usage = format!("say it like this: {}", checks::usage(save));
    let mut arguments = match words(text, Wording::Command) {
        Ok(arguments) => arguments,
        Err(_) if text.is_empty() => return wrong(command, usage),
        Err(problem) => return wrong(command, format!("{problem}; {usage}")),
    };
    if save {
        arguments.save = Some(true);
    }
    reading(command, json!(arguments))
}

/// Reads the arguments after a command's name.
fn arguments(command: CommandName, rest: &str) -> ParsedMessage {
    if rest.starts_with('{') {
        return match serde_json::from_str(rest) {
            Ok(Unambiguous(arguments)) => match reading(command, arguments) {
                ParsedMessage::Clear(Action::SheetCreate(sheet)) => {
                    ParsedMessage::Clear(Action::SheetReplace(sheet))
                }
                parsed => parsed,
            },
            Err(error) => wrong(command, format!("the arguments are not JSON: {error}")),
        };
    }
    if rest.starts_with("--") {
        return options(command, "", &dashed(rest));
    }
    if let Some((before, pairs)) = keyed(command, rest) {
        return options(command, before, &pairs);
    }
    let arguments = match command {
        _ if asks_for_help(command, rest) => return help(command.into_str()),
        CommandName::Roll => return roll(rest),
        CommandName::Check => return check(rest, false),
        CommandName::Do => json!({ "deed": rest }),
        CommandName::Ooc => json!({ "remark": rest }),
        CommandName::MemoryAdd => json!({ "content": rest }),
        CommandName::MemorySearch => json!({ "query": rest }),
        CommandName::SheetCreate => match character(rest) {
            Some(arguments) => arguments,
            None if regex("explicit.sheet_name").is_match(rest) => json!({ "name": rest }),
            None => return wrong(command, CREATE_USAGE),
        },
        CommandName::SheetShow if rest.is_empty() => json!({}),
        CommandName::SheetShow | CommandName::SheetUse | CommandName::SheetDelete => {
            json!({ "name": unquoted(rest) })
        }
        CommandName::SheetUpdate => match sheet_parts(rest) {
            Ok(parts) => parts,
            Err(problem) => return wrong(command, problem),
        },
        CommandName::SheetList | CommandName::MemoryList if rest.is_empty() => json!({}),
        CommandName::SheetList | CommandName::MemoryList => match rest.parse::<u32>() {
            Ok(page) => json!({ "page": page }),
            Err(_) => return wrong(command, "the page is a number, such as 2"),
        },
        CommandName::MemoryDelete => json!({ "memory": rest }),
        CommandName::Help if rest.is_empty() => json!({}),
        CommandName::Help => return help(rest),
    };
    reading(command, arguments)
}

/// True if what follows the command asks for help with it, and is no text of the command.
fn asks_for_help(command: CommandName, rest: &str) -> bool {
    use CommandName::{Check, MemoryList, Roll, SheetList, SheetShow};
    let takes_none = matches!(command, Roll | Check | SheetShow | SheetList | MemoryList);
    takes_none && rest.eq_ignore_ascii_case("help")
}

fn help(word: &str) -> ParsedMessage {
    let word = word.trim_start_matches('/');
    reading(CommandName::Help, json!({ "command": topic(word) }))
}

/// What a sheet is created with, if words could be its name or parts of it.
const CREATE_USAGE: &str = "say it like this: /sheet create name: Aria class: rogue level: 3 dex: 16; a name of \
     several words, or of digits alone, stands in quotation marks";

/// Returns options as on a command line: `--expr 2d6+3`, `--ability DEX --dc 15`.
fn dashed(text: &str) -> Vec<(&str, &str)> {
    let starts = text.match_indices("--").map(|(start, _)| start);
    let starts: Vec<usize> = starts.filter(|at| !is_quoted(text, *at)).collect();
    let stops = starts.iter().skip(1).copied().chain([text.len()]);
    let parts = starts.iter().zip(stops);
    let parts = parts.filter_map(|(start, stop)| Some(text.get(start + 2..stop)?.trim()));
    let ends = |c: char| c == '=' || c.is_whitespace();
    let option = |part| str::split_once(part, ends).unwrap_or((part, ""));
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(option).collect()
}

/// True if a place is inside of quotation marks.
fn is_quoted(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    !before.matches('"').count().is_multiple_of(2)
        || before.matches('“').count() > before.matches('”').count()
}

/// Returns options as Discord shows them, `name: Aria class: rogue` or `name=Aria`, with the text
/// before them. `None` if no key is an argument's name, or if the text has a meaning without that. A
/// command with one text takes one key, at the beginning.
fn keyed(command: CommandName, text: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    use CommandName::{Check, Roll, SheetCreate, SheetUpdate};
    let keys = regex("explicit.option").captures_iter(text);
    let keys = keys.filter_map(|key| Some((key.get(0)?, key.get(1)?.as_str())));
    let keys = keys.filter(|(key, _)| !is_quoted(text, key.start()));
    let keys: Vec<_> = keys.collect();
    let is_sheet = matches!(command, SheetCreate | SheetUpdate);
    let is_known =
        |key: &str| argument(command, key).is_some() || is_sheet && sheet_key(&key.to_lowercase());
    let (first, key) = keys.first()?;
    if !matches!(command, Check | Roll | SheetCreate | SheetUpdate) {
        let value = text.get(first.end()..)?;
        return (first.start() == 0 && is_known(key)).then(|| ("", vec![(*key, value)]));
    }
    let is_understood = match command {
        Check => words(text, Wording::Command).is_ok(),
        SheetUpdate => sheet_parts(text).is_ok(),
        _ => false,
    };
    if is_understood || !keys.iter().any(|(_, key)| is_known(key)) {
        return None;
    }
    let ends = keys.iter().skip(1).map(|(next, _)| next.start());
    let pairs = keys.iter().zip(ends.chain([text.len()]));
    let pairs = pairs.map(|((at, key), end)| Some((*key, text.get(at.end()..end)?)));
    Some((text.get(..first.start())?, pairs.collect::<Option<_>>()?))
}

/// Returns the argument of a command that an option means.
fn argument(command: CommandName, option: &str) -> Option<String> {
    let option = option.to_lowercase();
    let names = Action::argument_names(command);
    let others = meant("argument", &option);
    let mut wanted = std::iter::once(option.as_str()).chain(others);
    let named = |wanted: &str| names.iter().find(|name| name.to_lowercase() == wanted);
    wanted.find_map(named).cloned()
}

/// Reads options, and the text before them as the command without options.
fn options(command: CommandName, before: &str, pairs: &[(&str, &str)]) -> ParsedMessage {
    let mut found = Map::new();
    if !before.trim().is_empty() {
        match arguments(command, before.trim()) {
            ParsedMessage::Clear(action) if action.name() == command => {
                found.extend(action.arguments().as_object().cloned().unwrap_or_default());
            }
            ParsedMessage::Wrong { command, problem } => return wrong(command, problem),
            _ => return wrong(command, "give its options alone"),
        }
    }
    for (option, value) in pairs {
        let value = value.trim_matches([' ', ',']);
        if *option == "json" {
            let Ok(Unambiguous(Value::Object(all))) = serde_json::from_str(value) else {
                return wrong(command, "--json takes a JSON object");
            };
            found.extend(all);
            continue;
        }
        let name = argument(command, option).unwrap_or_else(|| (*option).to_owned());
        let is_sheet = matches!(command, CommandName::SheetCreate | CommandName::SheetUpdate);
        if command == CommandName::SheetCreate
            && name == "name"
            && !regex("explicit.sheet_name").is_match(value)
        {
            return wrong(command, CREATE_USAGE);
        }
        let is_first = if is_sheet {
            match part_value(&name, value) {
                Ok(value) => insert_part(&mut found, &name, value),
                Err(problem) => return wrong(command, problem),
            }
        } else {
            let value = typed_value(&name, unquoted(value).to_owned());
            found.insert(name, value).is_none()
        };
        if !is_first {
            return wrong(command, format!("{option} is said twice"));
        }
    }
    reading(command, Value::Object(found))
}

/// True if a word is a part of a sheet that is no argument of its own: `dex`, `hp`.
fn sheet_key(part: &str) -> bool {
    Ability::named(part).is_some() || matches!(part, "hp" | "maxhp" | "ac")
}

/// Returns where a sheet has a part that is a number, or `None` for other parts.
fn number_part(part: &str) -> Option<(&'static str, Option<&'static str>)> {
    let part = part.to_lowercase();
    Some(match (part.as_str(), Ability::named(&part)) {
        (_, Some(ability)) => ("abilities", Some(ability.into_str())),
        ("hp" | "hitpoints", _) => ("hitPoints", Some("current")),
        ("maxhp", _) => ("hitPoints", Some("max")),
        ("ac" | "armorclass", _) => ("armorClass", None),
        ("level", _) => ("level", None),
        _ => return None,
    })
}

/// Returns the value of a part of a sheet: `--level 4`, `--dex 18`, `--class wizard`.
///
/// # Errors
/// If the part is a number and the text is none, or has a sign: players mean a change by it.
fn part_value(part: &str, text: &str) -> Result<Value, String> {
    let text = text.trim_matches(is_quotation_mark);
    if matches!(part, "proficiencies" | "expertise" | "inventory") {
        return Ok(json!(text.split(',').map(str::trim).collect::<Vec<_>>()));
    }
    if number_part(part).is_none() {
        return Ok(json!(text));
    }
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
        return Ok(json!(text.parse().unwrap_or(i64::MAX)));
    }
    Err(format!(
        "{part} is a whole number without a sign, which replaces the old one: --{part} 15"
    ))
}

/// Adds a part to a sheet. Returns false if the sheet had the part.
fn insert_part(sheet: &mut Map<String, Value>, part: &str, value: Value) -> bool {
    let (outer, inner) = number_part(part).unwrap_or((part, None));
    let Some(inner) = inner else {
        return sheet.insert(outer.to_owned(), value).is_none();
    };
    let parts = sheet.entry(outer).or_insert_with(|| json!({}));
    let parts = parts.as_object_mut();
    parts.is_some_and(|parts| parts.insert(inner.to_owned(), value).is_none())
}

/// Reads parts of a sheet with their numbers: `hp 24`, `level 4, dex to 18`.
///
/// # Errors
/// What is not understood.
fn sheet_parts(text: &str) -> Result<Value, String> {
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
    let mut words = text.split_whitespace().peekable();
    while let Some(part) = words.next() {
        if part != "level" && !sheet_key(part) {
            return Err(format!(
                "{part:?} is no part of a sheet that is a number; say it like this: /sheet update --hp 21 --class wizard"
            ));
        }
        words.next_if_eq(&"to");
        let value = part_value(part, words.next().unwrap_or_default())?;
        if !insert_part(&mut sheet, part, value) {
            return Err(format!("{part} is said twice"));
        }
    }
    Ok(Value::Object(sheet))
}
