//! `roll`: dice.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, CommandOutcome, Inputs, Refusal, not_run, read};
use crate::actions::sanitize::{sanitize, sanitize_uncut};
use conclave_dice::{Expression, Group, MAX_DICE, MAX_TIMES, Place, Rolled, Written, written};

/// The most repetitions whose dice are written out in the text.
const MAX_LINES: usize = 25;

/// The most dice that a result has one by one.
const MAX_SHOWN: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Roll")]
pub struct RollArguments {
    /// Dice notation: 2d6+3, 4d6kh3, 2d20kl1, d%, 4dF, 8d6e6.
    #[serde(alias = "expr")]
    #[schemars(length(min = 1, max = 1000))]
    pub expression: String,
    /// How many times it is rolled, 1 to 100; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub times: Option<u32>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub label: Option<String>,
}

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut read: RollArguments = read(arguments)?;
    let dice = written(&read.expression, Place::Explicit).and_then(Written::complete);
    let dice = dice.map_err(|error| error.to_string())?;
    if dice.times.is_some() && read.times.is_some() {
        return Err("how many times is said twice".into());
    }
    read.times = read.times.or(dice.times);
    let times = read.times.unwrap_or(1);
    if !(1..=MAX_TIMES).contains(&times) {
        return Err(format!("dice are rolled 1 to {MAX_TIMES} times"));
    }
    if dice.expression.dice().saturating_mul(times as usize) > MAX_DICE {
        return Err(format!(
            "at most {MAX_DICE} dice are rolled at once, all repetitions together"
        ));
    }
    read.times = read.times.filter(|times| *times > 1);
    let label = read.label.or(dice.comment);
    let label = label.map(|label| label.trim().to_owned());
    read.label = label.filter(|label| !label.is_empty());
    let label = read.label.as_deref().unwrap_or_default();
    if label.chars().count() > 200 {
        return Err("the label has at most 200 characters".into());
    }
    read.expression = dice.expression.text().to_owned();
    Ok(Action::Roll(read))
}

/// Returns a source of die faces. The same seed gives the same faces in the same order.
pub(super) fn chance(seed: u64) -> impl FnMut(i64) -> i64 {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    move |sides| random.random_range(1..=sides.max(1))
}

pub(super) fn execute(
    arguments: &RollArguments,
    facts: &Inputs,
    seed: u64,
) -> Result<CommandOutcome, Refusal> {
    let expression = Expression::parse(&arguments.expression);
    let expression = expression.map_err(|error| Refusal::invalid(error.to_string()))?;
    let times = arguments.times.unwrap_or(1);
    let rolled = expression.roll_times(times, &mut chance(seed));
    let rolled = rolled.map_err(|error| Refusal::invalid(error.to_string()))?;
    let label = arguments.label.as_deref().map(sanitize);
    let totals: Vec<i64> = rolled.iter().map(|rolled| rolled.total).collect();
    let lines = shown(&rolled);
    let mut text = match (&label, times) {
        (None, 1) => lines,
        (Some(label), 1) => format!("{label}: {lines}"),
        _ => {
            let all: Vec<String> = totals.iter().map(ToString::to_string).collect();
            let heading = label.as_ref().map(|label| format!("{label}:\n"));
            let heading = heading.unwrap_or_default();
            format!("{heading}{lines}\n{times} rolls: {}", all.join(", "))
        }
    };
    let note = arguments.label.as_deref();
    if let Some(note) = note.and_then(|label| not_run(label, "a label", facts)) {
        text.push_str(&format!("\n{note}"));
    }
    let (dice, left_out) = first_dice(&rolled);
    let mut result = json!({ "text": text, "total": totals.iter().sum::<i64>(), "dice": dice });
    let optional = [
        ("diceLeftOut", (left_out > 0).then(|| json!(left_out))),
        ("totals", (times > 1).then(|| json!(totals))),
        ("label", label.map(Value::from)),
    ];
    let given = optional.into_iter();
    let given = given.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    if let Some(result) = result.as_object_mut() {
        result.extend(given);
    }
    Ok(CommandOutcome::reply(result))
}

/// Returns the first dice of all groups, at most [`MAX_SHOWN`], and the number of the others.
fn first_dice(rolled: &[Rolled]) -> (Vec<Group>, usize) {
    let (mut shown, mut left_out, mut room) = (vec![], 0, MAX_SHOWN);
    for group in rolled.iter().flat_map(|rolled| &rolled.dice) {
        let kept = group.rolls.len().min(room);
        left_out += group.rolls.len() - kept;
        room -= kept;
        if kept > 0 || group.rolls.is_empty() {
            let mut group = group.clone();
            group.rolls.truncate(kept);
            shown.push(group);
        }
    }
    (shown, left_out)
}

/// Returns the rolls for people, a line each. Labels in them are the user's text.
fn shown(rolled: &[Rolled]) -> String {
    let lines = rolled.iter().take(MAX_LINES);
    let lines = lines.map(|rolled| sanitize_uncut(&rolled.text));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_in_the_notation_notifies_no_user() {
        let arguments = RollArguments {
            expression: "1d1[@everyone]".into(),
            times: None,
            label: None,
        };
        let done = execute(&arguments, &Inputs::default(), 1);
        assert_eq!(
            done.unwrap().result["text"],
            "1d1 (1) [@\u{200b}everyone] = 1"
        );
    }
}
