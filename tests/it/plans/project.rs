//! A real Cargo project with an error, from the plan to a clean check. Only the model is scripted:
//! files, `splice`, `cargo check` and the terminal are real.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::{Bench, asks, authorizes, folder, plan, put, step};
use crate::support::MockProvider;
use crate::support::process::{Home, conclave};

/// The variable with the folder of `splice` and `magellan`. `make test` builds them and sets it.
const TOOLS: &str = "CONCLAVE_CODE_TOOLS";

const REQUEST: &str = "Fix the E0425 error in src/lib.rs";

pub const MANIFEST: &str =
    "[package]\nname = \"areas\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";

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
    let names = ["HOME", "CARGO_HOME", "RUSTUP_HOME"].into_iter();
    let others = names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
    others.chain([("PATH".to_owned(), path)]).collect()
}

/// A crate that does not compile, for the error E0425.
fn broken_crate() -> TempDir {
    folder(&[("Cargo.toml", MANIFEST), ("src/lib.rs", BROKEN)])
}

/// Has the model propose the mend, and explain what came of it.
fn scripted(provider: &MockProvider) {
    let check = |id: &str| step(id, "lsp_check", &json!({ "path": "src/lib.rs" }));
    let create = json!({ "path": "area.rs", "contents": MENDED });
    let patch = json!({ "file": "src/lib.rs", "symbol": "area", "kind": "fn", "with": "area.rs" });
    let steps = [
        check("step_1"),
        step("step_2", "file_create", &create),
        step("step_3", "splice_patch", &patch),
        check("step_4"),
    ];
    provider.reply_with("tool_plan", plan("MUTATE", &steps, &[]));
    let text = "lsp_check listed 1 error. Then area.rs was created and src/lib.rs was patched. After that lsp_check listed 0 errors.";
    provider.reply_with("tool_explain", json!({ "explanation": text }));
}

#[tokio::test]
async fn an_error_is_mended_over_http() {
    let bench = Bench::with(broken_crate(), &programs()).await;
    scripted(&bench.provider);
    let mut request = asks(REQUEST);
    request["file"] = json!("src/lib.rs");
    request["diagnostic"] = json!("E0425");
    let planned = async || bench.post("/api/plans", &request).await.1;
    let plan = planned().await;
    assert_eq!(plan["state"], "proposed", "{plan}");
    let changes = json!([{ "stepId": "step_2", "paths": ["area.rs"] },
                         { "stepId": "step_3", "paths": ["src/lib.rs"] }]);
    assert_eq!(plan["changes"], changes);
    let (_, done) = bench.authorized(&plan, &authorizes("plan")).await;
    let execution = &done["execution"];
    assert_eq!(execution["state"], "completed", "{execution}");
    let output = |number: usize| execution["steps"][number]["output"].as_str().unwrap();
    assert!(
        output(0).starts_with("1 error") && output(0).contains("E0425"),
        "{}",
        output(0)
    );
    assert!(output(3).starts_with("0 errors"), "{}", output(3));
    assert_eq!(execution["explanation"]["source"], "model", "{execution}");
    assert!(bench.content("src/lib.rs").contains("side * side"));

    // Now the history is evidence, and the undo puts every file back.
    let evidence = &planned().await["evidence"];
    assert_eq!(
        evidence["Q3"],
        json!([{ "code": "E0425", "occurrences": 1 }])
    );
    let fixes = evidence["Q8"].as_array().unwrap();
    assert_eq!(fixes.len(), 1, "{evidence}");
    let (gap, at) = (
        &fixes[0]["temporal_gaps"][0],
        &evidence["Q6"][0]["timestamp"],
    );
    assert!(
        gap.is_u64() && at.as_str().unwrap().ends_with('Z'),
        "{evidence}"
    );
    let fix = json!({ "code": "E0425", "fix_attempts": 1, "temporal_gaps": [gap], "tools": ["splice_patch"] });
    assert_eq!(fixes[0], fix);
    assert_eq!(evidence["Q4"][0]["last"], "success");
    let undone = bench.undone(execution).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert_eq!(bench.content("src/lib.rs"), BROKEN);
    for gone in ["area.rs", "Cargo.lock"] {
        assert!(!bench.folder.path().join(gone).exists(), "{gone}");
    }
    let third = planned().await;
    assert_eq!(
        third["evidence"]["Q1"], evidence["Q1"],
        "the undo is no use of a tool"
    );

    // The error occurs again.
    let (_, again) = bench.authorized(&third, &authorizes("plan")).await;
    assert_eq!(again["execution"]["state"], "completed", "{again}");
    let recurring = json!([{ "code": "E0425", "file": "src/lib.rs", "count": 2 }]);
    assert_eq!(planned().await["evidence"]["Q7"], recurring);
}

