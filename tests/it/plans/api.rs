//! The API of plans: proposal, authorization, execution, explanation, undo.

use conclave::journal::Event;
use serde_json::{Value, json};

use super::{
    app, asks, authorize_path, authorizes, executed, explains, plan, post, proposes, step,
    workspace,
};
use crate::support::{MockProvider, Setup, TestApp};

#[tokio::test]
async fn a_plan_is_authorized_executed_explained_and_taken_back() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let steps = [
        step("step_1", "file_read", &json!({ "path": "src/lib.rs" })),
        step(
            "step_2",
            "file_write",
            &json!({ "path": "src/lib.rs", "contents": "pub fn two() {}\n" }),
        ),
        step(
            "step_3",
            "file_create",
            &json!({ "path": "src/new.rs", "contents": "// new\n" }),
        ),
    ];
    provider.reply_with("tool_plan", plan("MUTATE", &steps, &[]));
    explains(
        &provider,
        "src/lib.rs was read, then it was written, then src/new.rs was created.",
    );
    let (plan, execution) = executed(&app, "Replace one by two").await;
    assert_eq!(
        plan["changes"][0],
        json!({ "stepId": "step_2", "paths": ["src/lib.rs"] })
    );
    assert_eq!(plan["plan"]["steps"][1]["requires_confirmation"], true);
    assert_eq!(execution["state"], "completed", "{execution}");
    assert_eq!(execution["explanation"]["source"], "model");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name));
    assert_eq!(read("src/lib.rs").unwrap(), "pub fn two() {}\n");
    assert_eq!(read("src/new.rs").unwrap(), "// new\n");

    let id = execution["executionId"].as_str().unwrap();
    let (status, known) = app.get(&format!("/api/executions/{id}")).await;
    assert_eq!(
        (status, &known),
        (200, &execution),
        "it is reconstructed from the journals"
    );
    assert!(
        known["prompt"]["input"]
            .as_str()
            .unwrap()
            .contains("Replace one by two")
    );
    let run: conclave::domain::RunId = id.parse().unwrap();
    let entries = app.app.entries(run).await.unwrap();
    assert!(
        entries
            .iter()
            .any(|entry| matches!(&entry.event, Event::StepStarted(s) if !s.before.is_empty()))
    );

    let path = authorize_path(&plan);
    let (status, closed) = post(&app, &path, &authorizes("plan")).await;
    assert_eq!(
        (status, closed["type"].as_str()),
        (409, Some("urn:conclave:problem:plan-closed"))
    );

    let user = json!({ "source": "http", "user": { "id": "u1", "name": "Ada" } });
    let undo = format!("/api/executions/{id}/undo");
    let (status, undone) = post(&app, &undo, &user).await;
    assert_eq!(
        (status, undone["state"].as_str()),
        (200, Some("completed")),
        "{undone}"
    );
    assert_eq!(
        read("src/lib.rs").unwrap(),
        "pub fn one() -> u32 {\n    1\n}\n"
    );
    assert!(read("src/new.rs").is_err(), "the created file is gone");
    let (status, again) = post(&app, &undo, &user).await;
    assert_eq!(
        (status, again["executionId"].clone()),
        (200, undone["executionId"].clone())
    );
}

#[tokio::test]
async fn a_plan_is_quoted_before_it_is_asked() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let (status, price) = post(&app, "/api/plans/quote", &asks("Show it")).await;
    assert_eq!(
        (status, &price["capUsd"], &price["calls"]),
        (200, &json!(0.1), &json!(2))
    );
    let (_, longer) = post(&app, "/api/plans/quote", &asks(&"Show it. ".repeat(900))).await;
    let figure = |price: &Value, name: &str| price[name].as_f64().unwrap();
    assert!(figure(&price, "expectedUsd") < figure(&longer, "expectedUsd"));
    assert!(provider.calls().is_empty(), "a quote calls no model");
    assert_eq!(app.get("/api/runs?kind=all").await.1["runs"], json!([]));

    let read = step("r", "file_read", &json!({ "path": "src/lib.rs" }));
    proposes(&provider, "READ", &[read], &[]);
    explains(&provider, "src/lib.rs was read.");
    let (plan, execution) = executed(&app, "Show it").await;
    let spent = |view: &Value| view["budget"]["spentUsd"].as_f64().unwrap();
    let spent = spent(&plan) + spent(&execution);
    assert!(
        spent > 0.0 && spent <= figure(&price, "worstUsd"),
        "{spent}"
    );
}

