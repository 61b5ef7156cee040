//! The deterministic parser: explicit commands, narrated actions, and phrasings that can mean only
//! one command.
//!
//! It calls no model and costs nothing. It must account for every word of a phrasing: a text with a
//! word too many is unclear and goes to the proposer. So it may miss a command, and it never takes
//! one for another.
//!
//! First-person prose is never executed. Dice in it ("I roll 2d6") are offered, and the user
//! confirms them.

/// Defines regular expressions by name, compiled at first use.
macro_rules! patterns {
    ($($name:ident = $text:expr;)*) => { $(static $name: LazyLock<Option<Regex>> = LazyLock::new(|| pattern($text));)* };
}

mod checks;
mod narrated;
mod rolls;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::commands::Action;
use crate::domain::CommandName;

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
    let text = text.strip_prefix("/act ").map_or(text, str::trim_start);
    if let Some(rest) = text.strip_prefix('/') {
        return explicit(rest);
    }
    // The prefix of other bots.
    if let Some(rest) = text.strip_prefix('!') {
        return explicit(rest);
    }
    if let Some((name, arguments)) = phrasing(text) {
        return match reading(name, arguments) {
            ParsedMessage::Clear(action) if is(&FIRST_PERSON, text) => {
                ParsedMessage::FirstPerson(action)
            }
            parsed => parsed,
        };
    }
    narrated::read(text).map_or(ParsedMessage::Unclear, |(name, arguments)| {
        reading(name, arguments)
    })
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
    let mut arguments = rolls::expression(dice).unwrap_or_else(|| json!({ "expression": dice }));
    let before = arguments
        .as_object_mut()
        .and_then(|arguments| arguments.insert("times".into(), json!(times)));
    if before.is_some() {
        let problem = "how many times is said twice".to_owned();
        return ParsedMessage::Wrong { command, problem };
    }
    reading(command, arguments)
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
        CommandName::Roll => match rolls::expression(rest) {
            Some(arguments) => arguments,
            None => json!({ "expression": rest }),
        },
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
        CommandName::SheetShow => json!({ "name": rest }),
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

/// Compiles a pattern. An invalid pattern matches nothing, and the tests fail.
pub(super) fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

patterns! {
    FIRST_PERSON = r"(?i)^(?:(?:hey|ok|okay|now|so|please|pls|and|then|bot|dm)[,!]?\s+)*i(?:['’](?:ll|d|m))?\s";
    BRACKETS = r"(?s)^\(\(\s*(.+?)\s*\)\)$";
    OOC = r"(?i)^ooc\s*(?:[:,-]\s*|\s)(.+)$";
    ABOUT_OOC = r"(?i)^ooc\s+(?:is|isn['’]?t|are|was|were|has|will|should|channel|chat|room|thread|talk|section|stuff|drama|remarks?|messages?|rules?)\b";
    // "Note that ..." and "remember to ..." are not here: people say them to each other too.
    REMEMBER = r"(?i)^(?:hey[,!]?\s+)?(?:(?:can|could|would|will)\s+you\s+)?(?:please\s+|pls\s+)?(?:(?:remember|memorize|memorise|note\s+down|make\s+a\s+note|take\s+a\s+note)\s*(?:,?\s*for\s+me\s*)?(?:that\s|:|this:)|note\s*(?:this)?:|remember\s+for\s+me\s|don['’]?t\s+let\s+me\s+forget\s*(?:that\s|to\s|:)|don['’]?t\s+forget\s*(?:that\s|:))\s*(.+)$";
    SHARED = r"(?i)^(?:one\s+|last\s+|first\s+)?(?:times?|nights?|days?|evenings?|mornings?|afternoons?|weeks?|weekends?|months?|years?|summers?|winters?|moments?|guys?|girls?|man|woman|dudes?|kids?|lady|person|people|one|thing|places?|sessions?|games?|fights?|battles?|episodes?|scenes?|songs?|movies?|films?|books?|shows?|trips?|party|parties|meetings?|feelings?|jokes?|story|stories|memes?|threads?|posts?|videos?)\b(?:\s+(?P<next>\S+))?";
    RECALL = r"(?i)^(?:please\s+)?(?:what\s+do\s+you\s+(?:remember|recall)\s+(?:about|of)|what\s+did\s+I\s+(?:note|tell\s+you\s+to\s+remember)\s+about|(?:search|look\s+through)\s+(?:my\s+|your\s+|the\s+)?(?:memory|memories|notes)\s+(?:for|about)|recall\s+(?:everything|all|what\s+you\s+(?:know|remember))\s+about)\s+(.+?)\s*[?.!]*$";
    SHOW_SHEET = r"(?i)^(?:(?:(?:can|could|would)\s+you\s+)?(?:please\s+)?(?:show|display|open)\s+(?:me\s+)?|what(?:['’]s|\s+is)\s+on\s+)my\s+(?:character\s+sheet|character|sheet)(?:\s*,?\s*please)?[?.!]*$";
    SHOW_NAMED = r"(?i)^(?:please\s+)?(?:show|display|open)\s+(?:me\s+)?(?:(?:the\s+)?(?:character\s+)?sheet\s+(?:of|for)\s+(?P<of>[\p{L}][\p{L} '’-]{0,60}?)|(?P<own>[\p{L}][\p{L}’-]{0,40})['’]s\s+(?:character\s+)?sheet)[.!]?$";
    CREATE = r"(?i)^(?:please\s+)?(?:(?:create|make|add)\s+(?:me\s+)?(?:a\s+|an\s+|the\s+|my\s+)?(?:new\s+)?|new\s+)(?:player\s+)?(?:character(?:\s+sheet)?|char|pc|(?:character\s+)?sheet)\s+(?:(?P<how>named|called|for)\s+)?(?P<who>.+)$";
    NAME = r"^\p{Lu}[\p{L}'’-]*\p{Ll}";
    NO_NAME = r"(?i)^(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|april|june|july|august|september|october|november|december|christmas|halloween|easter|excel|windows|google|discord|roll20|foundry|pathfinder|dnd|me|him|her|them|us|my|the|a|an|this|that|our|your|his|their)\b";
    QUOTED = r#"^["“](?P<name>[^"”]{1,80})["”](?:,?\s+(?:the|an?)\s+(?:level\s+(?P<level>\d{1,2})\s+)?(?P<class>[\p{L}]{3,30}))?[.!]?$"#;
    CHARACTER = r"^(?P<name>[\p{L}][\p{L}'’-]*(?:\s+\p{Lu}[\p{L}'’-]*){0,3})(?:,?\s+(?:the|an?)\s+(?:level\s+(?P<level>\d{1,2})\s+)?(?P<class>[\p{L}]{3,30}))?[.!]?$";
    HELP = r"(?i)^(?:help(?:\s+me)?|commands|list\s+(?:the\s+|all\s+)?commands|what\s+can\s+(?:you|I)\s+do(?:\s+here)?|(?:which|what)\s+commands\s+(?:are\s+there|do\s+you\s+(?:know|have)))\s*[?!.]*$";
    HELP_WITH = r"(?i)^help\s+(?:with\s+|on\s+)?(roll|check|do|ooc|help|sheet[. ]create|sheet[. ]show|memory[. ]add|memory[. ]search)\s*[?!.]*$";
}

