//! `lsp_check`: the errors and warnings of `cargo check`.
//!
//! Cargo runs on the real path of the workspace, outside of the capabilities of `Workspace`. It runs
//! the build scripts and procedural macros of the project and of its dependencies, with the rights
//! of this process, it may download crates, and it obeys `.cargo/config.toml` and
//! `rust-toolchain.toml`, also those above the workspace. Check only a workspace that is trusted.
//! A `Cargo.lock` that cargo writes is reported as a change.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::arguments::Arguments;
use super::cargo_project::manifest_of;
use super::file_error::FileError;
use super::file_glob::listing;
use super::output::{Change, ToolError, ToolOutput, bounded};
use super::path::{join, one_line, quoted};
use super::process::{self, Finished, Invocation, Limits, MAX_PROGRAM_TIME};
use super::programs::Programs;
use super::run::blocking;
use super::tool::Tool;
use super::workspace::Workspace;
use crate::domain::counted;

/// Upper bound of listed diagnostics.
pub const MAX_DIAGNOSTICS: usize = 200;

/// Upper bound of one diagnostic's text.
const MAX_DIAGNOSTIC_BYTES: usize = 8 << 10;

const TOOL: Tool = Tool::LspCheck;
const LIMITS: Limits = Limits {
    time: MAX_PROGRAM_TIME,
    output: 16 << 20,
    memory: 8 << 30,
    file: 2 << 30,
};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Diagnostic {
    file: Option<String>,
    line: u64,
    column: u64,
    level: String,
    code: Option<String>,
    message: String,
    /// As rustc shows it on a terminal.
    rendered: String,
}

/// What is used of a line of `cargo check --message-format=json`.
#[derive(Deserialize)]
struct Line {
    reason: String,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    message: String,
    level: String,
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Span>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u64,
    column_start: u64,
    is_primary: bool,
}

pub async fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let Some(cargo) = &programs.cargo else {
        return Err(ToolError::program(TOOL, "'cargo' is not installed"));
    };
    let path = arguments.required("path").to_owned();
    let manifest = blocking(TOOL, workspace, move |workspace| manifest(workspace, &path)).await?;
    let project = project_folder(cargo, &manifest, programs).await?;
    let root = workspace.root();
    let inside = project.strip_prefix(root).ok().and_then(Path::to_str);
    // Cargo would build and write the lock file there.
    let inside = inside.map(str::to_owned).ok_or_else(|| {
        let folder = quoted(&project.display().to_string());
        ToolError::program(
            TOOL,
            &format!("its Cargo workspace {folder} is outside of the workspace"),
        )
    })?;
    let lock = join(if inside.is_empty() { "." } else { &inside }, "Cargo.lock");
    let before = read_lock(workspace, lock.clone()).await?;
    let target = programs.target_dir.clone();
    let target = target.unwrap_or_else(|| project.join("target").join("conclave-check"));
    let mut arguments = vec![
        "check".into(),
        "--message-format=json".into(),
        "--quiet".into(),
    ];
    arguments.extend([
        "--color=never".into(),
        "--manifest-path".into(),
        manifest.clone().into(),
    ]);
    arguments.extend(["--target-dir".into(), target.into()]);
    let ended = start(cargo, arguments, &manifest, programs).await;
    let after = read_lock(workspace, lock.clone()).await?;
    let changed = if before == after {
        vec![]
    } else {
        vec![Change::new(&lock, before, after.as_deref())]
    };
    match ended {
        Ok(finished) => report(&finished, &inside, changed),
        Err(error) => Err(error.with_changes(changed)),
    }
}

fn manifest(workspace: &Workspace, path: &str) -> Result<PathBuf, ToolError> {
    let found = manifest_of(workspace, path).map_err(ToolError::file(TOOL))?;
    let found = found.ok_or_else(|| {
        ToolError::program(TOOL, &format!("{} is not in a Cargo project", quoted(path)))
    })?;
    workspace.real_path(&found).map_err(ToolError::file(TOOL))
}

/// The folder in which cargo starts rustc, to which file names in diagnostics are relative.
async fn project_folder(
    cargo: &Path,
    manifest: &Path,
    programs: &Programs,
) -> Result<PathBuf, ToolError> {
    let mut arguments = vec!["locate-project".into(), "--workspace".into()];
    arguments.extend(["--message-format=plain".into(), "--color=never".into()]);
    arguments.extend(["--manifest-path".into(), manifest.into()]);
    let found = start(cargo, arguments, manifest, programs).await?;
    if !found.success {
        return Err(ToolError::program(
            TOOL,
            &String::from_utf8_lossy(&found.stderr),
        ));
    }
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    Ok(Path::new(&path)
        .parent()
        .unwrap_or(Path::new("/"))
        .to_owned())
}

