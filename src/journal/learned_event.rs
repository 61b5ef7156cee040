//! The events of learned answers, and their rows.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Draft, Owner};
use crate::domain::{AskedFirst, DecisionPath, Question, RunId, ShownAnswer};

/// How a request is answered, decided before the committee is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The settings of the strategy, with its name.
    pub strategy: Value,
    /// The arm of an A/B test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// The confidence that a learned answer needed to reply, 0 to 1, if one could reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    pub path: DecisionPath,
    /// Why, in words.
    pub why: String,
    /// Which agents the committee asks first.
    #[serde(default, skip_serializing_if = "AskedFirst::is_panel")]
    pub first: AskedFirst,
    /// The learned answer that resembles the request most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Matched>,
    /// What the master is shown, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<ShownAnswer>,
    /// The probability that the learned answer serves its reader, 0 to 1; 0 on other paths.
    #[serde(default)]
    pub predicted_success: f64,
    /// The reply of the heuristic path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<Draft>>,
}

/// How well a learned answer fits a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Matched {
    /// The run that gave the answer.
    pub id: RunId,
    /// 0 to 1.
    pub similarity: f64,
    /// 0 to 1; a gate only, answers are ranked by similarity.
    pub confidence: f64,
}

/// A change of a learned answer, in the journal of the run that gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Learned {
    /// Counts from 1.
    pub number: u32,
    pub change: LearnedChange,
    /// The confidence from now on, 0 to 1.
    pub confidence: f64,
    /// The run whose reply was judged, unless it is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<RunId>,
    /// The answer itself, with the first change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taught: Option<Box<Taught>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum LearnedChange {
    Learned,
    Raised,
    Lowered,
    /// By an operator. It is never used again.
    Revoked,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taught {
    pub condition: String,
    pub answer: Draft,
}

/// Returns where an answer to a question may be used again: in its guild, or outside of guilds by
/// its own user.
pub fn learned_scope(question: &Question) -> Owner {
    let mut owner = Owner::of(question);
    if owner.guild_id.is_some() {
        owner.user_id.clear();
    }
    owner
}

/// The current version of a learned answer.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedRow {
    /// The run that gave the answer.
    pub run: RunId,
    /// Without a user in a guild.
    pub scope: Owner,
    pub condition: String,
    pub answer: Draft,
    /// 0 to 1.
    pub confidence: f64,
    pub learned_at: Timestamp,
    pub changed_at: Timestamp,
    pub is_revoked: bool,
}
