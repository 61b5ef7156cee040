//! Limits on programs, and the tools that start them.

use std::ffi::OsString;
use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::output::ToolError;
use super::super::programs::{Finished, Limits, Programs};
use super::super::tool::Tool::{
    LspCheck, ReferencesToSymbolName, SplicePatch, SplicePlan, SymbolsInFile,
};
use super::Place;

const LIMITS: Limits = Limits {
    time: Duration::from_secs(20),
    output: 100_000,
    memory: 1 << 30,
    file: 1 << 20,
};

async fn shell(script: &str, limits: Limits) -> Result<Finished, ToolError> {
    let programs = Programs {
        found: [("sh", "/bin/sh".into()), ("such", "/none/such".into())].into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        limits,
    };
    let name = if script == "none" { "such" } else { "sh" };
    let arguments = vec!["-c".into(), script.into()];
    programs.run(name, arguments, Path::new("/")).await
}

/// Whether a process with this number still runs.
fn alive(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn assert_dies(id: &str) {
    for _ in 0..100 {
        if !alive(id) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("process {id} is alive");
}

#[test]
fn programs_are_found_in_absolute_folders_and_see_few_variables() {
    let programs = Programs::find(|name| match name {
        "PATH" => Some("bin:/bin".into()),
        "HOME" => Some("/home/x".into()),
        _ => None,
    });
    let names: Vec<_> = programs.environment.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["PATH", "HOME", "LANG", "MAGELLAN_LOCAL"]);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("cargo")).unwrap();
    for (path, is_found) in [
        (folder.path().display().to_string(), true),
        ("bin:.".into(), false),
    ] {
        let programs = Programs::find(|name| (name == "PATH").then(|| OsString::from(&path)));
        assert_eq!(programs.installed("cargo").is_ok(), is_found, "{path}");
    }
}

#[tokio::test]
async fn a_program_gets_its_arguments_and_a_clear_environment() {
    let script = "env; echo err >&2; cat; exit 3";
    let finished = shell(script, LIMITS).await.unwrap();
    assert!(!finished.success);
    let stdout = String::from_utf8(finished.stdout).unwrap();
    let names = stdout.lines().filter_map(|line| line.split('=').next());
    let names = names.filter(|name| !["PWD", "_", "OLDPWD", "SHLVL"].contains(name));
    assert_eq!(names.collect::<Vec<_>>(), ["PATH"]);
    assert_eq!(finished.stderr, "err");
}

#[tokio::test]
async fn a_program_over_a_limit_is_stopped_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (note, file) = (path("id"), path("file"));
    let sleeper = format!("sh -c 'echo $$ > {note}; sleep 1000' & sleep 1000");
    let writer = format!("exec dd if=/dev/zero of={file} bs=64k count=100");
    let short = Limits {
        time: Duration::from_secs(1),
        ..LIMITS
    };
    let flood = "'sh' wrote more than 100000 bytes and was stopped";
    let slow = "'sh' did not end within 1 s and was stopped";
    let none = "cannot start 'such': No such file or directory (os error 2)";
    for (script, limits, expected) in [
        (&*sleeper, short, slow),
        ("yes", LIMITS, flood),
        ("yes >&2", LIMITS, flood),
        ("(yes &) ; sleep 1000", LIMITS, flood),
        (&writer, LIMITS, "'sh' was ended by signal 25"),
        ("none", LIMITS, none),
    ] {
        let started = Instant::now();
        let error = shell(script, limits).await.unwrap_err().message;
        assert!(error.starts_with(expected), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5), "{script}");
    }
    assert_dies(&fs::read_to_string(note).unwrap()).await;
    assert_eq!(fs::metadata(file).unwrap().len(), 1 << 20);
    let eater = "exec dd if=/dev/zero bs=2000M count=1";
    let said = shell(eater, LIMITS).await.unwrap().stderr;
    assert!(said.contains("memory exhausted"), "{said}");
}

