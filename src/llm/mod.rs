//! The LLM layer: one trait, several providers, and the way from what a model wrote to a typed value.
//!
//! A [`ChatModel`] makes exactly one attempt at one call. Retries, money and the journal belong to the caller, so that
//! every attempt can be journaled with its own usage and cost. Providers are adapters: a pure function from a
//! [`ChatRequest`] to the wire, and a pure function back, around the one HTTP client in `http`.

mod anthropic;
mod circuit;
mod error_body;
mod http;
mod latency;
#[cfg(feature = "local")]
pub mod local;
mod openai;
mod redact;
mod redacting_model;
mod registry;
mod sse;
pub mod strict;
pub mod structured;
mod usage;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{BilledTokens, Settings};

pub use circuit::{BreakerSettings, CircuitPosition};
pub use redact::without_secrets;
pub use registry::{CircuitState, ProviderKind, ProviderSpec, Registry, Seeding, StructuredOutput};
pub use sse::{StreamEvent, StreamReader};

/// One call to a model, in no provider's terms.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// Unique per run, step and attempt; sent as the `Idempotency-Key` header, so that a provider or a proxy can tell
    /// a repeated call from a new one.
    pub key: String,
    /// The provider's model id.
    pub model: String,
    /// The stable prefix, worth caching: the same for every run of the role.
    pub system: String,
    /// Begins and ends with a user message; roles alternate.
    pub messages: Vec<Message>,
    /// The JSON schema that the reply must satisfy; `None` asks for plain text.
    pub schema: Option<Schema>,
    /// Thinking included.
    pub max_tokens: u32,
    pub settings: Settings,
    /// For models that can be seeded.
    pub seed: u64,
    /// Total time for the attempt.
    pub timeout: Duration,
}

/// The most bytes of text that one token stands for on average over a whole reply. Prose has about four, deeply indented
/// code eight.
const MAX_BYTES_PER_TOKEN: usize = 16;

/// Replies below this size are kept whatever the limit was.
const MIN_REPLY_BYTES: usize = 4096;

impl ChatRequest {
    /// The longest text that an honest reply to this request has, in bytes.
    fn max_text_bytes(&self) -> usize {
        let limit = usize::try_from(self.max_tokens).unwrap_or(usize::MAX);
        limit
            .saturating_mul(MAX_BYTES_PER_TOKEN)
            .max(MIN_REPLY_BYTES)
    }

    /// The largest body that carries such a reply: its text in JSON escapes, thinking of the same size, and what the API
    /// writes around it.
    fn max_body_bytes(&self) -> usize {
        const AROUND: usize = 256 * 1024;
        self.max_text_bytes()
            .saturating_mul(6)
            .saturating_add(AROUND)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub author: Author,
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Image(Image),
}

/// An image to be seen, base64 with the standard alphabet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    pub base64: String,
}

/// A JSON schema with the name that vendors want beside it (letters, digits, underscore).
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub name: String,
    pub value: Value,
}

/// What came back from one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The text, or the structured value as JSON text.
    pub text: String,
    pub stop: Stop,
    /// `None` when the provider reported none that makes sense: then nobody knows what it cost.
    pub usage: Option<BilledTokens>,
    /// The model id that the provider says it used.
    pub model: Option<String>,
    /// The provider's own id of the request, for its support.
    pub provider_request_id: Option<String>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    End,
    /// Cut at `max_tokens`.
    MaxTokens,
    /// The model, or the provider's filter, declined.
    Refusal,
    Other,
}

/// A model behind some provider: one of the three dyn seams of the house.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Makes one attempt. Dropping the future abandons the call.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::retry`] and [`Error::may_be_billed`] tell what to do about it.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error>;
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The request never reached the provider.
    #[error("cannot reach {provider}: {detail}")]
    Connect { provider: String, detail: String },
    /// The connection broke after the request was sent.
    #[error("the connection to {provider} broke: {detail}")]
    Broken { provider: String, detail: String },
    #[error("{provider} did not answer within {after:?}")]
    Timeout { provider: String, after: Duration },
    #[error("{provider} answered {status}: {detail}")]
    Status {
        provider: String,
        status: u16,
        detail: String,
        retry_after: Option<Duration>,
    },
    /// 200, but not the body that the provider documents.
    #[error("{provider} sent a reply that cannot be read: {detail}")]
    Unreadable { provider: String, detail: String },
    /// The request does not fit the model: too long for its context, images it cannot see.
    #[error("the request does not fit {provider}: {detail}")]
    Unfit { provider: String, detail: String },
    /// 200, and more text than the output limit allows.
    #[error(
        "{provider} sent {bytes} bytes, more than the output limit of {max_tokens} tokens allows"
    )]
    TooLong {
        provider: String,
        bytes: usize,
        max_tokens: u32,
    },
    /// Too many calls wait for this provider.
    #[error("too many calls are waiting for {provider}")]
    Saturated { provider: String },
    /// The model has failed too often in a row: it is not asked for a while.
    #[error(
        "{provider} is not asked for {model}: it failed too often in a row; tried again in {retry_in:?}"
    )]
    CircuitOpen {
        provider: String,
        model: String,
        retry_in: Duration,
    },
    #[error("the call was cancelled")]
    Cancelled,
}

