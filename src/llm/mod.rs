//! The LLM layer: one trait and several providers. The crate `lenient-json` parses model output
//! into typed values.
//!
//! A [`ChatModel`] makes exactly one attempt at one call. The caller is responsible for retries,
//! money and the journal, so that every attempt is recorded with its own usage and cost. An adapter
//! for a provider consists of two pure functions, from a [`ChatRequest`] to the wire format and
//! back, around the one HTTP client in `http`.

mod anthropic;
mod circuit;
mod error_body;
mod http;
mod limit;
#[cfg(feature = "local")]
pub mod local;
mod openai;
mod redact;
mod redacting_model;
mod registry;
mod run_slots;
mod schema_prompt;
mod sse;
mod system_text;
mod usage;
mod wire_json;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::{BilledTokens, FailureCause, Retryable, Settings, Usd};

pub use crate::domain::CallStop;
pub use circuit::{BreakerSettings, CircuitPosition};
pub use http::without_password;
pub use limit::Load;
pub use redact::{MIN_SECRET_CHARS, without_cut_secrets, without_secrets};
pub use registry::Registry;
pub use run_slots::{RunSlot, RunSlots};
pub use sse::{StreamEvent, StreamReader};
pub use system_text::SystemText;

/// A call with less time than this is not made: it would time out, and count at its reservation.
pub const MIN_TIME: Duration = Duration::from_millis(200);

/// A call to a model, independent of the provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// Unique per run, step and attempt. Sent as the `Idempotency-Key` header, so that a provider
    /// or proxy can tell a repeated call from a new one.
    pub key: String,
    /// The provider's model id.
    pub model: String,
    /// The stable prefix, which is the same in every run of the role and can be cached.
    pub system: SystemText,
    /// The first and last message are the user's; the authors alternate.
    pub messages: Vec<Message>,
    /// The JSON schema of the reply. `None` for plain text.
    pub schema: Option<Schema>,
    /// Includes thinking.
    pub max_tokens: u32,
    pub settings: Settings,
    /// For the in-process model.
    pub seed: u64,
    /// Time limit of the attempt.
    pub timeout: Duration,
    /// True if another model is called at once when this one takes no more calls.
    pub has_fallback: bool,
}

/// Upper bound for the average bytes of text per token in a whole reply. Prose has about four,
/// deeply indented code eight.
const MAX_BYTES_PER_TOKEN: usize = 16;

/// Replies below this size are accepted, regardless of the limit.
const MIN_REPLY_BYTES: usize = 4096;

impl ChatRequest {
    /// Returns the size in bytes of the longest text that the output limit allows.
    fn max_text_bytes(&self) -> usize {
        let limit = usize::try_from(self.max_tokens).unwrap_or(usize::MAX);
        limit
            .saturating_mul(MAX_BYTES_PER_TOKEN)
            .max(MIN_REPLY_BYTES)
    }

    /// Returns the size of the largest body with such a text: the text in JSON escapes, thinking of
    /// the same size, and the fields around them.
    fn max_body_bytes(&self) -> usize {
        const AROUND: usize = 256 * 1024;
        self.max_text_bytes()
            .saturating_mul(6)
            .saturating_add(AROUND)
    }
}

#[cfg(test)]
impl ChatRequest {
    /// Returns a short question as plain text.
    fn sample() -> Self {
        Self {
            key: "run/solver/1".into(),
            model: "m".into(),
            system: "You solve.".into(),
            messages: vec![Message {
                author: Author::User,
                parts: vec![Part::Text("Six times seven?".into())],
            }],
            schema: None,
            max_tokens: 900,
            settings: Settings::default(),
            seed: 7,
            timeout: Duration::from_secs(60),
            has_fallback: false,
        }
    }
}

#[cfg(test)]
impl ChatReply {
    /// Returns a whole reply of which only the text is known.
    fn sample(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            stop: CallStop::End,
            usage: None,
            stated_cost: None,
            model: None,
        }
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
    /// Shared with the prompt, which is kept for the next attempt.
    Text(Arc<str>),
    Image(Image),
}

impl Author {
    /// Returns the role of the author in the APIs of providers.
    fn role(self) -> &'static str {
        match self {
            Author::User => "user",
            Author::Assistant => "assistant",
        }
    }
}

