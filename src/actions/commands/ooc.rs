//! `ooc`: a remark of the player, out of character.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, CommandOutcome, Inputs, not_executed, read, trim_text};
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
    lines.extend(not_executed(&arguments.remark, "a remark", facts));
    CommandOutcome::reply(json!({ "text": lines.join("\n"), "remark": remark }))
}
