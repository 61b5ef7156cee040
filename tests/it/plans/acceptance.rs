//! The acceptance criteria A1 to A8 of tool plans, each with a test of its name.

use conclave::journal::{Event, RejectionKind};
use serde_json::{Value, json};

use super::{
    app, asks, authorize_path, authorizes, executed, explains, plan, post, proposes, step,
    workspace,
};
use crate::support::MockProvider;

fn read(path: &str) -> Value {
    step("s", "file_read", &json!({ "path": path }))
}

fn create(id: &str, path: &str) -> Value {
    step(
        id,
        "file_create",
        &json!({ "path": path, "contents": "new\n" }),
    )
}

#[tokio::test]
async fn a1_the_model_is_a_planner_only() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    // A call of a tool is no plan.
    provider.reply_with(
        "tool_plan",
        json!({ "tool": "file_create", "arguments": { "path": "a.txt", "contents": "" } }),
    );
    let (status, _) = post(&app, "/api/plans", &asks("Call it")).await;
    assert_eq!(status, 502);
    // A plan that does not fit the tools is rejected with the reason, before anything runs.
    proposes(
        &provider,
        "MUTATE",
        &[create("s", "a.txt"), step("t", "shell", &json!({}))],
        &[],
    );
    let (_, rejected) = post(&app, "/api/plans", &asks("Use a shell")).await;
    assert_eq!(rejected["state"], "rejected");
    // A sound plan changes nothing until its user authorizes it.
    proposes(&provider, "MUTATE", &[create("s", "a.txt")], &[]);
    let (_, view) = post(&app, "/api/plans", &asks("Create it")).await;
    assert_eq!(view["state"], "proposed", "{view}");
    assert!(!folder.path().join("a.txt").exists());
}

#[tokio::test]
async fn a2_the_model_sees_and_cites_summaries_only() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    proposes(&provider, "READ", &[read("src/lib.rs")], &[]);
    explains(&provider, "src/lib.rs has 3 lines.");
    executed(&app, "Show it").await;
    let (_, second) = post(&app, "/api/plans", &asks("Show it again")).await;
    let prompt = provider.calls_of("tool_plan").pop().unwrap().prompt();
    let summary = r#"- Q1 (tool executions): [{"count":1,"last_success":true,"tool":"file_read"}]"#;
    assert!(
        prompt.contains("- Q1 (tool executions): [{"),
        "{prompt}, not {summary}"
    );
    assert!(
        prompt.contains("- Q8 (prior fixes): no evidence found"),
        "{prompt}"
    );
    for internal in ["SELECT", "tool_steps", "pub fn one"] {
        assert!(!prompt.contains(internal), "{internal}: {prompt}");
    }
    assert_eq!(second["state"], "proposed");
    // A citation of an empty query is refused in a plan, and a wrong figure in an explanation.
    proposes(&provider, "READ", &[read("src/lib.rs")], &["Q8"]);
    let (_, empty) = post(&app, "/api/plans", &asks("As last time")).await;
    assert_eq!(empty["rejection"]["kind"], "insufficient_evidence");
    proposes(&provider, "READ", &[read("src/lib.rs")], &["Q4"]);
    explains(&provider, "Q4 shows 99 executions on src/lib.rs.");
    provider.reply_with(
        "tool_restate",
        json!({ "explanation": "Q4 shows 1 execution on src/lib.rs." }),
    );
    let (_, execution) = executed(&app, "Show it with its history").await;
    assert_eq!(
        execution["explanation"]["source"], "restated",
        "{execution}"
    );
    assert_eq!(
        execution["explanation"]["rejected"][0],
        "Response states '99' with Q4, which did not return it"
    );
}

#[tokio::test]
async fn a3_errors_of_tools_arrive_word_for_word() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let search = step("s", "file_search", &json!({ "pattern": "(", "root": "." }));
    proposes(&provider, "QUERY", &[search], &[]);
    explains(&provider, "The pattern could not be read.");
    let (_, execution) = executed(&app, "Search it").await;
    let error = execution["steps"][0]["error"].as_str().unwrap().to_owned();
    assert!(
        error.starts_with("file_search failed: invalid pattern '('"),
        "{error}"
    );
    let asked = provider.calls_of("tool_explain").pop().unwrap().prompt();
    assert!(
        asked.contains(&error),
        "the model reads it as it is: {asked}"
    );
    assert_eq!(
        execution["explanation"]["source"], "output",
        "the reworded one is refused"
    );
    let shown = execution["explanation"]["text"].as_str().unwrap();
    assert!(shown.contains(&error), "{shown}");
    let run = execution["executionId"].as_str().unwrap().parse().unwrap();
    let entries = app.app.entries(run).await.unwrap();
    let kept = entries.iter().any(|entry| {
        matches!(&entry.event, Event::StepFinished(finished) if finished.error.as_deref() == Some(&error))
    });
    assert!(kept, "the journal has it");
}

