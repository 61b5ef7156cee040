//! Finds the Cargo project that a path belongs to.

use super::file_error::{FileError, Kind};
use super::path::{folders_above, join};
use super::workspace::Workspace;

/// The path of the nearest `Cargo.toml` at or above `path`, inside the workspace.
pub fn manifest_of(workspace: &Workspace, path: &str) -> Result<Option<String>, FileError> {
    let mut folders = folders_above(path);
    if workspace.kind(path)? == Some(Kind::Folder) {
        folders.insert(0, path.to_owned());
    }
    for folder in folders {
        let manifest = join(&folder, "Cargo.toml");
        if workspace.kind(&manifest)? == Some(Kind::File) {
            return Ok(Some(manifest));
        }
    }
    Ok(None)
}
