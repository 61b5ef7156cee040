//! The `splice` program, for `splice_patch` and `splice_plan`.
//!
//! Splice runs on the real path of the workspace, outside of the capabilities of `Workspace`: it
//! resolves paths again, writes by its own means and runs `cargo check`, hence build scripts. Its
//! paths are checked for symbolic links right before, which a program that works against it can
//! outrun. Only the named files are watched and can be put back; splice also keeps a log under
//! `.splice` in the workspace.

use std::ffi::OsString;

use serde::Deserialize;
use serde_json::json;

use super::cargo_project::manifest_of;
use super::file_error::FileError;
use super::output::{Change, MAX_TEXT_BYTES, ToolError, ToolOutput, bounded};
use super::path::{check_changeable, join, normalise, quoted, split};
use super::precondition::PreconditionFailed;
use super::process::{self, Finished, Invocation, Limits, MAX_PROGRAM_TIME, ProcessError};
use super::programs::Programs;
use super::run::blocking;
use super::tool::Tool;
use super::workspace::Workspace;

const LIMITS: Limits = Limits {
    time: MAX_PROGRAM_TIME,
    output: 4 << 20,
    memory: 8 << 30,
    file: 2 << 30,
};

/// Splice opens this beside each source file. Symbols of an earlier run in it have old positions.
const GRAPH_FILES: [&str; 3] = [
    ".splice_graph.db",
    ".splice_graph.db-shm",
    ".splice_graph.db-wal",
];

/// The most files that one plan changes. Their old contents are kept in one entry of the journal.
const MAX_FILES: usize = 20;

/// What is used of a plan file.
#[derive(Deserialize)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    file: String,
    with: String,
}

/// A file that splice may change, with its content before.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    path: String,
    before: Option<String>,
}

/// What is used of a line that splice prints.
#[derive(Deserialize)]
struct Report {
    message: Option<String>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
    hint: Option<String>,
    #[serde(default)]
    diagnostics: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    level: String,
    message: String,
    file: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    code: Option<String>,
}

/// The files that a plan file changes, sorted. As for splice, the paths in the plan are relative
/// to its folder; they must not contain `..`.
pub fn files_of_plan(
    workspace: &Workspace,
    plan_file: &str,
) -> Result<Vec<String>, PreconditionFailed> {
    let text = workspace.read(plan_file)?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| {
        PreconditionFailed::Plan(format!(
            "{} is not a splice plan: {error}",
            quoted(plan_file)
        ))
    })?;
    let local = |path: &str| {
        let path = normalise(path).map_err(PreconditionFailed::Forbidden)?;
        Ok::<_, PreconditionFailed>(join(split(plan_file).0, &path))
    };
    let mut files = Vec::new();
    for step in &plan.steps {
        let file = local(&step.file)?;
        check_changeable(&file).map_err(PreconditionFailed::Forbidden)?;
        workspace.real_path(&local(&step.with)?)?;
        files.push(file);
    }
    files.sort();
    files.dedup();
    if files.len() > MAX_FILES {
        return Err(PreconditionFailed::Plan(format!(
            "{} changes {} files; at most {MAX_FILES} are allowed",
            quoted(plan_file),
            files.len()
        )));
    }
    Ok(files)
}

/// The error of a tool for a plan that cannot be used.
pub fn plan_error(tool: Tool, error: PreconditionFailed) -> ToolError {
    match error {
        PreconditionFailed::Forbidden(refusal) => refusal.into(),
        PreconditionFailed::File(source) => ToolError::File { tool, source },
        PreconditionFailed::Plan(message) => ToolError::program(tool, &message),
        other => ToolError::program(tool, &other.to_string()),
    }
}

/// Refuses a file beside which something has the name of splice's temporary file. Splice 3.1.1 would
/// write through a link of that name, out of the workspace.
fn not_planted(tool: Tool, workspace: &Workspace, file: &str) -> Result<(), ToolError> {
    let (folder, name) = split(file);
    let temporary = join(folder, &format!(".{name}.patch.tmp"));
    if workspace.is_free(&temporary) {
        return Ok(());
    }
    Err(ToolError::program(
        tool,
        &format!(
            "{} exists: splice would write through it",
            quoted(&temporary)
        ),
    ))
}

