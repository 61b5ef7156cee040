//! What goes into the model and what comes out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How to load a model.
#[derive(Debug, Clone)]
pub struct Options {
    /// The GGUF file. Beside it a requantized copy may be written.
    pub model_path: PathBuf,
    /// Compute threads; `None` is all cores but one, at least one. More than there are free cores is ruinous.
    pub threads: Option<usize>,
    /// Cells of the key-value cache, one per token, shared by all running requests.
    pub context_tokens: u32,
    /// Requests decoded together, 1 to 64.
    pub max_parallel: usize,
    /// Requests that may wait, at least 1.
    pub queue: usize,
}

impl Options {
    /// The defaults: 8,192 tokens of context, 4 requests together, 256 waiting.
    pub fn new(model_path: impl Into<PathBuf>) -> Self {
        Self {
            model_path: model_path.into(),
            threads: None,
            context_tokens: 8192,
            max_parallel: 4,
            queue: 256,
        }
    }

    /// The number of compute threads in effect.
    pub(crate) fn thread_count(&self) -> usize {
        let spare = || {
            std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1))
        };
        self.threads.unwrap_or_else(spare).clamp(1, 256)
    }

    /// The number of sequences in effect.
    pub(crate) fn sequences(&self) -> usize {
        self.max_parallel.clamp(1, 64)
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Standing instructions.
    System,
    /// The one who asks.
    User,
    /// The model itself, in an earlier turn.
    Assistant,
}

impl Role {
    /// The name that chat templates use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// Plain text. The model's control tokens have no effect when spelled out here.
    pub content: String,
}

impl Message {
    /// A message of that role.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// One completion to compute.
#[derive(Debug, Clone)]
pub struct Request {
    /// The conversation so far; the model writes the next assistant turn.
    pub messages: Vec<Message>,
    /// Most tokens to write, at least 1. They are reserved in the key-value cache for as long as the request runs.
    pub max_tokens: u32,
    /// 0 is greedy; otherwise sampling among the 40 best tokens within the top 95 % of probability.
    pub temperature: f32,
    /// With the same seed the same request gives the same text when it runs alone; in a batch with others, rounding
    /// may tip a choice between two tokens that are nearly equal.
    pub seed: u64,
    /// A JSON schema that the text must satisfy, written without whitespace; `None` is plain text. `oneOf` is
    /// enforced as `anyOf`. An object's `x-guidance` member overrides how the JSON is written.
    pub schema: Option<serde_json::Value>,
    /// Texts that end a plain reply; what matched is left out. Not used with a schema.
    pub stop: Vec<String>,
    /// Ends the request from outside.
    pub cancel: Cancel,
}

impl Request {
    /// A greedy plain-text request.
    pub fn new(messages: Vec<Message>, max_tokens: u32) -> Self {
        Self {
            messages,
            max_tokens,
            temperature: 0.0,
            seed: 0,
            schema: None,
            stop: Vec::new(),
            cancel: Cancel::default(),
        }
    }
}

/// A switch that ends the requests which carry a clone of it, between two decode steps.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the requests; they return [`crate::Error::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`Self::cancel`] was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What the model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, always whole characters. With a schema it is a whole JSON value only if `stop` is
    /// [`StopReason::End`].
    pub text: String,
    /// Tokens of the rendered prompt.
    pub input_tokens: u32,
    /// Tokens written, those that the schema forced included.
    pub output_tokens: u32,
    /// Why it ended.
    pub stop: StopReason,
    /// Time spent waiting for a place.
    pub queued: Duration,
    /// Time from the place to the last token.
    pub took: Duration,
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn, or the JSON value is complete.
    End,
    /// `max_tokens` were written; the text is what there was by then.
    MaxTokens,
    /// One of the request's stop texts appeared.
    StopString,
}