async fn start(
    cargo: &Path,
    arguments: Vec<std::ffi::OsString>,
    manifest: &Path,
    programs: &Programs,
) -> Result<Finished, ToolError> {
    let folder = manifest.parent().unwrap_or(Path::new("/")).to_owned();
    let environment = &programs.environment;
    let invocation = Invocation {
        program: cargo,
        arguments,
        folder,
        environment,
        limits: LIMITS,
    };
    process::run(&invocation)
        .await
        .map_err(ToolError::process(TOOL))
}

async fn read_lock(workspace: &Workspace, lock: String) -> Result<Option<String>, ToolError> {
    blocking(TOOL, workspace, move |workspace| {
        match workspace.read(&lock) {
            Ok(text) => Ok(Some(text)),
            // A lock file that an undo could not put back is left to cargo.
            Err(FileError::Missing(_) | FileError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(ToolError::file(TOOL)(error)),
        }
    })
    .await
}

fn report(
    finished: &Finished,
    project: &str,
    changed: Vec<Change>,
) -> Result<ToolOutput, ToolError> {
    let mut diagnostics = diagnostics(&finished.stdout, project);
    let count = |level: &str| diagnostics.iter().filter(|it| it.level == level).count();
    let (errors, warnings) = (count("error"), count("warning"));
    if !finished.success && errors == 0 {
        // Not the code is wrong but the manifest, the lock file, a build script or the machine.
        let failed = ToolError::program(TOOL, &String::from_utf8_lossy(&finished.stderr));
        return Err(failed.with_changes(changed));
    }
    let mut notes: Vec<String> = changed
        .iter()
        .map(|it| format!("cargo changed {}", one_line(&it.path)))
        .collect();
    if diagnostics.len() > MAX_DIAGNOSTICS {
        notes.push(format!(
            "only the first {MAX_DIAGNOSTICS} diagnostics are listed"
        ));
        diagnostics.truncate(MAX_DIAGNOSTICS);
    }
    let summary = format!(
        "{}, {}.",
        counted(errors, "error", "errors"),
        counted(warnings, "warning", "warnings")
    );
    let items = diagnostics
        .iter()
        .map(|it| it.rendered.trim_end().to_owned());
    let text = listing(std::iter::once(summary).chain(items), "", &notes);
    let value = json!({
        "errors": errors,
        "warnings": warnings,
        "diagnostics": diagnostics,
        "notes": notes,
    });
    Ok(ToolOutput::new(text, value).with_changes(changed))
}

/// The diagnostics of all crates, sorted and once each; cargo prints them as crates finish.
fn diagnostics(stdout: &[u8], project: &str) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = String::from_utf8_lossy(stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        .filter(|line| line.reason == "compiler-message")
        .filter_map(|line| line.message)
        // Such as "aborting due to 2 previous errors", which counts as an error of its own.
        .filter(|it| !it.spans.is_empty() || it.code.is_some() || !is_summary(&it.message))
        .map(|message| diagnostic(message, project))
        .collect();
    diagnostics.sort();
    diagnostics.dedup();
    diagnostics
}

fn is_summary(message: &str) -> bool {
    message.starts_with("aborting due to ")
        || message.starts_with("For more information about")
        || message.starts_with("Some errors have detailed explanations")
        || (message.contains("warning") && message.ends_with("emitted"))
}

fn diagnostic(message: Message, project: &str) -> Diagnostic {
    let span = message.spans.iter().find(|span| span.is_primary);
    let file = span.map(|span| {
        if project.is_empty() || span.file_name.starts_with('/') {
            span.file_name.clone()
        } else {
            join(project, &span.file_name)
        }
    });
    let level = match message.level.as_str() {
        level if level.starts_with("error") => "error".to_owned(),
        level => level.to_owned(),
    };
    Diagnostic {
        line: span.map_or(0, |span| span.line_start),
        column: span.map_or(0, |span| span.column_start),
        file,
        level,
        code: message.code.map(|code| code.code),
        rendered: bounded(
            message.rendered.unwrap_or_else(|| message.message.clone()),
            MAX_DIAGNOSTIC_BYTES,
        ),
        message: bounded(message.message, MAX_DIAGNOSTIC_BYTES),
    }
}
