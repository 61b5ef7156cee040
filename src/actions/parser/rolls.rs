//! Dice in words: "can you roll three d8 plus 2 for me?".

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::notation::{self, Place};
use super::{Found, PATTERNS, capture};
use crate::domain::{CommandName, number_named};
use crate::text::listed;
use conclave_dice::{Expression, repeated};

static ORDER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.order"));
static GIVE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.give"));
static DIE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.die"));
static HARM: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.harm"));
static COIN: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.coin"));
static DICE_FIRST: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.dice_first"));
static TAIL: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.tail"));
static NAMED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.named"));
static PURPOSE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.purpose"));
static AFTERWARDS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.afterwards"));
pub(super) static UNFIT: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.unfit"));
static COUPLE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.couple"));
static DOZEN: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.dozen"));
static SIDED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.sided"));
static APART: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.apart"));
static PLURAL: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.plural"));
static PLAIN: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.plain"));
static PERCENTILE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.percentile"));
static ADVANTAGE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.advantage"));
static KEEP: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.keep"));
static DROP: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.drop"));
static ONES: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.ones"));
static EXPLODING: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.exploding"));
static PLUS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.plus"));
static MINUS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.minus"));
static TIMES: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.times"));
static DIVIDED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.divided"));
static TIMES_BEFORE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.times_before"));
static TIMES_BEHIND: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.times_behind"));
static HYPHENED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.hyphened"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.number"));

/// Reads a text that rolls dice and does nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    if Expression::parse(text).is_ok_and(|e| e.has_dice()) || repeated(text).is_some() {
        return Some((CommandName::Roll, json!({ "expression": text })));
    }
    if let Some(arguments) = notation::read(text, Place::Bare) {
        return Some((CommandName::Roll, arguments));
    }
    let lower = text.to_lowercase();
    // In "roll 3d8!" the mark is an explosion.
    if let Some(dice) = capture(&ORDER, lower.trim())
        && let Some(arguments) = notation::read(&dice, Place::Bare)
    {
        return Some((CommandName::Roll, arguments));
    }
    let plain = lower.trim_end_matches(['.', '!', '?']).trim();
    if let Some(coins) = COIN.captures(plain) {
        let count = count(coins.name("n")?.as_str())?;
        return Some((
            CommandName::Roll,
            json!({ "expression": format!("{count}d2") }),
        ));
    }
    let (dice, words) = match (capture(&ORDER, plain), capture(&GIVE, plain)) {
        (Some(rest), _) => (rest, usize::MAX),
        // With a purpose the user may want a real die: "give me a d20 for my birthday".
        (None, Some(rest)) => (rest, 0),
        // Without a verb the dice come first, the text is no question, and the purpose is short.
        (None, None) if DICE_FIRST.is_match(plain) && !lower.trim().ends_with('?') => {
            (plain.to_owned(), 3)
        }
        (None, None) => return None,
    };
    let found = expression(&dice)?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let expression = text("expression");
    let rolls =
        Expression::parse(expression).is_ok_and(|e| e.has_dice()) || repeated(expression).is_some();
    let fits = text("label").split_whitespace().count() <= words;
    (rolls && fits).then_some((CommandName::Roll, found))
}

/// Returns the arguments of dice in words, or `None` if a word is not understood.
pub(super) fn expression(text: &str) -> Option<Value> {
    if Expression::parse(text).is_ok_and(|e| e.has_dice()) || repeated(text).is_some() {
        return Some(json!({ "expression": text }));
    }
    let mut text = text.to_lowercase().trim().to_owned();
    while let Some(tail) = TAIL.find(&text) {
        text.truncate(tail.start());
    }
    if let Some((times, dice)) = several(&text) {
        let mut found = expression(&dice).filter(|found| found.get("times").is_none())?;
        found.as_object_mut()?.insert("times".into(), json!(times));
        return Some(found);
    }
    if let Some(expression) = understood(&text) {
        return Some(json!({ "expression": expression }));
    }
    let labelled = |pattern: &Regex, dice: &str| -> Option<Value> {
        let captures = pattern.captures(&text)?;
        let (dice, label) = (
            captures.name(dice)?.as_str(),
            captures.name("label")?.as_str().trim().to_owned(),
        );
        // Words that could change the roll are no label.
        let expression = understood(dice).filter(|_| !UNFIT.is_match(&label))?;
        Some(json!({ "expression": expression, "label": label }))
    };
    let reordered = || -> Option<Value> {
        let captures = AFTERWARDS.captures(&text)?;
        let part = |name: &str| captures.name(name).map_or("", |m| m.as_str());
        let label = part("purpose")
            .split_once(' ')
            .map_or("", |(_, label)| label.trim())
            .to_owned();
        let expression = understood(&format!("{} {}", part("dice"), part("more")))
            .filter(|_| !UNFIT.is_match(&label))?;
        Some(json!({ "expression": expression, "label": label }))
    };
    reordered()
        .or_else(|| labelled(&HARM, "dice"))
        .or_else(|| labelled(&PURPOSE, "dice"))
        .or_else(|| labelled(&NAMED, "rest"))
}

