//! The index of `magellan`, read through its `export` command.
//!
//! Magellan runs on the real path of `codegraph.db` in the workspace root, outside of the
//! capabilities of `Workspace`. The index tells what it saw when it was last updated: these tools do
//! not update it. `magellan refs` lists calls only; the export has every reference.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::output::ToolError;
use super::path::{normalise, quoted};
use super::process::{self, Invocation, Limits};
use super::programs::Programs;
use super::run::blocking;
use super::tool::Tool;
use super::workspace::Workspace;

/// The database of the index, in the workspace root.
pub const DATABASE: &str = "codegraph.db";
/// Upper bound of listed rows.
pub const MAX_ROWS: usize = 1_000;

const LIMITS: Limits = Limits {
    time: Duration::from_secs(60),
    output: 64 << 20,
    memory: 4 << 30,
    file: 1 << 30,
};

/// What is used of an export. Paths are relative to the workspace where they lie in it.
#[derive(Debug, Deserialize)]
pub struct Index {
    pub files: Vec<IndexedFile>,
    pub symbols: Vec<Symbol>,
    pub references: Vec<Reference>,
}

#[derive(Debug, Deserialize)]
pub struct IndexedFile {
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Symbol {
    pub file: String,
    pub start_line: u64,
    pub end_line: u64,
    pub name: Option<String>,
    pub kind_normalized: Option<String>,
    pub display_fqn: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Reference {
    pub file: String,
    pub start_line: u64,
    /// In bytes, from 0.
    pub start_col: u64,
    pub referenced_symbol: String,
}

/// Exports the index, sorted.
pub async fn index(
    tool: Tool,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<Index, ToolError> {
    let Some(magellan) = &programs.magellan else {
        return Err(ToolError::program(tool, "'magellan' is not installed"));
    };
    let database = blocking(tool, workspace, move |workspace| {
        workspace.real_path(DATABASE).map_err(ToolError::file(tool))
    })
    .await?;
    // Without this, magellan asks a service of the user that may have another index open.
    let mut environment = programs.environment.clone();
    environment.push(("MAGELLAN_LOCAL".into(), "1".into()));
    let invocation = Invocation {
        program: magellan,
        arguments: vec![
            "export".into(),
            "--db".into(),
            database.into(),
            "--format".into(),
            "json".into(),
        ],
        folder: workspace.root().to_owned(),
        environment: &environment,
        limits: LIMITS,
    };
    let finished = process::run(&invocation)
        .await
        .map_err(ToolError::process(tool))?;
    if !finished.success {
        return Err(ToolError::program(
            tool,
            &String::from_utf8_lossy(&finished.stderr),
        ));
    }
    let mut index: Index = parse(tool, &finished.stdout)?;
    let local = |path: &mut String| {
        if let Some(inside) = workspace
            .root()
            .to_str()
            .and_then(|root| path.strip_prefix(root))
        {
            *path = inside.trim_start_matches('/').to_owned();
        } else if let Ok(normal) = normalise(path) {
            *path = normal;
        }
    };
    index.files.iter_mut().for_each(|it| local(&mut it.path));
    index.symbols.iter_mut().for_each(|it| local(&mut it.file));
    index
        .references
        .iter_mut()
        .for_each(|it| local(&mut it.file));
    index.symbols.sort();
    index.symbols.dedup();
    index.references.sort();
    index.references.dedup();
    Ok(index)
}

fn parse<T: DeserializeOwned>(tool: Tool, stdout: &[u8]) -> Result<T, ToolError> {
    serde_json::from_slice(stdout).map_err(|error| {
        ToolError::program(
            tool,
            &format!("unexpected output of 'magellan export': {error}"),
        )
    })
}

/// Fails if a file is not in the index.
pub fn check_indexed(tool: Tool, index: &Index, file: &str) -> Result<(), ToolError> {
    if index.files.iter().any(|it| it.path == file) {
        return Ok(());
    }
    Err(ToolError::program(
        tool,
        &format!("{} is not indexed in {DATABASE}", quoted(file)),
    ))
}