#[tokio::test]
async fn a_plan_without_room_under_its_cap_has_no_price() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let root = folder.path().to_str().unwrap();
    let setup = Setup::default()
        .env("TOOLS_WORKSPACE", root)
        .env("TOOLS_MAX_USD", "0.001");
    let app = TestApp::with(&provider, setup).await;
    for path in ["/api/plans/quote", "/api/plans"] {
        let (status, problem) = post(&app, path, &asks("Show it")).await;
        let kind = problem["type"].as_str();
        assert_eq!(
            (status, kind),
            (422, Some("urn:conclave:problem:over-budget")),
            "{path}"
        );
    }
    assert!(provider.calls().is_empty());
}

#[tokio::test]
async fn undo_leaves_a_file_that_was_changed_since() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let write = step(
        "w",
        "file_write",
        &json!({ "path": "src/lib.rs", "contents": "// a\n" }),
    );
    provider.reply_with("tool_plan", plan("MUTATE", &[write], &[]));
    explains(&provider, "src/lib.rs was written.");
    let (_, execution) = executed(&app, "Write a").await;
    std::fs::write(folder.path().join("src/lib.rs"), "// mine\n").unwrap();
    let user = json!({ "source": "http", "user": { "id": "u1", "name": "Ada" } });
    let undo = format!(
        "/api/executions/{}/undo",
        execution["executionId"].as_str().unwrap()
    );
    let (status, undone) = post(&app, &undo, &user).await;
    assert_eq!(
        (status, undone["state"].as_str()),
        (200, Some("halted")),
        "{undone}"
    );
    let kept = std::fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
    assert_eq!(kept, "// mine\n");
}

#[tokio::test]
async fn steps_are_authorized_one_by_one_and_a_failure_halts() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let steps = [
        step(
            "step_1",
            "file_create",
            &json!({ "path": "src/a.rs", "contents": "" }),
        ),
        step(
            "step_2",
            "file_create",
            &json!({ "path": "src/a.rs", "contents": "again" }),
        ),
        step(
            "step_3",
            "file_create",
            &json!({ "path": "src/b.rs", "contents": "" }),
        ),
    ];
    provider.reply_with("tool_plan", plan("MUTATE", &steps, &[]));
    explains(&provider, "src/a.rs was created.");
    let (_, view) = post(&app, "/api/plans", &asks("Create files")).await;
    let path = authorize_path(&view);
    let one = |id: &str| {
        let mut body = authorizes("step");
        body["stepId"] = json!(id);
        body
    };
    let (status, wrong) = post(&app, &path, &one("step_2")).await;
    assert_eq!(
        (status, wrong["detail"].as_str()),
        (409, Some("it is not the next step"))
    );
    let (_, first) = post(&app, &path, &one("step_1")).await;
    assert_eq!(first["execution"]["state"], "completed");
    let (_, second) = post(&app, &path, &one("step_2")).await;
    let halted = &second["execution"];
    assert_eq!(halted["state"], "halted");
    let error = halted["steps"][0]["error"].as_str().unwrap();
    assert_eq!(error, "Precondition failed: file 'src/a.rs' already exists");
    assert_eq!(
        halted["explanation"]["source"], "output",
        "the model did not repeat the error"
    );
    assert!(
        halted["explanation"]["text"]
            .as_str()
            .unwrap()
            .contains(error)
    );
    let (status, closed) = post(&app, &path, &one("step_3")).await;
    assert_eq!(
        (status, closed["detail"].as_str()),
        (409, Some("a step failed, which halts the plan"))
    );
    let (_, view) = app
        .get(&format!("/api/plans/{}", view["planId"].as_str().unwrap()))
        .await;
    assert_eq!(
        (
            view["state"].as_str(),
            view["executions"].as_array().unwrap().len()
        ),
        (Some("halted"), 2)
    );
}

