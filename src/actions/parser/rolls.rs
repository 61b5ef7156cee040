//! Dice, as notation or in words: "can you roll three d8 plus 2 for me?".

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::{Found, PATTERNS, capture};
use crate::domain::{CommandName, number_named};
use crate::text::listed;
use conclave_dice::{Place, Written, written};

static ORDER: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.order"));
static GIVE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.give"));
static HARM: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.harm"));
static COIN: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.coin"));
static DICE_FIRST: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.dice_first"));
static TAIL: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.tail"));
static NAMED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.named"));
static PURPOSE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.purpose"));
static AFTERWARDS: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.afterwards"));
static UNFIT: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.unfit"));
static COUPLE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.couple"));
static DOZEN: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.dozen"));
static SIDED: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.sided"));
static APART: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.apart"));
static PLURAL: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.plural"));
static PLAIN: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.plain"));
static PERCENTILE: LazyLock<Regex> = LazyLock::new(|| listed(PATTERNS, "roll.percentile"));
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
    let found = |arguments| Some((CommandName::Roll, arguments));
    // In "roll 3d8!" the mark is an explosion.
    let ordered = capture(&ORDER, text);
    let dice = notation(text).or_else(|| notation(ordered.as_deref()?));
    if let Some(dice) = dice {
        return found(arguments(&dice, dice.comment.as_deref()));
    }
    let plain = text.trim_end_matches(['.', '!', '?']).trim();
    if let Some(coins) = COIN.captures(plain) {
        let count = count(&coins.name("n")?.as_str().to_lowercase())?;
        return found(json!({ "expression": format!("{count}d2") }));
    }
    let (dice, most_words) = match (capture(&ORDER, plain), capture(&GIVE, plain)) {
        (Some(rest), _) => (rest, usize::MAX),
        // With a purpose the user may want a real die: "give me a d20 for my birthday".
        (None, Some(rest)) => (rest, 0),
        // Without a verb the dice come first, the text is no question, and the purpose is short.
        (None, None) if DICE_FIRST.is_match(plain) && !text.ends_with('?') => (plain.to_owned(), 3),
        (None, None) => return None,
    };
    let arguments = in_words(&dice)?;
    let label = arguments.get("label").and_then(Value::as_str);
    let words = label.map_or(0, |label| label.split_whitespace().count());
    found(arguments).filter(|_| words <= most_words)
}

/// Reads dice behind a label: "Longsword: 1d8+4".
pub(super) fn labelled(text: &str) -> Option<Found> {
    let captures = NAMED.captures(text)?;
    let dice = notation(captures.name("dice")?.as_str())?;
    let label = captures.name("label")?.as_str();
    (dice.comment.is_none() && !may_change_a_roll(label))
        .then(|| (CommandName::Roll, arguments(&dice, Some(label))))
}

/// Reads the dice behind the name of the command. No dice at all are a d20.
///
/// # Errors
/// What is not understood.
pub(super) fn explicit(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(json!({ "expression": "1d20" }));
    }
    let dice = written(text, Place::Explicit);
    if let Ok(dice) = &dice
        && dice.words.is_empty()
    {
        return Ok(arguments(dice, dice.comment.as_deref()));
    }
    if let Some(found) = in_words(text) {
        return Ok(found);
    }
    let dice = dice.map_err(|error| error.to_string())?;
    // Words behind repeated dice may belong to the repetition.
    if dice.expression.has_dice() && dice.times.is_none() && is_comment(&dice.words) {
        return Ok(arguments(&dice, Some(&dice.words)));
    }
    let complete = dice.complete().map_err(|error| error.to_string())?;
    Ok(arguments(&complete, None))
}

/// Reads a text that is dice notation and nothing else.
fn notation(text: &str) -> Option<Written> {
    let dice = written(text, Place::Bare).ok()?.complete().ok()?;
    dice.expression.has_dice().then_some(dice)
}

fn arguments(dice: &Written, label: Option<&str>) -> Value {
    let mut found = Map::from_iter([("expression".to_owned(), json!(dice.expression.text()))]);
    if let Some(times) = dice.times {
        found.insert("times".into(), json!(times));
    }
    if let Some(label) = label {
        found.insert("label".into(), json!(label));
    }
    Value::Object(found)
}

/// True if a text begins with a plain word, and none of it can be notation or a misspelt advantage.
fn is_comment(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = lower.split_whitespace();
    let plain = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    let Some(first) = words.next().filter(|word| plain(word)) else {
        return false;
    };
    !is_misspelt(first, &["adv", "dis", "disadv"], 1)
        && !lower
            .split_whitespace()
            .any(|word| is_misspelt(word, &["advantage", "disadvantage"], 2))
        && !may_change_a_roll(text)
}

