//! Tests feedback, replay and report with the real binary.

use serde_json::{Value, json};

use crate::cli::{CommandLine, run};
use crate::support::process::conclave;
use crate::support::{Fault, QUESTION, Scenario};

#[tokio::test]
async fn a_replay_under_the_same_config_makes_no_change_and_no_call() {
    let cli = CommandLine::new().await;
    cli.run(&["audit", QUESTION]).await;
    let bought = cli.provider.calls().len();
    let id = cli.newest().await;
    let replayed = cli.json(&["replay", "--json", &id]).await;
    assert_eq!(replayed["recorded"], replayed["replayed"]);
    assert_eq!(cli.provider.calls().len(), bought);
}

#[tokio::test]
async fn a_replay_shows_what_another_config_would_decide() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let id = cli.newest().await;
    let strict = cli.config("/policy/tauSoft", json!(0.99));
    let (code, output, error) =
        run(cli.command(&["replay", "--json", &id], &[("CONCLAVE_CONFIG", &strict)])).await;
    assert_eq!(code, 0, "{error}");
    let replayed: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(replayed["replayed"]["confidence"]["baseScore"], json!(0.0));
    assert_eq!(replayed["replayed"]["gate"], json!("ask"));
    assert_eq!(replayed["recorded"]["gate"], json!("ship"));
    let threshold = cli.config("/policy/askUserThreshold", json!(1.0));
    let (_, output, _) =
        run(cli.command(&["replay", &id], &[("CONCLAVE_CONFIG", &threshold)])).await;
    assert!(
        output.contains("gate         ship                   ask"),
        "{output}"
    );
    let broken = cli.config("/policy/tauSoft", json!("high"));
    let (code, _, error) =
        run(cli.command(&["replay", &id], &[("CONCLAVE_CONFIG", &broken)])).await;
    assert!(code == 3 && error.contains("/policy/tauSoft"), "{error}");
}

#[tokio::test]
async fn a_replay_needs_no_keys_and_no_answered_run() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let id = cli.newest().await;
    let replay = conclave(cli.folder.path(), &["replay", &id], &[]);
    assert_eq!(run(replay).await.0, 0);
    cli.provider.on("*", Fault::Status(400));
    cli.run(&["ask", "--new", QUESTION]).await;
    let (code, _, error) = cli.run(&["replay", &cli.newest().await]).await;
    assert!(code == 4 && error.contains("never scored"), "{error}");
    let (code, ..) = cli
        .run(&["replay", "01890000-0000-7000-8000-000000000000"])
        .await;
    assert_eq!(code, 4);
}

#[tokio::test]
async fn a_replay_of_a_continued_run_gives_the_same_scores() {
    let cli = CommandLine::new().await;
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    cli.provider.state().scenario = scenario;
    let asked = cli.json(&["ask", "--json", &message]).await;
    assert!(asked["reply"].as_str().unwrap().contains("B"), "{asked}");
    cli.run(&["ask", "B"]).await;
    let replayed = cli.json(&["replay", "--json", &cli.newest().await]).await;
    assert_eq!(
        replayed["recorded"]["scores"],
        replayed["replayed"]["scores"]
    );
}

#[tokio::test]
async fn the_report_skips_and_names_an_unreadable_run() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let broken = cli.newest().await;
    cli.run(&["ask", "new: And at the top of Mount Everest?"])
        .await;
    let sql = "UPDATE entries SET body = '{\"kind\":\"nonsense\"}' WHERE key = 'plan' AND run = ?";
    cli.database().execute(sql, [&broken]).unwrap();
    let (code, output, error) = cli.run(&["report", "--json"]).await;
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &report["runs"]), (0, &json!(1)));
    assert!(
        error.contains(&format!("run {broken} is left out")),
        "{error}"
    );
}

