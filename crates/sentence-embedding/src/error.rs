//! Errors, as far as a caller handles them differently.

use std::path::PathBuf;

/// Why the model did not load, or a text has no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file of the model does not exist. `scripts/fetch-embedding.sh` fetches all of them.
    #[error("model file {} does not exist", path.display())]
    Missing {
        /// The path of the file.
        path: PathBuf,
    },
    /// A file exists, but the model cannot be used.
    #[error("model file {} cannot be loaded: {reason}", path.display())]
    Load {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The token table could not be read while a text was embedded.
    #[error("token table cannot be read: {reason}")]
    Read {
        /// The message of the system.
        reason: String,
    },
}

impl Error {
    pub(crate) fn load(path: &std::path::Path, reason: &impl ToString) -> Self {
        Self::Load {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
