//! The acceptance criteria A1 to A8 of tool plans, each with a test of its name.

use conclave::journal::{Event, RejectionKind};
use serde_json::{Value, json};

use super::{Bench, LIB, asks, authorizes, create, folder, plan, read, step};

#[tokio::test]
async fn a1_the_model_is_a_planner_only() {
    let bench = Bench::new().await;
    // A call of a tool is no plan.
    let call = json!({ "tool": "file_create", "arguments": { "path": "a.txt", "contents": "" } });
    for pattern in ["tool_plan", "tool_plan/repair"] {
        bench.provider.reply_with(pattern, call.clone());
    }
    let (status, _) = bench.post("/api/plans", &asks("Call it")).await;
    assert_eq!(status, 502);
    // The model has one chance to write one. It sees what was wrong.
    let steps = plan("READ", &[read("src/lib.rs")], &[]);
    bench.provider.reply_with("tool_plan/repair", steps);
    assert_eq!(bench.planned("Mend it").await["state"], "proposed");
    let repair = bench.provider.calls_of("tool_plan/repair").pop().unwrap();
    assert!(
        repair.prompt().contains("did not satisfy"),
        "{}",
        repair.prompt()
    );
    // A plan that does not fit the tools is rejected with the reason, before anything runs.
    let unknown = [create("s", "a.txt"), step("t", "shell", &json!({}))];
    bench.proposes("MUTATE", &unknown, &[]);
    assert_eq!(bench.planned("Use a shell").await["state"], "rejected");
    // A sound plan changes nothing until its user authorizes it.
    bench.proposes("MUTATE", &[create("s", "a.txt")], &[]);
    let view = bench.planned("Create it").await;
    assert_eq!(view["state"], "proposed", "{view}");
    assert!(!bench.folder.path().join("a.txt").exists());
}

#[tokio::test]
async fn a2_the_model_sees_and_cites_summaries_only() {
    let bench = Bench::new().await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "src/lib.rs has 3 lines.");
    let (first, _) = bench.executed("Show it").await;
    // The execution is evidence now, so the same request is planned anew, and may cite it.
    bench.proposes("READ", &[read("src/lib.rs")], &["Q1", "Q4"]);
    let second = bench.planned("Show it").await;
    assert_ne!(first["planId"], second["planId"]);
    assert_eq!(second["state"], "proposed", "{second}");
    let counted =
        json!([{ "tool": "file_read", "count": 1, "successes": 1, "last_success": true }]);
    assert_eq!(second["evidence"]["Q1"], counted);
    assert_eq!(second["evidence"]["Q4"][0]["file"], "src/lib.rs");
    let prompt = bench.provider.calls_of("tool_plan").pop().unwrap().prompt();
    assert!(prompt.contains("- Q1 (tool executions): [{"), "{prompt}");
    assert!(prompt.contains("- Q8 (prior fixes): no evidence found"));
    assert!(prompt.contains("plan without the tools that read the index\n"));
    for internal in ["SELECT", "tool_steps", "pub fn one"] {
        assert!(!prompt.contains(internal), "{internal}: {prompt}");
    }
    // A citation of an empty query is refused in a plan, and a wrong figure in an explanation.
    bench.proposes("READ", &[read("src/lib.rs")], &["Q8"]);
    let empty = bench.planned("As last time").await;
    assert_eq!(empty["rejection"]["kind"], "insufficient_evidence");
    bench.proposes("READ", &[read("src/lib.rs")], &["Q4"]);
    bench.explains("tool_explain", "Q4 shows 99 executions on src/lib.rs.");
    bench.explains("tool_restate", "Q4 shows 1 execution on src/lib.rs.");
    let (_, execution) = bench.executed("Show it with its history").await;
    let explanation = &execution["explanation"];
    assert_eq!(explanation["source"], "restated", "{execution}");
    let wrong = "Response states '99' with Q4, which did not return it";
    assert_eq!(explanation["rejected"][0], wrong);
}

