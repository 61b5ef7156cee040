//! Why a call gave no output.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The cause of a failed call, for journal, metrics and messages. Written as its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum FailureCause {
    /// The server cannot be reached.
    Unreachable,
    /// The connection ended before the reply did.
    ConnectionBroken,
    TimedOut,
    NotAuthorized,
    RateLimited,
    /// The provider answered with a status of 500 to 599.
    ProviderError,
    RequestRejected,
    /// The provider's reply has not the format of its API.
    UnreadableReply,
    RequestUnfit,
    ReplyTooLong,
    /// Too many calls to the provider are in flight.
    Saturated,
    CircuitOpen,
    Cancelled,
    MalformedOutput,
    /// The output was cut at its token limit and could not be read.
    CutOff,
    EmptyOutput,
    /// The model declined to answer.
    Refused,
    /// The model spent its whole output limit on thinking.
    ThoughtAway,
    OutOfBudget,
    /// The role has no model.
    NotConfigured,
    /// Another call for the same output was faster. Only in journals of earlier versions.
    Superseded,
    /// A cause that this version does not know.
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

    pub const KNOWN: [Self; 21] = [
        Self::Unreachable,
        Self::ConnectionBroken,
        Self::TimedOut,
        Self::NotAuthorized,
        Self::RateLimited,
        Self::ProviderError,
        Self::RequestRejected,
        Self::UnreadableReply,
        Self::RequestUnfit,
        Self::ReplyTooLong,
        Self::Saturated,
        Self::CircuitOpen,
        Self::Cancelled,
        Self::MalformedOutput,
        Self::CutOff,
        Self::EmptyOutput,
        Self::Refused,
        Self::ThoughtAway,
        Self::OutOfBudget,
        Self::NotConfigured,
        Self::Superseded,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            Self::Unreachable => "unreachable",
            Self::ConnectionBroken => "connection broken",
            Self::TimedOut => "timed out",
            Self::NotAuthorized => "not authorized",
            Self::RateLimited => "rate limited",
            Self::ProviderError => "provider error",
            Self::RequestRejected => "request rejected",
            Self::UnreadableReply => "unreadable reply",
            Self::RequestUnfit => "request does not fit the model",
            Self::ReplyTooLong => "reply too long",
            Self::Saturated => "saturated",
            Self::CircuitOpen => "circuit open",
            Self::Cancelled => "cancelled",
            Self::MalformedOutput => "malformed output",
            Self::CutOff => "cut off",
            Self::EmptyOutput => "empty output",
            Self::Refused => "refused",
            Self::ThoughtAway => "thought its limit away",
            Self::OutOfBudget => "out of budget",
            Self::NotConfigured => "not configured",
            Self::Superseded => "overtaken",
            Self::Other(cause) => cause,
        }
    }
}

impl From<String> for FailureCause {
    fn from(name: String) -> Self {
        let known = Self::KNOWN.into_iter().find(|cause| cause.as_str() == name);
        known.unwrap_or(Self::Other(name))
    }
}

impl From<FailureCause> for String {
    fn from(cause: FailureCause) -> Self {
        cause.as_str().to_owned()
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_read_as_it_is_written() {
        let other = FailureCause::Other("eaten by a grue".into());
        for cause in FailureCause::KNOWN.into_iter().chain([other]) {
            let json = serde_json::to_string(&cause).unwrap();
            assert_eq!(json, format!("{:?}", cause.as_str()));
            let read: FailureCause = serde_json::from_str(&json).unwrap();
            assert_eq!(read, cause);
        }
    }
}
