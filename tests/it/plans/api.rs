//! The API of plans beside the acceptance criteria: undo, prices, single steps, changed plans.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use conclave::app::open_store;
use conclave::config::Database;
use conclave::domain::Scope;
use conclave::journal::{Event, Explained, StepChanges, StepFinished};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::access::token;
use crate::openapi;
use crate::support::app::database_of;
use crate::support::{Fault, Setup, TestApp, app, status_of, until};

use super::{Bench, LIB, ada, asks, authorizes, create, folder, hold, put, read, step};

#[tokio::test]
async fn an_execution_is_taken_back_once_and_only_if_nothing_changed_since() {
    let bench = Bench::new().await;
    let write = json!({ "path": "src/lib.rs", "contents": "// a\n" });
    let steps = [step("w", "file_write", &write), create("c", "src/new.rs")];
    bench.proposes("MUTATE", &steps, &[]);
    let text = "src/lib.rs was written, then src/new.rs was created.";
    bench.explains("tool_explain", text);
    let (plan, execution) = bench.executed("Write a").await;
    assert_eq!(bench.content("src/lib.rs"), "// a\n");
    assert_eq!(bench.content("src/new.rs"), "new\n");
    let run = execution["executionId"].as_str().unwrap().parse().unwrap();
    for id in [&plan["planId"], &execution["executionId"]] {
        let path = format!("/api/runs/{}", id.as_str().unwrap());
        openapi::hold("Run", &bench.app.get(&path).await.1);
    }
    let entries = bench.app.app.entries(run).await.unwrap();
    let keeps = |event: &Event| matches!(event, Event::StepStarted(s) if !s.before.is_empty());
    assert!(entries.iter().any(|entry| keeps(&entry.event)));
    let closed = bench.authorized(&plan, &authorizes("plan")).await;
    hold(closed, 409, "/type", "urn:conclave:problem:plan-closed");

    let file = bench.folder.path().join("src/lib.rs");
    std::fs::write(&file, "// mine\n").unwrap();
    assert_eq!(bench.undone(&execution).await["state"], "halted");
    assert_eq!(bench.content("src/lib.rs"), "// mine\n");
    assert_eq!(bench.content("src/new.rs"), "new\n", "nothing is put back");

    std::fs::write(&file, "// a\n").unwrap();
    let undone = bench.undone(&execution).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert_eq!(bench.content("src/lib.rs"), LIB);
    assert!(!bench.folder.path().join("src/new.rs").exists());
    let again = bench.undone(&execution).await;
    assert_eq!(again["executionId"], undone["executionId"]);
    // A file that was changed since is not said to be put back.
    std::fs::write(&file, "// mine\n").unwrap();
    assert_eq!(bench.undone(&execution).await["state"], "halted");
    std::fs::write(&file, "// a\n").unwrap();
    std::fs::write(bench.folder.path().join("src/new.rs"), "new\n").unwrap();
    let undone = bench.undone(&execution).await;
    assert_eq!(undone["state"], "completed", "{undone}");
    assert_eq!(bench.content("src/lib.rs"), LIB);

    // An undo that was undone can be made again.
    assert_eq!(bench.undone(&undone).await["state"], "completed");
    assert_eq!(bench.content("src/new.rs"), "new\n");
    let again = bench.undone(&execution).await;
    assert_ne!(again["executionId"], undone["executionId"]);
    assert!(!bench.folder.path().join("src/new.rs").exists());
    // So can the undo of the first undo, whose stored answer would say what is no longer so.
    assert_eq!(bench.undone(&undone).await["state"], "completed");
    assert_eq!(bench.content("src/new.rs"), "new\n");
}

#[tokio::test]
async fn a_plan_is_deleted_with_the_last_of_its_executions() {
    let bench = Bench::new().await;
    bench.proposes("MUTATE", &[create("a", "a.txt"), create("b", "b.txt")], &[]);
    bench.explains("tool_explain", "A file was created.");
    let plan = bench.planned("Create both").await;
    let mut runs = vec![plan["planId"].clone()];
    for _ in 0..2 {
        let (_, done) = bench.authorized(&plan, &authorizes("step")).await;
        runs.push(done["execution"]["executionId"].clone());
    }
    let database = Database::at(&database_of(&bench.app.folder).await).unwrap();
    let store = open_store(&database, "keeper").await.unwrap();
    let mut ends = vec![];
    for run in &runs {
        let run = store.run(run.as_str().unwrap().parse().unwrap()).await;
        ends.push(run.unwrap().unwrap().finished_at.unwrap());
    }
    assert_eq!(store.prune(ends[2], 10).await.unwrap(), 0);
    let after = ends[2] + Duration::from_millis(1);
    assert_eq!(store.prunable(after).await.unwrap(), 3);
    assert_eq!(store.prune(after, 10).await.unwrap(), 3);
}

