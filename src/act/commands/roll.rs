//! `roll`: dice.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, Command, Done, Reach, Refusal, read, schema};
use crate::act::dice::Expression;
use crate::act::echo::echo;
use crate::domain::{CommandName, Scope};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Roll")]
pub struct RollArguments {
    /// Dice notation: 2d6+3, 4d6kh3, 2d20kl1, d%, 4dF, 8d6e6.
    #[schemars(length(min = 1, max = 1000))]
    pub expression: String,
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
        reach: Reach::Nothing,
        examples: &["roll 2d6+3 for damage", "/roll 4d6kh3", "roll a d20 with advantage", "3d8!"],
        schema: schema::<RollArguments>,
        read: |arguments| {
            let mut read: RollArguments = read(arguments)?;
            let expression = Expression::parse(&read.expression).map_err(|error| error.to_string())?;
            let label = read.label.as_deref().or(expression.comment()).map(str::trim).filter(|label| !label.is_empty());
            if label.is_some_and(|label| label.chars().count() > 200) {
                return Err("the label has at most 200 characters".into());
            }
            (read.label, read.expression) = (label.map(str::to_owned), expression.text().to_owned());
            Ok(Action::Roll(read))
        },
    }
}

/// A source of faces from a seed, the same wherever it is asked in the same order.
pub(super) fn chance(seed: u64) -> impl FnMut(i64) -> i64 {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    move |sides| random.random_range(1..=sides.max(1))
}

pub(super) fn execute(arguments: &RollArguments, seed: u64) -> Result<Done, Refusal> {
    let refusal = |message: String| Refusal { error: "invalid_arguments", message };
    let expression = Expression::parse(&arguments.expression).map_err(|error| refusal(error.to_string()))?;
    let rolled = expression.roll(&mut chance(seed)).map_err(|error| refusal(error.to_string()))?;
    let label = arguments.label.as_deref().map(echo);
    let text = match &label {
        Some(label) => format!("{label}: {}", rolled.text),
        None => rolled.text.clone(),
    };
    let mut result: Value = json!({ "text": text, "total": rolled.total, "dice": rolled.dice });
    if let (Some(label), Value::Object(result)) = (label, &mut result) {
        result.insert("label".into(), json!(label));
    }
    Ok(Done::saying(result))
}
