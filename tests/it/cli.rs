//! The real binary: its commands, exit codes, and what it prints.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::docs::held;
use crate::support::app::PLANTED_KEY;
use crate::support::program::conclave;
use crate::support::{Fault, MockProvider, Scenario, TestApp};

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

async fn run(folder: &TempDir, arguments: &[&str], provider: &MockProvider) -> Output {
    let url = provider.url();
    let variables = [("ANTHROPIC_API_KEY", PLANTED_KEY), ("ANTHROPIC_BASE_URL", url.as_str())];
    let output = conclave(folder.path(), arguments, &variables).output().await.unwrap();
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!all.contains(PLANTED_KEY), "the key is shown: {all}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The id in the first line below the headings of `conclave runs`.
fn newest(runs: &str) -> &str {
    runs.lines().nth(1).unwrap().split_whitespace().next().unwrap()
}

#[tokio::test]
async fn without_a_key_it_names_the_variable_and_the_way_out_and_stops() {
    let folder = TempDir::new().unwrap();
    for arguments in [&["serve"][..], &["ask", "x"][..]] {
        let output = conclave(folder.path(), arguments, &[]).output().await.unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(error.contains("ANTHROPIC_API_KEY") && error.contains("CONCLAVE_CONFIG=llm.config.local.json"));
    }
}

#[tokio::test]
async fn a_config_with_five_mistakes_reports_five() {
    let folder = TempDir::new().unwrap();
    let mut config: Value = serde_json::from_str(include_str!("../../llm.config.json")).unwrap();
    config["polcy"] = json!({});
    config["policy"]["tauHard"] = json!("high");
    config["policy"]["deadlines"]["call"] = json!(500);
    config["models"]["roles"]["solver"]["provider"] = json!("xai");
    config["models"]["roles"]["critic"] = json!({ "provider": "anthropic", "model": "NOT_SET_ANYWHERE" });
    std::fs::write(folder.path().join("bad.json"), config.to_string()).unwrap();
    let variables = [("CONCLAVE_CONFIG", "bad.json"), ("ANTHROPIC_API_KEY", "k")];
    let output = conclave(folder.path(), &["config", "check"], &variables).output().await.unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3));
    assert!(error.contains("5 problems"), "{error}");
    assert_eq!(error.lines().filter(|line| line.starts_with("  - ")).count(), 5, "{error}");
}

#[tokio::test]
async fn an_audit_shows_progress_reply_and_appendix_and_can_be_shown_and_verified_again() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let output = run(&folder, &["audit", QUESTION], &provider).await;
    let (reply, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{progress}");
    assert!(reply.starts_with("## TL;DR") && reply.contains("## Audit appendix"));
    for word in ["plan ", "solver ", "critic ", "verifier ", "synthesis ", "gate "] {
        assert!(progress.contains(word), "{word} is missing in {progress}");
    }
    let runs = text(&run(&folder, &["runs"], &provider).await.stdout);
    let id = newest(&runs);
    let shown = text(&run(&folder, &["show", id], &provider).await.stdout);
    assert!(shown.contains(&reply), "the reply and its audit are printed again");
    let proof = run(&folder, &["verify", id], &provider).await;
    assert!(text(&proof.stdout).contains("the chain holds"));
}