#[tokio::test]
async fn a4_execution_is_in_order_and_never_repeated() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let steps = [
        create("one", "1.txt"),
        create("two", "1.txt"),
        create("three", "3.txt"),
    ];
    proposes(&provider, "MUTATE", &steps, &[]);
    explains(&provider, "1.txt was created.");
    let (_, first) = post(&app, "/api/plans", &asks("Create three")).await;
    let (_, same) = post(&app, "/api/plans", &asks("Create three")).await;
    assert_eq!(
        first["planId"], same["planId"],
        "the same inputs give the same plan"
    );
    assert_eq!(provider.calls_of("tool_plan").len(), 1);
    let (_, done) = post(&app, &authorize_path(&first), &authorizes("plan")).await;
    let steps = done["execution"]["steps"].as_array().unwrap();
    let ran: Vec<_> = steps
        .iter()
        .map(|step| (step["stepId"].as_str().unwrap(), step["ok"] == true))
        .collect();
    assert_eq!(
        ran,
        [("one", true), ("two", false)],
        "it halts, and tries nothing again"
    );
    assert!(!folder.path().join("3.txt").exists());
}

#[tokio::test]
async fn a5_an_execution_id_reconstructs_the_conversation() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    proposes(
        &provider,
        "MUTATE",
        &[read("src/lib.rs"), create("t", "a.txt")],
        &[],
    );
    explains(&provider, "src/lib.rs was read. Then a.txt was created.");
    let (view, execution) = executed(&app, "Read and create").await;
    let id = execution["executionId"].as_str().unwrap();
    let (_, known) = app.get(&format!("/api/executions/{id}")).await;
    assert_eq!(known["request"], "Read and create");
    assert!(
        known["prompt"]["input"]
            .as_str()
            .unwrap()
            .contains("Read and create")
    );
    assert_eq!(known["prompt"]["promptsHash"].as_str().unwrap().len(), 64);
    assert_eq!(known["evidence"], view["evidence"]);
    assert_eq!(known["plan"]["steps"], view["plan"]["steps"]);
    assert_eq!(known["authorization"]["by"], "Ada (u1)");
    assert_eq!(
        known["steps"][0]["output"],
        "pub fn one() -> u32 {\n    1\n}\n"
    );
    assert_eq!(known["steps"][1]["changed"][0]["path"], "a.txt");
    assert_eq!(
        known["explanation"]["text"],
        "src/lib.rs was read. Then a.txt was created."
    );
    assert_eq!(known["budget"]["calls"][0]["call"], "tool_explain");
    assert!(view["budget"]["spentUsd"].as_f64().unwrap() > 0.0);
    for run in [id, view["planId"].as_str().unwrap()] {
        let (_, journal) = app.get(&format!("/api/runs/{run}/journal")).await;
        assert_eq!(journal["verified"], true, "{run}");
    }
}

#[tokio::test]
async fn a6_inference_is_screened() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    proposes(&provider, "READ", &[read("src/lib.rs")], &[]);
    for (number, (text, kind)) in [
        ("This is 90% likely to succeed.", "confidence score"),
        ("The missing import caused the error.", "causal language"),
        ("This change is safe.", "risk assessment"),
        ("You should not edit this file.", "policy statement"),
        (
            "Das behebt den Fehler wahrscheinlich, denn der Import fehlte in dieser Datei.",
            "not in English",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        explains(&provider, text);
        provider.reply_with("tool_restate", json!({ "explanation": text }));
        let (_, execution) = executed(&app, &format!("Show it, {number}")).await;
        let explanation = &execution["explanation"];
        assert_eq!(explanation["source"], "output", "{text}");
        let rejected = explanation["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 2, "one restatement: {explanation}");
        assert!(
            rejected[0].as_str().unwrap().contains(kind),
            "{explanation}"
        );
        assert!(!explanation["text"].as_str().unwrap().contains(text));
    }
}

#[test]
fn a7_no_file_of_the_tools_is_long() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tools");
    let mut files = 0;
    for file in crate::language::rust_files(folder.as_ref()) {
        let path = file.display().to_string();
        if path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/corpus.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        assert!(
            code.lines().count() <= 300,
            "{path} has {} lines",
            code.lines().count()
        );
        files += 1;
    }
    assert!(files > 30);
}

