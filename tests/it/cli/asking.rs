//! Tests questions and answers, interruptions, `--server`, and the exit codes of failures.

use std::collections::BTreeSet;
use std::process::{Output, Stdio};

use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{QUESTION, run, text};
use crate::support::process::conclave;
use crate::support::{Fault, MockProvider, Scenario, TestApp, until};

#[tokio::test]
async fn the_question_may_come_from_standard_input() {
    use tokio::io::AsyncWriteExt as _;
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let mut child = conclave(folder.path(), &["ask", "-"], &variables)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(QUESTION.as_bytes())
        .await
        .unwrap();
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
    assert!(
        text(&asked.stdout).contains("\nA) "),
        "{}",
        text(&asked.stdout)
    );
    assert!(text(&asked.stderr).contains("conclave audit \"B\""));
    let answered = run(&folder, &["audit", "b"], &provider).await;
    assert!(
        text(&answered.stderr).contains("continuing run"),
        "{}",
        text(&answered.stderr)
    );
    assert!(
        text(&answered.stdout).starts_with("## TL;DR"),
        "{}",
        text(&answered.stdout)
    );
}

#[tokio::test]
async fn the_hint_to_answer_repeats_the_flags_and_the_configured_time() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let folder = TempDir::new().unwrap();
    let mut config: Value = serde_json::from_str(include_str!("../../../llm.config.json")).unwrap();
    config["policy"]["clarificationMinutes"] = json!(5);
    std::fs::write(folder.path().join("five.json"), config.to_string()).unwrap();
    let url = provider.url();
    let variables = [
        ("CONCLAVE_CONFIG", "five.json"),
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let arguments = ["audit", "--user", "ada l", "--channel", "c1", &message];
    let here = text(
        &conclave(folder.path(), &arguments, &variables)
            .output()
            .await
            .unwrap()
            .stderr,
    );
    let command = "conclave audit --channel c1 --user 'ada l' \"B\"";
    assert!(
        here.contains(&format!("Answer within 5 minutes:  {command}")),
        "{here}"
    );
    let app = TestApp::start(&provider).await;
    let there = text(
        &run(
            &folder,
            &["audit", "--server", &app.url, &message],
            &provider,
        )
        .await
        .stderr,
    );
    assert!(
        there.contains(&format!(
            "Answer in time:  conclave audit --server {} \"B\"",
            app.url
        )),
        "{there}"
    );
}

async fn in_flight(provider: &MockProvider, calls: usize) {
    until(async || provider.in_flight() >= calls).await;
}

#[tokio::test]
async fn an_interrupted_run_is_cancelled_before_the_command_ends() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(std::time::Duration::from_secs(20)));
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let child = conclave(folder.path(), &["ask", QUESTION], &variables)
        .spawn()
        .unwrap();
    in_flight(&provider, 3).await;
    let id = child.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .await
            .unwrap()
            .success()
    );
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
    let child = conclave(folder.path(), &["ask", "--server", &app.url, QUESTION], &[])
        .spawn()
        .unwrap();
    in_flight(&provider, 3).await;
    let (_, runs) = app.get("/api/runs").await;
    let url = format!(
        "{}/api/runs/{}",
        app.url,
        runs["runs"][0]["id"].as_str().unwrap()
    );
    assert_eq!(app.client.delete(&url).send().await.unwrap().status(), 202);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
}

/// Returns the lines of the progress with every figure masked, in an order that does not depend on
/// which call ends first.
fn progress_of(output: &Output) -> BTreeSet<String> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let figures = Regex::new(r"\d[\d.]*").unwrap();
    let all = text(&output.stderr);
    let lines = all
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("run 0"));
    lines
        .map(|line| figures.replace_all(line, "0").into_owned())
        .collect()
}

#[tokio::test]
async fn every_stage_has_a_line_and_its_end_here_and_over_a_server() {
    let provider = MockProvider::playing(Scenario::converging()).await;
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let message = Scenario::converging().message;
    let output = run(&here, &["audit", &message], &provider).await;
    let all = text(&output.stderr);
    for stage in ["plan", "round 1", "check", "round 2", "synthesis"] {
        for line in [
            format!("{stage:<10} begins"),
            format!("{stage:<10} ended after "),
        ] {
            let found = all.lines().filter(|shown| shown.starts_with(&line)).count();
            assert_eq!(found, 1, "{line}: {all}");
        }
    }
    let end = all
        .lines()
        .find(|line| line.starts_with("round 1    ended"))
        .unwrap();
    assert!(
        end.contains("; 3 calls (") && end.contains(" s in sum), "),
        "{end}"
    );
    assert!(
        all.contains("keeps 0 claims, concedes ") || all.contains("keeps 1 claim, concedes "),
        "{all}"
    );
    assert!(all.contains("\nrun        ended after "), "{all}");

    let app = TestApp::start(&provider).await;
    let asked = ["audit", "--server", &app.url, &message];
    assert_eq!(
        progress_of(&run(&there, &asked, &provider).await),
        progress_of(&output)
    );
    let dead = "http://127.0.0.1:9";
    let output = run(&there, &["ask", "--server", dead, QUESTION], &provider).await;
    assert_eq!(output.status.code(), Some(8));
}

#[tokio::test]
async fn failures_have_their_exit_codes() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Status(400));
    let folder = TempDir::new().unwrap();
    let failed = run(&folder, &["ask", QUESTION], &provider).await;
    assert_eq!(failed.status.code(), Some(5), "{}", text(&failed.stderr));
    assert_eq!(
        run(&folder, &["ask", " "], &provider).await.status.code(),
        Some(2)
    );
    assert_eq!(
        run(&folder, &["nonsense"], &provider).await.status.code(),
        Some(2)
    );
    let unknown = run(
        &folder,
        &["show", "01890000-0000-7000-8000-000000000000"],
        &provider,
    )
    .await;
    assert_eq!(unknown.status.code(), Some(4));
}