#[tokio::test]
async fn grandchildren_end_with_the_program_and_with_the_future() {
    let started = Instant::now();
    let finished = shell("sleep 1000 & echo $!", LIMITS).await.unwrap();
    assert!(finished.success && started.elapsed() < Duration::from_secs(10));
    assert_dies(std::str::from_utf8(&finished.stdout).unwrap()).await;

    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("id");
    let script = format!("sh -c 'echo $$ > {}; sleep 1000'; true", note.display());
    let is_noted = async {
        while fs::read_to_string(&note).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = shell(&script, LIMITS) => panic!("it sleeps"),
        () = is_noted => {}
    }
    assert_dies(&fs::read_to_string(note).unwrap()).await;
}

/// A workspace with the programs of the machine. CONCLAVE_CODE_TOOLS names the folder of splice and
/// magellan; without it they come from PATH. No test passes without them.
fn project(files: &[(&str, &str)]) -> Place {
    let place = Place::with(files, |name| {
        let value = std::env::var_os(name)?;
        match std::env::var_os("CONCLAVE_CODE_TOOLS") {
            Some(folder) if name == "PATH" => {
                let all = std::iter::once(folder.into()).chain(std::env::split_paths(&value));
                Some(std::env::join_paths(all).unwrap())
            }
            _ => Some(value),
        }
    });
    for name in ["cargo", "magellan", "splice"] {
        let found = place.toolbox.programs.installed(name);
        found.expect("run `make test`, which builds splice and magellan");
    }
    place
}

const MANIFEST: &str =
    "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";

#[test]
fn cargo_check_names_files_from_the_workspace_and_needs_a_project() {
    let broken = "pub fn f() -> u32 {\n    missing()\n}\n";
    let files = [
        ("sub/Cargo.toml", MANIFEST),
        ("sub/src/lib.rs", broken),
        ("x.rs", ""),
    ];
    let project = project(&files);
    let output = project.run(LspCheck, &["sub/src/lib.rs"]).unwrap();
    assert!(
        output.text.starts_with("1 error, 0 warnings.\n"),
        "{output:?}"
    );
    assert_eq!(
        (output.files, output.codes),
        (vec!["sub/src/lib.rs".to_owned()], vec!["E0425".to_owned()])
    );
    project.hold(
        "lsp_check sub/src -> ? holds
        lsp_check x.rs -> ? 'x.rs' is not in a Cargo project
        lsp_check none -> ? 'none' does not exist",
    );
    project.put("sub/Cargo.toml", "[package\n");
    let error = project.text(LspCheck, &["sub"]);
    assert!(error.starts_with("lsp_check failed: error: "), "{error}");
}

const LIBRARY: &str = "/// Adds.\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn twice(a: i32) -> i32 {\n    add(a, a)\n}\n";

