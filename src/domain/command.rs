//! The names of commands and related enums. The commands themselves are in `act`; the configuration
//! and the journal need only their names.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command of an action.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CommandName {
    #[serde(rename = "roll")]
    Roll,
    #[serde(rename = "check")]
    Check,
    #[serde(rename = "sheet.create")]
    SheetCreate,
    #[serde(rename = "sheet.show")]
    SheetShow,
    #[serde(rename = "do")]
    Do,
    #[serde(rename = "ooc")]
    Ooc,
    #[serde(rename = "memory.add")]
    MemoryAdd,
    #[serde(rename = "memory.search")]
    MemorySearch,
    #[serde(rename = "help")]
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

    pub fn as_str(self) -> &'static str {
        match self {
            CommandName::Roll => "roll",
            CommandName::Check => "check",
            CommandName::SheetCreate => "sheet.create",
            CommandName::SheetShow => "sheet.show",
            CommandName::Do => "do",
            CommandName::Ooc => "ooc",
            CommandName::MemoryAdd => "memory.add",
            CommandName::MemorySearch => "memory.search",
            CommandName::Help => "help",
        }
    }
}

impl fmt::Display for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CommandName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let dotted = name.replace(':', ".");
        CommandName::ALL
            .into_iter()
            .find(|command| command.as_str() == dotted)
            .ok_or(())
    }
}

/// How an action was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionMode {
    /// By fixed rules; no model was asked.
    Deterministic,
    /// A model proposed it.
    LlmProposal,
}

impl ActionMode {
    pub fn as_str(self) -> &'static str {
        match self {
            ActionMode::Deterministic => "deterministic",
            ActionMode::LlmProposal => "llm_proposal",
        }
    }
}

/// A check that a model's proposal must pass before its execution, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl ActionGate {
    pub fn as_str(self) -> &'static str {
        match self {
            ActionGate::Allowlist => "allowlist",
            ActionGate::Schema => "schema",
            ActionGate::Policy => "policy",
            ActionGate::AutoExecution => "auto_execution",
        }
    }
}

/// What a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A question to the committee.
    Chat,
    /// A text that was to become a command.
    Action,
}

impl RunKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RunKind::Chat => "chat",
            RunKind::Action => "action",
        }
    }
}
