//! Input and output types of the model.

use std::path::PathBuf;

/// How to load a model.
#[derive(Debug, Clone)]
pub struct Options {
    /// The GGUF file. A requantized copy may be written next to it.
    pub model_path: PathBuf,
    /// Compute threads. `None` means all cores but one, and at least one. More threads than free
    /// cores are very slow.
    pub threads: Option<usize>,
    /// Cells of the key-value cache, one per token, shared by all running requests.
    pub context_tokens: u32,
    /// Maximum number of requests that are decoded together, 1 to 64.
    pub max_parallel: usize,
    /// Maximum number of waiting requests, at least 1.
    pub queue: usize,
}

impl Options {
    /// Creates options with the defaults: 8,192 tokens of context, 4 parallel requests, 256
    /// waiting.
    pub fn new(model_path: impl Into<PathBuf>) -> Self {
        Self {
            model_path: model_path.into(),
            threads: None,
            context_tokens: 8192,
            max_parallel: 4,
            queue: 256,
        }
    }

    /// Returns the effective number of compute threads.
    pub(crate) fn thread_count(&self) -> usize {
        let spare = || {
            std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1))
        };
        self.threads.unwrap_or_else(spare).clamp(1, 256)
    }

    /// Returns the effective number of sequences.
    pub(crate) fn sequences(&self) -> usize {
        self.max_parallel.clamp(1, 64)
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Standing instructions.
    System,
    /// The user.
    User,
    /// The model itself, in an earlier turn.
    Assistant,
}

impl Role {
    /// Returns the name in chat templates.
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
    /// The author of the message.
    pub role: Role,
    /// Plain text. The texts of the model's control tokens have no effect in it.
    pub content: String,
}

impl Message {
    /// Creates a message of this role.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// A request for one completion.
#[derive(Debug, Clone)]
pub struct Request {
    /// The conversation so far; the model writes the next assistant turn.
    pub messages: Vec<Message>,
    /// Maximum tokens to generate, at least 1. They are reserved in the key-value cache while the
    /// request runs.
    pub max_tokens: u32,
    /// 0 is greedy. Otherwise samples among the 40 best tokens within the top 95 % of probability.
    pub temperature: f32,
    /// The same request with the same seed gives the same text if it runs alone. In a batch with
    /// others, rounding may decide between two tokens that are nearly equal.
    pub seed: u64,
    /// A JSON schema that the text must satisfy; the text is then JSON without whitespace. `None`
    /// for plain text. `oneOf` is enforced as `anyOf`. An object's `x-guidance` member overrides
    /// how the JSON is written.
    pub schema: Option<serde_json::Value>,
}

impl Request {
    /// Creates a greedy plain-text request.
    pub fn new(messages: Vec<Message>, max_tokens: u32) -> Self {
        Self {
            messages,
            max_tokens,
            temperature: 0.0,
            seed: 0,
            schema: None,
        }
    }
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, without incomplete characters. With a schema it is a complete JSON value only if
    /// `stop` is [`StopReason::End`].
    pub text: String,
    /// Tokens of the rendered prompt.
    pub input_tokens: u32,
    /// Generated tokens, including those that the schema forced.
    pub output_tokens: u32,
    /// Why it ended.
    pub stop: StopReason,
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn, or the JSON value is complete.
    End,
    /// The limit `max_tokens` was reached, so the text may be incomplete.
    MaxTokens,
}
