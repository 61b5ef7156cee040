//! The tables about decision strategies: what `escalate` saves, and the time of a reply from memory.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::process::Service;
use super::support::{MockProvider, Scenario, Setup, TestApp, chat, client};
use super::{BLOCKS, Measured, QUESTION, timed};

/// Runs of a scripted panel with one strategy.
const RUNS: usize = 10;

/// Replies per row of the memory table.
const REPLIES: usize = 330;

/// What a model says of the solver's report alone.
#[derive(Clone, Copy)]
enum Check {
    Holds,
    Fails,
}

/// Prints calls and cost of `escalate` as shares of those of `committee_first`.
pub async fn escalate() {
    println!(
        "\nStrategy escalate: {RUNS} runs a row. Calls and cost are those of a run, divided by"
    );
    println!("those of the same panel with committee_first.\n");
    println!(
        "| panel | cross-check of the solver | answered | by committee_first | calls | cost |"
    );
    println!(
        "| ----- | ------------------------- | -------: | -----------------: | ----: | ---: |"
    );
    for (name, scenario) in [
        ("one figure", Scenario::agreeing()),
        ("steps", Scenario::howto()),
        ("a split panel", Scenario::converging()),
        ("three readings", Scenario::disagreeing()),
    ] {
        let (whole, calls, cost) = runs(&scenario, "committee_first", Check::Holds).await;
        for (check, said) in [(Check::Holds, "holds"), (Check::Fails, "does not")] {
            let (answered, fewer, cheaper) = runs(&scenario, "escalate", check).await;
            println!(
                "| {name} | {said} | {answered} % | {whole} % | {:.2} | {:.2} |",
                fewer / calls,
                cheaper / cost
            );
        }
    }
}

/// Returns the share of runs that were answered in percent, and the calls and cost of a run.
async fn runs(scenario: &Scenario, strategy: &str, check: Check) -> (usize, f64, f64) {
    let provider = MockProvider::playing(scenario.clone()).await;
    if matches!(check, Check::Fails) {
        let scenario = scenario.clone();
        provider.reply_by("cross-check/solver", move |call| {
            let mut reply = scenario.reply("cross-check", &call.text()).unwrap();
            for claim in reply["claims"].as_array_mut().unwrap() {
                claim["holds"] = json!("no");
            }
            reply
        });
    }
    let setup = Setup::default().env("DECISION_STRATEGY", strategy);
    let app = TestApp::with(&provider, setup).await;
    let (mut answered, mut cost) = (0, 0.0);
    for case in 0..RUNS {
        let mut body = chat("ask", &scenario.message);
        body["user"]["id"] = json!(format!("u{case}"));
        let got = app.reply(app.post(&body)).await;
        answered += usize::from(got.outcome == "answered");
        cost += got.body["meta"]["budget"]["estimatedUsd"].as_f64().unwrap();
    }
    let calls = provider.calls().len() as f64 / RUNS as f64;
    (100 * answered / RUNS, calls, cost / RUNS as f64)
}

/// Measures replies from memory beside `/health`, which does no work, and the committee with a mock
/// that answers at once.
pub async fn memory() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let mut file: Value = serde_json::from_str(super::support::SHIPPED).unwrap();
    file["providers"]["anthropic"]["maxConcurrent"] = json!(2048);
    std::fs::write(folder.path().join("config.json"), file.to_string()).unwrap();
    let url = provider.url();
    let variables = [
        ("CONCLAVE_CONFIG", "config.json"),
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("DECISION_STRATEGY", "heuristic_first"),
        ("HEURISTIC_THRESHOLD", "0.3"),
    ];
    let service = Service::start(folder.path(), &variables).await;
    let client = client();
    let chats = format!("{}/api/chat", service.url);
    let asked = |message: &str, case: usize| {
        let mut body = chat("ask", message);
        body["user"]["id"] = json!(format!("u{case}"));
        body["context"] = json!({ "guildId": "g", "channelId": format!("c{case}") });
        client.post(&chats).json(&body)
    };
    let first = asked(QUESTION, 0).send().await.unwrap();
    let run = first.headers()["x-request-id"].to_str().unwrap().to_owned();
    let feedback = format!("{}/api/runs/{run}/feedback", service.url);
    let body = json!({ "positive": true });
    let noted = client.post(feedback).json(&body).send().await.unwrap();
    assert_eq!(noted.status(), 200);
    println!(
        "\nReplies from memory: {REPLIES} a row, one at a time, each beside a `/health`; journal in SQLite, on"
    );
    println!("disk. Each figure is the median of {BLOCKS} blocks' own.\n");
    println!("| reply | calls a run | p50 / health | service time p50 | p99 |");
    println!("| ----- | ----------: | -----------: | ---------------: | --: |");
    for (name, prefix) in [
        ("from memory", ""),
        ("by the committee, mock at 0 ms", "new: "),
    ] {
        let message = format!("{prefix}{QUESTION}");
        let before = provider.calls().len();
        let mut blocks = vec![];
        for block in 0..BLOCKS {
            let (mut idle, mut replies) = (vec![], vec![]);
            for case in 0..REPLIES / BLOCKS {
                idle.push(timed(client.get(format!("{}/health", service.url))).await);
                replies.push(timed(asked(&message, 1 + block * REPLIES + case)).await);
            }
            blocks.push((Measured::new(idle), Measured::new(replies)));
        }
        let calls = (provider.calls().len() - before) as f64;
        let median = |figure: &dyn Fn(&(Measured, Measured)) -> f64| {
            let mut figures: Vec<f64> = blocks.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures[BLOCKS / 2]
        };
        println!(
            "| {name} | {:.1} | {:.1} | {:.2} ms | {:.2} ms |",
            calls / (REPLIES / BLOCKS * BLOCKS) as f64,
            median(&|(idle, replies)| replies.at(50) / idle.at(50)),
            median(&|(idle, replies)| replies.at(50) - idle.at(50)) * 1000.0,
            median(&|(idle, replies)| replies.at(99) - idle.at(99)) * 1000.0,
        );
    }
    super::stop(service).await;
}
