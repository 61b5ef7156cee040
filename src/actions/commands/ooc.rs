//! `ooc`: a remark of the player, out of character.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Action, Command, CommandOutcome, SideEffect, read, schema, text_of};
use crate::actions::sanitize::sanitize;
use crate::domain::{CommandName, Scope};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ooc")]
pub struct OocArguments {
    /// What the player says.
    #[serde(alias = "message")]
    #[schemars(length(min = 1, max = 2000))]
    pub remark: String,
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::Ooc,
        help: "Say something out of character: it is kept in the scene and nothing comes of it.",
        permission: Scope::Act,
        reach: SideEffect::Nothing,
        examples: &["(( back in five minutes ))", "/ooc who brings snacks?"],
        schema: schema::<OocArguments>,
        read: |arguments| {
            let read: OocArguments = read(arguments)?;
            Ok(Action::Ooc(OocArguments {
                remark: text_of("a remark", &read.remark, 2000, "/ooc who brings snacks?")?,
            }))
        },
    }
}

pub(super) fn execute(arguments: &OocArguments) -> CommandOutcome {
    let remark = sanitize(&arguments.remark);
    CommandOutcome::saying(json!({ "text": format!("(( {remark} ))"), "remark": remark }))
}
