//! What is said to a text in which no command was found, but a part of one.

use super::explicit::{first_word, nearest_name};
use super::{capture, checks, regex};
use crate::actions::commands::{command_inside, named};
use crate::actions::sanitize::sanitize;
use conclave_dice::{Place, written};

/// Returns a hint at what was not understood, if the text has a part of a command: its prefix, dice,
/// another command's name, or words of what a command is about.
pub fn hint(message: &str) -> Option<String> {
    let text = message.trim();
    match text.strip_prefix(['/', '!']) {
        Some(command) if !command.starts_with(' ') => unknown_command(command),
        _ if text.contains('\n') => inside(text).or_else(|| misread_dice(text)),
        _ => refused_dice(text)
            .or_else(|| misread_dice(text))
            .or_else(|| unknown_check(text))
            .or_else(|| inside(text))
            .or_else(|| about(text)),
    }
}

fn unknown_command(text: &str) -> Option<String> {
    let (name, _) = first_word(text);
    let is_name = name.starts_with(char::is_alphabetic)
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if !is_name || named(&name).is_some() {
        return None;
    }
    let near = nearest_name(&name).map(|near| format!(" Did you mean /{near}?"));
    let form = form(&name).filter(|_| near.is_none());
    Some(format!(
        "There is no command \"{}\" here, and nothing was done.{} Say \"help\" to see what I can do.{}",
        sanitize(&name),
        near.unwrap_or_default(),
        form.map(|form| format!(" {form}")).unwrap_or_default()
    ))
}

/// Says why dice alone are refused: "roll 10001d6".
fn refused_dice(text: &str) -> Option<String> {
    let word = text.split_whitespace().next_back()?;
    let is_alone = text == word || text.eq_ignore_ascii_case(&format!("roll {word}"));
    if !is_alone || !regex("roll.dice_first").is_match(word) {
        return None;
    }
    let problem = match written(word, Place::Explicit) {
        Err(problem) => problem,
        Ok(dice) => dice.complete().err()?,
    };
    let problem = sanitize(&problem.to_string());
    Some(format!("{problem}, so nothing was rolled."))
}

fn misread_dice(text: &str) -> Option<String> {
    if let Ok(dice) = written(text, Place::Bare)
        && dice.expression.has_dice()
    {
        let expression = dice.expression.text().to_owned();
        let problem = dice.complete().err()?;
        return Some(format!(
            "{}, so nothing was rolled. A comment stands behind #: /roll {expression} # comment",
            sanitize(&problem.to_string())
        ));
    }
    let dice = text
        .split_whitespace()
        .filter(|word| !word.starts_with(['-', '−']))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '(' | ')')))
        .filter_map(|word| written(word, Place::Explicit).ok()?.complete().ok())
        .find(|dice| dice.expression.has_dice())?;
    Some(format!(
        "I do not understand all of this, so nothing was rolled; I read commands and English. To roll the dice: \
         /roll {}",
        dice.expression.text()
    ))
}

/// Says which word makes a text no check: "death save".
fn unknown_check(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let names_check = ["check", "save", "saving throw"]
        .iter()
        .any(|name| lower.ends_with(name));
    if !names_check || lower.split_whitespace().count() > 3 {
        return None;
    }
    let problem = checks::words(&lower, false).err()?;
    Some(format!("{}, so nothing was rolled.", sanitize(&problem)))
}

/// Names a command that stands inside a text.
fn inside(text: &str) -> Option<String> {
    let command = sanitize(command_inside(text)?);
    Some(format!(
        "Nothing was done: a command stands at the beginning of a message. Send it alone: {command}"
    ))
}

/// Says how to write what a text is about.
fn about(text: &str) -> Option<String> {
    let form = form(text)?;
    let narrated = if regex("text.first_person").is_match(text) {
        "Write /do before what your character does. "
    } else {
        ""
    };
    Some(format!(
        "I do not understand all of this, and nothing was done; I read commands and English. {narrated}{form}"
    ))
}

/// Returns the form of the command that a text is about.
fn form(text: &str) -> Option<String> {
    let has = |name, form: &str| regex(name).is_match(text).then(|| form.to_owned());
    let content = capture("hint.store", text);
    content
        .map(|content| format!("To store it: /memory add {}", sanitize(&content)))
        .or_else(|| has("hint.memory", "To find what is stored: /memory search duke. To store: /memory add the duke hates dogs. To see all: /memory list"))
        .or_else(|| has("hint.create", "To create a sheet: /sheet create Aria, a level 3 rogue"))
        .or_else(|| has("hint.sheet", "To see your sheet: /sheet show. To change it: /sheet update level: 4 dex: 18. To switch: /sheet use Bo"))
        .or_else(|| Some(format!("To make a check: {}", checks::mentioned(text)?)))
        .or_else(|| has("hint.attack", "To attack: /do attack the goblin, AC 15"))
        .or_else(|| has("hint.dice", "To roll dice: /roll 4d6kh3, /roll 1d20+5 adv"))
}
