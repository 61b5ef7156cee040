//! The first event of a run: what was asked, by whom, and under which bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tool_event::ToolSubmission;
use crate::domain::{Question, RunId, RunKind, Usd};

/// The run was accepted. The first event of every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub question: Question,
    /// Set for an action. Then the question holds the text to interpret, and its mode has no
    /// meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionSubmission>,
    /// Set for a tool plan and for an execution. Then the question holds the request, and its mode
    /// has no meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSubmission>,
    /// The action whose outcome this run narrates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrates: Option<RunId>,
    /// True if the user wants no earlier answer: the message began with `new:`.
    #[serde(rename = "isAnew", default, skip_serializing_if = "std::ops::Not::not")]
    pub ignores_learned: bool,
    /// The run that this one continues, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// The client's own request id, if it sent a well-formed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    pub cap: Usd,
    /// Seeds every random choice of the run.
    pub seed: u64,
    pub config_hash: String,
    pub prompts_hash: String,
    pub version: String,
}

impl Accepted {
    pub fn kind(&self) -> RunKind {
        match (&self.action, &self.tools) {
            (Some(_), _) => RunKind::Action,
            (None, Some(ToolSubmission::Plan { .. })) => RunKind::Plan,
            (None, Some(ToolSubmission::Execution(_))) => RunKind::Execution,
            (None, None) => RunKind::Chat,
        }
    }

    /// Returns what metrics call this run: the mode of a chat, or the kind of another run.
    pub fn label(&self) -> &'static str {
        match self.kind() {
            RunKind::Chat => self.question.mode.into_str(),
            kind => kind.into_str(),
        }
    }

    /// Returns the run that this one continues.
    pub fn parent(&self) -> Option<RunId> {
        let confirmed = self.action.as_ref().and_then(|action| action.confirms);
        let authorized = match &self.tools {
            Some(ToolSubmission::Execution(authorized)) => Some(authorized.plan),
            Some(ToolSubmission::Plan { .. }) | None => None,
        };
        self.continues
            .as_ref()
            .map(|continues| continues.parent)
            .or(confirmed)
            .or(authorized)
            .or(self.narrates)
    }
}

/// How an action was submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionSubmission {
    /// The action whose proposal this one confirms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirms: Option<RunId>,
}

/// A run that goes on from an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Continues {
    #[schemars(with = "String")]
    pub parent: RunId,
    pub by: Continuation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Continuation {
    /// The user answered the parent's question.
    Answer {
        question: String,
        answer: String,
        option: Option<char>,
    },
    /// The user corrected numbered assumptions of the parent.
    Correction {
        /// Such as "A2", or "A2, A3".
        handle: String,
        /// The text of each, a line each.
        wrong: String,
        correction: String,
    },
}