#[tokio::test]
async fn a8_every_rejection_is_covered_and_the_same_word_for_word() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let root = folder.path();
    std::fs::write(root.join("Cargo.toml"), "[package]\nname = \"one\"\n").unwrap();
    std::fs::write(root.join("big.txt"), "x".repeat((1 << 20) + 1)).unwrap();
    let mut setup = crate::support::Setup::default().env("TOOLS_WORKSPACE", root.to_str().unwrap());
    setup.variables.extend(super::project::programs());
    let app = crate::support::TestApp::with(&provider, setup).await;
    let one = |intent: &str, tool: &str, arguments: Value| {
        plan(intent, &[step("s", tool, &arguments)], &[])
    };
    let patch =
        |symbol: &str| json!({ "file": "src/lib.rs", "symbol": symbol, "with": "src/lib.rs" });
    let plans = [
        one("READ", "shell", json!({})),
        one("READ", "file_read", json!({})),
        one("READ", "file_read", json!({ "path": "" })),
        one("READ", "file_search", json!({ "pattern": "one" })),
        one(
            "MUTATE",
            "splice_patch",
            json!({ "file": "src/lib.rs", "with": "x.rs" }),
        ),
        one("READ", "file_read", json!({ "path": "src/gone.rs" })),
        one("READ", "file_read", json!({ "path": "src" })),
        one("READ", "file_read", json!({ "path": "big.txt" })),
        one(
            "MUTATE",
            "file_write",
            json!({ "path": "src/gone.rs", "contents": "" }),
        ),
        one(
            "MUTATE",
            "file_create",
            json!({ "path": "src/lib.rs", "contents": "" }),
        ),
        one(
            "QUERY",
            "file_glob",
            json!({ "pattern": "*", "root": "gone" }),
        ),
        one("MUTATE", "splice_patch", patch("two")),
        one("MUTATE", "splice_plan", json!({ "file": "src/lib.rs" })),
        one("QUERY", "symbols_in_file", json!({ "pattern": "src/*.rs" })),
        one("QUERY", "lsp_check", json!({ "path": "gone" })),
        one("READ", "file_read", json!({ "path": "../secret" })),
        one("READ", "file_read", json!({ "path": "/etc/passwd" })),
        one(
            "MUTATE",
            "file_write",
            json!({ "path": ".git/config", "contents": "" }),
        ),
        one(
            "READ",
            "file_write",
            json!({ "path": "src/lib.rs", "contents": "" }),
        ),
        plan("READ", &[read("src/lib.rs")], &["Q8"]),
        plan("READ", &[read("src/lib.rs")], &["Q9"]),
        plan("READ", &[], &[]),
        plan("READ", &[read("src/lib.rs"), read("src/lib.rs")], &[]),
        plan(
            "READ",
            &[step("a b", "file_read", &json!({ "path": "src/lib.rs" }))],
            &[],
        ),
    ];
    let mut rounds = vec![];
    for round in 0..2 {
        let mut lines = vec![];
        for (number, proposed) in plans.iter().enumerate() {
            provider.reply_with("tool_plan", proposed.clone());
            let request = asks(&format!("Request {number} in round {round}"));
            let (_, view) = post(&app, "/api/plans", &request).await;
            assert_eq!(view["state"], "rejected", "{number}: {view}");
            let (status, _) = post(&app, &authorize_path(&view), &authorizes("plan")).await;
            assert_eq!(status, 409, "nothing of it runs");
            let rejection = &view["rejection"];
            let kind = rejection["kind"].as_str().unwrap();
            lines.push(format!(
                "{kind}: {}",
                rejection["message"].as_str().unwrap()
            ));
        }
        rounds.push(lines.join("\n"));
    }
    assert_eq!(rounds[0], rounds[1]);
    for kind in [
        RejectionKind::UnknownTool,
        RejectionKind::InvalidArguments,
        RejectionKind::InvalidPlan,
        RejectionKind::PreconditionFailed,
        RejectionKind::InsufficientEvidence,
        RejectionKind::ForbiddenOperation,
    ] {
        let name = serde_json::to_value(kind).unwrap();
        assert!(rounds[0].contains(name.as_str().unwrap()), "{name}");
    }
    insta::assert_snapshot!("plan_rejections", rounds[0]);
}
