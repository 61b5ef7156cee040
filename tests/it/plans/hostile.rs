//! A model that tries to leave the workspace.

use std::collections::BTreeMap;
use std::path::Path;

use conclave::tools::Tool;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{app, asks, authorize_path, authorizes, post, proposes, step};
use crate::support::MockProvider;

/// Arguments with which a tool could reach something outside.
const ESCAPES: [&str; 16] = [
    "../secret",
    "src/../../secret",
    "/etc/passwd",
    "//etc/passwd",
    "out/secret",
    "file-out",
    "src/./../..//secret",
    "~/secret",
    "$HOME/secret",
    "`id`",
    "--config=/etc/passwd",
    "-rf",
    "a\0b",
    "src/lib.rs\n../secret",
    "\u{202e}terces/..",
    ".git/config",
];

/// A folder with a workspace in it, a secret beside it and links that lead to the secret.
fn laid() -> TempDir {
    let outer = TempDir::new().unwrap();
    let inside = outer.path().join("workspace");
    std::fs::create_dir_all(inside.join("src")).unwrap();
    std::fs::create_dir(inside.join(".git")).unwrap();
    std::fs::write(inside.join(".git/config"), "[core]\n").unwrap();
    std::fs::write(inside.join("src/lib.rs"), "pub fn one() {}\n").unwrap();
    std::fs::write(outer.path().join("secret"), "outside\n").unwrap();
    std::os::unix::fs::symlink(outer.path(), inside.join("out")).unwrap();
    std::os::unix::fs::symlink(outer.path().join("secret"), inside.join("file-out")).unwrap();
    outer
}

/// Returns every file outside the workspace, and git's own, with its content.
fn kept(outer: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(outer).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = std::fs::read_to_string(&path).unwrap();
            files.insert(path.display().to_string(), text);
        } else {
            files.insert(path.display().to_string(), String::new());
        }
    }
    let git = outer.join("workspace/.git/config");
    files.insert("git".into(), std::fs::read_to_string(git).unwrap());
    files
}

#[tokio::test]
async fn no_tool_reaches_what_is_outside_whatever_a_model_writes() {
    let (provider, outer) = (MockProvider::start().await, laid());
    let root = outer.path().join("workspace");
    let app = app(&provider, &root).await;
    let before = kept(outer.path());
    let mut tried = 0;
    for tool in Tool::ALL {
        for (number, escape) in ESCAPES.into_iter().enumerate() {
            let names = tool.parameters().iter().map(|parameter| parameter.name);
            let mut arguments: Value = names.map(|name| (name.to_owned(), json!(escape))).collect();
            if number % 4 == 3 {
                arguments["shell"] = json!("rm -rf /");
            }
            proposes(
                &provider,
                "MUTATE",
                &[step("s", tool.name(), &arguments)],
                &[],
            );
            let (status, plan) = post(&app, "/api/plans", &asks(&format!("{tool} {number}"))).await;
            assert_eq!(status, 200, "{tool} {escape:?}: {plan}");
            let text = plan.to_string();
            if plan["state"] == "proposed" {
                let (_, done) = post(&app, &authorize_path(&plan), &authorizes("plan")).await;
                let text = done.to_string();
                assert!(
                    !text.contains("outside\\n") && !text.contains("root:"),
                    "{text}"
                );
            }
            assert!(!text.contains("outside\\n"), "{text}");
            assert_eq!(kept(outer.path()), before, "{tool} {escape:?}");
            tried += 1;
        }
    }
    assert_eq!(tried, 11 * ESCAPES.len());
}

#[tokio::test]
async fn a_plan_of_another_shape_is_refused_and_nothing_runs() {
    let (provider, outer) = (MockProvider::start().await, laid());
    let app = app(&provider, &outer.path().join("workspace")).await;
    let huge = "x".repeat(200_000);
    for (number, reply) in [
        json!({ "tool": "file_read", "arguments": { "path": "src/lib.rs" } }),
        json!({ "intent": "SHELL", "steps": [], "evidence_referenced": [] }),
        json!({ "intent": "READ", "steps": [{ "tool": "file_read" }], "evidence_referenced": [] }),
        json!(["file_read", "src/lib.rs"]),
        json!({ "intent": "READ", "steps": [step("s", "file_read", &json!({ "path": huge }))], "evidence_referenced": [] }),
    ]
    .into_iter()
    .enumerate()
    {
        provider.reply_with("tool_plan", reply);
        let (status, answer) = post(&app, "/api/plans", &asks(&format!("Shape {number}"))).await;
        let is_refused = status == 502 || answer["state"] == "rejected";
        assert!(is_refused, "{number}: {status} {answer}");
    }
}