#[tokio::test]
async fn a_splice_plan_changes_only_the_files_that_were_authorized() {
    let bench = Bench::with(broken_crate(), &programs()).await;
    let names = |file: &str| {
        let step = json!({ "file": file, "symbol": "area", "kind": "fn", "with": "area.rs" });
        json!({ "steps": [step] }).to_string()
    };
    let root = bench.folder.path();
    put(root, "area.rs", MENDED);
    put(root, "src/other.rs", BROKEN);
    put(root, "plan.json", &names("src/lib.rs"));
    let splice = step("step_2", "splice_plan", &json!({ "file": "plan.json" }));
    bench.proposes("MUTATE", std::slice::from_ref(&splice), &[]);
    bench.explains("tool_explain", "splice_plan ran.");
    let plan = bench.planned("Mend the area").await;
    let changes = json!([{ "stepId": "step_2", "paths": ["src/lib.rs"] }]);
    assert_eq!(plan["changes"], changes, "{plan}");
    let mut body = authorizes("check");
    body["plan"] = plan["plan"].clone();
    let (_, checked) = bench.authorized(&plan, &body).await;
    assert_eq!(checked["changes"], changes, "{checked}");
    put(root, "plan.json", &names("src/other.rs"));
    let (_, done) = bench.authorized(&plan, &authorizes("plan")).await;
    let why =
        "Precondition failed: 'plan.json' now names other files than were authorized: src/other.rs";
    assert_eq!(done["execution"]["steps"][0]["error"], why, "{done}");
    assert_eq!(bench.content("src/other.rs"), BROKEN);

    let write = json!({ "path": "plan.json", "contents": names("src/other.rs") });
    let write = step("step_1", "file_write", &write);
    bench.proposes("MUTATE", &[write, splice], &[]);
    let plan = bench.planned("Mend the other area").await;
    let why = "Operation not allowed: path 'plan.json' is changed by an earlier step, so the files that it names cannot be authorized";
    assert_eq!(plan["rejection"]["message"], why, "{plan}");
}

const KEY: &str = "private-key-0123";

