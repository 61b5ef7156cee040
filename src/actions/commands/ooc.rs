//! `ooc`: a remark of the player, out of character.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, CommandOutcome, Inputs, not_rolled, not_run, read, trim_text};
use crate::actions::sanitize::sanitize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ooc")]
pub struct OocArguments {
    /// What the player says.
    #[serde(alias = "message")]
    #[schemars(length(min = 1, max = 2000))]
    pub remark: String,
}

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut read: OocArguments = read(arguments)?;
    trim_text(
        &mut read.remark,
        "a remark",
        2000,
        "/ooc who brings snacks?",
    )?;
    Ok(Action::Ooc(read))
}

pub(super) fn execute(arguments: &OocArguments, facts: &Inputs) -> CommandOutcome {
    let remark = sanitize(&arguments.remark);
    let mut lines = vec![format!("(( {remark} ))")];
    let note = not_run(&arguments.remark, "a remark", facts);
    lines.extend(note.or_else(|| not_rolled(&arguments.remark, "a remark", facts)));
    CommandOutcome::saying(json!({ "text": lines.join("\n"), "remark": remark }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CommandName;

    #[test]
    fn what_a_remark_orders_is_said_not_to_be_done() {
        let facts = Inputs {
            allowed: CommandName::ALL.iter().copied().collect(),
            ..Inputs::default()
        };
        for (remark, note) in [
            ("roll 2d6", "Dice in a remark are not rolled: /roll 2d6"),
            (
                "/roll 2d6",
                "A command in a remark is not run; send it alone: /roll 2d6",
            ),
            ("who brings snacks?", ""),
        ] {
            let arguments = OocArguments {
                remark: remark.into(),
            };
            let said = execute(&arguments, &facts).result["text"].clone();
            let expected = format!("(( {remark} ))\n{note}");
            assert_eq!(said, expected.trim_end());
        }
    }
}