/// Lets `magellan watch` scan the folder once.
fn build_index(place: &Place) {
    let magellan = place.toolbox.programs.installed("magellan").unwrap();
    let mut watch = Command::new(magellan)
        .args(["watch", "--root", ".", "--db", "codegraph.db"])
        .env("MAGELLAN_LOCAL", "1")
        .current_dir(place.inside(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Database:")));
    let id = watch.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    watch.wait().unwrap();
}

#[test]
fn magellan_lists_symbols_and_references() {
    let other = "use crate::add;\n\npub fn thrice(a: i32) -> i32 {\n    add(add(a, a), a)\n}\n";
    let project = project(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", &format!("pub mod other;\n{LIBRARY}")),
        ("src/other.rs", other),
        ("notes.txt", "add"),
    ]);
    project
        .hold("symbols_in_file src/*.rs -> ? Structural data not available (codegraph.db missing)");
    build_index(&project);
    // In a repository magellan writes its export into a file.
    let git = Command::new("git")
        .args(["init", "-q"])
        .arg(project.inside(""))
        .status();
    assert!(git.unwrap().success());
    std::os::unix::fs::symlink(project.outside(""), project.inside(".magellan")).unwrap();
    let index = fs::read(project.inside("codegraph.db")).unwrap();
    let symbols = project.text(SymbolsInFile, &["src/*.rs"]);
    for part in ["src/lib.rs:3: fn ", "src/other.rs:3: fn "] {
        assert!(symbols.contains(part), "{symbols}");
    }
    let one = project.text(SymbolsInFile, &["src/other.rs"]);
    assert_eq!(one.lines().count(), 1, "{one}");
    let references = project.text(ReferencesToSymbolName, &["add"]);
    for part in ["src/lib.rs:8:5: add", "src/other.rs:1:"] {
        assert!(references.contains(part), "{references}");
    }
    assert_eq!(references.matches("src/lib.rs:8:5").count(), 1);
    project.hold(
        "symbols_in_file src/*.rs -> ? holds
        references_from_file_to_symbol_name src/lib.rs add -> = src/lib.rs:8:5: add
        references_to_symbol_name none -> = No symbol 'none' is in the index.
        references_to_symbol_name thrice -> = No references.
        references_from_file_to_symbol_name notes.txt add -> ! 'notes.txt' is not indexed in codegraph.db",
    );
    assert_eq!(fs::read_dir(project.outside("")).unwrap().count(), 1);
    assert!(
        fs::read(project.inside("codegraph.db")).unwrap() == index,
        "it is only read"
    );
    project.put("codegraph.db", "not a database");
    let broken = project.text(SymbolsInFile, &["src/*.rs"]);
    assert!(broken.starts_with("symbols_in_file failed: "), "{broken}");
    let sparse = fs::File::create(project.inside("codegraph.db")).unwrap();
    sparse.set_len((2 << 30) + 1).unwrap();
    let large = project.text(SymbolsInFile, &["src/*.rs"]);
    assert!(large.contains("larger than 2 GiB"), "{large}");
}

#[test]
fn calls_are_references_and_the_last_name_of_a_path_counts() {
    let lib = "pub struct P;\nimpl P {\n    pub fn get(&self) {}\n}\npub mod helper {\n    pub fn go() {}\n}\npub fn use_it(p: &P) {\n    p.get();\n    helper::go();\n}\n";
    let project = project(&[("Cargo.toml", MANIFEST), ("src/lib.rs", lib)]);
    build_index(&project);
    project.hold(
        "references_to_symbol_name get -> = src/lib.rs:9:5: get
        references_to_symbol_name tiny::P::get -> = src/lib.rs:9:5: get
        references_from_file_to_symbol_name src/lib.rs helper::go -> = src/lib.rs:10:5: go
        references_to_symbol_name P::none -> = No symbol 'P::none' is in the index.",
    );
}

#[test]
fn no_program_builds_in_a_cargo_workspace_outside() {
    let member = MANIFEST.replace("[workspace]", "");
    let add = "pub fn add(a: i32, b: i32) -> i32 {\n    b + a\n}\n";
    let files = [
        ("Cargo.toml", &*member),
        ("src/lib.rs", LIBRARY),
        ("add.rs", add),
    ];
    let project = project(&files);
    let outer = project.folder.path();
    let manifest = "[workspace]\nmembers = [\"inside\"]\n";
    fs::write(outer.join("Cargo.toml"), manifest).unwrap();
    let patch = &["src/lib.rs", "add", "fn", "add.rs"][..];
    for (tool, values) in [(SplicePatch, patch), (LspCheck, &["."])] {
        let failed = project.text(tool, values);
        let why = "its Cargo workspace is in a folder above the workspace of tool plans";
        assert_eq!(failed, format!("{tool} failed: {why}"));
    }
    assert_eq!(project.content("src/lib.rs"), LIBRARY);
    for written in ["Cargo.lock", "target"] {
        assert!(!outer.join(written).exists(), "{written}");
    }
}

#[test]
fn no_program_writes_through_what_the_project_has_to_lead_out() {
    let add = "pub fn add(a: i32, b: i32) -> i32 {\n    b + a\n}\n";
    let project = project(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", LIBRARY),
        ("add.rs", add),
        ("src/.splice_graph.db", "mine"),
        (
            ".cargo/config.toml",
            "[build]\ntarget-dir = \"../outside/t\"\n",
        ),
    ]);
    let link = |name: &str| {
        let place = project.inside(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(project.outside("gone"), &place).unwrap();
        place
    };
    let target = link("target");
    project.hold(
        "lsp_check . -> ! 'target/conclave-check' goes through the symbolic link 'target'
        splice_patch src/lib.rs add fn add.rs -> ! 'target' goes through the symbolic link 'target'",
    );
    fs::remove_file(target).unwrap();
    let deep = link("target/debug/deps");
    let built = link("target/conclave-check/debug");
    project.hold(
        "lsp_check . -> ! 'target/conclave-check/debug' goes through the symbolic link 'target/conclave-check/debug'",
    );
    fs::remove_file(built).unwrap();
    project.hold(
        "splice_patch src/lib.rs add fn add.rs -> ! 'target/debug/deps' goes through the symbolic link 'target/debug/deps'",
    );
    fs::remove_file(deep).unwrap();
    let lock = link("Cargo.lock");
    for step in ["lsp_check .", "splice_patch src/lib.rs add fn add.rs"] {
        project.hold(&format!(
            "{step} -> ! 'Cargo.lock' goes through the symbolic link 'Cargo.lock'"
        ));
    }
    fs::remove_file(lock).unwrap();
    let log = link(".splice/operations.db");
    project.hold("splice_patch src/lib.rs add fn add.rs -> ! '.splice/operations.db' goes through the symbolic link '.splice/operations.db'");
    fs::remove_file(log).unwrap();
    project.hold("splice_patch src/lib.rs add fn add.rs -> ! 'src/.splice_graph.db' exists and is no graph of splice: rename it");
    assert_eq!(project.content("src/.splice_graph.db"), "mine");
    fs::remove_file(project.inside("src/.splice_graph.db")).unwrap();
    let patch = ["src/lib.rs", "add", "fn", "add.rs"];
    project.run(SplicePatch, &patch).unwrap();
    assert!(project.content("src/lib.rs").contains("b + a"));
    project.assert_clean();
}

#[test]
fn splice_replaces_a_symbol_and_follows_no_planted_link() {
    let step = |file: &str| {
        let step =
            json!({ "file": file, "symbol": "add", "kind": "function", "with": "patches/add.rs" });
        json!({ "steps": [step] }).to_string()
    };
    let body = |body: &str| format!("pub fn add(a: i32, b: i32) -> i32 {{\n    {body}\n}}\n");
    let project = project(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", LIBRARY),
        ("patches/add.rs", &body("b + a")),
        ("patches/bad.rs", &body("missing")),
        ("plan.json", &step("src/lib.rs")),
        ("escape.json", &step("../x.rs")),
    ]);
    let failed = project.text(SplicePatch, &["src/lib.rs", "add", "fn", "patches/bad.rs"]);
    assert!(failed.contains("E0425"), "{failed}");
    assert_eq!(project.content("src/lib.rs"), LIBRARY);
    let planted = project.inside("src/.lib.rs.patch.tmp");
    std::os::unix::fs::symlink(project.outside("secret"), &planted).unwrap();
    project.hold(
        "splice_patch src/lib.rs add fn patches/add.rs -> ! 'src/.lib.rs.patch.tmp' exists: splice would write through it
        splice_patch src/lib.rs add fn patches/add.rs -> ? holds
        splice_patch src/lib.rs nope - patches/add.rs -> ? symbol 'nope' does not exist in 'src/lib.rs'
        splice_plan escape.json -> X '../x.rs' leaves the workspace",
    );
    fs::remove_file(planted).unwrap();
    let named = project.step(SplicePlan, &["plan.json"]).unwrap();
    assert_eq!(named.changes().unwrap(), ["src/lib.rs"]);
    project.run(SplicePlan, &["plan.json"]).unwrap();
    assert!(project.content("src/lib.rs").contains("b + a"));
    project.assert_clean();
}