/// Returns how many times the dice are rolled, and the dice: "4d6 six times for stats", "six times
/// 4d6", "4d6 x6 for stats".
fn several(text: &str) -> Option<(u32, String)> {
    let captures = [&TIMES_BEFORE, &TIMES_BEHIND]
        .into_iter()
        .find_map(|pattern| pattern.captures(text))?;
    let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
    let times = match part("times") {
        "twice" => 2,
        "thrice" => 3,
        _ => count(&format!("{}{}", part("n"), part("m")))?,
    };
    Some((times, format!("{}{}", part("dice"), part("more"))))
}

/// Replaces every match of a pattern.
fn replaced(pattern: &Regex, text: &str, with: impl Fn(&Captures<'_>) -> String) -> String {
    pattern.replace_all(text, with).into_owned()
}

/// Translates words to dice notation. Returns `None` if a word is left over.
fn understood(text: &str) -> Option<String> {
    let part = |c: &Captures<'_>, name: &str| c.name(name).map_or("", |m| m.as_str()).to_owned();
    let many = |c: &Captures<'_>, name: &str| count(&part(c, name)).unwrap_or(1).to_string();
    let sided = |c: &Captures<'_>| format!("{}d{}", many(c, "n"), part(c, "s"));
    // "Twenty-one" is one number, which this parser does not know.
    if HYPHENED.is_match(text) {
        return None;
    }
    let mut text = COUPLE.replace_all(text, "2").into_owned();
    text = DOZEN.replace_all(&text, "12").into_owned();
    text = replaced(&NUMBER, &text, |c| {
        let number = c.get(0).and_then(|m| count(m.as_str()));
        number.unwrap_or(0).to_string()
    });
    text = replaced(&PERCENTILE, &text, |_| "1d100".into());
    text = replaced(&SIDED, &text, sided);
    text = replaced(&APART, &text, sided);
    text = replaced(&PLURAL, &text, |c| part(c, "d"));
    text = replaced(&PLAIN, &text, |c| format!("{}d6", many(c, "n")));
    text = replaced(&EXPLODING, &text, |c| {
        let (n, s) = (part(c, "n") + &part(c, "k"), part(c, "s") + &part(c, "t"));
        format!("{n}d{s}e{s}")
    });
    text = replaced(&ONES, &text, |_| "ro1".into());
    let which = |c: &Captures<'_>| {
        let number = Some(part(c, "n") + &part(c, "m")).filter(|n| !n.is_empty());
        number.and_then(|n| n.parse::<u32>().ok()).unwrap_or(1)
    };
    let low = |c: &Captures<'_>| matches!(part(c, "what").as_str(), "lowest" | "lower" | "worst");
    text = replaced(&DROP, &text, |c| {
        let dice = part(c, "count").parse::<u32>().unwrap_or(0);
        let (kept, sides) = (dice.saturating_sub(which(c)), part(c, "s"));
        format!("{dice}d{sides}{}{kept}", if low(c) { "kh" } else { "kl" })
    });
    text = replaced(&KEEP, &text, |c| {
        format!("{}{}", if low(c) { "kl" } else { "kh" }, which(c))
    });
    text = with_advantage(&text)?;
    text = replaced(&PLUS, &text, |_| "+".into());
    text = replaced(&MINUS, &text, |_| "-".into());
    text = replaced(&TIMES, &text, |_| "*".into());
    text = replaced(&DIVIDED, &text, |_| "/".into());
    let text: String = text.trim().to_owned();
    let expression = Expression::parse(&text).ok()?;
    (expression.has_dice() && expression.comment().is_none()).then_some(text)
}

/// Translates the advantage or disadvantage of a single d20, the only roll that can have it.
fn with_advantage(text: &str) -> Option<String> {
    let mut advantages = ADVANTAGE.captures_iter(text);
    let (Some(found), None) = (advantages.next(), advantages.next()) else {
        return Some(text.to_owned());
    };
    let keep = if found.name("dis").or(found.name("short")).is_some() {
        "2d20kl1"
    } else {
        "2d20kh1"
    };
    let without = text.replacen(found.get(0)?.as_str(), "", 1);
    let rest = without.trim();
    let rest = rest
        .strip_prefix("1d20")
        .or_else(|| rest.strip_prefix("d20"))?;
    let other = rest.starts_with(|c: char| c.is_alphanumeric()) || DIE.is_match(rest);
    (!other).then(|| format!("{keep}{rest}"))
}

/// Returns a small number, written in words or digits.
fn count(word: &str) -> Option<u32> {
    match word {
        "a" | "an" | "the" | "another" | "some" => Some(1),
        "thirty" => Some(30),
        "hundred" => Some(100),
        word => number_named(word).or_else(|| word.parse().ok()),
    }
}