#[tokio::test]
async fn feedback_is_written_to_the_journal_and_the_latest_counts() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let id = cli.newest().await;
    assert_eq!(
        cli.run(&["feedback", &id]).await.0,
        2,
        "for or against has to be said"
    );
    let (code, output, _) = cli
        .run(&["feedback", &id, "--positive", "--comment", " good "])
        .await;
    assert_eq!((code, output), (0, format!("run {id}: noted\n")));
    let (_, output, _) = cli.run(&["feedback", &id, "--negative"]).await;
    assert_eq!(
        output,
        format!("run {id}: noted; the report counts it in place of what was said before\n")
    );
    assert_eq!(cli.run(&["verify", &id]).await.0, 0, "the chain goes on");
    let report = cli.json(&["report", "--json"]).await;
    let bins = report["reliability"].as_array().unwrap();
    let (replies, positive) = bins.iter().fold((0, 0), |(replies, positive), bin| {
        (
            replies + bin["replies"].as_u64().unwrap(),
            positive + bin["positive"].as_u64().unwrap(),
        )
    });
    assert_eq!((replies, positive), (1, 0));
    let long = "x".repeat(2001);
    let (code, _, error) = cli
        .run(&["feedback", &id, "--positive", "--comment", &long])
        .await;
    assert!(code == 4 && error.contains("2001 characters"), "{error}");
    let (code, lines, _) = cli.run(&["export"]).await;
    assert!(code == 0 && lines.contains("feedback/2"));
}

#[tokio::test]
async fn a_failed_run_takes_no_feedback() {
    let cli = CommandLine::new().await;
    cli.provider.on("*", Fault::Status(400));
    cli.run(&["ask", QUESTION]).await;
    let (code, _, error) = cli
        .run(&["feedback", &cli.newest().await, "--positive"])
        .await;
    assert!(
        code == 4 && error.contains("the run has no reply: it is failed"),
        "{error}"
    );
}

#[tokio::test]
async fn the_report_agrees_with_the_journals() {
    let cli = CommandLine::new().await;
    assert!(cli.run(&["report"]).await.1.starts_with("0 runs"));
    cli.run(&["ask", QUESTION]).await;
    cli.provider.on("r1/critic", Fault::Status(400));
    cli.run(&["ask", "--new", QUESTION]).await;
    let report = cli.json(&["report", "--json"]).await;
    assert_eq!(
        (&report["runs"], &report["outcomes"]),
        (&json!(2), &json!({ "answered": 2 }))
    );
    let member = |role: &str| {
        let members = report["members"].as_array().unwrap();
        members
            .iter()
            .find(|member| member["role"] == role)
            .unwrap()
            .clone()
    };
    let critic = member("critic");
    let figures =
        ["calls", "failedCalls", "outputs", "valid", "validJson"].map(|name| critic[name].clone());
    assert_eq!(
        figures,
        [json!(2), json!(1), json!(1), json!(1), json!(1.0)]
    );
    assert_eq!(critic["obtained"], json!({ "clean": 1 }));
    let master = member("master");
    assert_eq!(
        (&master["outputs"], &master["validJson"]),
        (&json!(4), &json!(1.0))
    );
    let spent: f64 = report["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["costUsd"].as_f64().unwrap())
        .sum();
    let runs = cli.run(&["runs", "--json"]).await.1;
    let told: f64 = runs
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["spentUsd"]
                .as_f64()
                .unwrap()
        })
        .sum();
    assert!((spent - told).abs() < 1e-9, "{spent} {told}");
    let text = cli.run(&["report"]).await.1;
    assert!(
        text.starts_with("2 runs since ")
            && text.contains(": 2 answered")
            && text.contains("no feedback yet"),
        "{text}"
    );
    let later = ["report", "--since", "2100-01-01T00:00:00Z"];
    assert!(cli.run(&later).await.1.starts_with("0 runs"));
}

#[tokio::test]
async fn a_run_whose_parent_is_missing_is_not_continued() {
    let scenario = Scenario::disagreeing();
    let cli = CommandLine::playing(scenario.clone()).await;
    cli.run(&["ask", &scenario.message]).await;
    let parent = cli.newest().await;
    cli.run(&["ask", "B"]).await;
    let child = cli.newest().await;
    for table in ["entries WHERE run", "runs WHERE id"] {
        let sql = format!("DELETE FROM {table} = ?");
        cli.database().execute(&sql, [&parent]).unwrap();
    }
    let bought = cli.provider.calls().len();
    let (code, _, error) = cli.run(&["ask", "A1 is wrong: it is given"]).await;
    assert!(code != 0 && error.contains("no longer stored"), "{error}");
    assert_eq!(cli.provider.calls().len(), bought);
    let (_, _, error) = cli.run(&["replay", &child]).await;
    assert!(
        error.contains(&format!("{parent}, which is missing")),
        "{error}"
    );
}
