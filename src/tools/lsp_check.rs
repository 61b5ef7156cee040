//! `lsp_check`: the errors and warnings of `cargo check`.
//!
//! Cargo runs on the real path of the workspace, outside of the capabilities of `Workspace`. It runs
//! the build scripts and procedural macros of the project and of its dependencies, with the rights
//! of this process. It may download crates. It obeys `.cargo/config.toml` and `rust-toolchain.toml`,
//! also those above the workspace. Check only a workspace that is trusted.
//! A `Cargo.lock` that cargo writes is reported as a change.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::Serialize;
use serde_json::{Value, json};

use super::call::{Call, Role, Run, Spec, parameter};
use super::output::{Output, ToolError, bounded, quoted};
use super::path::{folders_above, join};
use super::programs::Finished;
use super::workspace::Workspace;
use crate::domain::counted;

/// Upper bound of diagnostics as data.
const MAX_DIAGNOSTICS: usize = 200;
/// Upper bound of one diagnostic's text.
const MAX_DIAGNOSTIC_BYTES: usize = 8 << 10;

pub const SPEC: Spec = Spec {
    parameters: &[parameter("path", Role::Path)],
    is_mutating: false,
    check,
    run: Run::Program(|call| Box::pin(run(call))),
};

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Diagnostic {
    file: Option<String>,
    line: u64,
    column: u64,
    level: String,
    code: Option<String>,
    /// As rustc shows it on a terminal.
    #[serde(skip)]
    rendered: String,
}

fn check(call: &Call) -> Result<(), ToolError> {
    call.programs().installed("cargo")?;
    let path = call.argument("path");
    if call.workspace().kind(path)?.is_none() {
        return Err(format!("{} does not exist", quoted(path)).into());
    }
    manifest_of(call.workspace(), path).map(drop)
}

/// The path of the nearest `Cargo.toml` at or above `path`, inside the workspace.
pub fn manifest_of(workspace: &Workspace, path: &str) -> Result<String, ToolError> {
    match projects(workspace, path)?.first() {
        Some(folder) => Ok(join(folder, "Cargo.toml")),
        None => Err(format!("{} is not in a Cargo project", quoted(path)).into()),
    }
}

/// The folders at and above `path` that have a `Cargo.toml`, the nearest first.
fn projects<'p>(workspace: &Workspace, path: &'p str) -> Result<Vec<&'p str>, ToolError> {
    let mut found = vec![];
    for folder in std::iter::once(path).chain(folders_above(path)) {
        if workspace.kind(&join(folder, "Cargo.toml"))? == Some(FileType::RegularFile) {
            found.push(folder);
        }
    }
    Ok(found)
}

async fn run(call: Call) -> Result<Output, ToolError> {
    let path = call.argument("path").to_owned();
    let (manifest, inside) = cargo_workspace(&call, path).await?;
    let project = call.workspace().root.join(&inside);
    refuse_links(&call, inside.clone(), TARGET).await?;
    let check = ["check", "--message-format=json", "--quiet"];
    let target = project.join(TARGET);
    let finished = cargo(&call, &check, &manifest, Some(target)).await?;
    report(&finished, &inside)
}

/// The folder of what a check builds, in that of the Cargo workspace.
const TARGET: &str = "target/conclave-check";

/// Fails if cargo, which checks the Cargo workspace in a folder, would write outside of the workspace: its
/// lock file or something in its target folder is a link, or the lock file has several names.
pub async fn refuse_links(
    call: &Call,
    project: String,
    target: &'static str,
) -> Result<(), ToolError> {
    call.blocking(move |call| {
        let lock = join(&project, "Cargo.lock");
        call.workspace().content_before(&lock)?;
        call.workspace().refuse_links_in(&join(&project, target))
    })
    .await
}

/// Returns the real path of the manifest at or above `path`, and the folder of its Cargo workspace,
/// relative to the workspace. Cargo starts rustc in that folder, and file names in diagnostics are
/// relative to it.
///
/// # Errors
/// If that folder is outside of the workspace: cargo would build and write the lock file there.
pub async fn cargo_workspace(call: &Call, path: String) -> Result<(PathBuf, String), ToolError> {
    let manifest = call.blocking(move |call| {
        let found = manifest_of(call.workspace(), &path)?;
        call.workspace().real_path(&found)
    });
    let manifest = manifest.await?;
    let find = ["locate-project", "--workspace", "--message-format=plain"];
    let found = cargo(call, &find, &manifest, None).await?;
    if !found.success {
        return Err(failed(&found));
    }
    let project = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
    let project = project.parent().unwrap_or(Path::new("/"));
    let inside = project.strip_prefix(&call.workspace().root).ok();
    match inside.and_then(Path::to_str) {
        Some("") => Ok((manifest, ".".to_owned())),
        Some(inside) => Ok((manifest, inside.to_owned())),
        None => Err(
            "its Cargo workspace is in a folder above the workspace of tool plans"
                .to_owned()
                .into(),
        ),
    }
}

