//! Reads the words of a check: "dexterity save against DC 15 with advantage".

use super::commands::{Advantage, CheckArguments, SAVE_OF_SKILL};
use super::nearest::nearest;
use super::sheet::{Ability, Skill};
use super::speech::is_quotation_mark;
use crate::domain::number_named;

/// Names of several words, and the one word that replaces them here.
const ONE_WORD: [(&str, &str); 4] = [
    ("sleight of hand", "sleight_of_hand"),
    ("animal handling", "animal_handling"),
    ("saving throw", "save"),
    ("difficulty class", "dc"),
];

/// Words that change nothing.
const FILLERS: [&str; 16] = [
    "a", "an", "the", "my", "with", "at", "on", "of", "and", "for", "ability", "skill", "please",
    "pls", "thanks", "thx",
];

/// Where the words of a check are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// After the command. The word "check" may be missing, a number alone is the DC, and a skill may
    /// be shortened.
    Command,
    /// In a text of which it is not known whether it is a check.
    Phrase,
    /// As in a phrase, but behind the name of the check a number alone is the DC.
    Numbered,
}

/// Returns the arguments of a check.
///
/// # Errors
/// What is not understood.
pub fn words(text: &str, wording: Wording) -> Result<CheckArguments, String> {
    let check = parsed(text, wording)?;
    if check.is_called_check && names_one(&check.arguments) {
        Ok(check.arguments)
    } else {
        Err("name an ability or a skill".to_owned())
    }
}

/// As [`words`] of a phrase that may lack the word "check". `None` if a word is not understood.
pub fn named(text: &str) -> Option<CheckArguments> {
    let arguments = parsed(text, Wording::Phrase).ok()?.arguments;
    names_one(&arguments).then_some(arguments)
}

/// As [`named`], but a number alone behind the name is the DC.
pub fn numbered(text: &str) -> Option<CheckArguments> {
    let arguments = parsed(text, Wording::Numbered).ok()?.arguments;
    names_one(&arguments).then_some(arguments)
}

/// Returns what a text says of a check that it does not name: its DC, modifier, advantage or
/// proficiency. `None` if it says none of these, or if a word is not understood.
pub fn options(text: &str) -> Option<CheckArguments> {
    let arguments = parsed(text, Wording::Phrase).ok()?.arguments;
    let is_option = !names_one(&arguments) && arguments.save.is_none();
    (is_option && arguments != CheckArguments::default()).then_some(arguments)
}

/// As [`options`] directly behind the name of a check, where a number alone is the DC.
pub fn options_behind_name(text: &str) -> Option<CheckArguments> {
    options(text).or_else(|| options(&format!("against {text}")))
}

/// A word of a check, or several that belong together.
enum Token {
    Ability(Ability),
    Initiative,
    Skill(Skill),
    Save,
    Proficient,
    Advantage(Advantage),
    Dc(i64),
    Modifier(i64),
    Check,
    And,
    Against,
    Filler,
}

struct ParsedWords {
    arguments: CheckArguments,
    is_called_check: bool,
}

fn parsed(text: &str, wording: Wording) -> Result<ParsedWords, String> {
    let text = normalised(text, wording);
    let mut found = CheckArguments::default();
    let is_command = wording == Wording::Command;
    let (mut is_called_check, mut takes_number) = (is_command, is_command);
    // The word after which a further ability, skill or save would be a second check.
    let mut complete = None;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let token = match word.parse::<i64>() {
            Ok(number) if takes_number && !word.starts_with(['+', '-']) => Token::Dc(number),
            _ => token(word, &mut words, wording)?,
        };
        let begins_check = matches!(
            token,
            Token::Ability(_) | Token::Initiative | Token::Skill(_) | Token::Save
        );
        let is_named = begins_check || matches!(token, Token::Check);
        takes_number |= wording == Wording::Numbered && is_named;
        if let Some(first) = complete.filter(|_| begins_check) {
            return Err(format!(
                "only one check at a time: {word:?} after {first:?}"
            ));
        }
        match token {
            Token::Ability(ability) => set(&mut found.ability, ability, word, "ability")?,
            Token::Initiative => {
                set(&mut found.ability, Ability::Dex, word, "ability")?;
                is_called_check = true;
                complete = Some(word);
            }
            Token::Skill(skill) => set(&mut found.skill, skill, word, "skill")?,
            Token::Save => {
                set(&mut found.save, true, word, "save")?;
                is_called_check = true;
            }
            Token::Proficient => set(&mut found.proficient, true, word, "proficient")?,
            Token::Advantage(which) => set(&mut found.advantage, which, word, "advantage")?,
            Token::Dc(dc) => set(&mut found.dc, dc, word, "dc")?,
            Token::Modifier(number) => set(&mut found.modifier, number, word, "modifier")?,
            Token::Check => is_called_check = true,
            Token::And if names_one(&found) => complete = Some(word),
            Token::And | Token::Filler => {}
            Token::Against => takes_number = true,
        }
    }
    if found.save.is_some() && found.skill.is_some() {
        return Err(SAVE_OF_SKILL.to_owned());
    }
    Ok(ParsedWords {
        arguments: found,
        is_called_check,
    })
}

