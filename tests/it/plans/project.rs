//! A real Cargo project with an error, from the plan to a clean check. Only the model is scripted:
//! files, `splice`, `cargo check` and the terminal are real.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::{asks, authorize_path, authorizes, explains, post, proposes, step};
use crate::support::process::{Home, conclave};
use crate::support::{MockProvider, Setup, TestApp};

/// The variable with the folder of `splice` and `magellan`. `make test` builds them and sets it.
const TOOLS: &str = "CONCLAVE_CODE_TOOLS";

const BROKEN: &str = "//! Areas.\n\n/// Returns the area of a square.\npub fn area(side: u64) -> u64 {\n    sid * side\n}\n";

const MENDED: &str =
    "/// Returns the area of a square.\npub fn area(side: u64) -> u64 {\n    side * side\n}\n";

/// Returns the variables with which the programs of tools are found.
#[allow(
    clippy::disallowed_methods,
    reason = "the test's own switches, not the service's"
)]
pub fn programs() -> Vec<(String, String)> {
    let folder = std::env::var_os(TOOLS).unwrap_or_else(|| {
        panic!("{TOOLS} names no folder: run `make test`, or {TOOLS}=$(scripts/code-tools.sh) cargo nextest run")
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(PathBuf::from(folder)).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(all).unwrap().into_string().unwrap();
    let mut variables = vec![("PATH".to_owned(), path)];
    for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
        variables.extend(
            std::env::var(name)
                .ok()
                .map(|value| (name.to_owned(), value)),
        );
    }
    variables
}

/// A crate that does not compile, for the error E0425.
pub fn broken_crate() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let manifest =
        "[package]\nname = \"areas\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), BROKEN).unwrap();
    folder
}

/// Has the model propose the mend, and explain what came of it.
pub fn scripted(provider: &MockProvider) {
    let check = |id: &str| step(id, "lsp_check", &json!({ "path": "src/lib.rs" }));
    let steps = [
        check("step_1"),
        step(
            "step_2",
            "file_create",
            &json!({ "path": "area.rs", "contents": MENDED }),
        ),
        step(
            "step_3",
            "splice_patch",
            &json!({ "file": "src/lib.rs", "symbol": "area", "kind": "fn", "with": "area.rs" }),
        ),
        check("step_4"),
    ];
    proposes(provider, "MUTATE", &steps, &[]);
    explains(
        provider,
        "lsp_check listed 1 error. Then area.rs was created and src/lib.rs was patched. After that lsp_check listed 0 errors.",
    );
}

fn lib(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("src/lib.rs")).unwrap()
}

#[tokio::test]
async fn an_error_is_mended_over_http() {
    let (provider, folder) = (MockProvider::start().await, broken_crate());
    let root = folder.path().to_str().unwrap();
    let mut setup = Setup::default().env("TOOLS_WORKSPACE", root);
    setup.variables.extend(programs());
    let app = TestApp::with(&provider, setup).await;
    scripted(&provider);
    let mut request = asks("Fix the E0425 error in src/lib.rs");
    request["file"] = json!("src/lib.rs");
    request["diagnostic"] = json!("E0425");
    let (_, plan) = post(&app, "/api/plans", &request).await;
    assert_eq!(plan["state"], "proposed", "{plan}");
    let changed: Vec<&Value> = plan["changes"].as_array().unwrap().iter().collect();
    let expected = [
        json!({ "stepId": "step_2", "paths": ["area.rs"] }),
        json!({ "stepId": "step_3", "paths": ["src/lib.rs"] }),
    ];
    assert_eq!(changed, [&expected[0], &expected[1]]);
    let (_, done) = post(&app, &authorize_path(&plan), &authorizes("plan")).await;
    let execution = &done["execution"];
    assert_eq!(execution["state"], "completed", "{execution}");
    let output = |number: usize| execution["steps"][number]["output"].as_str().unwrap();
    assert!(output(0).starts_with("1 error"), "{}", output(0));
    assert!(output(0).contains("E0425"), "{}", output(0));
    assert!(output(3).starts_with("0 errors"), "{}", output(3));
    assert_eq!(execution["explanation"]["source"], "model", "{execution}");
    assert!(lib(folder.path()).contains("side * side"));

    // Now the history is evidence, and the undo puts every file back.
    let (_, second) = post(&app, "/api/plans", &request).await;
    let evidence = &second["evidence"];
    assert_eq!(
        evidence["Q3"],
        json!([{ "code": "E0425", "occurrences": 1 }])
    );
    assert_eq!(evidence["Q8"][0]["code"], "E0425", "{evidence}");
    let id = execution["executionId"].as_str().unwrap();
    let user = json!({ "source": "http", "user": { "id": "u1", "name": "Ada" } });
    let (_, undone) = post(&app, &format!("/api/executions/{id}/undo"), &user).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert_eq!(lib(folder.path()), BROKEN);
    assert!(!folder.path().join("area.rs").exists());
    assert!(!folder.path().join("Cargo.lock").exists(), "cargo wrote it");
    let (_, third) = post(&app, "/api/plans", &request).await;
    assert_eq!(
        third["evidence"]["Q1"], evidence["Q1"],
        "the undo is no use of a tool"
    );
}