/// Returns the environment of `conclave plan` on a workspace.
fn environment(provider: &MockProvider, root: &Path) -> Vec<(String, String)> {
    let own = [
        ("CONCLAVE_CONFIG", "config.json".to_owned()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("ANTHROPIC_BASE_URL", provider.url()),
        ("TOOLS_WORKSPACE", root.display().to_string()),
        ("LLVM_PROFILE_FILE", "/dev/null".to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    programs().into_iter().chain(own).collect()
}

/// Runs `conclave plan` on a terminal of its own, typing these lines. The editor replaces `area.rs` by
/// `edited`.
async fn at_a_terminal(
    home: &Home,
    provider: &MockProvider,
    root: &Path,
    (typed, edited): (&str, &str),
) -> String {
    let program = env!("CARGO_BIN_EXE_conclave");
    let command = format!("{program} plan '{REQUEST}' --file src/lib.rs --diagnostic E0425");
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(home.folder.path())
        .env_clear()
        .envs(environment(provider, root))
        .env("USER", "ada")
        .env("EDITOR", format!("sed -i s/area.rs/{edited}/"))
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
    let shown = at_a_terminal(&home, &provider, folder.path(), ("y\na\n", "other.rs")).await;
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
    let mended = std::fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
    assert!(mended.contains("side * side"));
    let (folder, home) = (broken_crate(), Home::sqlite());
    // A word that begins like a choice is none. A changed plan is shown, and is executed only if the
    // user confirms it.
    for typed in ["n\n", "abort\nyuck\n\n", "m\nno\nn\n"] {
        let shown = at_a_terminal(&home, &provider, folder.path(), (typed, "other.rs")).await;
        assert!(
            shown.contains("nothing more is executed; 0 of 4 steps"),
            "{shown}"
        );
        assert_eq!(shown.contains("path: other.rs"), typed.starts_with('m'));
    }
    // A changed plan that the API refuses is kept for the next edit.
    let shown = at_a_terminal(&home, &provider, folder.path(), ("m\nm\nn\n", KEY)).await;
    let why = "contains a secret of this service";
    assert!(
        shown.contains(why) && shown.contains("m opens your text again"),
        "{shown}"
    );
    let typed = ("cancel\n", "other.rs");
    let shown = at_a_terminal(&home, &provider, folder.path(), typed).await;
    assert!(
        shown.contains("the plan is cancelled; 0 of 4 steps"),
        "{shown}"
    );
}

#[tokio::test]
async fn the_listing_in_the_documentation_is_as_it_was_printed() {
    let (provider, folder, home) = (MockProvider::start().await, broken_crate(), Home::sqlite());
    scripted(&provider);
    let variables = environment(&provider, folder.path());
    let variables = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let variables: Vec<(&str, &str)> = variables.collect();
    let ran = async |arguments: &[&str]| {
        let command = conclave(home.folder.path(), arguments, &variables).output();
        let output = command.await.unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), printed)
    };
    let options = ["--file", "src/lib.rs", "--diagnostic", "E0425", "--yes"];
    let (code, first) = ran(&[&["plan", REQUEST][..], &options].concat()).await;
    assert_eq!(code, Some(0), "{first}");
    let ids = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let printed = ids.replace_all(&first, "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182");
    let (options, printed) = (options.join(" "), printed.trim_end());
    let block = format!("```text\n$ conclave plan \"{REQUEST}\" {options}\n{printed}\n```\n");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tools.md");
    let kept = std::fs::read_to_string(file).unwrap();
    let (before, rest) = kept.split_once("<!-- listing -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let generated = format!("{before}<!-- listing -->\n{block}<!-- end -->{after}");
    crate::docs::held("docs/tools.md", &generated);

    // The execution is shown and taken back by its id. A plan has a price.
    let execution = ids.find_iter(&first).last().unwrap().as_str();
    for (arguments, code, part) in [
        (
            &["show", execution][..],
            0,
            "Authorized: plan (step_1, step_2, step_3, step_4) by ada",
        ),
        (&["plan", "--undo", execution], 0, "restored 'src/lib.rs'"),
        (
            &["plan", "--undo", execution, "--json"],
            0,
            "\"undoes\": \"0",
        ),
        (
            &["plan", "--undo", "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182"],
            4,
            "",
        ),
        (
            &["plan", REQUEST, "--quote"],
            0,
            "for the plan, and again for each execution",
        ),
        (&["plan", "Mend it"], 0, "Proposed Plan:"),
    ] {
        let (found, printed) = ran(arguments).await;
        assert_eq!(found, Some(code), "{arguments:?}: {printed}");
        assert!(printed.contains(part), "{printed}");
    }
    let mended = std::fs::read_to_string(folder.path().join("src/lib.rs"));
    assert_eq!(mended.unwrap(), BROKEN);
    // A rejected plan is shown with the reason.
    let unknown = step("step_1", "shell", &json!({}));
    provider.reply_with("tool_plan*", plan("QUERY", &[unknown], &[]));
    let (code, shown) = ran(&["plan", "Run it"]).await;
    assert_eq!(code, Some(4));
    let id = ids.find_iter(&shown).last().unwrap().as_str();
    let (_, shown) = ran(&["show", id]).await;
    assert!(
        shown.contains("Tool 'shell' not found in available tools\nAvailable tools: file_read"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_plan_belongs_to_the_real_folder_of_its_workspace() {
    let (provider, home) = (MockProvider::start().await, Home::sqlite());
    let (one, two) = (broken_crate(), broken_crate());
    scripted(&provider);
    let link = home.folder.path().join("link");
    std::os::unix::fs::symlink(one.path(), &link).unwrap();
    let planned = async |root: &Path| -> String {
        let variables = environment(&provider, root);
        let variables = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let variables: Vec<(&str, &str)> = variables.collect();
        let arguments = ["plan", REQUEST, "--json"];
        let command = conclave(home.folder.path(), &arguments, &variables).output();
        let printed = command.await.unwrap().stdout;
        let plan: Value = serde_json::from_slice(&printed).unwrap();
        plan["planId"].as_str().unwrap().to_owned()
    };
    let first = planned(one.path()).await;
    assert_eq!(planned(&link).await, first);
    assert_ne!(planned(two.path()).await, first);
    assert_eq!(provider.count_step("tool_plan"), 2);
}
