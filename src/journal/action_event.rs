//! The events of actions.

use crate::domain::{ActionGate, ActionMode, CommandName, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The text was understood, by rules or because a person confirmed what a model had proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parsed {
    pub command: CommandName,
    /// As the command's own schema has them.
    pub arguments: Value,
    pub mode: ActionMode,
    pub confidence: f64,
    /// What the model said of its proposal, when that was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a model proposed, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposed {
    /// Whether it proposes anything.
    pub ok: bool,
    pub confidence: f64,
    pub action: String,
    pub args: Value,
    /// At most 120 characters.
    pub reason: String,
    /// What it would propose instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<ProposedCommand>,
    /// What was read, as the model wrote it.
    pub raw: String,
    /// The model's JSON was not as it should be, or cut: such a proposal is never executed without a person's word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mended: bool,
    /// The action whose model call gave this, when nothing was bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<RunId>,
}

/// A command that a model names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedCommand {
    pub action: String,
    pub args: Value,
}

/// A gate was passed, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateChecked {
    pub gate: ActionGate,
    pub passed: bool,
    /// One sentence; empty when there is nothing to say.
    pub why: String,
}

/// The command was executed; what it changed is written in the same transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    pub command: CommandName,
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// What a command changes: always of the user, and in the guild, of its own run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// The sheet of this name is this one from now on.
    Sheet { name: String, sheet: Value },
    /// Something to be remembered, under the run's id.
    Memory { content: String },
}

/// What became of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionOutcome {
    Executed,
    /// Waits for a person's word.
    Offered,
    /// Nothing was done; the response says why.
    Declined,
}

impl ActionOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            ActionOutcome::Executed => "executed",
            ActionOutcome::Offered => "offered",
            ActionOutcome::Declined => "declined",
        }
    }
}