/// Runs splice and reports which of `files` it changed, also when it fails.
pub async fn run(
    tool: Tool,
    arguments: Vec<OsString>,
    files: Vec<String>,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let Some(splice) = &programs.splice else {
        return Err(ToolError::program(tool, "'splice' is not installed"));
    };
    let watched = blocking(tool, workspace, move |workspace| {
        for file in &files {
            not_planted(tool, workspace, file)?;
        }
        contents(tool, workspace, files)
    })
    .await?;
    let invocation = Invocation {
        program: splice,
        arguments,
        folder: workspace.root().to_owned(),
        environment: &programs.environment,
        limits: LIMITS,
    };
    let ended = process::run(&invocation).await;
    let changed = blocking(tool, workspace, move |workspace| {
        Ok(changes(workspace, watched))
    })
    .await?;
    report(tool, ended, changed)
}

/// The contents before splice runs. Every file must be one that an undo can put back.
fn contents(
    tool: Tool,
    workspace: &Workspace,
    files: Vec<String>,
) -> Result<Vec<Watched>, ToolError> {
    let failed = ToolError::file(tool);
    let mut watched = Vec::new();
    for path in files {
        workspace.remove_siblings(&path, &GRAPH_FILES);
        workspace.real_path(&path).map_err(&failed)?;
        let before = workspace.content_before(&path).map_err(&failed)?;
        if before.is_none() {
            return Err(failed(FileError::Missing(path)));
        }
        // Cargo may write the lock file of the project.
        if let Some(manifest) = manifest_of(workspace, &path).map_err(&failed)? {
            let lock = join(split(&manifest).0, "Cargo.lock");
            if let Ok(before) = workspace.content_before(&lock) {
                watched.push(Watched { path: lock, before });
            }
        }
        watched.push(Watched { path, before });
    }
    watched.sort();
    watched.dedup();
    Ok(watched)
}

fn changes(workspace: &Workspace, watched: Vec<Watched>) -> Vec<Change> {
    let changed = |it: Watched| {
        workspace.remove_siblings(&it.path, &GRAPH_FILES);
        let after = workspace.read(&it.path).ok();
        (after != it.before).then(|| Change::new(&it.path, it.before, after.as_deref()))
    };
    watched.into_iter().filter_map(changed).collect()
}

fn report(
    tool: Tool,
    ended: Result<Finished, ProcessError>,
    changed: Vec<Change>,
) -> Result<ToolOutput, ToolError> {
    let finished = match ended {
        Ok(finished) => finished,
        // The file may be half written: say so through the changes.
        Err(source) => return Err(ToolError::process(tool)(source).with_changes(changed)),
    };
    let stdout = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
    let stderr = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
    if !finished.success {
        let message = if stderr.is_empty() { &stdout } else { &stderr };
        return Err(ToolError::program(tool, &words_of(message)).with_changes(changed));
    }
    let paths: Vec<&str> = changed.iter().map(|it| it.path.as_str()).collect();
    let text = words_of(&stdout);
    let value = json!({
        "success": true,
        "changed_files": paths,
        "stdout": bounded(stdout, MAX_TEXT_BYTES),
        "stderr": bounded(stderr, MAX_TEXT_BYTES),
    });
    Ok(ToolOutput::new(text, value).with_changes(changed))
}

/// Splice's own words: each line as it is, but of a line of JSON the texts in it.
fn words_of(output: &str) -> String {
    let mut lines = Vec::new();
    for line in output.lines() {
        match serde_json::from_str::<Report>(line) {
            Ok(Report {
                error: Some(error), ..
            }) => {
                lines.push(error.message);
                lines.extend(error.hint);
                lines.extend(error.diagnostics.iter().map(|it| {
                    let code = it
                        .code
                        .as_deref()
                        .map(|it| format!("[{it}]"))
                        .unwrap_or_default();
                    let (line, column) = (it.line.unwrap_or(0), it.column.unwrap_or(0));
                    let file = it.file.as_deref().unwrap_or("?");
                    format!("{file}:{line}:{column}: {}{code}: {}", it.level, it.message)
                }));
            }
            Ok(Report {
                message: Some(message),
                ..
            }) => lines.push(message),
            Ok(_) | Err(_) => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}
