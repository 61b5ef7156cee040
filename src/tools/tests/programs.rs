//! Limits on programs, and the tools that start them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::tools::arguments::Arguments;
use crate::tools::output::{ToolError, ToolOutput};
use crate::tools::precondition::check;
use crate::tools::process::{Finished, Invocation, Limits, ProcessError, run};
use crate::tools::programs::Programs;
use crate::tools::tool::Tool;
use crate::tools::workspace::Workspace;
use serde_json::{Value, json};

const LIMITS: Limits = Limits {
    time: Duration::from_secs(20),
    output: 100_000,
    memory: 1 << 30,
    file: 1 << 20,
};

async fn shell(script: &str, limits: Limits) -> Result<Finished, ProcessError> {
    run(&Invocation {
        program: Path::new("/bin/sh"),
        arguments: vec!["-c".into(), script.into()],
        folder: "/".into(),
        environment: &[("PATH".into(), "/usr/bin:/bin".into())],
        limits,
    })
    .await
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

#[tokio::test]
async fn a_program_gets_its_arguments_and_a_clear_environment() {
    let finished = shell("env; echo err >&2; cat; exit 3", LIMITS)
        .await
        .unwrap();
    assert!(!finished.success);
    let names: Vec<_> = std::str::from_utf8(&finished.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split('=').next())
        .filter(|name| !["PWD", "_", "OLDPWD", "SHLVL"].contains(name))
        .collect();
    assert_eq!(names, ["PATH"]);
    assert_eq!(finished.stderr, b"err\n");
}

#[tokio::test]
async fn a_sleeper_and_its_grandchild_are_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("id");
    let script = format!(
        "sh -c 'echo $$ > {}; sleep 1000' & sleep 1000",
        note.display()
    );
    let started = Instant::now();
    let limits = Limits {
        time: Duration::from_secs(1),
        ..LIMITS
    };
    let error = shell(&script, limits).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "'sh' did not end within 1 s and was stopped"
    );
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_dies(&fs::read_to_string(note).unwrap()).await;
}

#[tokio::test]
async fn a_grandchild_that_outlives_the_program_is_stopped() {
    let started = Instant::now();
    let finished = shell("sleep 1000 & echo $!", LIMITS).await.unwrap();
    assert!(finished.success);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_dies(std::str::from_utf8(&finished.stdout).unwrap()).await;
}

#[tokio::test]
async fn dropping_the_future_stops_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("id");
    let script = format!("sh -c 'echo $$ > {}; sleep 1000'; true", note.display());
    tokio::select! {
        _ = shell(&script, LIMITS) => panic!("it sleeps"),
        () = async {
            while fs::read_to_string(&note).unwrap_or_default().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } => {}
    }
    assert_dies(&fs::read_to_string(note).unwrap()).await;
}

