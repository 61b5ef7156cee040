//! What must hold right before a step runs. The same workspace gives the same words.

use super::arguments::Arguments;
use super::cargo_project::manifest_of;
use super::file_error::{FileError, Kind};
use super::magellan::DATABASE;
use super::path::{ForbiddenOperation, quoted};
use super::programs::Programs;
use super::splice;
use super::tool::Tool;
use super::workspace::Workspace;

/// Why a step must not run now.
#[derive(Debug, thiserror::Error)]
pub enum PreconditionFailed {
    #[error(transparent)]
    Forbidden(ForbiddenOperation),
    #[error("Precondition failed: {0}")]
    File(FileError),
    #[error("Precondition failed: root {} does not exist", quoted(.0))]
    RootMissing(String),
    #[error("Precondition failed: {} does not exist", quoted(.0))]
    PathMissing(String),
    #[error("Precondition failed: {} is not in a Cargo project", quoted(.0))]
    NoCargoProject(String),
    #[error(
        "Precondition failed: symbol {} does not exist in {}",
        quoted(symbol),
        quoted(file)
    )]
    SymbolMissing { symbol: String, file: String },
    #[error("Precondition failed: {DATABASE} does not exist")]
    NoIndex,
    #[error("Precondition failed: {0}")]
    Plan(String),
    #[error("Precondition failed: '{0}' is not installed")]
    NotInstalled(&'static str),
}

impl From<FileError> for PreconditionFailed {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Forbidden(refusal) => Self::Forbidden(refusal),
            error => Self::File(error),
        }
    }
}

/// Checks the preconditions of a step. Reads files, so call it where blocking is allowed.
///
/// # Errors
/// The first precondition that does not hold.
pub fn check(
    tool: Tool,
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<(), PreconditionFailed> {
    match tool {
        Tool::FileRead => file_exists(workspace, arguments.required("path")),
        Tool::FileWrite => changeable_exists(workspace, arguments.required("path")),
        Tool::FileCreate => absent(workspace, arguments.required("path")),
        Tool::FileSearch | Tool::FileGlob => root_exists(workspace, arguments.required("root")),
        Tool::SplicePatch => {
            installed("splice", programs.splice.is_some())?;
            let (file, symbol) = (arguments.required("file"), arguments.required("symbol"));
            changeable_exists(workspace, file)?;
            file_exists(workspace, arguments.required("with"))?;
            in_cargo_project(workspace, file)?;
            has_symbol(workspace, file, symbol)
        }
        Tool::SplicePlan => {
            installed("splice", programs.splice.is_some())?;
            let file = arguments.required("file");
            file_exists(workspace, file)?;
            in_cargo_project(workspace, file)?;
            for changed in splice::files_of_plan(workspace, file)? {
                changeable_exists(workspace, &changed)?;
            }
            Ok(())
        }
        Tool::SymbolsInFile | Tool::ReferencesToSymbolName => indexed(workspace, programs),
        Tool::ReferencesFromFileToSymbolName => {
            indexed(workspace, programs)?;
            file_exists(workspace, arguments.required("file"))
        }
        Tool::LspCheck => {
            installed("cargo", programs.cargo.is_some())?;
            let path = arguments.required("path");
            if workspace.kind(path)?.is_none() {
                return Err(PreconditionFailed::PathMissing(path.to_owned()));
            }
            in_cargo_project(workspace, path)
        }
    }
}

fn installed(program: &'static str, found: bool) -> Result<(), PreconditionFailed> {
    if found {
        Ok(())
    } else {
        Err(PreconditionFailed::NotInstalled(program))
    }
}

fn file_exists(workspace: &Workspace, path: &str) -> Result<(), PreconditionFailed> {
    workspace.read(path)?;
    Ok(())
}

fn changeable_exists(workspace: &Workspace, path: &str) -> Result<(), PreconditionFailed> {
    match workspace.content_before(path) {
        Ok(Some(_)) => Ok(()),
        Ok(None) | Err(FileError::FolderMissing(_)) => {
            Err(FileError::Missing(path.to_owned()).into())
        }
        Err(error) => Err(error.into()),
    }
}

fn absent(workspace: &Workspace, path: &str) -> Result<(), PreconditionFailed> {
    match workspace.content_before(path) {
        Ok(None) => Ok(()),
        Err(error @ (FileError::Forbidden(_) | FileError::FolderMissing(_))) => Err(error.into()),
        Err(error @ (FileError::LinkedFolder(..) | FileError::Io { .. })) => Err(error.into()),
        // Whatever it is, it has the name.
        Ok(Some(_)) | Err(_) => Err(FileError::Exists(path.to_owned()).into()),
    }
}

fn root_exists(workspace: &Workspace, root: &str) -> Result<(), PreconditionFailed> {
    match workspace.kind(root)? {
        Some(Kind::Folder | Kind::File) => Ok(()),
        Some(kind) => Err(FileError::NotAFile {
            path: root.to_owned(),
            kind,
        }
        .into()),
        None => Err(PreconditionFailed::RootMissing(root.to_owned())),
    }
}

fn in_cargo_project(workspace: &Workspace, path: &str) -> Result<(), PreconditionFailed> {
    match manifest_of(workspace, path)? {
        Some(_) => Ok(()),
        None => Err(PreconditionFailed::NoCargoProject(path.to_owned())),
    }
}

/// Looks for the name as a whole word. Whether it is a definition, splice finds out.
fn has_symbol(workspace: &Workspace, file: &str, symbol: &str) -> Result<(), PreconditionFailed> {
    let text = workspace.read(file)?;
    let name = symbol.rsplit("::").next().unwrap_or(symbol);
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    if text
        .split(|character| !is_word(character))
        .any(|word| word == name)
    {
        return Ok(());
    }
    Err(PreconditionFailed::SymbolMissing {
        symbol: symbol.to_owned(),
        file: file.to_owned(),
    })
}

fn indexed(workspace: &Workspace, programs: &Programs) -> Result<(), PreconditionFailed> {
    installed("magellan", programs.magellan.is_some())?;
    match workspace.kind(DATABASE)? {
        Some(Kind::File) => Ok(()),
        _ => Err(PreconditionFailed::NoIndex),
    }
}
