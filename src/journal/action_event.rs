//! Events of actions.

use crate::domain::{ActionGate, ActionMode, CommandName, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The text was mapped to a command: by fixed rules, or by a model's proposal that its user
/// confirmed or the policy executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parsed {
    pub command: CommandName,
    /// The arguments in the form of the command's own schema.
    pub arguments: Value,
    pub mode: ActionMode,
    pub confidence: f64,
    /// The reason that the model gave, if it proposed the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A model's proposal, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposed {
    /// True if the model proposes a command.
    pub ok: bool,
    pub confidence: f64,
    pub action: String,
    pub args: Value,
    /// At most 120 characters.
    pub reason: String,
    /// Other commands that the model offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<ProposedCommand>,
    /// The parsed reply, as the model wrote it.
    pub raw: String,
    /// True if the model's JSON had to be repaired, or was cut. Such a proposal is never executed
    /// without a user's confirmation.
    #[serde(rename = "mended", default, skip_serializing_if = "std::ops::Not::not")]
    pub was_repaired: bool,
    /// The action whose model call gave this proposal, if no call was made for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<RunId>,
}

/// A command that a model names, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedCommand {
    pub action: String,
    pub args: Value,
}

/// The verdict of one gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateChecked {
    pub gate: ActionGate,
    pub passed: bool,
    /// One sentence. Empty if the gate has no remark.
    pub why: String,
}

/// The command was executed. Its effect is written in the same transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    pub command: CommandName,
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// A change that a command makes. It always belongs to the user and guild of the command's own run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Creates or replaces the sheet of this name.
    Sheet { name: String, sheet: Value },
    /// Deletes the sheet of this name.
    SheetDeleted { name: String },
    /// Adds a memory under the run's id.
    Memory { content: String },
    /// Deletes the memory that an action of the same user has added.
    MemoryDeleted { memory: RunId },
}

/// The result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ActionOutcome {
    Executed,
    /// The action waits for the user's confirmation.
    Offered,
    /// Nothing was executed. The response says why.
    Declined,
    /// The command was understood and permitted, and nothing was done: the guild is on trial.
    Shadow,
}
