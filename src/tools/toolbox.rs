//! What executing tools needs: the workspace and the programs that are installed.

use std::ffi::OsString;
use std::path::Path;

use super::programs::Programs;
use super::workspace::Workspace;

pub struct Toolbox {
    pub(super) workspace: Workspace,
    pub(super) programs: Programs,
}

impl Toolbox {
    /// Opens the workspace, and looks for the programs in the `PATH` that `variable` returns.
    ///
    /// # Errors
    /// If the workspace is no folder that can be opened.
    pub fn open(root: &Path, variable: impl Fn(&str) -> Option<OsString>) -> std::io::Result<Self> {
        Ok(Self {
            workspace: Workspace::open(root)?,
            programs: Programs::find(variable),
        })
    }
}