#[tokio::test]
async fn a_flooder_is_stopped() {
    for script in ["yes", "yes >&2", "(yes &) ; sleep 1000"] {
        let started = Instant::now();
        let error = shell(script, LIMITS).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "'sh' wrote more than 100000 bytes and was stopped"
        );
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn memory_and_file_size_are_limited() {
    let eater = "exec dd if=/dev/zero bs=2000M count=1";
    let finished = shell(eater, LIMITS).await.unwrap();
    assert!(!finished.success);
    let text = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert!(text.contains("memory exhausted"), "{text}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let script = format!(
        "exec dd if=/dev/zero of={} bs=64k count=100",
        file.display()
    );
    let error = shell(&script, LIMITS).await.unwrap_err().to_string();
    assert!(error.starts_with("'sh' was ended by signal 25"), "{error}");
    assert_eq!(fs::metadata(file).unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let invocation = Invocation {
        program: Path::new("/none/such"),
        arguments: Vec::new(),
        folder: "/".into(),
        environment: &[],
        limits: LIMITS,
    };
    assert_eq!(
        run(&invocation).await.unwrap_err().to_string(),
        "cannot start 'such': No such file or directory (os error 2)"
    );
}

struct Project {
    folder: tempfile::TempDir,
    workspace: Workspace,
    programs: Programs,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let workspace = Workspace::open(folder.path()).unwrap();
        // CONCLAVE_CODE_TOOLS names the folder of splice and magellan; without it they come from PATH.
        let programs =
            Programs::find(
                |name| match (name, std::env::var_os("CONCLAVE_CODE_TOOLS")) {
                    ("PATH", Some(folder)) => {
                        let path = std::env::var_os("PATH").unwrap_or_default();
                        let all =
                            std::iter::once(folder.into()).chain(std::env::split_paths(&path));
                        Some(std::env::join_paths(all).unwrap())
                    }
                    _ => std::env::var_os(name),
                },
            );
        Self {
            folder,
            workspace,
            programs,
        }
    }

    fn arguments(tool: Tool, given: &Value) -> Arguments {
        Arguments::parse(tool, given.as_object().unwrap()).unwrap()
    }

    async fn run(&self, tool: Tool, given: &Value) -> Result<ToolOutput, ToolError> {
        let arguments = Self::arguments(tool, given);
        crate::tools::run::run(tool, &arguments, &self.workspace, &self.programs).await
    }

    fn precondition(&self, tool: Tool, given: &Value) -> String {
        let arguments = Self::arguments(tool, given);
        let result = check(tool, &arguments, &self.workspace, &self.programs);
        result.map_or_else(|error| error.to_string(), |()| "holds".to_owned())
    }

    fn file(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap()
    }
}

const MANIFEST: &str =
    "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";

#[tokio::test]
async fn cargo_check_lists_errors_with_their_places() {
    let project = Project::new(&[
        ("sub/Cargo.toml", MANIFEST),
        (
            "sub/src/lib.rs",
            "pub fn f() -> u32 {\n    let unused = 1;\n    missing()\n}\n",
        ),
        ("plain/x.rs", ""),
    ]);
    let given = json!({ "path": "sub/src/lib.rs" });
    assert_eq!(project.precondition(Tool::LspCheck, &given), "holds");
    for (path, expected) in [
        (
            "plain/x.rs",
            "Precondition failed: 'plain/x.rs' is not in a Cargo project",
        ),
        (".", "Precondition failed: '.' is not in a Cargo project"),
        ("none", "Precondition failed: 'none' does not exist"),
    ] {
        assert_eq!(
            project.precondition(Tool::LspCheck, &json!({ "path": path })),
            expected
        );
    }
    let output = project.run(Tool::LspCheck, &given).await.unwrap();
    assert!(
        output.text.starts_with("1 error, 0 warnings.\n"),
        "{}",
        output.text
    );
    assert_eq!(output.value["errors"], 1);
    let found: Vec<_> = output.value["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["file"].as_str(),
                it["line"].as_u64(),
                it["code"].as_str(),
            )
        })
        .collect();
    assert_eq!(found, [(Some("sub/src/lib.rs"), Some(3), Some("E0425")),]);
    assert_eq!(output.changed.len(), 1);
    assert_eq!(output.changed[0].path, "sub/Cargo.lock");
    let again = project.run(Tool::LspCheck, &given).await.unwrap();
    assert_eq!(again.value["diagnostics"], output.value["diagnostics"]);
    assert!(again.changed.is_empty());

    fs::write(
        project.folder.path().join("sub/src/lib.rs"),
        "pub fn f() {}\n",
    )
    .unwrap();
    let clean = project.run(Tool::LspCheck, &given).await.unwrap();
    assert_eq!(clean.text, "0 errors, 0 warnings.");

    fs::write(project.folder.path().join("sub/Cargo.toml"), "[package\n").unwrap();
    let error = project
        .run(Tool::LspCheck, &given)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("lsp_check failed: error: "), "{error}");
}

/// Fails if a program is missing, so that no test passes without it.
fn present(name: &str, program: Option<&std::path::PathBuf>) {
    assert!(
        program.is_some(),
        "{name} is not installed: run `make test`, or CONCLAVE_CODE_TOOLS=$(scripts/code-tools.sh) cargo nextest run"
    );
}

const LIBRARY: &str = "/// Adds.\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn twice(a: i32) -> i32 {\n    add(a, a)\n}\n";

/// Lets `magellan watch` scan the folder once.
fn build_index(magellan: &Path, folder: &Path) {
    use std::io::BufRead as _;
    let mut watch = std::process::Command::new(magellan)
        .args(["watch", "--root", ".", "--db", "codegraph.db"])
        .env("MAGELLAN_LOCAL", "1")
        .current_dir(folder)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Database:")));
    let pid = watch.id().to_string();
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .unwrap();
    watch.wait().unwrap();
}

