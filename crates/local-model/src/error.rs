//! Errors, as far as a caller handles them differently.

use std::path::PathBuf;

/// Why a model did not load, or a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no file at the configured path.
    #[error("model file {} does not exist", path.display())]
    ModelMissing {
        /// The configured path.
        path: PathBuf,
    },
    /// The kernels of llama.cpp were built for vector instructions that this machine's processor
    /// lacks.
    #[error(
        "this processor lacks {missing}, which the in-process model was built for; \
         use a hosted provider, or see .cargo/config.toml to build the model without them"
    )]
    Cpu {
        /// The missing instruction sets, separated by commas.
        missing: String,
    },
    /// The file exists, but the model cannot be used.
    #[error("model {} cannot be loaded: {reason}", path.display())]
    Load {
        /// The path of the file.
        path: PathBuf,
        /// The message of llama.cpp or the system.
        reason: String,
    },
    /// Prompt and `max_tokens` together can never fit. `tokens` is a lower bound if the text was
    /// too long to be tokenized.
    #[error("request needs {tokens} tokens (prompt and output), the model allows {limit}")]
    TooLong {
        /// Tokens of the prompt plus `max_tokens`.
        tokens: u32,
        /// The maximum for prompt and `max_tokens` together.
        limit: u32,
    },
    /// The schema cannot be enforced: it is malformed, unsatisfiable or too complex, or has an
    /// unsupported keyword.
    #[error("json schema cannot be enforced: {reason}")]
    Schema {
        /// The message of the grammar compiler.
        reason: String,
    },
    /// The maximum number of requests is already waiting.
    #[error("local model queue is full, {waiting} requests are waiting")]
    QueueFull {
        /// Requests in the queue.
        waiting: usize,
    },
    /// The model's thread has ended.
    #[error("local model is closed")]
    Closed,
    /// A decode step failed. The request may be retried.
    #[error("local model failed to decode: {reason}")]
    Decode {
        /// The message of llama.cpp, or of a panic.
        reason: String,
    },
}
