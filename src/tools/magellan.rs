//! The index of `magellan`, read through its `export` command.
//!
//! Magellan runs on a copy of `codegraph.db` in a folder of its own: it writes to a database that
//! it only reads, and in a Git repository it writes its export into a file there. The index tells
//! what it saw when it was last updated: these tools do not update it. The export lists references
//! and calls, and many uses are in one of the two only. A use is known by name: symbols of the same
//! name are not told apart.

use std::fs;
use std::io::{self, Read as _};

use rustix::fs::FileType;
use serde::Deserialize;
use tempfile::TempDir;

use super::call::{Call, Parameter, Role, Toolbox, parameter};
use super::output::{Output, ToolError, listing, quoted};
use super::path::normalise;
use super::workspace::Workspace;

/// The database of the index, in the workspace root.
pub const DATABASE: &str = "codegraph.db";
/// The log of a database that is being written.
const LOG: &str = "codegraph.db-wal";

/// The largest index that is copied whole, in bytes.
const MAX_INDEX_BYTES: u64 = 2 << 30;

pub const SYMBOL_NAME: Parameter = parameter("name", Role::Text);

/// What is used of an export. Paths are relative to the workspace where they lie in it.
#[derive(Debug, Deserialize)]
pub struct Index {
    pub files: Vec<IndexedFile>,
    pub symbols: Vec<Symbol>,
    references: Vec<Reference>,
    calls: Vec<Reference>,
}

#[derive(Debug, Deserialize)]
pub struct IndexedFile {
    pub path: String,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Symbol {
    pub file: String,
    pub start_line: u64,
    pub name: Option<String>,
    pub kind_normalized: Option<String>,
    pub display_fqn: Option<String>,
}

/// A use of a symbol.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Reference {
    file: String,
    start_line: u64,
    /// In bytes, from 0.
    start_col: u64,
    #[serde(alias = "callee")]
    referenced_symbol: String,
}

/// Checks that there is an index, and a program that reads it.
pub fn check(toolbox: &Toolbox) -> Result<(), ToolError> {
    toolbox.programs.installed("magellan")?;
    match toolbox.workspace.kind(DATABASE)? {
        Some(FileType::RegularFile) => Ok(()),
        _ => Err(format!("Structural data not available ({DATABASE} missing)").into()),
    }
}

/// Returns why the tools that read the index would fail; `None` if there is one.
pub async fn no_index(toolbox: &Toolbox) -> Option<String> {
    let call = toolbox.without_arguments();
    let checked = call.blocking(|call| check(&call.toolbox)).await;
    checked.err().map(|error| error.message)
}

/// Exports the index, sorted.
pub async fn index(call: &Call) -> Result<Index, ToolError> {
    let root = &call.workspace().root;
    let copy = call.blocking(|call| copied(call.workspace())).await?;
    let arguments = ["export", "--db", DATABASE, "--format", "json"].map(Into::into);
    let running = call
        .programs()
        .run("magellan", arguments.into(), copy.path());
    let finished = running.await?;
    if !finished.success {
        return Err(finished.stderr.into());
    }
    let mut index: Index = serde_json::from_slice(&finished.stdout)
        .map_err(|error| format!("unexpected output of 'magellan export': {error}"))?;
    let files = index.files.iter_mut().map(|it| &mut it.path);
    let files = files.chain(index.symbols.iter_mut().map(|it| &mut it.file));
    index.references.append(&mut index.calls);
    for path in files.chain(index.references.iter_mut().map(|it| &mut it.file)) {
        let inside = root.to_str().and_then(|root| path.strip_prefix(root));
        if let Some(inside) = inside {
            *path = inside.trim_start_matches('/').to_owned();
        } else if let Ok(normal) = normalise(path) {
            *path = normal;
        }
    }
    index.symbols.sort();
    index.symbols.dedup();
    index.references.sort();
    index.references.dedup();
    Ok(index)
}

/// Copies the index, with what its last writer has not moved into it yet, into a new folder.
fn copied(workspace: &Workspace) -> Result<TempDir, ToolError> {
    let failed = |error: io::Error| ToolError::io(DATABASE, "copy", error);
    let folder = TempDir::with_prefix("conclave-index-").map_err(failed)?;
    for name in [DATABASE, LOG] {
        let file = match workspace.open_file(name) {
            Ok(file) => file,
            Err(error) if name == DATABASE => return Err(failed(error)),
            Err(_) => continue,
        };
        let metadata = file.metadata().map_err(failed)?;
        if metadata.len() > MAX_INDEX_BYTES {
            let limit = MAX_INDEX_BYTES >> 30;
            return Err(format!("{name} is larger than {limit} GiB").into());
        }
        if metadata.is_file() {
            let mut copy = fs::File::create(folder.path().join(name)).map_err(failed)?;
            io::copy(&mut file.take(MAX_INDEX_BYTES), &mut copy).map_err(failed)?;
        }
    }
    Ok(folder)
}

/// Returns the error that a file is not in the index.
pub fn not_indexed(file: &str) -> ToolError {
    format!("{} is not indexed in {DATABASE}", quoted(file)).into()
}

/// Returns the references to the name that a call has, and in its file if it has one.
pub async fn references(call: Call) -> Result<Output, ToolError> {
    let (file, name) = (call.arguments.get("file"), call.argument("name"));
    let index = index(&call).await?;
    if let Some(file) = file
        && !index.files.iter().any(|it| it.path == *file)
    {
        return Err(not_indexed(file));
    }
    let last = name.rsplit("::").next().unwrap_or(name);
    let mut references = index.references;
    references.retain(|it| it.referenced_symbol == last);
    let mut symbols = index.symbols.iter();
    if references.is_empty() && !symbols.any(|it| it.name.as_deref() == Some(last)) {
        let why = format!("No symbol {} is in the index.", quoted(name));
        return Ok(Output::new(why));
    }
    references.retain(|it| file.is_none_or(|file| it.file == *file));
    let row = |it: &Reference| {
        let (line, column) = (it.start_line, it.start_col + 1);
        format!("{}:{line}:{column}: {}", it.file, it.referenced_symbol)
    };
    Ok(listing(references.iter().map(row), "No references.", []))
}