#[tokio::test]
async fn an_altered_journal_is_found_out() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    run(&folder, &["ask", QUESTION], &provider).await;
    let runs = text(&run(&folder, &["runs"], &provider).await.stdout);
    let id = newest(&runs).to_owned();
    let path = folder.path().join("data/conclave.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    // What the lists and the views show without reading the entries is proven as well.
    for (change, back, column) in [
        ("c_final = 0.11", "c_final = was.c_final", "c_final"),
        ("message = 'another'", "message = was.message", "message"),
        ("user_id = 'mallory'", "user_id = was.user_id", "user_id"),
        ("spent_nanos = 1", "spent_nanos = was.spent_nanos", "spent_nanos"),
        ("mode = 'deep'", "mode = was.mode", "mode"),
        ("state = 'failed'", "state = was.state", "state"),
    ] {
        sqlx::query("CREATE TABLE was AS SELECT * FROM runs").execute(&pool).await.unwrap();
        let sql = |sql: String| sqlx::query(sqlx::AssertSqlSafe(sql));
        sql(format!("UPDATE runs SET {change}")).execute(&pool).await.unwrap();
        let proof = run(&folder, &["verify", &id], &provider).await;
        assert_eq!(proof.status.code(), Some(9), "{change}");
        let said = text(&proof.stderr);
        assert!(said.contains(&format!("its {column} is not")), "{said}");
        sql(format!("UPDATE runs SET {back} FROM was WHERE was.id = runs.id")).execute(&pool).await.unwrap();
        sqlx::query("DROP TABLE was").execute(&pool).await.unwrap();
    }
    assert_eq!(run(&folder, &["verify", &id], &provider).await.status.code(), Some(0));
    sqlx::query("UPDATE entries SET body = replace(body, '100', '101') WHERE key = 'synthesis'")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let proof = run(&folder, &["verify", &id], &provider).await;
    assert_eq!(proof.status.code(), Some(9));
    assert!(text(&proof.stderr).contains("was altered"), "{}", text(&proof.stderr));
}

#[tokio::test]
async fn runs_are_listed_under_headings_that_stand_above_their_columns() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    run(&folder, &["ask", QUESTION], &provider).await;
    let runs = text(&run(&folder, &["runs"], &provider).await.stdout);
    let (headings, row) = runs.trim_end().split_once('\n').unwrap();
    let ends = |line: &str, word: &str| line.find(word).unwrap() + word.len();
    let begins = |line: &str, word: &str| line.find(word).unwrap();
    assert_eq!(begins(headings, "state"), begins(row, "answered"), "{runs}");
    assert_eq!(begins(headings, "USD"), begins(row, "$"), "{runs}");
    assert_eq!(begins(headings, "message"), begins(row, "What"), "{runs}");
    assert_eq!(ends(headings, "c_final") + 2, begins(row, "$"), "{runs}");
}

#[tokio::test]
async fn no_colours_reach_a_pipe() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let audited = run(&folder, &["audit", QUESTION], &provider).await;
    let runs = run(&folder, &["runs"], &provider).await;
    let shown = run(&folder, &["show", newest(&text(&runs.stdout))], &provider).await;
    for output in [audited, runs, shown] {
        let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!all.is_empty() && !all.contains('\u{1b}'), "{all:?}");
    }
}

#[tokio::test]
async fn statuses_states_and_the_gate_are_coloured_where_colours_are_shown() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    // What `console` takes for a terminal in colour.
    let variables = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str()), ("CLICOLOR_FORCE", "1")];
    let audited = conclave(folder.path(), &["audit", QUESTION], &variables).output().await.unwrap();
    let progress = text(&audited.stderr);
    assert!(progress.contains("\u{1b}[32mVALID\u{1b}[0m") && progress.contains("\u{1b}[32mc_final "), "{progress:?}");
    let runs = text(&conclave(folder.path(), &["runs"], &variables).output().await.unwrap().stdout);
    assert!(runs.contains("\u{1b}[32manswered     \u{1b}[0m"), "{runs:?}");
    let shown = conclave(folder.path(), &["show", newest(&runs)], &variables).output().await.unwrap();
    let shown = text(&shown.stdout);
    assert!(shown.contains("| \u{1b}[32mVALID\u{1b}[0m |") && shown.contains("\u{1b}[32m- c_final: "), "{shown:?}");
}

#[tokio::test]
async fn json_is_the_reply_as_the_api_gives_it_and_nothing_else() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let output = run(&folder, &["deep", "--json", QUESTION], &provider).await;
    let body: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(body["reply"].is_string() && body["meta"]["c_final"].is_number() && body["audit"].is_object());
    assert_eq!(text(&output.stderr), "");
}

