//! Why a file operation was refused or failed. The texts are shown to users as they are.

use std::io;

use super::path::{ForbiddenOperation, quoted};

/// What a path names when it is not a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Kind {
    #[strum(serialize = "a file")]
    File,
    #[strum(serialize = "a folder")]
    Folder,
    #[strum(serialize = "a symbolic link")]
    Link,
    #[strum(serialize = "a named pipe")]
    Pipe,
    #[strum(serialize = "a socket")]
    Socket,
    #[strum(serialize = "a device")]
    Device,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Forbidden(#[from] ForbiddenOperation),
    #[error("file {} does not exist", quoted(.0))]
    Missing(String),
    #[error("file {} already exists", quoted(.0))]
    Exists(String),
    #[error("folder {} does not exist", quoted(.0))]
    FolderMissing(String),
    #[error("{} goes through the symbolic link {}", quoted(.0), quoted(.1))]
    LinkedFolder(String, String),
    #[error("{} is {kind}, not a text file", quoted(path))]
    NotAFile { path: String, kind: Kind },
    #[error("file {} is not UTF-8 text", quoted(.0))]
    NotText(String),
    #[error(
        "file {} has {bytes} bytes, more than the limit of {limit}",
        quoted(path)
    )]
    TooLarge {
        path: String,
        bytes: u64,
        limit: u64,
    },
    /// A write would give this name a file of its own and leave the other names behind.
    #[error(
        "file {} has {links} hard links; a write would separate them",
        quoted(path)
    )]
    HardLinked { path: String, links: u64 },
    /// An undo found other content than the step had left.
    #[error(
        "file {} changed since: expected {expected}, found {found}",
        quoted(path)
    )]
    Changed {
        path: String,
        expected: String,
        found: String,
    },
    #[error("cannot {action} {}: {source}", quoted(path))]
    Io {
        path: String,
        action: &'static str,
        source: io::Error,
    },
}

impl FileError {
    /// Names the error of a system call on `path`.
    pub(super) fn of(path: &str, action: &'static str, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        if is_escape(&source) {
            return ForbiddenOperation::LeavesWorkspace(path).into();
        }
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing(path),
            io::ErrorKind::AlreadyExists => Self::Exists(path),
            _ => Self::Io {
                path,
                action,
                source,
            },
        }
    }
}

/// cap-std reports a path that leaves its folder as a permission error without a system number.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
