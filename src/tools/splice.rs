//! The `splice` program, for `splice_patch` and `splice_plan`.
//!
//! Splice runs on the real path of the workspace, outside of the capabilities of `Workspace`: it
//! resolves paths again, writes by its own means and runs `cargo check`, hence build scripts. Its
//! paths are checked for symbolic links right before, which a program that works against it can
//! outrun. Only the named files are watched and can be put back; splice also keeps a log under
//! `.splice` in the workspace.

use std::ffi::OsString;
use std::io::Read as _;

use serde::Deserialize;
use serde_json::Value;

use super::call::Call;
use super::lsp_check::{cargo_workspace, refuse_links};
use super::output::{MAX_TEXT_BYTES, Output, ToolError, bounded, quoted};
use super::path::{changeable, join, normalise, split};

/// Splice opens this database beside each source file. Symbols of an earlier run in it have old
/// positions.
const GRAPH: &str = ".splice_graph.db";

/// What follows the name of a file of that database, and what the file begins with.
const GRAPH_FILES: [(&str, &[u8]); 3] = [("", b"SQLite format 3\0"), ("-shm", b""), ("-wal", b"")];

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

/// Reads the plan file of a call. As for splice, its paths are relative to the returned folder; they
/// must not contain `..`.
fn plan_of(call: &Call) -> Result<(&str, Plan), ToolError> {
    let plan_file = call.argument("file");
    call.workspace().refuse_links(&normalise(plan_file)?)?;
    let plan = serde_json::from_str(&call.workspace().read(plan_file)?)
        .map_err(|error| format!("{} is not a splice plan: {error}", quoted(plan_file)))?;
    Ok((split(plan_file).0, plan))
}

/// Returns the files that the plan file of a call changes, sorted.
pub fn files_of_plan(call: &Call) -> Result<Vec<String>, ToolError> {
    let (folder, plan) = plan_of(call)?;
    let mut files = vec![];
    for step in &plan.steps {
        files.push(join(folder, &changeable(&step.file)?));
        normalise(&step.with)?;
    }
    files.sort();
    files.dedup();
    if files.is_empty() {
        let named = quoted(call.argument("file"));
        return Err(format!("{named} has no steps").into());
    }
    if files.len() > MAX_FILES {
        let (named, count) = (quoted(call.argument("file")), files.len());
        let why = format!("{named} changes {count} files; at most {MAX_FILES} are allowed");
        return Err(why.into());
    }
    Ok(files)
}

/// Checks that the replacements of the plan file of a call exist, in the workspace.
pub fn check_replacements(call: &Call) -> Result<(), ToolError> {
    let (folder, plan) = plan_of(call)?;
    plan.steps.iter().try_for_each(|step| {
        let with = join(folder, &normalise(&step.with)?);
        call.workspace().real_path(&with).map(drop)
    })
}

/// Runs splice with the arguments that are paths of files. It may change `files`.
pub async fn run(
    call: &Call,
    mut options: Vec<OsString>,
    paths: &'static [&'static str],
    files: Vec<String>,
) -> Result<Output, ToolError> {
    let mut programs = call.programs().clone();
    // Splice runs cargo, where that is installed. A config of the project may name another folder for
    // what cargo builds.
    if call.programs().installed("cargo").is_ok() {
        for file in &files {
            let (_, project) = cargo_workspace(call, file.clone()).await?;
            let target = join(&project, "target");
            refuse_links(call, project, "target").await?;
            programs = programs.with("CARGO_TARGET_DIR", call.workspace().root.join(target));
        }
    }
    let watched = files.clone();
    let prepared = call.blocking(move |call| {
        for name in paths {
            let path = call.workspace().real_path(call.argument(name))?;
            options.extend([format!("--{name}").into(), path.into()]);
        }
        // Splice keeps a log in this folder.
        call.workspace().refuse_links_in(".splice")?;
        for end in ["", "-shm", "-wal"] {
            call.workspace()
                .refuse_other_names(&format!(".splice/operations.db{end}"))?;
        }
        files.iter().try_for_each(|path| prepare(call, path))?;
        Ok(options)
    });
    let (options, root) = (prepared.await?, &call.workspace().root);
    let ended = programs.run("splice", options, root).await;
    let cleared = call.blocking(move |call| {
        for path in &watched {
            remove_graph(call, path)?;
        }
        Ok(())
    });
    cleared.await?;
    let finished = ended?;
    let stdout = String::from_utf8_lossy(&finished.stdout);
    if finished.success {
        return Ok(Output::new(words_of(stdout.trim())));
    }
    let said = match finished.stderr.as_str() {
        "" => stdout.trim(),
        said => said,
    };
    Err(bounded(words_of(said), MAX_TEXT_BYTES).into())
}

/// Checks that an undo can put a file back, and that splice writes to it only.
fn prepare(call: &Call, path: &str) -> Result<(), ToolError> {
    let workspace = call.workspace();
    let (folder, name) = split(path);
    let temporary = join(folder, &format!(".{name}.patch.tmp"));
    // Splice 3.1.1 would write through a link of the name of its temporary file.
    if workspace.check_free(&temporary).is_err() {
        let temporary = quoted(&temporary);
        return Err(format!("{temporary} exists: splice would write through it").into());
    }
    remove_graph(call, path)?;
    workspace.content_before(path).map(drop)
}

/// Removes the database that splice keeps beside a source file.
///
/// # Errors
/// If a file of its name is something else.
fn remove_graph(call: &Call, path: &str) -> Result<(), ToolError> {
    let workspace = call.workspace();
    for (end, begin) in GRAPH_FILES {
        let graph = join(split(path).0, &format!("{GRAPH}{end}"));
        let mut found = vec![];
        if let Ok(file) = workspace.open_file(&graph) {
            let _ = file.take(begin.len() as u64).read_to_end(&mut found);
        }
        // An empty one is a database too.
        if !found.is_empty() && found != begin {
            let graph = quoted(&graph);
            return Err(format!("{graph} exists and is no graph of splice: rename it").into());
        }
        let _ = workspace.dir.remove_file(&graph);
    }
    Ok(())
}

/// Splice's own words: each line as it is, but of a line of JSON the texts in it.
fn words_of(output: &str) -> String {
    let mut lines = vec![];
    for line in output.lines() {
        let report: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |at: &str| report.pointer(at).and_then(Value::as_str);
        let message = text("/error/message").or(text("/message"));
        lines.push(message.unwrap_or(line).to_owned());
        lines.extend(text("/error/hint").map(str::to_owned));
        let listed = report.pointer("/error/diagnostics");
        let listed = listed.and_then(Value::as_array).into_iter().flatten();
        lines.extend(listed.map(diagnostic));
    }
    lines.join("\n")
}

fn diagnostic(it: &Value) -> String {
    let names = ["file", "line", "column", "level", "code", "message"];
    let [file, row, column, level, code, message] = names.map(|name| match it.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(number) => number.to_string(),
    });
    let code = format!("[{code}]").replace("[]", "");
    format!("{file}:{row}:{column}: {level}{code}: {message}")
}
