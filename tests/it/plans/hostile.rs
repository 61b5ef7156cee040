//! A model that tries to leave the workspace.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use conclave::tools::Tool;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Bench, asks, authorizes, plan, put, read, step};

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

/// Returns the files beside the workspace, and git's own in it, with their contents.
fn kept(outer: &Path) -> BTreeMap<String, String> {
    let beside = std::fs::read_dir(outer)
        .unwrap()
        .map(|it| it.unwrap().path());
    let all = beside.chain([outer.join("workspace/.git/config")]);
    let kept = all.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (path.display().to_string(), text)
    });
    kept.collect()
}

#[tokio::test]
async fn no_tool_reaches_what_is_outside_whatever_a_model_writes() {
    let outer = TempDir::new().unwrap();
    put(outer.path(), "secret", "outside\n");
    let mut inside = tempfile::Builder::new();
    let inside = inside.prefix("workspace").rand_bytes(0);
    let inside = inside.tempdir_in(outer.path()).unwrap();
    put(inside.path(), ".git/config", "[core]\n");
    put(inside.path(), "src/lib.rs", "pub fn one() {}\n");
    symlink(outer.path(), inside.path().join("out")).unwrap();
    symlink(outer.path().join("secret"), inside.path().join("file-out")).unwrap();
    let bench = Bench::with(inside, &[]).await;
    let before = kept(outer.path());
    assert_eq!(before.len(), 3);
    for tool in Tool::ALL {
        for (number, escape) in ESCAPES.into_iter().enumerate() {
            let names = tool.parameters().iter().map(|it| it.name.to_owned());
            let mut arguments: Value = names.map(|name| (name, json!(escape))).collect();
            if number % 4 == 3 {
                arguments["shell"] = json!("rm -rf /");
            }
            bench.proposes("MUTATE", &[step("s", tool.name(), &arguments)], &[]);
            let message = asks(&format!("{tool} {number}"));
            let (status, plan) = bench.post("/api/plans", &message).await;
            assert_eq!(status, 200, "{tool} {escape:?}: {plan}");
            let mut said = plan.to_string();
            if plan["state"] == "proposed" {
                let (_, done) = bench.authorized(&plan, &authorizes("plan")).await;
                said += &done.to_string();
            }
            assert!(
                !said.contains("outside\\n") && !said.contains("root:"),
                "{said}"
            );
            assert_eq!(kept(outer.path()), before, "{tool} {escape:?}");
        }
    }
}

/// The rest of a cut plan may be what makes it sound.
#[tokio::test]
async fn an_answer_that_was_cut_is_malformed() {
    let bench = Bench::new().await;
    let write = step(
        "t",
        "file_write",
        &json!({ "path": "src/lib.rs", "contents": "one two three" }),
    );
    let text = plan("MUTATE", &[read("src/lib.rs"), write], &[]).to_string();
    for (number, end) in [" three", ",\"tool\":\"file_write", "},{"]
        .iter()
        .enumerate()
    {
        let at = text.rfind(end).unwrap_or_else(|| panic!("{end} in {text}"));
        bench.provider.reply_text("tool_plan", &text[..at]);
        bench.provider.reply_text("tool_plan/repair", &text[..at]);
        let (status, answer) = bench
            .post("/api/plans", &asks(&format!("Cut {number}")))
            .await;
        assert_eq!(status, 502, "{end}: {answer}");
        // A repair may be whole.
        bench.provider.reply_text("tool_plan/repair", text.as_str());
        let (status, answer) = bench
            .post("/api/plans", &asks(&format!("Mend {number}")))
            .await;
        assert_eq!(
            (status, answer["plan"]["steps"].as_array().unwrap().len()),
            (200, 2)
        );
    }
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    for call in ["tool_explain", "tool_explain/repair"] {
        bench
            .provider
            .reply_text(call, r#"{"explanation": "src/lib.rs has 3 li"#);
    }
    let (_, execution) = bench.executed("Show it").await;
    assert_eq!(execution["explanation"]["source"], "output", "{execution}");
}

#[tokio::test]
async fn a_plan_of_another_shape_is_refused_and_nothing_runs() {
    let bench = Bench::new().await;
    let shaped = |intent: &str, steps: Value| json!({ "intent": intent, "steps": steps, "evidence_referenced": [] });
    for (number, reply) in [
        json!({ "tool": "file_read", "arguments": { "path": "src/lib.rs" } }),
        json!(["file_read", "src/lib.rs"]),
        shaped("SHELL", json!([])),
        shaped("READ", json!([{ "tool": "file_read" }])),
        shaped("READ", json!([read(&"x".repeat(200_000))])),
    ]
    .into_iter()
    .enumerate()
    {
        bench.provider.reply_with("tool_plan", reply);
        let message = asks(&format!("Shape {number}"));
        let (status, answer) = bench.post("/api/plans", &message).await;
        let is_refused = status == 502 || answer["state"] == "rejected";
        assert!(is_refused, "{number}: {status} {answer}");
    }
}
