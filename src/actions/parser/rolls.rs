//! Dice, as notation or in words: "can you roll three d8 plus 2 for me?".

use regex::Captures;
use serde_json::{Map, Value, json};

use super::{Found, capture, regex};
use crate::domain::{CommandName, number_named};
use conclave_dice::{MAX_CHARS, Place, Written, written};

/// Reads a text that rolls dice and does nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    let found = |arguments| Some((CommandName::Roll, arguments));
    let text = text.trim();
    let plain = text.trim_end_matches(['.', '!', '?']).trim_end();
    // In "roll 3d8!" and "roll 3d8!?" the first mark is an explosion.
    let marks = text.get(plain.len()..).unwrap_or_default();
    let ends = marks.find(['.', '?']).unwrap_or(marks.len());
    let ordered = capture("roll.order", text.get(..plain.len() + ends)?);
    let dice = notation(text).or_else(|| notation(ordered.as_deref()?));
    if let Some(dice) = dice {
        return found(arguments(&dice, dice.comment.as_deref()));
    }
    if let Some(coins) = regex("roll.coin").captures(plain) {
        let count = count(&coins.name("n")?.as_str().to_lowercase())?;
        return found(json!({ "expression": format!("{count}d2") }));
    }
    let (dice, most_words) = match (capture("roll.order", plain), capture("roll.give", plain)) {
        (Some(rest), _) => (rest, usize::MAX),
        // With a purpose the user may want a real die: "give me a d20 for my birthday".
        (None, Some(rest)) => (rest, 0),
        // Without a verb the dice come first, the text is no question, and the purpose is short.
        (None, None) if regex("roll.dice_first").is_match(plain) && !text.ends_with('?') => {
            (plain.to_owned(), 3)
        }
        (None, None) => return None,
    };
    let arguments = in_words(&dice)?;
    let label = arguments.get("label").and_then(Value::as_str);
    let words = label.map_or(0, |label| label.split_whitespace().count());
    found(arguments).filter(|_| words <= most_words)
}

/// Reads dice after a label: "Longsword: 1d8+4".
pub(super) fn labelled(text: &str) -> Option<Found> {
    let captures = regex("roll.named").captures(text)?;
    let dice = notation(captures.name("dice")?.as_str())?;
    let label = captures.name("label").or(captures.name("front"))?.as_str();
    (dice.comment.is_none() && !may_change_a_roll(label))
        .then(|| (CommandName::Roll, arguments(&dice, Some(label))))
}

/// Reads the dice after the name of the command. No dice at all are a d20.
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
    // Words after repeated dice may belong to the repetition.
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
    let letters = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count();
    let is_plain = |word: &str| word.starts_with(char::is_alphabetic) && letters(word) >= 2;
    let is_edge = |word: &str| is_misspelt(word, &["advantage", "disadvantage"], 2);
    let first = words.clone().next().unwrap_or_default();
    is_plain(first)
        && !is_misspelt(first, &["adv", "dis", "disadv"], 1)
        && !words.any(is_edge)
        && !may_change_a_roll(&lower.replace(',', " ").replace(" and ", " "))
}

/// True if words could change a roll, so that they are no label of it.
pub(super) fn may_change_a_roll(words: &str) -> bool {
    regex("roll.unfit").is_match(words)
}

/// True if a word is at most so many edits away from one of these. A transposition is one edit.
fn is_misspelt(word: &str, known: &[&str], edits: usize) -> bool {
    let mut known = known.iter();
    known.any(|known| strsim::osa_distance(word, known) <= edits)
}