#[tokio::test]
async fn executions_at_the_same_time_know_what_they_replace() {
    let bench = Bench::new().await;
    bench.explains("tool_explain", "The file was written.");
    let mut plans = vec![];
    for text in ["// a\n", "// b\n"] {
        let write = json!({ "path": "src/lib.rs", "contents": text });
        let steps: Vec<Value> = (0..8)
            .map(|n| step(&format!("w{n}"), "file_write", &write))
            .collect();
        bench.proposes("MUTATE", &steps, &[]);
        plans.push(bench.planned(&format!("Write {text}")).await);
    }
    let whole = authorizes("plan");
    let at_once = plans.iter().map(|plan| bench.authorized(plan, &whole));
    let mut changes = vec![];
    for (status, done) in futures_util::future::join_all(at_once).await {
        assert_eq!(status, 200, "{done}");
        let steps = done["execution"]["steps"].as_array().unwrap();
        let changed = steps
            .iter()
            .flat_map(|step| step["changed"].as_array().unwrap());
        changes.extend(changed.cloned());
    }
    // Of a chain of contents, all but the first and the last are replaced as often as written.
    let mut balance = std::collections::BTreeMap::new();
    for change in &changes {
        *balance.entry(change["before"].to_string()).or_insert(0) -= 1;
        *balance.entry(change["after"].to_string()).or_insert(0) += 1;
    }
    balance.retain(|_, left| *left != 0);
    assert_eq!(
        balance.into_values().collect::<BTreeSet<_>>(),
        BTreeSet::from([-1, 1])
    );
}

#[tokio::test]
async fn plans_and_executions_belong_to_their_workspace() {
    let bench = Bench::new().await;
    let write = json!({ "path": "src/lib.rs", "contents": "// a\n" });
    bench.proposes("MUTATE", &[step("w", "file_write", &write)], &[]);
    bench.explains("tool_explain", "The file was written.");
    let (_, execution) = bench.executed("Write a").await;
    let open = bench.planned("Write a again").await;
    let other = folder(&[("src/lib.rs", "// a\n")]);
    let root = other.path().to_str().unwrap();
    let setup = Setup::default().env("TOOLS_WORKSPACE", root);
    let app = TestApp::on(&bench.provider, setup, bench.app.folder.clone()).await;
    let moved = Bench { app, ..bench };
    let refused = moved.authorized(&open, &authorizes("plan")).await;
    hold(refused, 409, "/type", "urn:conclave:problem:plan-closed");
    let id = execution["executionId"].as_str().unwrap();
    let undone = moved
        .post(&format!("/api/executions/{id}/undo"), &ada())
        .await;
    hold(undone, 409, "/type", "urn:conclave:problem:plan-closed");
    let content = std::fs::read_to_string(other.path().join("src/lib.rs"));
    assert_eq!(content.unwrap(), "// a\n");
}

