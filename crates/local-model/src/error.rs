//! What can go wrong, as far as a caller acts on it.

use std::path::PathBuf;

/// Why a model did not load or a request has no completion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no file at the configured path.
    #[error("model file {} does not exist", path.display())]
    ModelMissing {
        /// The configured path.
        path: PathBuf,
    },
    /// The kernels of llama.cpp were built for vector instructions that this machine's processor lacks.
    #[error(
        "this processor lacks {missing}, which the in-process model was built for; \
         use a hosted provider, or see .cargo/config.toml to build the model without them"
    )]
    Cpu {
        /// The missing instruction sets, separated by commas.
        missing: String,
    },
    /// The file is there, but the model cannot be used.
    #[error("model {} cannot be loaded: {reason}", path.display())]
    Load {
        /// The file that was being loaded.
        path: PathBuf,
        /// What llama.cpp or the system said.
        reason: String,
    },
    /// Prompt and `max_tokens` together can never fit. `tokens` is a lower bound when the text is so long that it
    /// was not worth tokenizing.
    #[error("request needs {tokens} tokens (prompt and output), the model allows {limit}")]
    TooLong {
        /// Tokens of the prompt plus `max_tokens`.
        tokens: u32,
        /// See [`crate::LocalModel::context_tokens`].
        limit: u32,
    },
    /// The schema cannot be enforced: malformed, unsatisfiable, too complex, or with a keyword that is not supported.
    #[error("json schema cannot be enforced: {reason}")]
    Schema {
        /// What the grammar compiler said.
        reason: String,
    },
    /// As many requests as allowed are waiting already.
    #[error("local model queue is full, {waiting} requests are waiting")]
    QueueFull {
        /// Requests in the queue.
        waiting: usize,
    },
    /// The request was cancelled through its [`crate::Cancel`].
    #[error("request to the local model was cancelled")]
    Cancelled,
    /// The model's thread has ended.
    #[error("local model is closed")]
    Closed,
    /// A decode step failed; the request may be tried again.
    #[error("local model failed to decode: {reason}")]
    Decode {
        /// What llama.cpp said, or the text of a panic.
        reason: String,
    },
}