/// Runs `conclave plan` on a terminal of its own, typing these lines.
async fn at_a_terminal(home: &Home, provider: &MockProvider, root: &Path, typed: &str) -> String {
    let request = "Fix the E0425 error in src/lib.rs";
    let program = env!("CARGO_BIN_EXE_conclave");
    let command = format!("{program} plan '{request}' --file src/lib.rs --diagnostic E0425");
    let url = provider.url();
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(home.folder.path())
        .env_clear()
        .envs(programs())
        .env("CONCLAVE_CONFIG", "config.json")
        .env("ANTHROPIC_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", &url)
        .env("TOOLS_WORKSPACE", root)
        .env("USER", "ada")
        .env("LLVM_PROFILE_FILE", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(typed.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    drop(keyboard);
    let shown = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success(), "{shown}");
    shown
}

#[tokio::test]
async fn an_error_is_mended_at_the_terminal() {
    let (provider, folder, home) = (MockProvider::start().await, broken_crate(), Home::sqlite());
    scripted(&provider);
    let shown = at_a_terminal(&home, &provider, folder.path(), "y\na\n").await;
    for part in [
        "Proposed Plan:",
        "Step 1 of 4: lsp_check",
        "Execute? [y/N/a/c/m]",
        "1 error",
        "Step 2 of 4: file_create",
        "This will MODIFY area.rs.",
        "Execute? [y/N/a/c]",
        "0 errors, 0 warnings.",
        "Result: SUCCESS",
    ] {
        assert!(shown.contains(part), "{part:?} is missing:\n{shown}");
    }
    assert!(lib(folder.path()).contains("side * side"));
    let (folder, home) = (broken_crate(), Home::sqlite());
    let shown = at_a_terminal(&home, &provider, folder.path(), "n\n").await;
    assert!(shown.contains("0 of 4 steps were executed"), "{shown}");
}

#[tokio::test]
async fn the_listing_in_the_documentation_is_as_it_was_printed() {
    let (provider, folder, home) = (MockProvider::start().await, broken_crate(), Home::sqlite());
    scripted(&provider);
    let (url, root) = (provider.url(), folder.path().to_str().unwrap());
    let request = "Fix the E0425 error in src/lib.rs";
    let mut variables = programs();
    let own = [
        ("CONCLAVE_CONFIG", "config.json"),
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("TOOLS_WORKSPACE", root),
    ];
    variables.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let arguments = [
        "plan",
        request,
        "--file",
        "src/lib.rs",
        "--diagnostic",
        "E0425",
        "--yes",
    ];
    let output = conclave(home.folder.path(), &arguments, &variables)
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    let ids = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let printed = ids.replace_all(&printed, "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182");
    let command = arguments[..6]
        .join(" ")
        .replace(request, &format!("\"{request}\""));
    let block = format!(
        "```text\n$ conclave {command} --yes\n{}\n```\n",
        printed.trim_end()
    );
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tools.md");
    let kept = std::fs::read_to_string(file).unwrap();
    let (before, rest) = kept.split_once("<!-- listing -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let generated = format!("{before}<!-- listing -->\n{block}<!-- end -->{after}");
    crate::docs::held("docs/tools.md", &generated);
}
