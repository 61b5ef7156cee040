//! The names of commands and related enums. The commands themselves are in `act`; the configuration
//! and the journal need only their names.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command of an action.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum CommandName {
    Roll,
    Check,
    #[serde(rename = "sheet.create")]
    #[strum(serialize = "sheet.create")]
    SheetCreate,
    #[serde(rename = "sheet.show")]
    #[strum(serialize = "sheet.show")]
    SheetShow,
    Do,
    Ooc,
    #[serde(rename = "memory.add")]
    #[strum(serialize = "memory.add")]
    MemoryAdd,
    #[serde(rename = "memory.search")]
    #[strum(serialize = "memory.search")]
    MemorySearch,
    Help,
}

impl CommandName {
    pub const ALL: [CommandName; 9] = [
        CommandName::Roll,
        CommandName::Check,
        CommandName::SheetCreate,
        CommandName::SheetShow,
        CommandName::Do,
        CommandName::Ooc,
        CommandName::MemoryAdd,
        CommandName::MemorySearch,
        CommandName::Help,
    ];
}

impl FromStr for CommandName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let dotted = name.replace(':', ".");
        CommandName::ALL
            .into_iter()
            .find(|command| command.into_str() == dotted)
            .ok_or(())
    }
}

/// How an action was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ActionMode {
    /// By fixed rules; no model was asked.
    Deterministic,
    /// A model proposed it.
    LlmProposal,
}

/// A check that a model's proposal must pass before its execution, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ActionGate {
    /// May a model propose this command?
    Allowlist,
    /// Do the arguments fit the command?
    Schema,
    /// Do the guild's rules, the size limits and the switches allow it?
    Policy,
    /// May it be executed without a user's confirmation?
    AutoExecution,
}

/// What a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum RunKind {
    /// A question to the committee.
    Chat,
    /// A text that was to become a command.
    Action,
    /// A request for a plan of tool calls.
    Plan,
    /// Steps of such a plan, as a user authorized them.
    Execution,
}

impl RunKind {
    pub const ALL: [RunKind; 4] = [
        RunKind::Chat,
        RunKind::Action,
        RunKind::Plan,
        RunKind::Execution,
    ];
}
