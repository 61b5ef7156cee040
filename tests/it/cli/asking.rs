//! Tests questions and answers, interruptions, `--server`, and the exit codes of failures.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Output, Stdio};

use regex::Regex;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{CommandLine, QUESTION};
use crate::plans::{create, plan};
use crate::support::process::conclave;
use crate::support::{Fault, MockProvider, Scenario, TestApp, status_of, until};

/// Interrupts a command, and returns its standard error. It ends as interrupted.
async fn interrupted(child: Child) -> String {
    let id = child.id().unwrap().to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    error
}

/// Runs a command with a pipe as its standard input.
async fn piped(mut command: Command, input: &str) -> Output {
    use tokio::io::AsyncWriteExt as _;
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

#[tokio::test]
async fn the_question_may_come_from_standard_input() {
    let cli = CommandLine::new().await;
    let output = piped(cli.command(&["ask", "-"], &[]), QUESTION).await;
    assert!(output.status.success(), "{output:?}");
    assert!(cli.provider.calls_of("plan")[0].prompt().contains(QUESTION));
    let output = piped(cli.command(&["ask", QUESTION, "-"], &[]), "diff --git a").await;
    assert!(output.status.success(), "{output:?}");
    let both = format!("{QUESTION}\n\ndiff --git a");
    assert!(cli.provider.calls_of("plan")[1].prompt().contains(&both));
    let output = piped(cli.command(&["quote", QUESTION], &[]), "diff --git a").await;
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("standard input is not read"), "{error}");
}

#[tokio::test]
async fn a_question_of_the_committee_is_shown_with_how_to_answer_it() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let cli = CommandLine::playing(scenario).await;
    let asked = cli.run(&["audit", &message]).await;
    assert_eq!(asked.0, 0);
    assert!(asked.1.contains("\nA) "), "{}", asked.1);
    assert!(asked.2.contains("conclave audit \"B\""));
    let answered = cli.run(&["audit", "b"]).await;
    assert!(answered.2.contains("continuing run"), "{}", answered.2);
    assert!(answered.1.starts_with("## TL;DR"), "{}", answered.1);
}

#[tokio::test]
async fn the_hint_to_answer_repeats_the_flags() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let cli = CommandLine::playing(scenario).await;
    let arguments = ["audit", "--user", "ada l", "--channel", "c1", &message];
    let here = cli.run(&arguments).await.2;
    let command = "conclave audit --channel c1 --user 'ada l' \"B\"";
    assert!(here.contains(&format!("Answer with:  {command}")), "{here}");
    let app = TestApp::start(&cli.provider).await;
    let there = cli.run(&["audit", "--server", &app.url, &message]).await.2;
    assert!(
        there.contains(&format!(
            "Answer with:  conclave audit --server {} \"B\"",
            app.url
        )),
        "{there}"
    );
}

async fn in_flight(provider: &MockProvider, calls: usize) {
    until(async || provider.state().in_flight >= calls).await;
}

#[tokio::test]
async fn an_interrupted_run_is_cancelled_before_the_command_ends() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let cli = CommandLine::new().await;
        let late = Fault::Latency(std::time::Duration::from_secs(20));
        cli.provider.on("r1/*", late);
        let child = cli.command(&["ask", QUESTION], &[]).spawn().unwrap();
        in_flight(&cli.provider, 3).await;
        let id = child.id().unwrap().to_string();
        let kill = Command::new("kill").args([signal, &id]).status();
        assert!(kill.await.unwrap().success());
        let output = child.wait_with_output().await.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}: {error}");
        assert!(error.contains("was cancelled"), "{error}");
        let runs = cli.run(&["runs", "--json"]).await.1;
        assert!(runs.contains(r#""state":"cancelled""#), "{runs}");
    }
}

#[tokio::test]
async fn a_command_that_is_interrupted_early_leaves_no_open_run() {
    let cli = CommandLine::new().await;
    let late = Fault::Latency(std::time::Duration::from_secs(20));
    cli.provider.on("*", late);
    let narration = [
        ("NARRATOR_ENABLED", "true"),
        ("NARRATOR_PROVIDER", "anthropic"),
    ];
    // The signals are spread over the time in which a command starts and its run is accepted.
    let commands = (0..24).map(async |number| {
        let (command, text) = [("ask", QUESTION), ("act", "roll 1d6")][number % 2];
        let user = format!("u{number}");
        let mut command = cli.command(&[command, text, "--user", &user], &narration);
        let child = command.spawn().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(100 + 10 * number as u64)).await;
        let id = child.id().unwrap().to_string();
        let kill = Command::new("kill").args(["-INT", &id]).status();
        assert!(kill.await.unwrap().success());
        child.wait_with_output().await.unwrap()
    });
    futures_util::future::join_all(commands).await;
    let open = Regex::new(r#""state":"(queued|running)""#).unwrap();
    for kind in [&[][..], &["--actions"]] {
        let list = [&["runs", "--limit", "100", "--json"], kind].concat();
        let (_, runs, _) = cli.run(&list).await;
        assert!(!open.is_match(&runs), "{runs}");
    }
}

#[tokio::test]
async fn an_interrupted_question_to_a_server_is_cancelled_there() {
    let cli = CommandLine::new().await;
    let late = Fault::Latency(std::time::Duration::from_secs(20));
    cli.provider.on("r1/*", late);
    let app = TestApp::start(&cli.provider).await;
    let ask = ["ask", "--server", &app.url, QUESTION];
    let child = cli.command(&ask, &[]).spawn().unwrap();
    in_flight(&cli.provider, 3).await;
    let error = interrupted(child).await;
    let (_, runs) = app.get("/api/runs").await;
    let run = runs["runs"][0]["id"].as_str().unwrap();
    assert!(
        error.contains(&format!("run {run} was cancelled")),
        "{error}"
    );
    let path = format!("/api/runs/{run}");
    until(async || app.get(&path).await.1["state"] == "cancelled").await;
}

