//! `roll`: dice.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, Command, CommandOutcome, Refusal, SideEffect, read, schema};
use crate::actions::sanitize::{sanitize, sanitize_uncut};
use crate::domain::{CommandName, Scope};
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

pub(super) fn command() -> Command {
    Command {
        name: CommandName::Roll,
        help: "Roll dice and show every one of them.",
        permission: Scope::Act,
        reach: SideEffect::Nothing,
        examples: &[
            "roll 2d6+3 for damage",
            "/roll 4d6kh3",
            "roll a d20 with advantage",
            "3d8!",
            "6#4d6kh3",
        ],
        schema: schema::<RollArguments>,
        read: |arguments| {
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
                    "at most {MAX_DICE} dice are thrown at once, all repetitions together"
                ));
            }
            read.times = read.times.filter(|times| *times > 1);
            let label = read
                .label
                .as_deref()
                .or(dice.comment.as_deref())
                .map(str::trim)
                .filter(|label| !label.is_empty());
            if label.is_some_and(|label| label.chars().count() > 200) {
                return Err("the label has at most 200 characters".into());
            }
            (read.label, read.expression) =
                (label.map(str::to_owned), dice.expression.text().to_owned());
            Ok(Action::Roll(read))
        },
    }
}

/// Returns a source of die faces. The same seed gives the same faces in the same order.
pub(super) fn chance(seed: u64) -> impl FnMut(i64) -> i64 {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    move |sides| random.random_range(1..=sides.max(1))
}

pub(super) fn execute(arguments: &RollArguments, seed: u64) -> Result<CommandOutcome, Refusal> {
    let expression = Expression::parse(&arguments.expression)
        .map_err(|error| Refusal::invalid(error.to_string()))?;
    let times = arguments.times.unwrap_or(1);
    let rolled = expression
        .roll_times(times, &mut chance(seed))
        .map_err(|error| Refusal::invalid(error.to_string()))?;
    let label = arguments.label.as_deref().map(sanitize);
    let totals: Vec<i64> = rolled.iter().map(|rolled| rolled.total).collect();
    let text = match (&label, times) {
        (None, 1) => shown(&rolled),
        (Some(label), 1) => format!("{label}: {}", shown(&rolled)),
        _ => {
            let all = totals
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            let heading = label
                .as_ref()
                .map(|label| format!("{label}:\n"))
                .unwrap_or_default();
            format!("{heading}{}\n{times} rolls: {all}", shown(&rolled))
        }
    };
    let (dice, left_out) = first_dice(&rolled);
    let mut result: Value =
        json!({ "text": text, "total": totals.iter().sum::<i64>(), "dice": dice });
    if let (true, Value::Object(result)) = (left_out > 0, &mut result) {
        result.insert("diceLeftOut".into(), json!(left_out));
    }
    if let (true, Value::Object(result)) = (times > 1, &mut result) {
        result.insert("totals".into(), json!(totals));
    }
    if let (Some(label), Value::Object(result)) = (label, &mut result) {
        result.insert("label".into(), json!(label));
    }
    Ok(CommandOutcome::saying(result))
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
    let lines: Vec<String> = rolled
        .iter()
        .take(MAX_LINES)
        .map(|rolled| sanitize_uncut(&rolled.text))
        .collect();
    lines.join("\n")
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
        let done = execute(&arguments, 1);
        assert_eq!(
            done.unwrap().result["text"],
            "1d1 (1) [@\u{200b}everyone] = 1"
        );
    }
}