#[tokio::test]
async fn a3_errors_of_tools_arrive_word_for_word() {
    let bench = Bench::new().await;
    let search = step("s", "file_search", &json!({ "pattern": "(", "root": "." }));
    bench.proposes("QUERY", &[search], &[]);
    bench.explains("tool_explain", "The pattern could not be read.");
    let (_, execution) = bench.executed("Search it").await;
    let error = execution["steps"][0]["error"].as_str().unwrap();
    let begin = "file_search failed: invalid pattern '('";
    assert!(error.starts_with(begin), "{error}");
    // The model reads it as it is. What it rewords is refused.
    let mut calls = bench.provider.calls_of("tool_explain");
    assert!(calls.pop().unwrap().prompt().contains(error));
    let explanation = &execution["explanation"];
    assert_eq!(explanation["source"], "output");
    assert!(explanation["text"].as_str().unwrap().contains(error));
    let run = execution["executionId"].as_str().unwrap().parse().unwrap();
    let entries = bench.app.app.entries(run).await.unwrap();
    let has_it = |event: &Event| matches!(event, Event::StepFinished(finished) if finished.error.as_deref() == Some(error));
    assert!(entries.iter().any(|entry| has_it(&entry.event)));
}

#[tokio::test]
async fn a4_execution_is_in_order_and_never_repeated() {
    let bench = Bench::new().await;
    let ids = [("one", "1.txt"), ("two", "1.txt"), ("three", "3.txt")];
    let steps = ids.map(|(id, path)| create(id, path));
    bench.proposes("MUTATE", &steps, &[]);
    bench.explains("tool_explain", "1.txt was created.");
    let first = bench.planned("Create three").await;
    let same = bench.planned("Create three").await;
    assert_eq!(first["planId"], same["planId"]);
    assert_eq!(bench.provider.calls_of("tool_plan").len(), 1);
    let (_, done) = bench.authorized(&first, &authorizes("plan")).await;
    let steps = done["execution"]["steps"].as_array().unwrap();
    let ran: Vec<Value> = steps
        .iter()
        .map(|it| json!([it["stepId"], it["ok"]]))
        .collect();
    assert_eq!(json!(ran), json!([["one", true], ["two", false]]));
    let error = "Precondition failed: file '1.txt' already exists";
    assert_eq!(steps[1]["error"], error, "right before the step");
    assert!(!bench.folder.path().join("3.txt").exists());
}

#[tokio::test]
async fn a5_an_execution_id_reconstructs_the_conversation() {
    let bench = Bench::new().await;
    let write = json!({ "path": "src/lib.rs", "contents": "pub fn two() {}\n" });
    let steps = [
        read("src/lib.rs"),
        step("w", "file_write", &write),
        create("t", "a.txt"),
    ];
    let text = "src/lib.rs was read. Then it was written and a.txt was created.";
    bench.proposes("MUTATE", &steps, &[]);
    bench.explains("tool_explain", text);
    let (view, execution) = bench.executed("Replace one by two").await;
    assert_eq!(view["changes"][0]["paths"], json!(["src/lib.rs"]));
    assert_eq!(view["plan"]["steps"][1]["requires_confirmation"], true);
    let id = execution["executionId"].as_str().unwrap();
    let (status, known) = bench.app.get(&format!("/api/executions/{id}")).await;
    assert_eq!((status, &known), (200, &execution), "it is in the journals");
    for (pointer, expected) in [
        ("/state", json!("completed")),
        ("/request", json!("Replace one by two")),
        ("/evidence", view["evidence"].clone()),
        ("/plan/steps", view["plan"]["steps"].clone()),
        ("/authorization/by", json!("Ada (u1)")),
        ("/steps/0/output", json!(LIB)),
        ("/steps/2/changed/0/path", json!("a.txt")),
        ("/explanation/text", json!(text)),
        ("/explanation/source", json!("model")),
        ("/explanation/rejected", json!([])),
        ("/budget/calls/0/call", json!("tool_explain")),
    ] {
        assert_eq!(known.pointer(pointer), Some(&expected), "{pointer}");
    }
    let input = known["prompt"]["input"].as_str().unwrap();
    assert!(input.contains("Replace one by two"), "{input}");
    assert_eq!(known["prompt"]["promptsHash"].as_str().unwrap().len(), 64);
    assert!(view["budget"]["spentUsd"].as_f64().unwrap() > 0.0);
    for run in [id, view["planId"].as_str().unwrap()] {
        let (_, journal) = bench.app.get(&format!("/api/runs/{run}/journal")).await;
        assert_eq!(journal["verified"], true, "{run}");
    }
}

