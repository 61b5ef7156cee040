//! Checks in words: "make a dexterity check against DC 15".

use serde_json::{Value, json};

use super::{Found, PATTERNS, capture};
use crate::actions::sheet::{Ability, Skill};
use crate::domain::CommandName;
use crate::text::listed;

use regex::Regex;
use std::sync::LazyLock;

static ORDER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "check.order"));
static INITIATIVE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "check.initiative"));

/// Names of several words, and the one word that stands for them here.
const ONE_WORD: [(&str, &str); 5] = [
    ("sleight of hand", "sleight_of_hand"),
    ("animal handling", "animal_handling"),
    ("saving throw", "save"),
    ("difficulty class", "dc"),
    ("dc:", "dc "),
];

/// Words that change nothing.
const FILLERS: [&str; 13] = [
    "a", "an", "the", "my", "with", "at", "on", "of", "and", "for", "ability", "skill", "please",
];

/// Reads a text that asks for a check and for nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    let lower = text.to_lowercase();
    let question = lower.trim().ends_with('?');
    let plain = lower.trim_end_matches(['.', '!', '?']).trim();
    if capture(&INITIATIVE, plain).is_some() {
        return Some((CommandName::Check, json!({ "ability": "dex" })));
    }
    let captures = ORDER.captures(plain);
    let part = |name: &str| {
        captures
            .as_ref()
            .and_then(|captures| Some(captures.name(name)?.as_str()))
    };
    let ordered = part("what");
    // "dex check dc 15" is an order too, but "dex check?" is a question.
    if ordered.is_none() && question {
        return None;
    }
    let check = words(ordered.unwrap_or(plain), plain.starts_with("check "));
    // "Roll stealth" is a check; "roll 15 stealth" is none.
    let rolled =
        || words(&format!("{} check", ordered?), false).filter(|_| part("verb") == Some("roll"));
    Some((CommandName::Check, check.or_else(rolled)?))
}

/// Returns the arguments of a check, or `None` if a word is not understood. With `explicit` the
/// text is known to be a check: the word "check" may be missing, and a number alone is the DC.
pub(super) fn words(text: &str, explicit: bool) -> Option<Value> {
    let mut text = text.to_lowercase().replace([',', '(', ')', ':'], " ");
    for (long, short) in ONE_WORD {
        text = text.replace(long, short);
    }
    let mut check = json!({});
    let (mut named, mut against) = (explicit, explicit);
    let mut tokens = text.split_whitespace().peekable();
    while let Some(token) = tokens.next() {
        if let Some(ability) = Ability::named(token) {
            once(&mut check, "ability", json!(ability))?;
        } else if let Some(skill) = skill_named(token, explicit) {
            once(&mut check, "skill", json!(skill))?;
        } else if token == "save" || token == "saves" {
            once(&mut check, "save", json!(true))?;
            named = true;
        } else if token == "check" {
            named = true;
        } else if let Some(number) = token.strip_prefix("dc").filter(|n| !n.is_empty()) {
            once(&mut check, "dc", json!(number.parse::<i64>().ok()?))?;
        } else if matches!(token, "dc" | "difficulty") {
            while tokens
                .next_if(|next| matches!(*next, "of" | "is" | "="))
                .is_some()
            {}
            once(&mut check, "dc", json!(tokens.next()?.parse::<i64>().ok()?))?;
        } else if matches!(token, "against" | "vs" | "vs." | "versus") {
            against = true;
        } else if matches!(
            token,
            "advantage" | "adv" | "disadvantage" | "disadv" | "dis"
        ) {
            let what = if token.starts_with("dis") {
                "disadvantage"
            } else {
                "advantage"
            };
            once(&mut check, "advantage", json!(what))?;
        } else if matches!(token, "proficient" | "proficiency") {
            once(&mut check, "proficient", json!(true))?;
        } else if matches!(token, "plus" | "minus" | "+" | "-") {
            let number = tokens.next()?.parse::<i64>().ok().filter(|n| *n >= 0)?;
            let sign = if matches!(token, "minus" | "-") {
                -1
            } else {
                1
            };
            once(&mut check, "modifier", json!(sign * number))?;
        } else if token.starts_with(['+', '-']) {
            once(&mut check, "modifier", json!(token.parse::<i64>().ok()?))?;
        } else if let Ok(number) = token.parse::<i64>() {
            if !against {
                return None;
            }
            once(&mut check, "dc", json!(number))?;
        } else if !FILLERS.contains(&token) {
            return None;
        }
    }
    let about = check.get("ability").is_some() || check.get("skill").is_some();
    (about && named).then_some(check)
}

/// Returns the skill of this name. An explicit command also takes the first letters of a name,
/// three or more, if only one skill begins with them: "perc" is perception, "per" is ambiguous.
fn skill_named(token: &str, explicit: bool) -> Option<Skill> {
    let names = || {
        Skill::ALL
            .into_iter()
            .map(|(skill, name, _)| (skill, name.replace(' ', "_")))
    };
    let whole = names().find(|(_, name)| name == token);
    let begun = || {
        let mut begun = names().filter(|(_, name)| name.starts_with(token));
        begun.next().filter(|_| begun.next().is_none())
    };
    let short = explicit && token.chars().count() >= 3;
    whole
        .or_else(|| if short { begun() } else { None })
        .map(|(skill, _)| skill)
}

/// Sets an argument. Returns `None` if it was set before: a text that says it twice is not
/// understood.
fn once(check: &mut Value, key: &str, value: Value) -> Option<()> {
    let map = check.as_object_mut()?;
    if map.insert(key.to_owned(), value).is_some() {
        None
    } else {
        Some(())
    }
}
