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

/// What a text may be about: the pattern that finds it, and how its commands are written.
const FORMS: [(&str, &[(CommandName, &str)]); 3] = [
    (
        "hint.memory",
        &[
            (
                CommandName::MemorySearch,
                "To find what is stored: /memory search duke.",
            ),
            (
                CommandName::MemoryAdd,
                "To store: /memory add the duke hates dogs.",
            ),
            (CommandName::MemoryList, "To see all: /memory list"),
        ],
    ),
    (
        "hint.create",
        &[(
            CommandName::SheetCreate,
            "To create a sheet: /sheet create Aria, a level 3 rogue. A name of several words stands in quotation marks",
        )],
    ),
    (
        "hint.sheet",
        &[
            (CommandName::SheetShow, "To see your sheet: /sheet show."),
            (
                CommandName::SheetUpdate,
                "To change it: /sheet update level: 4 dex: 18.",
            ),
            (CommandName::SheetUse, "To switch: /sheet use Bo"),
        ],
    ),
];

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
    let is_name = name.starts_with(char::is_alphabetic)
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if !is_name || named(&name).is_some() {
        return None;
    }
    let near = nearest_name(&name, allowed).map(|near| format!(" Did you mean /{near}?"));
    let help = allowed.contains(&CommandName::Help);
    let help = help.then_some(" Say \"help\" to see what I can do.");
    let form = form(&name, allowed).filter(|_| near.is_none());
    Some(format!(
        "There is no command \"{}\" here, and nothing was done.{}{}{}",
        sanitize(&name),
        near.unwrap_or_default(),
        help.unwrap_or_default(),
        form.map(|form| format!(" {form}")).unwrap_or_default()
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
        [dice] => Some(format!(" To roll the dice alone: /roll {dice}")),
        several => (several.len() <= MAX_LISTED).then(|| {
            let several = several.join("; /roll ");
            format!(" To roll the dice alone, one message each: /roll {several}")
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
            "I do not understand all of this, so nothing was rolled; I read commands and English.{alone}"
        ));
    };
    problem.at += text.get(..start)?.chars().count();
    let how = match (read, alone) {
        (_, Some(alone)) if dice.len() > 1 => alone,
        (Some(read), _) => format!(" A comment stands behind #: /roll {read} # comment"),
        (None, _) => String::new(),
    };
    Some(format!(
        "{}, so nothing was rolled.{}",
        sanitize(&problem.to_string()),
        sanitize(&how)
    ))
}

/// Says what is wrong with a check, and how to write one.
fn unknown_check(text: &str, allowed: &Allowed) -> Option<String> {
    let problem = checks::problem(text).filter(|_| allowed.contains(&CommandName::Check))?;
    let usage = checks::mentioned(text).unwrap_or_else(|| {
        let is_save = text.to_lowercase().contains("sav");
        let usage = if is_save {
            checks::SAVE_USAGE
        } else {
            checks::USAGE
        };
        usage.to_owned()
    });
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
    let is_deed = regex("text.first_person").is_match(text) && allowed.contains(&CommandName::Do);
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
    let if_allowed = |command, form: String| allowed.contains(&command).then_some(form);
    let listed = |(pattern, forms): (&str, &[(CommandName, &str)])| {
        let here = forms
            .iter()
            .filter(|(command, _)| allowed.contains(command));
        let here: Vec<&str> = here.map(|(_, form)| *form).collect();
        (!here.is_empty() && regex(pattern).is_match(text)).then(|| here.join(" "))
    };
    let has = |name, command, form: &str| {
        if_allowed(command, form.to_owned()).filter(|_| regex(name).is_match(text))
    };
    capture("hint.store", text)
        .map(|content| format!("To store it: /memory add {}", sanitize(&content)))
        .and_then(|form| if_allowed(CommandName::MemoryAdd, form))
        .or_else(|| FORMS.into_iter().find_map(listed))
        .or_else(|| {
            let check = checks::mentioned(text)?;
            if_allowed(CommandName::Check, format!("To make a check: {check}"))
        })
        .or_else(|| {
            let form = "To attack: /do attack the goblin, AC 15";
            has("hint.attack", CommandName::Do, form)
        })
        .or_else(|| {
            let form = "To roll dice: /roll 4d6kh3, /roll 1d20+5 adv";
            has("hint.dice", CommandName::Roll, form)
        })
}
