//! Why something of a plan did not take place. The journal keeps each reason as a sentence.

use std::fmt;
use std::str::FromStr as _;

use serde::{Deserialize, Serialize};

use crate::domain::Agent;

const DID_NOT_RUN: &str = " did not run: the cap has no room for it";
const ONE_CLAIM: &str = "the cross-check was given one claim of each report";

/// What the cap left out or shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum LeftOut {
    Agent(Agent),
    /// All but one claim of each report in the cross-check.
    Claims,
    /// A sentence of another version.
    Other(String),
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "{agent}{DID_NOT_RUN}"),
            Self::Claims => f.write_str(ONE_CLAIM),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<String> for LeftOut {
    fn from(text: String) -> Self {
        let agent = text.strip_suffix(DID_NOT_RUN);
        match agent.and_then(|agent| Agent::from_str(agent).ok()) {
            Some(agent) => Self::Agent(agent),
            None if text == ONE_CLAIM => Self::Claims,
            None => Self::Other(text),
        }
    }
}

impl From<LeftOut> for String {
    fn from(left_out: LeftOut) -> Self {
        left_out.to_string()
    }
}

/// Why a round is not held.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumString,
)]
#[serde(from = "String", into = "String")]
pub enum SkipReason {
    /// Nothing is contested, and all core outputs are VALID.
    #[strum(
        serialize = "nothing is left to settle: no contested claim, and every core output is VALID"
    )]
    Settled,
    /// The agents kept all contested claims in the round before.
    #[strum(serialize = "every contested claim was kept in the round before")]
    Kept,
    /// Nothing is contested. The cross-check found the reports that are not VALID to be no answer, or
    /// disproved their answers.
    #[strum(
        serialize = "nothing is contested, and the reports that are not VALID are not asked for again"
    )]
    NoAnswer,
    /// A lack of money or time, or claims that nothing can settle.
    #[strum(default)]
    Other(String),
}

impl SkipReason {
    /// True if the round would have helped.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Other(_))
    }
}

impl From<String> for SkipReason {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<SkipReason> for String {
    fn from(reason: SkipReason) -> Self {
        reason.to_string()
    }
}