fn capture(pattern: &LazyLock<Option<Regex>>, text: &str) -> Option<String> {
    let captures = pattern.as_ref()?.captures(text)?;
    let found = captures.get(1)?.as_str().trim();
    (!found.is_empty()).then(|| found.to_owned())
}

fn is(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(text))
}

fn remarks(text: &str) -> Option<Found> {
    let remark = capture(&BRACKETS, text)
        .or_else(|| capture(&OOC, text).filter(|_| !is(&ABOUT_OOC, text)))?;
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
    SHARED
        .as_ref()
        .and_then(|pattern| pattern.captures(content))
        .is_some_and(|captures| {
            captures
                .name("next")
                .is_none_or(|next| !verbs.contains(&next.as_str().to_lowercase().as_str()))
        })
}

fn sheets(text: &str) -> Option<Found> {
    if is(&SHOW_SHEET, text) {
        return Some((CommandName::SheetShow, json!({})));
    }
    if let Some(captures) = SHOW_NAMED
        .as_ref()
        .and_then(|pattern| pattern.captures(text))
    {
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
    let captures = CREATE.as_ref()?.captures(text)?;
    let (how, who) = (captures.name("how"), captures.name("who")?.as_str().trim());
    if how.is_some_and(|how| !how.as_str().eq_ignore_ascii_case("for")) {
        return Some((CommandName::SheetCreate, character(who)?));
    }
    // After "for" there may be a purpose. Only a capitalised or quoted word is a name.
    let name = who.starts_with(['"', '“']) || (is(&NAME, who) && !is(&NO_NAME, who));
    Some((CommandName::SheetCreate, character(who).filter(|_| name)?))
}

/// Reads a name with a class and a level: "Aria", "Aria the rogue", "Sir Kay, a level 3 fighter".
fn character(text: &str) -> Option<Value> {
    let captures = [&CHARACTER, &QUOTED]
        .into_iter()
        .find_map(|pattern| pattern.as_ref()?.captures(text.trim()))?;
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
    if is(&HELP, text) {
        return Some((CommandName::Help, json!({})));
    }
    let command = capture(&HELP_WITH, text)?.to_lowercase().replace(' ', ".");
    Some((CommandName::Help, json!({ "command": command })))
}

#[cfg(test)]
mod tests;