#[tokio::test]
async fn a_plan_is_quoted_before_it_is_asked() {
    let bench = Bench::new().await;
    let quote = async |message: &str| bench.post("/api/plans/quote", &asks(message)).await;
    let price = hold(quote("Show it").await, 200, "/capUsd", 0.1);
    assert_eq!(price["calls"], 2);
    let (_, longer) = quote(&"Show it. ".repeat(900)).await;
    let figure = |price: &Value, name: &str| price[name].as_f64().unwrap();
    assert!(figure(&price, "expectedUsd") < figure(&longer, "expectedUsd"));
    assert!(bench.provider.calls().is_empty(), "a quote calls no model");
    let runs = bench.app.get("/api/runs?kind=all").await.1;
    assert_eq!(runs["runs"], json!([]));
    for (field, chars) in [
        ("file", 0),
        ("file", 4097),
        ("diagnostic", 0),
        ("diagnostic", 201),
    ] {
        let mut wrong = asks("Show it");
        wrong[field] = json!("x".repeat(chars));
        let refused = bench.post("/api/plans", &wrong).await;
        hold(refused, 422, "/errors/0/pointer", format!("/{field}"));
    }
    for (field, value) in [
        ("file", "../../etc/passwd"),
        ("file", "a\0b"),
        ("diagnostic", " "),
    ] {
        let mut wrong = asks("Show it");
        wrong[field] = json!(value);
        let refused = bench.post("/api/plans", &wrong).await;
        hold(refused, 422, "/errors/0/pointer", format!("/{field}"));
    }

    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "src/lib.rs was read.");
    let (plan, execution) = bench.executed("Show it").await;
    let spent = |view: &Value| figure(&view["budget"], "spentUsd");
    let (spent, worst) = (spent(&plan) + spent(&execution), figure(&price, "worstUsd"));
    assert!(spent > 0.0 && spent <= worst, "{spent}");

    let cap = [("TOOLS_MAX_USD".to_owned(), "0.001".to_owned())];
    let bench = Bench::with(folder(&[]), &cap).await;
    for path in ["/api/plans/quote", "/api/plans"] {
        let refused = bench.post(path, &asks("Show it")).await;
        hold(refused, 422, "/type", "urn:conclave:problem:over-budget");
    }
    assert!(bench.provider.calls().is_empty());
}

#[tokio::test]
async fn steps_are_authorized_one_by_one_by_their_user_and_a_failure_halts() {
    let bench = Bench::new().await;
    let files = [("step_1", "a.rs"), ("step_2", "a.rs"), ("step_3", "b.rs")];
    let steps = files.map(|(id, path)| create(id, path));
    bench.proposes("MUTATE", &steps, &[]);
    bench.explains("tool_explain", "a.rs was created.");
    let view = bench.planned("Create files").await;
    let mut other = authorizes("plan");
    other["user"]["id"] = json!("u2");
    assert_eq!(bench.authorized(&view, &other).await.0, 404);
    let halted = "a step failed, which halts the plan";
    for (id, status, field, expected) in [
        ("step_2", 409, "/detail", "it is not the next step"),
        ("step_1", 200, "/execution/state", "completed"),
        ("step_2", 200, "/execution/state", "halted"),
        ("step_3", 409, "/detail", halted),
    ] {
        let mut body = authorizes("step");
        body["stepId"] = json!(id);
        let answer = bench.authorized(&view, &body).await;
        hold(answer, status, field, expected);
    }
    let path = format!("/api/plans/{}", view["planId"].as_str().unwrap());
    let view = hold(bench.app.get(&path).await, 200, "/state", "halted");
    assert_eq!(view["executions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_changed_plan_is_checked_again_and_journaled() {
    let bench = Bench::new().await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "The search returned 1 match.");
    let view = bench.planned("Show it").await;
    let changed = async |tool: &str, arguments: Value| {
        let mut body = authorizes("modified");
        let steps = [step("mine", tool, &arguments)];
        body["plan"] =
            json!({ "plan_id": "", "intent": "QUERY", "steps": steps, "evidence_referenced": [] });
        bench.authorized(&view, &body).await
    };
    for (intent, field, pointer) in [
        ("QUERY", "foo", "/plan/steps/0/foo"),
        ("GUESS", "tool", "/plan/intent"),
    ] {
        let mut body = authorizes("modified");
        let mut own = step("mine", "file_read", &json!({ "path": "src/lib.rs" }));
        own[field] = json!("file_read");
        body["plan"] =
            json!({ "plan_id": "", "intent": intent, "steps": [own], "evidence_referenced": [] });
        let answer = bench.authorized(&view, &body).await;
        hold(answer, 400, "/errors/0/pointer", pointer);
    }
    let refused = changed("nothing", json!({})).await;
    hold(refused, 200, "/rejection/kind", "unknown_tool");
    for (mode, field, pointer) in [("plan", "stepId", "/stepId"), ("modified", "", "/plan")] {
        let mut body = authorizes(mode);
        body[field] = json!("s");
        body.as_object_mut().unwrap().remove("");
        let refused = bench.authorized(&view, &body).await;
        hold(refused, 422, "/errors/0/pointer", pointer);
    }
    let secret = json!({ "path": "env", "contents": format!("KEY={}", app::PLANTED_KEY) });
    let refused = changed("file_create", secret).await;
    hold(refused, 422, "/errors/0/pointer", "/plan");
    let search = json!({ "pattern": "fn one", "root": "." });
    let done = changed("file_search", search).await;
    let found = "src/lib.rs:1: pub fn one() -> u32 {";
    let done = hold(done, 200, "/execution/steps/0/output", found);
    let execution = &done["execution"];
    assert_eq!(execution["authorization"]["mode"], "modified");
    assert_eq!(execution["authorization"]["by"], "Ada (u1)");
    assert_eq!(execution["plan"]["steps"][0]["step_id"], "mine");
    assert_eq!(execution["proposed"]["steps"], view["plan"]["steps"]);
    let path = format!("/api/plans/{}", view["planId"].as_str().unwrap());
    hold(bench.app.get(&path).await, 200, "/modified/by", "Ada (u1)");
}

/// Returns a bench in whose project `splice` is this script of a shell.
async fn with_splice(script: &str) -> (Bench, TempDir) {
    let programs = folder(&[("splice", &format!("#!/bin/sh\n{script}\n"))]);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(programs.path().join("splice"), mode).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let names = |file: &str| json!({ "steps": [{ "file": file, "with": "new.rs" }] }).to_string();
    let project = folder(&[
        ("Cargo.toml", super::project::MANIFEST),
        ("src/lib.rs", LIB),
        ("new.rs", "pub fn one() {}\n"),
        ("plan.json", &names("src/lib.rs")),
        ("other.json", &names("new.rs")),
    ]);
    (
        Bench::with(project, &[("PATH".to_owned(), path)]).await,
        programs,
    )
}

#[tokio::test]
async fn a_changed_splice_plan_changes_only_the_files_that_were_shown() {
    let (bench, _programs) = with_splice("echo done").await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "splice_plan ran.");
    let view = bench.planned("Mend it").await;
    let splice = step("mine", "splice_plan", &json!({ "file": "plan.json" }));
    let mut body = authorizes("check");
    body["plan"] =
        json!({ "plan_id": "", "intent": "MUTATE", "steps": [splice], "evidence_referenced": [] });
    let (_, checked) = bench.authorized(&view, &body).await;
    let shown = json!([{ "stepId": "mine", "paths": ["src/lib.rs"] }]);
    assert_eq!(checked["changes"], shown, "{checked}");
    (body["mode"], body["changes"]) = (json!("modified"), shown);
    let root = bench.folder.path();
    let named = bench.content("plan.json");
    put(root, "plan.json", &bench.content("other.json"));
    let refused = bench.authorized(&view, &body).await;
    let why = "Precondition failed: the plan now changes other files than were shown: new.rs";
    hold(refused, 200, "/rejection/message", why);
    put(root, "plan.json", &named);
    let done = bench.authorized(&view, &body).await;
    hold(done, 200, "/execution/state", "completed");
    let body = json!({ "changes": [], "mode": "plan", "source": "http", "user": { "id": "u1", "name": "Ada" } });
    let refused = bench
        .authorized(&bench.planned("Show it").await, &body)
        .await;
    hold(refused, 422, "/errors/0/pointer", "/changes");
}

