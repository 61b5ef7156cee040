//! What the eleven tools have in common: a description, checked arguments, and what they work on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::output::{FailureKind, Output, ToolError};
use super::path::normalise;
use super::programs::Programs;
use super::workspace::Workspace;
use crate::committee::Failure;

/// Why a plan or an execution is not for the workspace that is open.
pub const ELSEWHERE: &str = "it is of another workspace than TOOLS_WORKSPACE names now";

/// The time between two attempts to lock the workspace.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Upper bound of the time of file operations. Search and glob end earlier by themselves.
const MAX_FILE_TIME: Duration = Duration::from_secs(30);

/// The workspace and the programs that are installed. A clone is the same toolbox.
#[derive(Clone)]
pub struct Toolbox {
    pub(super) workspace: Workspace,
    pub(super) programs: Arc<Programs>,
    changing: Arc<Mutex<()>>,
}

impl Toolbox {
    /// Opens the workspace, and looks for the programs in the `PATH` that `variable` returns.
    ///
    /// # Errors
    /// If the workspace is no folder that can be opened.
    pub fn open(root: &Path, variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Self> {
        Ok(Self {
            workspace: Workspace::open(root)?,
            programs: Arc::new(Programs::find(variable)),
            changing: Arc::default(),
        })
    }

    /// Returns the path of the workspace, by which plans and executions name it.
    pub fn workspace_path(&self) -> String {
        self.workspace.root.to_string_lossy().into_owned()
    }

    /// True if this is the workspace of a plan. Older journals do not name theirs.
    pub fn is_of(&self, workspace: &str) -> bool {
        workspace.is_empty() || workspace == self.workspace_path()
    }

    /// Returns a path in the form in which steps record it. It may begin with the workspace.
    ///
    /// # Errors
    /// Why the path names no file of the workspace.
    pub fn relative(&self, path: &str) -> Result<String, String> {
        let inside = Path::new(path).strip_prefix(&self.workspace.root).ok();
        let path = inside.and_then(Path::to_str).unwrap_or(path);
        normalise(path).map_err(|error| error.message)
    }

    /// Locks the workspace against other steps that change files, in this process and in others.
    /// Without file locks, other processes are not excluded.
    pub(super) async fn lock_workspace(&self) -> (OwnedMutexGuard<()>, Option<File>) {
        let here = Arc::clone(&self.changing).lock_owned().await;
        // The handle of the workspace is of a kind that cannot be locked.
        let folder = File::open(&*self.workspace.root).ok();
        while let Some(Err(TryLockError::WouldBlock)) = folder.as_ref().map(File::try_lock) {
            tokio::time::sleep(LOCK_RETRY).await;
        }
        (here, folder)
    }

    /// Returns a call for file work that is no tool's.
    pub(super) fn without_arguments(&self) -> Call {
        Call {
            arguments: BTreeMap::new(),
            toolbox: self.clone(),
            before: None,
        }
    }

    /// Returns the toolbox with the folder that is at the path of the workspace now.
    pub fn current(&self) -> Self {
        Self {
            workspace: self.workspace.current(),
            programs: Arc::clone(&self.programs),
            changing: Arc::clone(&self.changing),
        }
    }

    /// Returns the current toolbox.
    ///
    /// # Errors
    /// [`Failure`] if tools are off.
    pub(super) fn required(given: Option<&Self>) -> Result<Self, Failure> {
        let off = "tool plans are off: TOOLS_WORKSPACE is not set";
        let toolbox = given.ok_or_else(|| Failure::internal(off))?;
        Ok(toolbox.current())
    }
}

/// What a parameter holds; it decides how the argument is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The path of the file that the tool is about.
    File,
    /// The path of the file that the tool changes.
    Changed,
    /// Another path inside the workspace.
    Path,
    /// Text that is not empty, such as a pattern or a symbol.
    Text,
    /// As `Text`; may be left out.
    Optional,
    /// The contents of a file; may be empty.
    Contents,
}

/// One parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub(super) role: Role,
}

pub const fn parameter(name: &'static str, role: Role) -> Parameter {
    Parameter { name, role }
}

/// A tool, in a file of its own.
pub struct Spec {
    /// In the order in which problems are reported.
    pub parameters: &'static [Parameter],
    /// Whether the tool changes files of the workspace on purpose.
    pub is_mutating: bool,
    /// What has to hold right before a step. Reads files.
    pub check: fn(&Call) -> Result<(), ToolError>,
    pub run: Run,
}

pub enum Run {
    /// Work on files only.
    Files(fn(&Call) -> Result<Output, ToolError>),
    /// Work with a program.
    Program(fn(Call) -> BoxFuture<'static, Result<Output, ToolError>>),
}

/// Checked arguments with what the tool works on. Paths are normalised.
#[derive(Clone)]
pub struct Call {
    pub arguments: BTreeMap<&'static str, String>,
    pub toolbox: Toolbox,
    /// The SHA-256 of the content that the journal keeps as the one that is replaced.
    pub before: Option<String>,
}

impl Call {
    /// An argument; empty for an optional one that is absent.
    pub fn argument(&self, name: &str) -> &str {
        self.arguments.get(name).map_or("", String::as_str)
    }

    pub fn workspace(&self) -> &Workspace {
        &self.toolbox.workspace
    }

    pub fn programs(&self) -> &Programs {
        &self.toolbox.programs
    }

    /// Runs file work on a thread where blocking is allowed, with a time limit.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let call = self.clone();
        let task = tokio::task::spawn_blocking(move || work(&call));
        match tokio::time::timeout(MAX_FILE_TIME, task).await {
            Ok(result) => result.unwrap_or_else(|_| Err("internal error".to_owned().into())),
            Err(_) => {
                let seconds = MAX_FILE_TIME.as_secs();
                let why = format!("no result within {seconds} s; its effect is not known");
                Err(ToolError::new(FailureKind::Unfinished, why))
            }
        }
    }

    /// Fails if a file is not there, or could not be put back after a change.
    pub fn changeable_exists(&self, path: &str) -> Result<(), ToolError> {
        let found = self.workspace().content_before(path)?;
        found.map(drop).ok_or_else(|| ToolError::missing(path))
    }
}
