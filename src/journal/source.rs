//! Where a plan and a synthesis come from.

use serde::{Deserialize, Serialize};

use crate::domain::{FailureCause, Obtained};

/// The source of a plan. Written as one word, for a model's plan as its [`Obtained`] value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanSource {
    /// The plan of the run that this one continues.
    Reused,
    /// The signals of the request: the master gave no plan.
    #[serde(rename = "by hints")]
    Hints,
    #[serde(untagged)]
    Model(Obtained),
}

impl PlanSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::Hints => "by hints",
            Self::Model(obtained) => obtained.into_str(),
        }
    }
}

/// The source of a synthesis, or of the question in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SynthesisSource {
    /// The plan's own question. No agent ran.
    Plan,
    /// The best single report.
    #[serde(rename = "no synthesis")]
    Fallback,
    #[serde(untagged)]
    Model(Obtained),
    /// The call for the question failed. Rules made the question.
    #[serde(untagged)]
    Failed(FailureCause),
}

impl SynthesisSource {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plan => "plan",
            Self::Fallback => "no synthesis",
            Self::Model(obtained) => obtained.into_str(),
            Self::Failed(cause) => cause.as_str(),
        }
    }
}
