//! Countable demands of a request on the form of its answer. The master states them; code checks
//! them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of demands per request.
pub const MAX_DEMANDS: usize = 8;

/// What is counted in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Counted {
    /// Items of a list.
    Items,
    Words,
    Sentences,
    Characters,
    /// JSON texts, as a fenced block or as the whole answer.
    Json,
    /// Fenced code blocks.
    Code,
}

/// A number or form that the request states for its answer: "five names", "at most 50 words", "as
/// JSON".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Demand {
    /// What is counted.
    pub counted: Counted,
    /// The least number, or null.
    #[serde(default)]
    pub at_least: Option<u32>,
    /// The greatest number, or null.
    #[serde(default)]
    pub at_most: Option<u32>,
}

impl Demand {
    /// True if a count satisfies the demand. Without bounds, at least one is required.
    pub fn takes(self, count: usize) -> bool {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let least = self
            .at_least
            .unwrap_or_else(|| u32::from(self.at_most.is_none()));
        (least..=self.at_most.unwrap_or(u32::MAX)).contains(&count)
    }

    /// True if any count can satisfy the demand.
    pub fn is_possible(self) -> bool {
        self.at_least.unwrap_or(0) <= self.at_most.unwrap_or(u32::MAX)
    }
}

impl std::fmt::Display for Demand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = self.counted.into_str();
        match (self.at_least, self.at_most) {
            (None, None) => write!(f, "{counted}"),
            (Some(least), None) => write!(f, "{least} {counted} or more"),
            (None, Some(most)) => write!(f, "at most {most} {counted}"),
            (Some(least), Some(most)) if least == most => write!(f, "{least} {counted}"),
            (Some(least), Some(most)) => write!(f, "{least} to {most} {counted}"),
        }
    }
}