#[tokio::test]
async fn a6_inference_is_screened() {
    let bench = Bench::new().await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    let german = "The file was read. Das behebt den Fehler wahrscheinlich, denn der Import fehlte.";
    for (text, kind) in [
        ("This is 90% likely to succeed.", "confidence score"),
        ("The missing import caused the error.", "causal language"),
        ("This change is safe.", "risk assessment"),
        ("You should not edit this file.", "policy statement"),
        (german, "not in English"),
    ] {
        bench.explains("tool_explain", text);
        bench.explains("tool_restate", text);
        let (_, execution) = bench.executed(&format!("Show it: {kind}")).await;
        let explanation = &execution["explanation"];
        assert_eq!(explanation["source"], "output", "{text}");
        let rejected = explanation["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 2, "one restatement: {explanation}");
        assert!(
            rejected[0].as_str().unwrap().contains(kind),
            "{explanation}"
        );
        let shown = explanation["text"].as_str().unwrap();
        assert!(
            shown.contains("pub fn one()") && !shown.contains(text),
            "{shown}"
        );
    }
}

#[test]
fn a7_no_file_of_the_tools_is_long() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tools");
    let mut files = 0;
    for file in crate::language::rust_files(folder.as_ref()) {
        let path = file.display().to_string();
        if path.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().count();
        assert!(lines <= 300, "{path} has {lines} lines");
        files += 1;
    }
    assert!(files > 30);
}

#[tokio::test]
async fn a8_every_rejection_is_covered_and_the_same_word_for_word() {
    let big = "x".repeat((1 << 20) + 1);
    let files = [
        ("src/lib.rs", LIB),
        ("Cargo.toml", "[package]\nname = \"one\"\n"),
        ("big.txt", &big),
    ];
    let bench = Bench::with(folder(&files), &super::project::programs()).await;
    let one = |intent: &str, tool: &str, arguments: Value| {
        plan(intent, &[step("s", tool, &arguments)], &[])
    };
    let file = |tool: &str, path: &str| match tool {
        "file_read" => one("READ", tool, json!({ "path": path })),
        _ => one("MUTATE", tool, json!({ "path": path, "contents": "" })),
    };
    let patch = json!({ "file": "src/lib.rs", "symbol": "two", "with": "src/lib.rs" });
    let no_symbol = json!({ "file": "src/lib.rs", "with": "x.rs" });
    let written = json!({ "path": "src/lib.rs", "contents": "" });
    let sound = read("src/lib.rs");
    let mut claims = sound.clone();
    claims["precondition"] = json!("Query 8 shows that earlier fixes failed.");
    let odd = step("a b", "file_read", &json!({ "path": "src/lib.rs" }));
    let plans = [
        one("READ", "shell", json!({})),
        one("READ", "file_read", json!({})),
        file("file_read", ""),
        one("READ", "file_search", json!({ "pattern": "one" })),
        one("MUTATE", "splice_patch", no_symbol),
        file("file_read", "src/gone.rs"),
        file("file_read", "src"),
        file("file_read", "big.txt"),
        file("file_write", "src/gone.rs"),
        file("file_create", "src/lib.rs"),
        one(
            "QUERY",
            "file_glob",
            json!({ "pattern": "*", "root": "gone" }),
        ),
        one("MUTATE", "splice_patch", patch),
        one("MUTATE", "splice_plan", json!({ "file": "src/lib.rs" })),
        one("QUERY", "symbols_in_file", json!({ "pattern": "src/*.rs" })),
        one("QUERY", "lsp_check", json!({ "path": "gone" })),
        file("file_read", "../secret"),
        file("file_read", "/etc/passwd"),
        file("file_write", ".git/config"),
        one("READ", "file_write", written),
        plan("READ", std::slice::from_ref(&sound), &["Q8"]),
        plan("READ", std::slice::from_ref(&sound), &["Q9"]),
        plan("READ", &[], &[]),
        plan("READ", &[sound.clone(), sound], &[]),
        plan("READ", &[odd], &[]),
        plan("READ", &[claims], &[]),
    ];
    let mut rounds = vec![];
    for round in 0..2 {
        let mut lines = vec![];
        for (number, proposed) in plans.iter().enumerate() {
            bench.provider.reply_with("tool_plan", proposed.clone());
            let view = bench
                .planned(&format!("Request {number} in round {round}"))
                .await;
            assert_eq!(view["state"], "rejected", "{number}: {view}");
            let (status, _) = bench.authorized(&view, &authorizes("plan")).await;
            assert_eq!(status, 409, "nothing of it runs");
            let text = |name: &str| view["rejection"][name].as_str().unwrap().to_owned();
            lines.push(format!("{}: {}", text("kind"), text("message")));
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