/// Returns the arguments of dice in words, or `None` if a word is not understood. Dice and label may
/// have as many characters as dice alone.
fn in_words(text: &str) -> Option<Value> {
    let mut text = text.trim();
    if text.chars().count() > MAX_CHARS {
        return None;
    }
    while let Some(tail) = regex("roll.tail").find(text) {
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
    let forms = ["roll.afterwards", "roll.harm", "roll.purpose", "roll.named"];
    forms.into_iter().find_map(|form| {
        let captures = regex(form).captures(text)?;
        let part = |name: &str| captures.name(name).map(|part| part.as_str());
        let (dice, label) = (part("dice")?, part("label").or(part("front"))?);
        match part("more") {
            Some(more) => with_label(&format!("{dice} {more}"), label),
            None => with_label(dice, label),
        }
    })
}

/// Returns where the dice of an order begin, `2d6` in "please roll 2d6", and the text from there.
pub(super) fn ordered(text: &str) -> Option<(usize, &str)> {
    let rest = regex("roll.order").captures(text)?.get(1)?;
    Some((rest.start(), rest.as_str()))
}

/// Translates words to dice notation. Returns `None` if a word is left over.
fn understood(text: &str) -> Option<Written> {
    notation(&in_notation(text)?).filter(|dice| dice.comment.is_none())
}

/// Translates the words that mean dice notation, and leaves the others.
fn in_notation(text: &str) -> Option<String> {
    let part = |c: &Captures<'_>, name: &str| c.name(name).map_or("", |m| m.as_str()).to_owned();
    let many = |c: &Captures<'_>, name: &str| count(&part(c, name)).unwrap_or(1).to_string();
    let sided = |c: &Captures<'_>| format!("{}d{}", many(c, "n"), part(c, "s"));
    // Before other words the mark of an explosion may begin a comment.
    if text.ends_with(" !") {
        return None;
    }
    let lower = text.to_lowercase().replace("twice", "2 times");
    let mut text = lower.replace("thrice", "3 times");
    // "Twenty-one" is one number, which this parser does not know.
    if regex("roll.hyphened").is_match(&text) {
        return None;
    }
    let mut replace = |name: &str, with: &dyn Fn(&Captures<'_>) -> String| {
        text = regex(name).replace_all(&text, with).into_owned();
    };
    replace("roll.couple", &|_| "2".into());
    replace("roll.dozen", &|_| "12".into());
    replace("roll.number", &|c| many(c, "n"));
    replace("roll.times_before", &|c| {
        part(c, "n") + "x" + &part(c, "dice")
    });
    replace("roll.times_after", &|c| {
        part(c, "dice") + " x" + &part(c, "n")
    });
    replace("roll.percentile", &|_| "1d100".into());
    replace("roll.sided", &sided);
    replace("roll.apart", &sided);
    replace("roll.plural", &|c| part(c, "d"));
    replace("roll.plain", &|c| format!("{}d6", many(c, "n")));
    replace("roll.exploding", &|c| {
        let (n, s) = (part(c, "n") + &part(c, "k"), part(c, "s") + &part(c, "t"));
        format!("{n}d{s}e{s}")
    });
    replace("roll.ones", &|_| "ro1".into());
    let which = |c: &Captures<'_>| {
        let number = part(c, "n") + &part(c, "m");
        number.parse::<u32>().unwrap_or(1)
    };
    let low = |c: &Captures<'_>| matches!(part(c, "what").as_str(), "lowest" | "lower" | "worst");
    replace("roll.drop", &|c| {
        let dice = part(c, "count").parse::<u32>().unwrap_or(0);
        let (kept, sides) = (dice.saturating_sub(which(c)), part(c, "s"));
        format!("{dice}d{sides}{}{kept}", if low(c) { "kh" } else { "kl" })
    });
    replace("roll.keep", &|c| {
        format!("{}{}", if low(c) { "kl" } else { "kh" }, which(c))
    });
    replace("roll.plus", &|_| "+".into());
    replace("roll.minus", &|_| "-".into());
    replace("roll.times", &|_| "*".into());
    replace("roll.divided", &|_| "/".into());
    // Words such as "keep the highest" may mean each of several kinds of dice before them.
    let of_several = |text: &str| regex("roll.of_several").is_match(text);
    (!of_several(&text) || of_several(&lower)).then_some(text)
}

/// Returns a small number, written in words or digits.
fn count(word: &str) -> Option<u32> {
    match word {
        "a" | "an" | "the" | "another" | "some" => Some(1),
        "hundred" => Some(100),
        word => number_named(word).or_else(|| word.parse().ok()),
    }
}