#[tokio::test]
async fn a_full_standard_error_stops_no_question_and_bytes_are_no_token() {
    let cli = CommandLine::new().await;
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = cli.command(&["ask", QUESTION], &[]);
    let child = command.stderr(full.unwrap()).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("100 °C"));

    let token = std::ffi::OsStr::from_bytes(b"\xffsecretsecretsecretsecret");
    let mut command = cli.command(&["config", "check"], &[]);
    let checked = command.env("CONCLAVE_TOKEN", token).output().await.unwrap();
    assert_eq!(checked.status.code(), Some(3), "{checked:?}");
    assert!(String::from_utf8_lossy(&checked.stderr).contains("CONCLAVE_TOKEN"));
}

#[tokio::test]
async fn an_interrupted_plan_or_action_is_cancelled_before_the_command_ends() {
    let plans = [("TOOLS_WORKSPACE", ".")];
    let proposals = [
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "anthropic"),
    ];
    for (step, command, variables, kind) in [
        ("tool_plan", "plan", &plans[..], "--plans"),
        ("proposal", "act", &proposals[..], "--actions"),
    ] {
        let cli = CommandLine::new().await;
        let late = Fault::Latency(std::time::Duration::from_secs(20));
        cli.provider.on(step, late);
        let child = cli.command(&[command, "Show it"], variables).spawn();
        let child = child.unwrap();
        in_flight(&cli.provider, 1).await;
        let error = interrupted(child).await;
        assert!(error.contains("was cancelled"), "{error}");
        let runs = cli.run(&["runs", kind, "--json"]).await.1;
        assert!(runs.contains(r#""state":"cancelled""#), "{runs}");
    }
}

#[tokio::test]
async fn an_interrupted_execution_names_the_steps_that_were_done() {
    let cli = CommandLine::new().await;
    let steps = [create("step_1", "a.txt")];
    cli.provider
        .reply_with("tool_plan", plan("MUTATE", &steps, &[]));
    let late = Fault::Latency(std::time::Duration::from_secs(20));
    cli.provider.on("tool_explain", late);
    let mut command = cli.command(&["plan", "Create it", "--yes"], &[("TOOLS_WORKSPACE", ".")]);
    let child = command.spawn().unwrap();
    until(async || cli.provider.count_step("tool_explain") > 0).await;
    let error = interrupted(child).await;
    for part in [
        "step_1 was executed\nSee it: conclave show 0",
        "Undo it: conclave plan --undo 0",
    ] {
        assert!(error.contains(part), "{error}");
    }
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
    assert_eq!(status_of(app.client.delete(&url)).await, 202);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}

/// Returns the lines of the progress with every figure masked, in an order that does not depend on
/// which call ends first.
fn progress_of((code, _, all): &(i32, String, String)) -> BTreeSet<String> {
    assert_eq!(*code, 0, "{all}");
    let figures = Regex::new(r"\d[\d.]*").unwrap();
    let lines = all
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("run 0"));
    lines
        .map(|line| figures.replace_all(line, "0").into_owned())
        .collect()
}

#[tokio::test]
async fn every_stage_has_a_line_and_its_end_here_and_over_a_server() {
    let here = CommandLine::playing(Scenario::converging()).await;
    let there = CommandLine::new().await;
    let message = Scenario::converging().message;
    let output = here.run(&["audit", &message]).await;
    let all = &output.2;
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

    // In `ask` round 1 begins beside the plan. Each call still counts for its own stage.
    let (_, _, shown) = CommandLine::playing(Scenario::converging())
        .await
        .run(&["ask", &message])
        .await;
    for (stage, calls) in [("plan", "; 1 call, "), ("round 1", "; 3 calls (")] {
        let begin = format!("{stage:<10} ended after ");
        let end = shown.lines().find(|line| line.starts_with(&begin));
        assert!(end.is_some_and(|end| end.contains(calls)), "{shown}");
    }

    let app = TestApp::start(&here.provider).await;
    let asked = ["audit", "--server", &app.url, &message];
    assert_eq!(progress_of(&there.run(&asked).await), progress_of(&output));
    let dead = "http://127.0.0.1:9";
    let output = there.run(&["ask", "--server", dead, QUESTION]).await;
    assert_eq!(output.0, 8);
}

#[tokio::test]
async fn failures_have_their_exit_codes() {
    let cli = CommandLine::new().await;
    cli.provider.on("r1/*", Fault::Status(400));
    let failed = cli.run(&["ask", QUESTION]).await;
    assert_eq!(failed.0, 5, "{}", failed.2);
    let place = format!(
        "anthropic at {} (key in ANTHROPIC_API_KEY)",
        cli.provider.url()
    );
    assert!(failed.2.contains(&place), "{} in {}", place, failed.2);
    assert_eq!(cli.run(&["ask", " "]).await.0, 2);
    assert_eq!(cli.run(&["nonsense"]).await.0, 2);
    let long = "x".repeat(32_001);
    for refused in [
        &["quote", &long][..],
        &["ask", &long],
        &["ask", QUESTION, "--attach", "nowhere.png"],
    ] {
        let output = cli.run(refused).await;
        assert_eq!(output.0, 4, "{}", output.2);
    }
    let unknown = cli
        .run(&["show", "01890000-0000-7000-8000-000000000000"])
        .await;
    assert_eq!(unknown.0, 4);
}