/// Sets an argument that is not set yet.
fn set<T>(argument: &mut Option<T>, value: T, word: &str, name: &str) -> Result<(), String> {
    match argument.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{word:?} says the {name} twice")),
    }
}

/// Reads a word, with the number after it if it needs one.
fn token<'t>(
    word: &str,
    rest: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>,
    wording: Wording,
) -> Result<Token, String> {
    if let Some(ability) = Ability::named(word) {
        return Ok(Token::Ability(ability));
    }
    if let Some(skill) = skill_named(word, wording) {
        return Ok(Token::Skill(skill));
    }
    if let Some(advantage) = Advantage::named(word) {
        return Ok(Token::Advantage(advantage));
    }
    let joined_dc = word.strip_prefix("dc").and_then(|dc| dc.parse().ok());
    let signed = word.starts_with(['+', '-']).then(|| word.parse().ok());
    if let Some(token) = joined_dc
        .map(Token::Dc)
        .or(signed.flatten().map(Token::Modifier))
    {
        return Ok(token);
    }
    Ok(match word {
        "initiative" => Token::Initiative,
        "save" | "saves" => Token::Save,
        "proficient" | "proficiency" => Token::Proficient,
        "dc" | "-dc" | "difficulty" => {
            let _ = rest.next_if(|next| matches!(*next, "of" | "is"));
            Token::Dc(number(word, rest.next())?)
        }
        "plus" | "+" | "-b" => Token::Modifier(number(word, rest.next())?),
        "minus" | "-" => Token::Modifier(-number(word, rest.next())?),
        "check" => Token::Check,
        "and" => Token::And,
        "against" | "vs" | "vs." | "versus" => Token::Against,
        filler if FILLERS.contains(&filler) => Token::Filler,
        _ => return Err(unknown(word, wording)),
    })
}

/// Returns a text in lower case, without punctuation, and with one word for each name.
fn normalised(text: &str, wording: Wording) -> String {
    let is_dropped = |c: char| {
        matches!(c, ',' | '(' | ')' | ':' | '=')
            || wording == Wording::Command && is_quotation_mark(c)
    };
    let text = text.to_lowercase().replace('\u{2212}', "-");
    let text = text.replace(is_dropped, " ");
    let one_word = |text: String, (long, short): (&str, &str)| text.replace(long, short);
    ONE_WORD.into_iter().fold(text, one_word)
}

fn names_one(check: &CheckArguments) -> bool {
    check.ability.is_some() || check.skill.is_some()
}

/// Reads the number after a word, in digits or in words.
fn number(word: &str, next: Option<&str>) -> Result<i64, String> {
    let in_digits = |next: &str| next.parse::<i64>().ok().filter(|n| *n >= 0);
    let number = next.and_then(|next| in_digits(next).or(number_named(next).map(i64::from)));
    let given = next.unwrap_or_default();
    number.ok_or_else(|| format!("{word:?} needs a number, not {given:?}"))
}

/// Says that a word is not understood, and what may be meant: the skills that begin with it, or a word
/// of which few letters differ.
fn unknown(word: &str, wording: Wording) -> String {
    let skills = || Skill::ALL.iter().map(Skill::into_str);
    let is_meant =
        |name: &&str| wording == Wording::Command && word.len() >= 3 && name.starts_with(word);
    let mut meant: Vec<&str> = skills().filter(is_meant).collect();
    if meant.is_empty() {
        let abilities = Ability::ALL.iter().map(Ability::into_str);
        let options = ["advantage", "disadvantage", "save"];
        let known = skills().flat_map(|name| name.split(' '));
        let near = nearest(word, known.chain(abilities).chain(options));
        let whole = |word: &str| skills().find(|name| name.split(' ').any(|part| part == word));
        meant.extend(near.map(|word| whole(word).unwrap_or(word)));
    }
    let hint = match meant.as_slice() {
        [] => String::new(),
        meant => format!(" (did you mean {}?)", meant.join(" or ")),
    };
    format!("{word:?} is no ability, skill or option of a check{hint}")
}

/// Returns the skill of this name. A command also takes the first letters of a name, three or more,
/// if only one skill begins with them: "perc" is perception, "per" is ambiguous.
fn skill_named(word: &str, wording: Wording) -> Option<Skill> {
    let is_named = |name: &str| name.replace(' ', "_") == word;
    let is_begun = |name: &str| name.replace(' ', "_").starts_with(word);
    let whole = Skill::ALL.iter().find(|it| is_named(it.into_str()));
    let mut begun = Skill::ALL.iter().filter(|it| is_begun(it.into_str()));
    let only = begun.next().filter(|_| begun.next().is_none());
    let only = only.filter(|_| wording == Wording::Command && word.chars().count() >= 3);
    whole.or(only).copied()
}