/// An image for the model, in base64 with the standard alphabet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    pub base64: Arc<str>,
}

/// A JSON schema, with the name that providers require (letters, digits, underscore).
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub name: String,
    pub value: Arc<conclave_lenient_json::Schema>,
}

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    /// The text, or the structured value as JSON text.
    pub text: String,
    pub stop: CallStop,
    /// `None` if the provider reports no valid usage. The cost is then unknown.
    pub usage: Option<BilledTokens>,
    /// The cost that the provider states beside the usage.
    pub stated_cost: Option<Usd>,
    /// The model id that the provider reports.
    pub model: Option<String>,
}

/// A model behind a provider; one of the project's few `dyn` traits.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Makes one attempt. Dropping the future abandons the call.
    ///
    /// # Errors
    /// See [`Error`]. [`Error::retry`] and [`Error::may_be_billed`] say how to handle it.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error>;
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}{}", self.outline(), self.said().map_or_else(String::new, |said| format!(": {said}")))]
pub struct Error {
    pub provider: String,
    pub kind: ErrorKind,
    /// What the provider or the network says. Empty if the kind tells everything.
    pub detail: String,
}

/// A failure before its provider is named: its kind and detail.
type Fault = (ErrorKind, String);

#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// The request never reached the provider.
    Connect,
    /// The connection broke after the request was sent.
    Broken,
    /// No whole answer came within this time.
    Timeout(Duration),
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// The account gets no answers, under whichever status. Another attempt is useless.
    Account {
        status: u16,
        problem: AccountProblem,
    },
    /// Status 200 with a body that is not as documented.
    Unreadable,
    /// The provider ended its reply with an error, after a part that it may bill.
    Aborted,
    /// The request does not fit the model: it is too long for its context, or has images that it
    /// cannot read.
    Unfit,
    /// Status 200 with more text than the output limit allows.
    TooLong { bytes: usize, max_tokens: u32 },
    /// Too many calls wait for this provider.
    Saturated,
    /// The model refused calls or was slow, and takes no more of them at the moment.
    Throttled { model: String },
    /// The model has failed too often in a row and is not called for a while.
    CircuitOpen {
        model: String,
        /// Why the last call failed, in the service's own words.
        last: String,
        retry_in: Duration,
    },
}

/// Why a provider refuses every call of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum AccountProblem {
    #[strum(to_string = "wrong key")]
    WrongKey,
    #[strum(to_string = "no credit is left there, or its limit is reached")]
    NoCredit,
}

/// Returns what a status says about the request, in the service's own words.
fn meaning(status: u16) -> &'static str {
    match status {
        400 => ": invalid request",
        401 => ": wrong key",
        403 => ": no permission",
        404 => ": model, address or host not found",
        _ => "",
    }
}

/// Returns how long a circuit stays open, in whole seconds.
fn opening(retry_in: Duration) -> String {
    if retry_in.is_zero() {
        "until a probe ends".to_owned()
    } else {
        format!("for {:.0} s", retry_in.as_secs_f64().ceil())
    }
}

impl Error {
    /// Creates an error.
    pub fn new(provider: &str, kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self {
            provider: provider.to_owned(),
            kind,
            detail: detail.into(),
        }
    }

