//! What is said to a text in which no command was found, but a part of one.

use super::checks;
use super::explicit::{first_word, named, nearest_name};
use crate::actions::sanitize::sanitize;
use conclave_dice::{Place, written};

/// Returns a hint at what was not understood, if the text has a part of a command: its prefix, dice,
/// or the word for a check.
pub fn hint(message: &str) -> Option<String> {
    let text = message.trim();
    match text.strip_prefix(['/', '!']) {
        Some(command) => unknown_command(command),
        None if text.contains('\n') => None,
        None => misread_dice(text).or_else(|| unknown_check(text)),
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
    let near = nearest_name(&name).map(|near| format!("Did you mean /{near}? "));
    Some(format!(
        "There is no command \"{}\" here, and nothing was done. {}Say \"help\" to see what I can do.",
        sanitize(&name),
        near.unwrap_or_default()
    ))
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
