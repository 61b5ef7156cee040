//! What is said to a text in which no command was found, but a part of one. A hint names only commands
//! that are allowed where the text was written.

use std::collections::BTreeSet;

use super::explicit::{first_word, nearest_name};
use super::{regex, rolls, trimmed};
use crate::actions::commands::{command_inside, named};
use crate::actions::sanitize::sanitize;
use crate::domain::CommandName;
use conclave_dice::{Place, Written, is_inside, written};

/// The commands that may be named.
type Allowed = BTreeSet<CommandName>;

/// Returns a hint at what was not understood, if the text has a part of an allowed command: its
/// prefix, dice, or another command's name.
pub fn hint(message: &str, allowed: &Allowed) -> Option<String> {
    let text = trimmed(message);
    let may_roll = allowed.contains(&CommandName::Roll);
    match text.strip_prefix(['/', '!']) {
        Some(command) if command.starts_with(char::is_alphabetic) => {
            unknown_command(command, allowed)
        }
        _ => inner_command(text, allowed).or_else(|| misread_dice(text).filter(|_| may_roll)),
    }
}

fn unknown_command(text: &str, allowed: &Allowed) -> Option<String> {
    let (name, _) = first_word(text);
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(is_of_name) || named(&name).is_some() {
        return None;
    }
    let near = nearest_name(&name, allowed).map(|near| format!(" Did you mean /{near}?"));
    let help = allowed.contains(&CommandName::Help);
    let help = help.then_some(" Say \"help\" to see what I can do.");
    let (near, help) = (near.unwrap_or_default(), help.unwrap_or_default());
    let name = sanitize(&name);
    Some(format!(
        "There is no command \"{name}\" here, and nothing was done.{near}{help}"
    ))
}

/// Says why dice were not rolled, as the command for them would, or that they must be sent alone.
fn misread_dice(text: &str) -> Option<String> {
    let (start, place, asked) = match rolls::ordered(text) {
        Some((start, rest)) => (start, Place::Explicit, rest),
        None => (0, Place::Bare, text),
    };
    let problem = written(asked, place).and_then(Written::complete).err();
    let unsigned = asked.trim_start_matches(['+', '-', '\u{2212}']);
    let problem = problem.filter(|_| regex("roll.dice_first").is_match(unsigned));
    if !is_inside(text) && problem.is_none() {
        return None;
    }
    let why = match problem {
        Some(mut problem) => {
            problem.at += text.get(..start)?.chars().count();
            format!("{problem}, so nothing was rolled.")
        }
        None => {
            "I do not understand all of this, so nothing was rolled; I read commands and English."
                .to_owned()
        }
    };
    let how = "Write dice alone, with a comment after #, as in /roll 2d6+3 # fire";
    Some(format!("{} {how}", sanitize(&why)))
}

/// Names a command inside a text.
fn inner_command(text: &str, allowed: &Allowed) -> Option<String> {
    let (_, written) = command_inside(text).filter(|(command, _)| allowed.contains(command))?;
    Some(format!(
        "Nothing was done: a command is read only at the beginning of a message. Send it alone: {}",
        sanitize(written)
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_row_of_the_tables_names_a_command_or_a_word() {
        let fields = |table: &'static str| -> Vec<Vec<&'static str>> {
            let rows = table.lines().filter(|row| !row.starts_with('#'));
            rows.map(|row| row.split('\t').collect()).collect()
        };
        let spellings = fields(include_str!("../commands/spellings.tsv"));
        assert_eq!(
            spellings.len(),
            crate::actions::commands::spellings().count()
        );
        for row in fields(include_str!("words.tsv")) {
            assert!(
                row.len() == 3 && ["argument", "part"].contains(&row[0]),
                "{row:?}"
            );
        }
    }
}