    /// Returns the cause, whether another attempt is useful (SPEC 4), and whether the provider may
    /// bill for the attempt. An open circuit is not worth another attempt: the next model is called
    /// at once. A gateway's timeout may be billed, since the model behind it may have run.
    fn nature(&self) -> (FailureCause, Retryable, bool) {
        let (never, again) = (Retryable::No, Retryable::AfterMs(0));
        match &self.kind {
            ErrorKind::Connect => (FailureCause::Unreachable, again, false),
            ErrorKind::Broken => (FailureCause::ConnectionBroken, again, true),
            ErrorKind::Timeout(_) => (FailureCause::TimedOut, again, true),
            ErrorKind::Unreadable => (FailureCause::UnreadableReply, again, true),
            ErrorKind::Aborted => (FailureCause::ProviderError, again, true),
            ErrorKind::Unfit => (FailureCause::RequestUnfit, never, false),
            ErrorKind::TooLong { .. } => (FailureCause::ReplyTooLong, never, true),
            ErrorKind::Saturated => (FailureCause::Saturated, again, false),
            ErrorKind::Throttled { .. } => (FailureCause::Saturated, never, false),
            // The provider serves no run now, as with a wrong key.
            ErrorKind::Account { .. } => (FailureCause::NotAuthorized, never, false),
            // The probe may end during the caller's pauses.
            ErrorKind::CircuitOpen { retry_in, .. } if retry_in.is_zero() => {
                (FailureCause::CircuitOpen, again, false)
            }
            ErrorKind::CircuitOpen { .. } => (FailureCause::CircuitOpen, never, false),
            ErrorKind::Status {
                status,
                retry_after,
            } => {
                let least = retry_after.unwrap_or_default().as_millis();
                let later = Retryable::AfterMs(u64::try_from(least).unwrap_or(u64::MAX));
                let is_timeout = matches!(status, 408 | 504 | 524);
                match status {
                    401 | 403 => (FailureCause::NotAuthorized, never, false),
                    408 => (FailureCause::TimedOut, later, is_timeout),
                    409 => (FailureCause::RequestRejected, later, is_timeout),
                    429 => (FailureCause::RateLimited, later, false),
                    500..=599 => (FailureCause::ProviderError, later, is_timeout),
                    _ => (FailureCause::RequestRejected, never, false),
                }
            }
        }
    }

    /// Returns whether another attempt is useful. It is made after the caller's backoff, and not
    /// before the time that the provider asks for.
    pub fn retry(&self) -> Retryable {
        self.nature().1
    }

    /// True if the provider may bill for the failed attempt, which is then settled at its reserved
    /// maximum.
    pub fn may_be_billed(&self) -> bool {
        self.nature().2
    }

    /// Describes the error in the service's own words. The provider's words may quote anything,
    /// such as its own files, SQL statements or a key.
    pub fn outline(&self) -> String {
        let (provider, detail) = (&self.provider, &self.detail);
        match &self.kind {
            ErrorKind::Connect => format!("cannot reach {provider}: {detail}"),
            ErrorKind::Broken => format!("the connection to {provider} broke: {detail}"),
            ErrorKind::Timeout(after) => {
                format!(
                    "{provider} did not answer within {:.1} s",
                    after.as_secs_f64()
                )
            }
            ErrorKind::Status { status, .. } => {
                format!("{provider} answered {status}{}", meaning(*status))
            }
            ErrorKind::Account { status, problem } => {
                format!("{provider} answered {status}: {problem}")
            }
            ErrorKind::Unreadable => format!("{provider} sent a reply that cannot be read"),
            ErrorKind::Aborted => format!("{provider} ended its reply with an error"),
            ErrorKind::Unfit => format!("the request does not fit {provider}"),
            ErrorKind::TooLong { bytes, max_tokens } => format!(
                "{provider} sent {bytes} bytes, more than the output limit of {max_tokens} tokens allows"
            ),
            ErrorKind::Saturated => format!("too many calls are waiting for {provider}"),
            ErrorKind::Throttled { model } => {
                format!("{model} at {provider} takes no more calls at the moment")
            }
            ErrorKind::CircuitOpen {
                model,
                last,
                retry_in,
            } => {
                let opening = opening(*retry_in);
                format!("{last}; the circuit of {model} at {provider} is open {opening}")
            }
        }
    }

    /// Returns the provider's words, for the journal and operators.
    pub fn said(&self) -> Option<&str> {
        let says = matches!(
            self.kind,
            ErrorKind::Status { .. }
                | ErrorKind::Account { .. }
                | ErrorKind::Unreadable
                | ErrorKind::Aborted
                | ErrorKind::Unfit
        );
        says.then_some(&*self.detail)
    }

    /// True if the provider rejected the request for what stands in it.
    fn is_about_the_body(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Status {
                status: 400 | 422,
                ..
            }
        )
    }

    /// Returns the cause with the provider's status, if it sent one: "rate limited (429)".
    pub fn named(&self) -> String {
        match self.kind {
            ErrorKind::Status { status, .. } | ErrorKind::Account { status, .. } => {
                format!("{} ({status})", self.cause())
            }
            _ => self.cause().to_string(),
        }
    }

    /// Returns the cause for journal and metrics.
    pub fn cause(&self) -> FailureCause {
        self.nature().0
    }
}