#[tokio::test]
async fn the_question_may_come_from_standard_input() {
    use tokio::io::AsyncWriteExt as _;
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let mut child = conclave(folder.path(), &["ask", "-"], &variables).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(QUESTION.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(provider.calls_of("plan")[0].prompt().contains(QUESTION));
}

#[tokio::test]
async fn a_question_of_the_committee_is_shown_with_how_to_answer_it() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let folder = TempDir::new().unwrap();
    let asked = run(&folder, &["audit", &message], &provider).await;
    assert_eq!(asked.status.code(), Some(0));
    assert!(text(&asked.stdout).contains("\nA) "), "{}", text(&asked.stdout));
    assert!(text(&asked.stderr).contains("conclave audit \"B\""));
    let answered = run(&folder, &["audit", "b"], &provider).await;
    assert!(text(&answered.stderr).contains("continuing run"), "{}", text(&answered.stderr));
    assert!(text(&answered.stdout).starts_with("## TL;DR"), "{}", text(&answered.stdout));
}

#[tokio::test]
async fn the_way_to_answer_repeats_the_flags_and_the_time_that_the_config_gives() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let folder = TempDir::new().unwrap();
    let mut config: Value = serde_json::from_str(include_str!("../../llm.config.json")).unwrap();
    config["policy"]["clarificationMinutes"] = json!(5);
    std::fs::write(folder.path().join("five.json"), config.to_string()).unwrap();
    let url = provider.url();
    let variables =
        [("CONCLAVE_CONFIG", "five.json"), ("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let arguments = ["audit", "--user", "ada l", "--channel", "c1", &message];
    let here = text(&conclave(folder.path(), &arguments, &variables).output().await.unwrap().stderr);
    let command = "conclave audit --channel c1 --user 'ada l' \"B\"";
    assert!(here.contains(&format!("Answer within 5 minutes:  {command}")), "{here}");
    let app = TestApp::start(&provider).await;
    let there = text(&run(&folder, &["audit", "--server", &app.url, &message], &provider).await.stderr);
    assert!(there.contains(&format!("Answer in time:  conclave audit --server {} \"B\"", app.url)), "{there}");
}

async fn in_flight(provider: &MockProvider, calls: usize) {
    while provider.in_flight() < calls {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_interrupted_run_is_cancelled_before_the_command_ends() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(std::time::Duration::from_secs(20)));
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let child = conclave(folder.path(), &["ask", QUESTION], &variables).spawn().unwrap();
    in_flight(&provider, 3).await;
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("was cancelled"), "{error}");
    let runs = text(&run(&folder, &["runs", "--json"], &provider).await.stdout);
    assert!(runs.contains(r#""state":"cancelled""#), "{runs}");
}

#[tokio::test]
async fn a_run_that_is_cancelled_on_the_server_ends_the_command_as_interrupted() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(std::time::Duration::from_secs(20)));
    let app = TestApp::start(&provider).await;
    let folder = TempDir::new().unwrap();
    let child = conclave(folder.path(), &["ask", "--server", &app.url, QUESTION], &[]).spawn().unwrap();
    in_flight(&provider, 3).await;
    let (_, runs) = app.get("/api/runs").await;
    let url = format!("{}/api/runs/{}", app.url, runs["runs"][0]["id"].as_str().unwrap());
    assert_eq!(app.client.delete(&url).send().await.unwrap().status(), 202);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
}

#[tokio::test]
async fn a_server_is_asked_with_the_same_progress() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let folder = TempDir::new().unwrap();
    let output = run(&folder, &["audit", "--server", &app.url, QUESTION], &provider).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("## TL;DR"));
    assert!(text(&output.stderr).contains("solver     answered"), "{}", text(&output.stderr));
    let dead = MockProvider::dead_url().await;
    let output = run(&folder, &["ask", "--server", &dead, QUESTION], &provider).await;
    assert_eq!(output.status.code(), Some(8));
}