#[tokio::test]
async fn magellan_lists_symbols_and_references() {
    let project = Project::new(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", &format!("pub mod other;\n{LIBRARY}")),
        (
            "src/other.rs",
            "use crate::add;\n\npub fn thrice(a: i32) -> i32 {\n    add(add(a, a), a)\n}\n",
        ),
        ("notes.txt", "add"),
    ]);
    present("magellan", project.programs.magellan.as_ref());
    let pattern = json!({ "pattern": "src/*.rs" });
    assert_eq!(
        project.precondition(Tool::SymbolsInFile, &pattern),
        "Precondition failed: codegraph.db does not exist"
    );
    let database = project.folder.path().join("codegraph.db");
    build_index(
        project.programs.magellan.as_ref().unwrap(),
        project.folder.path(),
    );
    assert_eq!(project.precondition(Tool::SymbolsInFile, &pattern), "holds");
    let symbols = project.run(Tool::SymbolsInFile, &pattern).await.unwrap();
    println!("{}", symbols.text);
    assert!(
        symbols.text.contains("src/lib.rs:3: fn "),
        "{}",
        symbols.text
    );
    assert!(
        symbols.text.contains("src/other.rs:3: fn "),
        "{}",
        symbols.text
    );
    let one = project
        .run(Tool::SymbolsInFile, &json!({ "pattern": "src/other.rs" }))
        .await
        .unwrap();
    assert_eq!(one.value["count"], 1);
    let to = project
        .run(Tool::ReferencesToSymbolName, &json!({ "name": "add" }))
        .await
        .unwrap();
    println!("{}", to.text);
    assert!(to.text.contains("src/lib.rs:8:5: add"), "{}", to.text);
    assert!(to.text.contains("src/other.rs:1:"), "{}", to.text);
    let tool = Tool::ReferencesFromFileToSymbolName;
    let from = project
        .run(tool, &json!({ "file": "src/lib.rs", "name": "add" }))
        .await
        .unwrap();
    assert_eq!(from.text, "src/lib.rs:8:5: add");
    let none = project
        .run(tool, &json!({ "file": "src/lib.rs", "name": "none" }))
        .await
        .unwrap();
    assert_eq!(none.text, "No references.");
    assert_eq!(
        project
            .run(tool, &json!({ "file": "notes.txt", "name": "add" }))
            .await
            .unwrap_err()
            .to_string(),
        "references_from_file_to_symbol_name failed: 'notes.txt' is not indexed in codegraph.db"
    );
    fs::write(&database, "not a database").unwrap();
    let broken = project
        .run(Tool::SymbolsInFile, &pattern)
        .await
        .unwrap_err()
        .to_string();
    println!("{broken}");
    assert!(broken.starts_with("symbols_in_file failed: "), "{broken}");
}

#[tokio::test]
async fn splice_replaces_a_symbol_and_the_change_can_be_undone() {
    let project = Project::new(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", LIBRARY),
        (
            "patches/add.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    b + a\n}\n",
        ),
        (
            "patches/bad.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    missing\n}\n",
        ),
        (
            "plan.json",
            r#"{"steps":[{"file":"src/lib.rs","symbol":"add","kind":"function","with":"patches/add.rs"}]}"#,
        ),
        (
            "escape.json",
            r#"{"steps":[{"file":"../x.rs","symbol":"add","with":"patches/add.rs"}]}"#,
        ),
    ]);
    present("splice", project.programs.splice.as_ref());
    let patch =
        |with: &str| json!({ "file": "src/lib.rs", "symbol": "add", "kind": "fn", "with": with });
    assert_eq!(
        project.precondition(Tool::SplicePatch, &patch("patches/add.rs")),
        "holds"
    );
    assert_eq!(
        project.precondition(
            Tool::SplicePatch,
            &json!({ "file": "src/lib.rs", "symbol": "nope", "with": "patches/add.rs" })
        ),
        "Precondition failed: symbol 'nope' does not exist in 'src/lib.rs'"
    );
    assert_eq!(
        project.precondition(Tool::SplicePlan, &json!({ "file": "escape.json" })),
        "Operation not allowed: path '../x.rs' leaves the workspace"
    );
    let failed = project
        .run(Tool::SplicePatch, &patch("patches/bad.rs"))
        .await
        .unwrap_err();
    println!("{failed}");
    assert!(
        failed.to_string().starts_with("splice_patch failed: "),
        "{failed}"
    );
    assert!(failed.changed().iter().all(|it| it.path == "Cargo.lock"));
    assert_eq!(project.file("src/lib.rs"), LIBRARY);

    let plan = Project::arguments(Tool::SplicePlan, &json!({ "file": "plan.json" }));
    let named = crate::tools::run::changes(Tool::SplicePlan, &plan, &project.workspace)
        .await
        .unwrap();
    assert_eq!(named, ["src/lib.rs"]);
    for (tool, given) in [
        (Tool::SplicePatch, patch("patches/add.rs")),
        (Tool::SplicePlan, json!({ "file": "plan.json" })),
    ] {
        let output = project.run(tool, &given).await.unwrap();
        println!("{}", output.text);
        assert!(project.file("src/lib.rs").contains("b + a"), "{tool}");
        let change = output
            .changed
            .iter()
            .find(|it| it.path == "src/lib.rs")
            .unwrap();
        assert_eq!(change.before.as_deref(), Some(LIBRARY));
        project
            .workspace
            .restore(
                &change.path,
                change.after_hash.as_deref(),
                change.before.as_deref(),
            )
            .unwrap();
        assert_eq!(project.file("src/lib.rs"), LIBRARY);
    }
    println!(
        "left: {:?}",
        fs::read_dir(project.folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect::<Vec<_>>()
    );
}