/// What an undo could not replace is put back at once.
#[tokio::test]
async fn a_program_that_leaves_no_text_file_loses_no_content() {
    let arguments = json!({ "file": "src/lib.rs", "symbol": "one", "with": "new.rs" });
    for (script, why) in [
        (
            "head -c 2000000 /dev/zero | tr '\\0' x > src/lib.rs",
            "file 'src/lib.rs' has 2000000 bytes",
        ),
        (
            "printf '\\000\\377' > src/lib.rs",
            "file 'src/lib.rs' is not UTF-8 text",
        ),
        (
            "ln -sf ../new.rs src/lib.rs",
            "'src/lib.rs' goes through the symbolic link",
        ),
    ] {
        let (bench, _programs) = with_splice(script).await;
        bench.proposes("MUTATE", &[step("s", "splice_patch", &arguments)], &[]);
        bench.explains("tool_explain", "splice_patch failed.");
        let (_, execution) = bench.executed("Mend it").await;
        let error = execution["steps"][0]["error"].as_str().unwrap();
        assert!(
            error.starts_with(&format!("splice_patch failed: {why}")),
            "{error}"
        );
        assert!(error.ends_with("; its old content was put back"), "{error}");
        assert_eq!(bench.content("src/lib.rs"), LIB);
        let found = std::fs::symlink_metadata(bench.folder.path().join("src/lib.rs"));
        assert!(found.unwrap().is_file());
    }
}

