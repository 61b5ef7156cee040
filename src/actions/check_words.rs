//! Reads the words of a check: "dexterity save against DC 15 with advantage".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::nearest::nearest;
use super::sheet::{Ability, Skill};
use super::speech::is_quotation_mark;
use crate::domain::number_named;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advantage {
    Advantage,
    Disadvantage,
}

impl Advantage {
    /// Returns the advantage that a word means, in lower case.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "advantage" | "adv" => Some(Self::Advantage),
            "disadvantage" | "disadv" | "dis" => Some(Self::Disadvantage),
            _ => None,
        }
    }
}

/// Names of several words, and the one word that stands for them here.
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

/// Returns the arguments of a check. With `explicit` the text is known to be a check: the word
/// "check" may be missing, and a number alone is the DC.
///
/// # Errors
/// What is not understood.
pub fn words(text: &str, explicit: bool) -> Result<Map<String, Value>, String> {
    let text = normalised(text, explicit);
    let mut check = Map::new();
    let (mut named, mut against) = (explicit, explicit);
    // What a further ability, skill or save would make a second check.
    let mut complete = None;
    let mut tokens = text.split_whitespace().peekable();
    while let Some(token) = tokens.next() {
        let (key, value) = if let Some(ability) = Ability::named(token) {
            ("ability", json!(ability))
        } else if token == "initiative" {
            named = true;
            ("ability", json!(Ability::Dex))
        } else if let Some(skill) = skill_named(token, explicit) {
            ("skill", json!(skill))
        } else if let Some(known) = option(token) {
            known
        } else if matches!(token, "dc" | "-dc" | "difficulty") {
            let _ = tokens.next_if(|next| matches!(*next, "of" | "is"));
            ("dc", json!(number(token, tokens.next())?))
        } else if let Some(number) = token.strip_prefix("dc").and_then(|n| n.parse::<i64>().ok()) {
            ("dc", json!(number))
        } else if matches!(token, "plus" | "minus" | "+" | "-" | "-b") {
            let number = number(token, tokens.next())?;
            let is_negative = matches!(token, "minus" | "-");
            (
                "modifier",
                json!(if is_negative { -number } else { number }),
            )
        } else if let Some(number) = signed(token) {
            ("modifier", json!(number))
        } else if let Some(number) = token.parse::<i64>().ok().filter(|_| against) {
            ("dc", json!(number))
        } else {
            match token {
                "check" => named = true,
                "and" if names_one(&check) => complete = Some("and"),
                "against" | "vs" | "vs." | "versus" => against = true,
                filler if FILLERS.contains(&filler) => {}
                _ => return Err(unknown(token, explicit)),
            }
            continue;
        };
        named |= key == "save";
        if let Some(word) = complete.filter(|_| matches!(key, "ability" | "skill" | "save")) {
            return Err(format!(
                "{token:?} behind {word:?} is another check: one at a time"
            ));
        }
        if check.insert(key.to_owned(), value).is_some() {
            return Err(format!("{token:?} says the {key} twice"));
        }
        complete = complete.or((token == "initiative").then_some("initiative"));
    }
    if check.contains_key("save") && check.contains_key("skill") {
        return Err(SAVE_OF_SKILL.to_owned());
    }
    if named && names_one(&check) {
        Ok(check)
    } else {
        Err("name an ability or a skill".to_owned())
    }
}

/// Returns a text in lower case, without punctuation, and with one word for each name.
fn normalised(text: &str, explicit: bool) -> String {
    let mut text = text.to_lowercase().replace('\u{2212}', "-").replace(
        |c| matches!(c, ',' | '(' | ')' | ':' | '=') || explicit && is_quotation_mark(c),
        " ",
    );
    for (long, short) in ONE_WORD {
        text = text.replace(long, short);
    }
    text
}

/// Why a check of a skill is no saving throw.
pub const SAVE_OF_SKILL: &str = "a saving throw has an ability and no skill";

fn names_one(check: &Map<String, Value>) -> bool {
    check.contains_key("ability") || check.contains_key("skill")
}

/// Returns the argument that a word sets alone.
fn option(token: &str) -> Option<(&'static str, Value)> {
    Some(match token {
        "save" | "saves" => ("save", json!(true)),
        "proficient" | "proficiency" => ("proficient", json!(true)),
        token => ("advantage", json!(Advantage::named(token)?)),
    })
}

/// Reads the number behind a word, in digits or in words.
fn number(token: &str, next: Option<&str>) -> Result<i64, String> {
    let in_digits = |next: &str| next.parse::<i64>().ok().filter(|n| *n >= 0);
    let number = next.and_then(|next| in_digits(next).or(number_named(next).map(i64::from)));
    let given = next.unwrap_or_default();
    number.ok_or_else(|| format!("{token:?} needs a number, not {given:?}"))
}

/// Reads `+5` or `-2`.
fn signed(token: &str) -> Option<i64> {
    token.starts_with(['+', '-']).then(|| token.parse().ok())?
}

/// Says that a word is not understood, and what may be meant: the skills that begin with it, or a word
/// of which few letters differ.
fn unknown(token: &str, explicit: bool) -> String {
    let skills = || Skill::ALL.iter().map(Skill::into_str);
    let is_meant = |name: &&str| explicit && token.len() >= 3 && name.starts_with(token);
    let mut meant: Vec<&str> = skills().filter(is_meant).collect();
    if meant.is_empty() {
        let abilities = Ability::ALL.iter().map(Ability::into_str);
        let options = ["advantage", "disadvantage", "save"];
        let known = skills().flat_map(|name| name.split(' '));
        let near = nearest(token, known.chain(abilities).chain(options));
        let whole = |word: &str| skills().find(|name| name.split(' ').any(|part| part == word));
        meant.extend(near.map(|word| whole(word).unwrap_or(word)));
    }
    let hint = match meant.as_slice() {
        [] => String::new(),
        meant => format!(" (did you mean {}?)", meant.join(" or ")),
    };
    format!("{token:?} is no ability, skill or option of a check{hint}")
}

/// Returns the skill of this name. An explicit command also takes the first letters of a name,
/// three or more, if only one skill begins with them: "perc" is perception, "per" is ambiguous.
fn skill_named(token: &str, explicit: bool) -> Option<Skill> {
    let is_named = |name: &str| name.replace(' ', "_") == token;
    let is_begun = |name: &str| name.replace(' ', "_").starts_with(token);
    let whole = Skill::ALL.iter().find(|it| is_named(it.into_str()));
    let mut begun = Skill::ALL.iter().filter(|it| is_begun(it.into_str()));
    let only = begun.next().filter(|_| begun.next().is_none());
    let only = only.filter(|_| explicit && token.chars().count() >= 3);
    whole.or(only).copied()
}