/// True if words could change a roll, so that they are no label of it.
pub(super) fn may_change_a_roll(words: &str) -> bool {
    UNFIT.is_match(words)
}

/// True if a word is at most so many edits away from one of these. A transposition is one edit.
fn is_misspelt(word: &str, known: &[&str], edits: usize) -> bool {
    let mut known = known.iter();
    known.any(|known| strsim::osa_distance(word, known) <= edits)
}

/// Returns the arguments of dice in words, or `None` if a word is not understood.
fn in_words(text: &str) -> Option<Value> {
    let mut text = text.trim();
    while let Some(tail) = TAIL.find(text) {
        text = text.get(..tail.start())?;
    }
    if let Some(dice) = understood(text) {
        return Some(arguments(&dice, None));
    }
    // Words that could change the roll are no label.
    let with_label = |dice: &str, label: &str| {
        let dice = understood(dice).filter(|_| !may_change_a_roll(label))?;
        Some(arguments(&dice, Some(label.trim())))
    };
    let reordered = || {
        let captures = AFTERWARDS.captures(text)?;
        let part = |name: &str| captures.name(name).map_or("", |m| m.as_str());
        with_label(&format!("{} {}", part("dice"), part("more")), part("label"))
    };
    reordered().or_else(|| {
        [&HARM, &PURPOSE, &NAMED].into_iter().find_map(|pattern| {
            let captures = pattern.captures(text)?;
            with_label(
                captures.name("dice")?.as_str(),
                captures.name("label")?.as_str(),
            )
        })
    })
}

/// Translates words to dice notation. Returns `None` if a word is left over.
fn understood(text: &str) -> Option<Written> {
    let part = |c: &Captures<'_>, name: &str| c.name(name).map_or("", |m| m.as_str()).to_owned();
    let many = |c: &Captures<'_>, name: &str| count(&part(c, name)).unwrap_or(1).to_string();
    let sided = |c: &Captures<'_>| format!("{}d{}", many(c, "n"), part(c, "s"));
    let mut text = text
        .to_lowercase()
        .replace("twice", "2 times")
        .replace("thrice", "3 times");
    // "Twenty-one" is one number, which this parser does not know.
    if HYPHENED.is_match(&text) {
        return None;
    }
    let mut replace = |pattern: &Regex, with: &dyn Fn(&Captures<'_>) -> String| {
        text = pattern.replace_all(&text, with).into_owned();
    };
    replace(&COUPLE, &|_| "2".into());
    replace(&DOZEN, &|_| "12".into());
    replace(&NUMBER, &|c| many(c, "n"));
    replace(&TIMES_BEFORE, &|c| {
        format!("{}x{}", part(c, "n"), part(c, "dice"))
    });
    replace(&TIMES_BEHIND, &|c| {
        format!("{} x{}", part(c, "dice"), part(c, "n"))
    });
    replace(&PERCENTILE, &|_| "1d100".into());
    replace(&SIDED, &sided);
    replace(&APART, &sided);
    replace(&PLURAL, &|c| part(c, "d"));
    replace(&PLAIN, &|c| format!("{}d6", many(c, "n")));
    replace(&EXPLODING, &|c| {
        let (n, s) = (part(c, "n") + &part(c, "k"), part(c, "s") + &part(c, "t"));
        format!("{n}d{s}e{s}")
    });
    replace(&ONES, &|_| "ro1".into());
    let which = |c: &Captures<'_>| {
        let number = part(c, "n") + &part(c, "m");
        number.parse::<u32>().unwrap_or(1)
    };
    let low = |c: &Captures<'_>| matches!(part(c, "what").as_str(), "lowest" | "lower" | "worst");
    replace(&DROP, &|c| {
        let dice = part(c, "count").parse::<u32>().unwrap_or(0);
        let (kept, sides) = (dice.saturating_sub(which(c)), part(c, "s"));
        format!("{dice}d{sides}{}{kept}", if low(c) { "kh" } else { "kl" })
    });
    replace(&KEEP, &|c| {
        format!("{}{}", if low(c) { "kl" } else { "kh" }, which(c))
    });
    replace(&PLUS, &|_| "+".into());
    replace(&MINUS, &|_| "-".into());
    replace(&TIMES, &|_| "*".into());
    replace(&DIVIDED, &|_| "/".into());
    notation(&text).filter(|dice| dice.comment.is_none())
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