#[tokio::test]
async fn an_execution_names_the_model_that_gave_its_plan() {
    let root = folder(&[("src/lib.rs", LIB)]);
    let fallback = json!({ "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 1000 });
    let master = json!({ "provider": "anthropic", "model": "EDITOR_MODEL", "maxTokens": 1000,
                         "fallback": fallback });
    let setup = Setup::default()
        .env("TOOLS_WORKSPACE", root.path().to_str().unwrap())
        .env("EDITOR_MODEL", "claude-opus-5-5")
        .set("/policy/retry/attempts", json!(1))
        .set("/models/roles/master", master);
    let bench = Bench::of(root, setup).await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "src/lib.rs was read.");
    bench.provider.on("tool_plan", Fault::Status(529)).times(1);
    let (plan, execution) = bench.executed("Show it").await;
    let calls = plan["budget"]["calls"].as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[0]["model"]),
        (2, &json!("claude-opus-5-5"))
    );
    assert_eq!(execution["prompt"]["model"], calls[1]["model"]);
    assert_ne!(calls[0]["model"], calls[1]["model"]);
}

#[tokio::test]
async fn a_cancelled_plan_is_closed_and_the_request_gets_another() {
    let bench = Bench::new().await;
    bench.proposes("MUTATE", &[create("s", "a.txt")], &[]);
    let view = bench.planned("Create it").await;
    let done = bench.authorized(&view, &authorizes("cancel")).await;
    let done = hold(done, 200, "/execution/authorization/by", "Ada (u1)");
    assert_eq!(done["execution"]["authorization"]["mode"], "cancel");
    assert_eq!(done["execution"]["state"], "closed");
    assert_eq!(done["execution"]["steps"], json!([]));
    let path = format!("/api/plans/{}", view["planId"].as_str().unwrap());
    hold(bench.app.get(&path).await, 200, "/state", "cancelled");
    for mode in ["plan", "cancel"] {
        let closed = bench.authorized(&view, &authorizes(mode)).await;
        hold(closed, 409, "/detail", "the plan was cancelled");
    }
    let another = bench.planned("Create it").await;
    assert_ne!(another["planId"], view["planId"]);
    assert_eq!(another["state"], "proposed");
    assert_eq!(bench.provider.count_step("tool_explain"), 0);
}

#[tokio::test]
async fn a_client_that_waits_for_a_cancelled_execution_gets_its_id() {
    let bench = Bench::new().await;
    bench.proposes("MUTATE", &[create("s", "a.txt")], &[]);
    let late = Fault::Latency(Duration::from_secs(20));
    bench.provider.on("tool_explain", late);
    let (view, body) = (bench.planned("Create it").await, authorizes("plan"));
    let cancel = async {
        until(async || bench.provider.count_step("tool_explain") > 0).await;
        let (_, runs) = bench.app.get("/api/runs?kind=execution").await;
        let id = runs["runs"][0]["id"].as_str().unwrap().to_owned();
        let url = format!("{}/api/runs/{id}", bench.app.url);
        bench.app.client.delete(url).send().await.unwrap();
        id
    };
    let (refused, id) = tokio::join!(bench.authorized(&view, &body), cancel);
    let detail = format!("execution {id} was cancelled; GET /api/executions/{id} has its steps");
    hold(refused, 409, "/detail", detail);
    // Only the explanation is missing.
    let (_, execution) = bench.app.get(&format!("/api/executions/{id}")).await;
    assert_eq!(execution["state"], "completed", "{execution}");
    let plan = format!("/api/plans/{}", view["planId"].as_str().unwrap());
    let (_, plan) = bench.app.get(&plan).await;
    assert_eq!(plan["state"], "completed", "{plan}");
}

#[tokio::test]
async fn a_file_that_is_written_as_it_was_is_no_change() {
    let bench = Bench::new().await;
    let write = json!({ "path": "src/lib.rs", "contents": LIB });
    bench.proposes("MUTATE", &[step("w", "file_write", &write)], &[]);
    bench.explains("tool_explain", "src/lib.rs was written.");
    let (_, execution) = bench.executed("Write it").await;
    assert_eq!(execution["steps"][0]["changed"], json!([]), "{execution}");
}

