//! Why a call gave no output.

use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;

/// The cause of a failed call, for journal, metrics and messages. Written as its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[derive(strum::AsRefStr, strum::Display, strum::EnumIter, strum::EnumString)]
pub enum FailureCause {
    /// The server cannot be reached.
    #[strum(serialize = "unreachable")]
    Unreachable,
    /// The connection ended before the reply did.
    #[strum(serialize = "connection broken")]
    ConnectionBroken,
    #[strum(serialize = "timed out")]
    TimedOut,
    #[strum(serialize = "not authorized")]
    NotAuthorized,
    #[strum(serialize = "rate limited")]
    RateLimited,
    /// The provider answered with a status of 500 to 599.
    #[strum(serialize = "provider error")]
    ProviderError,
    #[strum(serialize = "request rejected")]
    RequestRejected,
    /// The provider's reply has not the format of its API.
    #[strum(serialize = "unreadable reply")]
    UnreadableReply,
    #[strum(serialize = "request does not fit the model")]
    RequestUnfit,
    #[strum(serialize = "reply too long")]
    ReplyTooLong,
    /// Too many calls to the provider are in flight.
    #[strum(serialize = "saturated")]
    Saturated,
    #[strum(serialize = "circuit open")]
    CircuitOpen,
    #[strum(serialize = "cancelled")]
    Cancelled,
    #[strum(serialize = "malformed output")]
    MalformedOutput,
    /// The output was cut at its token limit and could not be read.
    #[strum(serialize = "cut off")]
    CutOff,
    #[strum(serialize = "empty output")]
    EmptyOutput,
    /// The model declined to answer.
    #[strum(serialize = "refused")]
    Refused,
    /// The model spent its whole output limit on thinking.
    #[strum(serialize = "thought its limit away")]
    OutputSpentOnThinking,
    #[strum(serialize = "out of budget")]
    OutOfBudget,
    /// The role has no model.
    #[strum(serialize = "not configured")]
    NotConfigured,
    /// Another call for the same output was faster. Only in journals of earlier versions.
    #[strum(serialize = "overtaken")]
    Superseded,
    /// A cause that this version does not know.
    #[strum(default, transparent)]
    Other(String),
}

impl FailureCause {
    /// True if the provider as such cannot be used now, whatever is asked.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::ConnectionBroken
                | Self::NotAuthorized
                | Self::RateLimited
                | Self::ProviderError
                | Self::Saturated
                | Self::CircuitOpen
        )
    }

    /// Returns the causes that this version knows.
    pub fn known() -> impl Iterator<Item = Self> {
        Self::iter().filter(|cause| !matches!(cause, Self::Other(_)))
    }

    pub fn as_str(&self) -> &str {
        self.as_ref()
    }
}

impl From<String> for FailureCause {
    fn from(name: String) -> Self {
        name.parse().unwrap_or(Self::Other(name))
    }
}

impl From<FailureCause> for String {
    fn from(cause: FailureCause) -> Self {
        cause.to_string()
    }
}
