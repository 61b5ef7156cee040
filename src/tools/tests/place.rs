//! A workspace with something outside of it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tools::arguments::Arguments;
use crate::tools::output::ToolOutput;
use crate::tools::precondition::check;
use crate::tools::programs::Programs;
use crate::tools::tool::Tool;
use crate::tools::workspace::Workspace;
use serde_json::Value;
use tempfile::TempDir;

/// Stops the other thread also when an assertion fails.
pub(super) struct Stop<'a>(pub(super) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A folder with `inside` (the workspace) and `outside/secret`.
pub(super) struct Place {
    pub(super) folder: TempDir,
    pub(super) workspace: Workspace,
}

impl Place {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inside")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        let workspace = Workspace::open(&folder.path().join("inside")).unwrap();
        Self { folder, workspace }
    }

    pub(super) fn inside(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("inside").join(path)
    }

    pub(super) fn outside(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("outside").join(path)
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let file = self.inside(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    pub(super) fn run(&self, tool: Tool, given: &Value) -> Result<ToolOutput, String> {
        let arguments = Arguments::parse(tool, given.as_object().unwrap())
            .map_err(|error| error.to_string())?;
        let programs = Programs::default();
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(crate::tools::run::run(
                tool,
                &arguments,
                &self.workspace,
                &programs,
            ))
            .map_err(|error| error.to_string())
    }

    pub(super) fn text(&self, tool: Tool, given: &Value) -> String {
        self.run(tool, given)
            .map_or_else(|error| error, |output| output.text)
    }

    pub(super) fn precondition(&self, tool: Tool, given: &Value) -> String {
        let arguments = Arguments::parse(tool, given.as_object().unwrap()).unwrap();
        let result = check(tool, &arguments, &self.workspace, &Programs::default());
        result.map_or_else(|error| error.to_string(), |()| "holds".to_owned())
    }

    /// No temporary file is left, and the outside is as it was.
    pub(super) fn assert_clean(&self) {
        assert_eq!(
            fs::read_to_string(self.outside("secret")).unwrap(),
            "secret"
        );
        assert_eq!(fs::read_dir(self.outside("")).unwrap().count(), 1);
        let left: Vec<_> = fs::read_dir(self.inside(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap_or_default())
            .filter(|name| name.ends_with(".tmp"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

pub(super) fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