#[tokio::test]
async fn a_provider_that_is_overloaded_for_a_moment_is_asked_again() {
    let bench = Bench::new().await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "src/lib.rs was read.");
    for call in ["tool_plan", "tool_explain"] {
        bench.provider.on(call, Fault::Status(529)).times(1);
    }
    let (_, execution) = bench.executed("Show it").await;
    assert_eq!(execution["explanation"]["source"], "model", "{execution}");
    for call in ["tool_plan", "tool_explain"] {
        assert_eq!(bench.provider.count_step(call), 2, "{call}");
    }
}

#[tokio::test]
async fn plans_are_off_without_a_workspace() {
    let bench = Bench::off().await;
    let refused = bench.post("/api/plans", &asks("Show it")).await;
    hold(refused, 404, "/type", "urn:conclave:problem:tools-off");
}

#[tokio::test]
async fn a_refused_plan_is_counted_once() {
    let bench = Bench::new().await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    let plan = bench.planned("Show it").await;
    assert_eq!(bench.post("/api/plans", &asks(" ")).await.0, 422);
    let mut eve = authorizes("plan");
    eve["user"]["id"] = json!("eve");
    assert_eq!(bench.authorized(&plan, &eve).await.0, 404);
    let metrics = bench.app.request("GET", "/metrics").send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for reason in ["invalid", "no_such_plan"] {
        let line = format!("conclave_refused_total{{reason=\"{reason}\"}} 1\n");
        assert!(metrics.contains(&line), "{reason}: {metrics}");
    }
}

#[test]
fn steps_in_older_journals_are_read() {
    let old = json!({ "stepId": "s", "tool": "file_read", "ok": true });
    let read: StepFinished = serde_json::from_value(old).unwrap();
    assert_eq!(read, StepFinished::new("s", "file_read", None));
    let old = json!(["s", ["a.rs"]]);
    let read: StepChanges = serde_json::from_value(old).unwrap();
    let now = json!({ "stepId": "s", "paths": ["a.rs"] });
    assert_eq!(serde_json::to_value(read).unwrap(), now);
    let old = json!({ "text": "Done.", "source": "model" });
    let read: Explained = serde_json::from_value(old).unwrap();
    assert_eq!((read.text.as_str(), read.rejected.len()), ("Done.", 0));
}

#[tokio::test]
async fn only_the_scope_tools_reads_the_runs_of_plans() {
    let bench = Bench::new().await;
    bench.proposes("READ", &[read("src/lib.rs")], &[]);
    bench.explains("tool_explain", "src/lib.rs was read.");
    let (_, execution) = bench.executed("Show it").await;
    let run = format!("/api/runs/{}", execution["executionId"].as_str().unwrap());
    let chat = token(&bench.app, 1, &[Scope::Chat], None).await;
    let tools = token(&bench.app, 2, &[Scope::Tools], None).await;
    let both = token(&bench.app, 3, &[Scope::Chat, Scope::Tools], None).await;
    let read = async |path: &str, token: &str| {
        let url = format!("{}{path}", bench.app.url);
        let request = bench.app.client.get(url).bearer_auth(token);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap_or_default();
        (status, body["runs"].as_array().map(Vec::len))
    };
    for part in ["", "/journal"] {
        let path = format!("{run}{part}");
        assert_eq!(read(&path, &tools).await.0, 200, "{path}");
        assert_eq!(read(&path, &chat).await.0, 403, "{path}");
    }
    let url = format!("{}{run}", bench.app.url);
    for (token, expected) in [(&chat, 403), (&tools, 409)] {
        let request = bench.app.client.delete(&url).bearer_auth(token);
        assert_eq!(request.send().await.unwrap().status(), expected);
    }
    let feedback = bench.app.client.post(format!("{url}/feedback"));
    let feedback = feedback
        .bearer_auth(&chat)
        .json(&json!({ "positive": false }));
    assert_eq!(status_of(feedback).await, 409);
    let act = token(&bench.app, 4, &[Scope::Act], None).await;
    assert_eq!(read("/api/runs?kind=action", &act).await, (200, Some(0)));
    for other in [&tools, &act] {
        assert_eq!(read("/api/runs", other).await.0, 403);
    }
    for (query, of_chat, of_tools) in [
        ("kind=plan", (403, None), (200, Some(1))),
        ("kind=execution", (403, None), (200, Some(1))),
        ("kind=all", (200, Some(0)), (200, Some(2))),
    ] {
        let path = format!("/api/runs?{query}");
        assert_eq!(read(&path, &chat).await, of_chat, "{query}");
        for token in [&tools, &both] {
            assert_eq!(read(&path, token).await, of_tools, "{query}");
        }
    }
}
