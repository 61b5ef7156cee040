//! The names of commands and related enums. The commands themselves are in `actions`; the configuration
//! and the journal need only their names.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

/// A command of an action.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
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
    #[serde(rename = "sheet.list")]
    #[strum(serialize = "sheet.list")]
    SheetList,
    #[serde(rename = "sheet.update")]
    #[strum(serialize = "sheet.update")]
    SheetUpdate,
    #[serde(rename = "sheet.use")]
    #[strum(serialize = "sheet.use")]
    SheetUse,
    #[serde(rename = "sheet.delete")]
    #[strum(serialize = "sheet.delete")]
    SheetDelete,
    Do,
    Ooc,
    #[serde(rename = "memory.add")]
    #[strum(serialize = "memory.add")]
    MemoryAdd,
    #[serde(rename = "memory.search")]
    #[strum(serialize = "memory.search")]
    MemorySearch,
    #[serde(rename = "memory.list")]
    #[strum(serialize = "memory.list")]
    MemoryList,
    #[serde(rename = "memory.delete")]
    #[strum(serialize = "memory.delete")]
    MemoryDelete,
    Help,
}

impl CommandName {
    pub const ALL: &[Self] = Self::VARIANTS;

    /// True if the command deletes what its user has stored. It needs the user's confirmation, and
    /// no model may propose it.
    pub fn is_deletion(self) -> bool {
        matches!(self, CommandName::SheetDelete | CommandName::MemoryDelete)
    }
}

impl FromStr for CommandName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let dotted = name.replace(':', ".");
        let mut all = CommandName::ALL.iter().copied();
        all.find(|command| command.into_str() == dotted).ok_or(())
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
#[derive(strum::IntoStaticStr, strum::VariantArray)]
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
    pub const ALL: &[Self] = Self::VARIANTS;
}