/// Whether a further attempt makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// After a backoff of the caller's choice, but not before the given time has passed.
    After(Option<Duration>),
}

impl Error {
    /// Network errors, replies that are none, 408, 409, 429, 5xx and 529 are worth another attempt (SPEC 4). An open
    /// circuit is not: the next model is asked at once.
    pub fn retry(&self) -> Retry {
        match self {
            Error::Connect { .. }
            | Error::Broken { .. }
            | Error::Timeout { .. }
            | Error::Unreadable { .. }
            | Error::Saturated { .. } => Retry::After(None),
            Error::Status {
                status: 408 | 409 | 429 | 500..=599,
                retry_after,
                ..
            } => Retry::After(*retry_after),
            Error::Status { .. }
            | Error::Unfit { .. }
            | Error::TooLong { .. }
            | Error::CircuitOpen { .. }
            | Error::Cancelled => Retry::Never,
        }
    }

    /// Whether the provider may bill for the attempt all the same: then it is settled at its reserved maximum. A gateway
    /// that gave up waiting says nothing of what the model behind it did.
    pub fn may_be_billed(&self) -> bool {
        match self {
            Error::Broken { .. }
            | Error::Timeout { .. }
            | Error::Unreadable { .. }
            | Error::TooLong { .. }
            | Error::Cancelled => true,
            Error::Status { status, .. } => matches!(status, 408 | 504 | 524),
            Error::Connect { .. }
            | Error::Unfit { .. }
            | Error::Saturated { .. }
            | Error::CircuitOpen { .. } => false,
        }
    }

    /// What happened in our own words: without those of the provider, which may quote anything (its own files and
    /// statements, somebody's key).
    pub fn outline(&self) -> String {
        match self {
            Error::Status {
                provider, status, ..
            } => format!("{provider} answered {status}"),
            Error::Unreadable { provider, .. } => {
                format!("{provider} sent a reply that cannot be read")
            }
            Error::Unfit { provider, .. } => format!("the request does not fit {provider}"),
            Error::Connect { .. }
            | Error::Broken { .. }
            | Error::Timeout { .. }
            | Error::TooLong { .. }
            | Error::Saturated { .. }
            | Error::CircuitOpen { .. }
            | Error::Cancelled => self.to_string(),
        }
    }

    /// The rest of it, for the journal and whoever runs the service.
    pub fn said(&self) -> Option<&str> {
        match self {
            Error::Status { detail, .. }
            | Error::Unreadable { detail, .. }
            | Error::Unfit { detail, .. } => Some(detail),
            Error::Connect { .. }
            | Error::Broken { .. }
            | Error::Timeout { .. }
            | Error::TooLong { .. }
            | Error::Saturated { .. }
            | Error::CircuitOpen { .. }
            | Error::Cancelled => None,
        }
    }

    /// A short bounded label for journal and metrics.
    pub fn cause(&self) -> &'static str {
        match self {
            Error::Connect { .. } => "unreachable",
            Error::Broken { .. } => "connection broken",
            Error::Timeout { .. } => "timed out",
            Error::Status {
                status: 401 | 403, ..
            } => "not authorized",
            Error::Status { status: 429, .. } => "rate limited",
            Error::Status {
                status: 500..=599, ..
            } => "provider error",
            Error::Status { .. } => "request rejected",
            Error::Unreadable { .. } => "unreadable reply",
            Error::Unfit { .. } => "request does not fit the model",
            Error::TooLong { .. } => "reply too long",
            Error::Saturated { .. } => "saturated",
            Error::CircuitOpen { .. } => "circuit open",
            Error::Cancelled => "cancelled",
        }
    }
}