/// Returns the lock files that cargo may write when it checks the project of `path`, which are those
/// beside the manifests at and above it.
pub fn lock_files(workspace: &Workspace, path: &str) -> Vec<String> {
    let folders = projects(workspace, path).unwrap_or_default().into_iter();
    folders.map(|folder| join(folder, "Cargo.lock")).collect()
}

async fn cargo(
    call: &Call,
    arguments: &[&str],
    manifest: &Path,
    target: Option<PathBuf>,
) -> Result<Finished, ToolError> {
    let mut all: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    all.extend(["--color=never", "--manifest-path"].map(OsString::from));
    all.push(manifest.into());
    if let Some(target) = target {
        all.extend(["--target-dir".into(), target.into()]);
    }
    let folder = manifest.parent().unwrap_or(Path::new("/"));
    call.programs().run("cargo", all, folder).await
}

/// Returns what cargo said of its failure.
fn failed(finished: &Finished) -> ToolError {
    let said = match finished.stderr.as_str() {
        "" => "'cargo' failed and said nothing",
        said => said,
    };
    said.to_owned().into()
}

fn report(finished: &Finished, project: &str) -> Result<Output, ToolError> {
    // Sorted and once each; cargo prints those of a crate when it finishes.
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let lines = stdout
        .lines()
        .filter_map(|it| serde_json::from_str(it).ok());
    let diagnostics: BTreeSet<Diagnostic> =
        lines.filter_map(|it| diagnostic(&it, project)).collect();
    let count = |level: &str| diagnostics.iter().filter(|it| it.level == level).count();
    let (errors, warnings) = (count("error"), count("warning"));
    if !finished.success && errors == 0 {
        // Not the code is wrong but the manifest, the lock file, a build script or the machine.
        return Err(failed(finished));
    }
    let errors_are = counted(errors, "error", "errors");
    let warnings_are = counted(warnings, "warning", "warnings");
    let mut items = vec![format!("{errors_are}, {warnings_are}.")];
    items.extend(diagnostics.iter().map(|it| it.rendered.clone()));
    let listed: Vec<&Diagnostic> = diagnostics.iter().take(MAX_DIAGNOSTICS).collect();
    let codes = BTreeSet::from_iter(listed.iter().filter_map(|it| it.code.clone()));
    // A file of a dependency is outside of the workspace.
    let files = listed.iter().filter_map(|it| it.file.clone());
    Ok(Output {
        codes: codes.into_iter().collect(),
        files: files.filter(|file| !file.starts_with(['/', '.'])).collect(),
        value: json!({ "errors": errors, "warnings": warnings, "diagnostics": listed }),
        ..Output::new(items.join("\n"))
    })
}

/// Reads a line of `cargo check --message-format=json`.
fn diagnostic(line: &Value, project: &str) -> Option<Diagnostic> {
    let line = (line.get("message")).filter(|_| line["reason"] == "compiler-message")?;
    let text = |of: &Value, name: &str| of.get(name)?.as_str().map(str::to_owned);
    let (message, code) = (text(line, "message")?, text(&line["code"], "code"));
    let spans = line["spans"].as_array().map_or(&[][..], Vec::as_slice);
    // Such as "aborting due to 2 previous errors", which counts as an error of its own.
    let begins = "aborting due to |For more information about|Some errors have detailed";
    let is_summary = begins.split('|').any(|begin| message.starts_with(begin))
        || (message.contains("warning") && message.ends_with("emitted"));
    if is_summary && spans.is_empty() && code.is_none() {
        return None;
    }
    let span = spans.iter().find(|span| span["is_primary"] == true);
    let place = |name: &str| span.and_then(|span| span[name].as_u64()).unwrap_or(0);
    let level = text(line, "level")?;
    let rendered = text(line, "rendered").unwrap_or(message);
    Some(Diagnostic {
        file: match span.and_then(|span| text(span, "file_name")) {
            Some(file) if !file.starts_with('/') => Some(join(project, &file)),
            file => file,
        },
        line: place("line_start"),
        column: place("column_start"),
        level: level.split(':').next().unwrap_or_default().to_owned(),
        code,
        rendered: bounded(rendered.trim_end().to_owned(), MAX_DIAGNOSTIC_BYTES),
    })
}
