//! What is said to a text in which no command was found, but a part of one. A hint names only commands
//! that are allowed where the text was written.

use std::collections::BTreeSet;

use super::explicit::{first_word, nearest_name};
use super::{capture, checks, regex, rolls};
use crate::actions::commands::{command_inside, named};
use crate::actions::sanitize::sanitize;
use crate::domain::CommandName;
use conclave_dice::{Place, Written, written};

/// The commands that may be named.
type Allowed = BTreeSet<CommandName>;

/// The most dice that a hint lists.
const MAX_LISTED: usize = 10;

/// Returns a hint at what was not understood, if the text has a part of an allowed command: its
/// prefix, dice, another command's name, or words of what a command is about.
pub fn hint(message: &str, allowed: &Allowed) -> Option<String> {
    let text = message.trim();
    match text.strip_prefix(['/', '!']) {
        Some(command) if !command.starts_with(' ') => unknown_command(command, allowed),
        _ if text.contains('\n') => inside(text, allowed).or_else(|| misread_dice(text, allowed)),
        _ => misread_dice(text, allowed)
            .or_else(|| unknown_check(text, allowed))
            .or_else(|| inside(text, allowed))
            .or_else(|| about(text, allowed)),
    }
}

fn unknown_command(text: &str, allowed: &Allowed) -> Option<String> {
    let (name, _) = first_word(text);
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(is_of_name);
    if !is_name || named(&name).is_some() {
        return None;
    }
    let near = nearest_name(&name, allowed).map(|near| format!(" Did you mean /{near}?"));
    let help = allowed.contains(&CommandName::Help);
    let help = help.then(|| " Say \"help\" to see what I can do.".to_owned());
    let form = form(&name, allowed).filter(|_| near.is_none());
    let form = form.map(|form| format!(" {form}"));
    let hints: String = [near, help, form].into_iter().flatten().collect();
    let name = sanitize(&name);
    Some(format!(
        "There is no command \"{name}\" here, and nothing was done.{hints}"
    ))
}

/// Says why dice were not rolled, as the command for them would, and which dice the text has.
fn misread_dice(text: &str, allowed: &Allowed) -> Option<String> {
    if !allowed.contains(&CommandName::Roll) {
        return None;
    }
    let (start, place, asked) = match rolls::ordered(text) {
        Some((start, rest)) => (start, Place::Explicit, rest),
        None => (0, Place::Bare, text),
    };
    let dice = rolls::mentioned(text);
    let alone = match dice.as_slice() {
        [] => None,
        [dice] => Some(format!("To roll the dice alone: /roll {dice}")),
        several => (several.len() <= MAX_LISTED).then(|| {
            let several = several.join("; /roll ");
            format!("To roll the dice alone, one message each: /roll {several}")
        }),
    };
    let unsigned = asked.trim_start_matches(['+', '-', '\u{2212}']);
    let reading = written(asked, place);
    let read = reading.as_ref().ok().map(Written::notation);
    let problem = reading.and_then(Written::complete).err();
    let problem = problem.filter(|_| regex("roll.dice_first").is_match(unsigned));
    let Some(mut problem) = problem else {
        let alone = sanitize(&alone?);
        return Some(format!(
            "I do not understand all of this, so nothing was rolled; I read commands and English. {alone}"
        ));
    };
    problem.at += text.get(..start)?.chars().count();
    let how = match (read, alone) {
        (_, Some(alone)) if dice.len() > 1 => alone,
        (Some(read), _) => format!("A comment stands behind #: /roll {read} # comment"),
        (None, _) => String::new(),
    };
    let problem = sanitize(&problem.to_string());
    let said = format!("{problem}, so nothing was rolled. {}", sanitize(&how));
    Some(said.trim_end().to_owned())
}

/// Says what is wrong with a check, and how to write one.
fn unknown_check(text: &str, allowed: &Allowed) -> Option<String> {
    let problem = checks::problem(text).filter(|_| allowed.contains(&CommandName::Check))?;
    let usage = checks::mentioned(text)
        .unwrap_or_else(|| checks::usage(text.to_lowercase().contains("sav")).to_owned());
    Some(format!(
        "{}, so nothing was rolled. To make a check: {usage}",
        sanitize(&problem)
    ))
}

/// Names a command that stands inside a text.
fn inside(text: &str, allowed: &Allowed) -> Option<String> {
    let (_, written) = command_inside(text).filter(|(command, _)| allowed.contains(command))?;
    Some(format!(
        "Nothing was done: a command stands at the beginning of a message. Send it alone: {}",
        sanitize(written)
    ))
}

/// Says how to write what a text is about.
fn about(text: &str, allowed: &Allowed) -> Option<String> {
    let form = form(text, allowed)?;
    let is_deed = regex("text.first_person").is_match(text)
        && !text.contains('?')
        && allowed.contains(&CommandName::Do);
    let narrated = if is_deed {
        "Write /do before what your character does. "
    } else {
        ""
    };
    Some(format!(
        "I do not understand all of this, and nothing was done; I read commands and English. {narrated}{form}"
    ))
}

/// Returns the form of the allowed command that a text is about.
fn form(text: &str, allowed: &Allowed) -> Option<String> {
    let listed = |pattern: &str| {
        let rows = include_str!("hints.tsv").lines();
        let rows = rows.filter_map(|row| row.strip_prefix(pattern)?.strip_prefix('\t'));
        let rows = rows.filter_map(|row| row.split_once('\t'));
        let is_here = |command: &str| command.parse().is_ok_and(|it| allowed.contains(&it));
        let here = rows.filter(|(command, _)| is_here(command));
        let here: Vec<&str> = here.map(|(_, form)| form).collect();
        (!here.is_empty() && regex(pattern).is_match(text)).then(|| here.join(" "))
    };
    let about = ["hint.memory", "hint.create", "hint.sheet"];
    let others = ["hint.attack", "hint.dice"];
    let is_allowed = |command: CommandName| allowed.contains(&command);
    let store = || {
        let content = capture("hint.store", text).filter(|_| is_allowed(CommandName::MemoryAdd))?;
        Some(format!("To store it: /memory add {}", sanitize(&content)))
    };
    let check = || {
        let check = checks::mentioned(text).filter(|_| is_allowed(CommandName::Check))?;
        Some(format!("To make a check: {check}"))
    };
    store()
        .or_else(|| about.into_iter().find_map(listed))
        .or_else(check)
        .or_else(|| others.into_iter().find_map(listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_tables_names_a_command_or_a_word() {
        let fields = |table: &'static str| -> Vec<Vec<&'static str>> {
            let rows = table.lines().filter(|row| !row.starts_with('#'));
            rows.map(|row| row.split('\t').collect()).collect()
        };
        let is_command = |name: &str| name.parse::<CommandName>().is_ok();
        let spellings = fields(include_str!("../commands/spellings.tsv"));
        assert_eq!(
            spellings.len(),
            crate::actions::commands::spellings().count()
        );
        for row in fields(include_str!("hints.tsv")) {
            assert!(row.len() == 3 && is_command(row[1]), "{row:?}");
            assert!(row[0].starts_with("hint."), "{row:?}");
        }
        for row in fields(include_str!("words.tsv")) {
            assert!(
                row.len() == 3 && ["argument", "part"].contains(&row[0]),
                "{row:?}"
            );
        }
    }
}