#[tokio::test]
async fn failures_have_their_exit_codes() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Status(400));
    let folder = TempDir::new().unwrap();
    let failed = run(&folder, &["ask", QUESTION], &provider).await;
    assert_eq!(failed.status.code(), Some(5), "{}", text(&failed.stderr));
    assert_eq!(run(&folder, &["ask", " "], &provider).await.status.code(), Some(2));
    assert_eq!(run(&folder, &["nonsense"], &provider).await.status.code(), Some(2));
    let unknown = run(&folder, &["show", "01890000-0000-7000-8000-000000000000"], &provider).await;
    assert_eq!(unknown.status.code(), Some(4));
}

#[tokio::test]
async fn doctor_probes_what_a_run_would_use() {
    let provider = MockProvider::start().await;
    provider.reply_with("*", json!({ "sum": 5 }));
    let folder = TempDir::new().unwrap();
    let output = run(&folder, &["doctor"], &provider).await;
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.contains("clean JSON") && report.contains("solver"), "{report}");
    provider.on("*", Fault::Status(401));
    let output = run(&folder, &["doctor"], &provider).await;
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stdout).contains("FAILED"));
}

#[tokio::test]
async fn the_published_schemas_are_those_in_force() {
    let folder = TempDir::new().unwrap();
    let published = [
        ("plan", "docs/schemas/orchestration-plan.json"),
        ("report", "docs/schemas/agent-report.json"),
        ("cross-check", "docs/schemas/cross-check.json"),
        ("decisions", "docs/schemas/decisions.json"),
        ("synthesis", "docs/schemas/final-synthesis.json"),
        ("config", "docs/llm.config.schema.json"),
        ("api", "docs/openapi.json"),
    ];
    for (name, file) in published {
        let output = conclave(folder.path(), &["config", "schema", name], &[]).output().await.unwrap();
        held(file, &text(&output.stdout));
    }
}

#[tokio::test]
async fn every_command_has_help() {
    let folder = TempDir::new().unwrap();
    let commands = [
        "serve", "ask", "audit", "deep", "runs", "show", "verify", "config", "doctor", "health", "export", "import",
        "prune", "backup", "replay", "feedback", "report",
    ];
    for command in commands {
        let output = conclave(folder.path(), &[command, "--help"], &[]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Usage: conclave"), "{command}");
    }
    let output = conclave(folder.path(), &["--help"], &[]).output().await.unwrap();
    assert!(text(&output.stdout).contains("Exit codes:"));
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_program_quietly() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    run(&folder, &["audit", QUESTION], &provider).await;
    let runs = text(&run(&folder, &["runs"], &provider).await.stdout);
    let id = newest(&runs).to_owned();
    let mut child = conclave(folder.path(), &["show", &id], &[]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[tokio::test]
async fn recorded_outputs_are_scored_line_by_line_without_a_key() {
    let folder = TempDir::new().unwrap();
    let line = |id: u32, answers: [&str; 2]| {
        let outputs = answers.map(|text| json!({ "agent": text, "text": text }));
        json!({ "id": id, "message": "What is 2 + 2?", "outputs": outputs }).to_string()
    };
    let lines = [line(1, ["It is 4.", "4"]), "no JSON".to_owned(), String::new(), line(2, ["4", "5"])].join("\n");
    std::fs::write(folder.path().join("recorded.jsonl"), lines).unwrap();
    let output = conclave(folder.path(), &["score", "recorded.jsonl"], &[]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("line 2:"), "{}", text(&output.stderr));
    let scored: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(scored.iter().map(|s| s["id"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    assert_eq!(scored.iter().map(|s| s["answerGroups"].as_array().unwrap().len()).collect::<Vec<_>>(), [1, 2]);
    assert!(scored[0]["c_final"].as_f64() > scored[1]["c_final"].as_f64());
    let missing = conclave(folder.path(), &["score", "nowhere.jsonl"], &[]).output().await.unwrap();
    assert_eq!(missing.status.code(), Some(2));
}