#[tokio::test]
async fn a_changed_plan_is_checked_again_and_journaled() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    provider.reply_with(
        "tool_plan",
        plan(
            "READ",
            &[step("s", "file_read", &json!({ "path": "src/lib.rs" }))],
            &[],
        ),
    );
    explains(&provider, "The search returned 1 match.");
    let (_, view) = post(&app, "/api/plans", &asks("Show it")).await;
    let path = authorize_path(&view);
    let mut body = authorizes("modified");
    let changed = |tool: &str, arguments: Value| json!({ "plan_id": "", "intent": "QUERY", "steps": [step("mine", tool, &arguments)], "evidence_referenced": [] });
    body["plan"] = changed("nothing", json!({}));
    let (status, refused) = post(&app, &path, &body).await;
    assert_eq!(
        (status, refused["rejection"]["kind"].as_str()),
        (200, Some("unknown_tool"))
    );
    body["plan"] = changed("file_search", json!({ "pattern": "fn one", "root": "." }));
    let (_, done) = post(&app, &path, &body).await;
    assert_eq!(done["execution"]["authorization"]["mode"], "modified");
    assert_eq!(done["execution"]["authorization"]["by"], "Ada (u1)");
    assert_eq!(done["execution"]["plan"]["steps"][0]["step_id"], "mine");
    assert!(
        done["execution"]["steps"][0]["output"]
            .as_str()
            .unwrap()
            .contains("src/lib.rs")
    );
}

#[tokio::test]
async fn an_explanation_is_screened_and_restated_once() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let read = step("s", "file_read", &json!({ "path": "src/lib.rs" }));
    provider.reply_with("tool_plan", plan("READ", std::slice::from_ref(&read), &[]));
    explains(
        &provider,
        "This will probably fix the build with 90% confidence.",
    );
    provider.reply_with(
        "tool_restate",
        json!({ "explanation": "src/lib.rs has 3 lines." }),
    );
    let (_, execution) = executed(&app, "Show the file").await;
    assert_eq!(
        execution["explanation"]["source"], "restated",
        "{execution}"
    );
    let rejected = execution["explanation"]["rejected"][0].as_str().unwrap();
    assert!(
        rejected.starts_with("Response contains disallowed element: "),
        "{rejected}"
    );

    provider.reply_with(
        "tool_restate",
        json!({ "explanation": "It is likely safe now." }),
    );
    let (_, execution) = executed(&app, "Show the file again").await;
    assert_eq!(execution["explanation"]["source"], "output");
    assert!(
        execution["explanation"]["text"]
            .as_str()
            .unwrap()
            .contains("pub fn one()")
    );
}

#[tokio::test]
async fn the_same_request_with_the_same_evidence_gets_the_same_plan() {
    let (provider, folder) = (MockProvider::start().await, workspace());
    let app = app(&provider, folder.path()).await;
    let read = step("s", "file_read", &json!({ "path": "src/lib.rs" }));
    provider.reply_with("tool_plan", plan("READ", std::slice::from_ref(&read), &[]));
    explains(&provider, "src/lib.rs has 3 lines.");
    let (plan_1, _) = executed(&app, "Show it").await;
    let calls = provider.calls().len();
    // The execution is evidence now, so the same request is planned anew, and may cite it.
    provider.reply_with("tool_plan", plan("READ", &[read], &["Q1", "Q4"]));
    let (_, plan_2) = post(&app, "/api/plans", &asks("Show it")).await;
    assert_ne!(plan_1["planId"], plan_2["planId"]);
    assert_eq!(plan_2["state"], "proposed", "{plan_2}");
    assert_eq!(
        plan_2["evidence"]["Q1"][0],
        json!({ "tool": "file_read", "count": 1, "last_success": true })
    );
    assert_eq!(plan_2["evidence"]["Q4"][0]["file"], "src/lib.rs");
    assert_eq!(provider.calls().len(), calls + 1);
    let (_, plan_3) = post(&app, "/api/plans", &asks("Show it")).await;
    assert_eq!(
        (plan_3["planId"].clone(), provider.calls().len()),
        (plan_2["planId"].clone(), calls + 1)
    );
}

#[tokio::test]
async fn plans_are_off_without_a_workspace_and_not_shown_to_others() {
    let provider = MockProvider::start().await;
    let off = TestApp::start(&provider).await;
    let (status, problem) = post(&off, "/api/plans", &asks("Show it")).await;
    assert_eq!(
        (status, problem["type"].as_str()),
        (404, Some("urn:conclave:problem:tools-off"))
    );
    let folder = workspace();
    let app = app(&provider, folder.path()).await;
    provider.reply_with(
        "tool_plan",
        plan(
            "READ",
            &[step("s", "file_read", &json!({ "path": "src/lib.rs" }))],
            &[],
        ),
    );
    let (_, view) = post(&app, "/api/plans", &asks("Show it")).await;
    let path = authorize_path(&view);
    let mut other = authorizes("plan");
    other["user"]["id"] = json!("u2");
    assert_eq!(post(&app, &path, &other).await.0, 404);
}
