//! Tests `/metrics` and the log.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Fault, MockProvider, QUESTION, Setup, TestApp, chat, sent, status_of};

/// Returns the samples by name with labels, without the buckets of histograms.
async fn scrape(app: &TestApp) -> BTreeMap<String, f64> {
    let response = sent(app.request("GET", "/metrics")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = response.text().await.unwrap();
    let samples = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    samples
        .filter(|line| !line.contains("_bucket{"))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Returns the sum of a metric's samples whose labels include all of `labels`.
fn sum(samples: &BTreeMap<String, f64>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let held = |key: &str| {
        labels
            .iter()
            .all(|(label, value)| key.contains(&format!("{label}=\"{value}\"")))
    };
    let own = |key: &str| key.split('{').next() == Some(name);
    samples
        .iter()
        .filter(|(key, _)| own(key) && held(key))
        .map(|(_, value)| value)
        .sum()
}

#[tokio::test]
async fn metrics_agree_with_the_journal() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    provider.on("r1/critic", Fault::Status(529));
    app.ask("audit", QUESTION).await;
    provider.on("*", Fault::Status(400));
    assert_eq!(status_of(app.post(&chat("deep", QUESTION))).await, 502);
    let invalid = app.post(&chat("ask", " ")).send().await.unwrap();
    assert_eq!(invalid.status(), 422);

    let samples = scrape(&app).await;
    let total = |name: &str, labels: &[(&str, &str)]| sum(&samples, name, labels);
    let table = "conclave_runs_accepted_total | source=http | 3
        conclave_runs_total | mode=ask, outcome=answered | 1
        conclave_runs_total | mode=deep, outcome=provider | 1
        conclave_runs_total | | 3
        conclave_refused_total | reason=invalid | 1
        conclave_runs_in_flight | | 0
        conclave_calls_total | role=critic, result=provider error | 3
        conclave_retries_total | | 2
        conclave_obtained_total | what=report, how=clean | 5
        conclave_obtained_total | what=report, how=failed | 4
        conclave_statuses_total | agent=solver, status=VALID | 2
        conclave_gate_total | gate=ship | 2
        conclave_stage_seconds_count | stage=plan | 3
        conclave_http_requests_total | route=/api/chat, status=200 | 2";
    for row in table.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[1].split(", ").filter_map(|it| it.split_once('='));
        let found = total(cells[0], &labels.collect::<Vec<_>>());
        assert_eq!(found.to_string(), cells[2], "{row}");
    }
    let calls = provider.calls().len() as f64;
    assert_eq!(total("conclave_calls_total", &[]), calls);
    let runs = app.get("/api/runs").await.1;
    let runs = runs["runs"].as_array().unwrap().iter();
    let spent = runs.map(|run| run["cost"]["spentUsd"].as_f64().unwrap() * 1e9);
    let spent: f64 = spent.map(f64::round).sum();
    assert_eq!(total("conclave_cost_nanodollars_total", &[]), spent);
    assert!(total("conclave_tokens_total", &[("kind", "output")]) > 0.0 && !got.entries.is_empty());
}

#[tokio::test]
async fn metric_labels_are_bounded_and_have_no_user_data() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set("/policy/limits/maxInFlight", json!(4));
    let app = TestApp::with(&provider, setup).await;
    let mut body = chat("ask", "a wholly unusual wordling");
    body["user"] = json!({ "id": "user-zebra", "name": "name-zebra" });
    app.reply(app.post(&body)).await;
    for n in 0..50 {
        let (status, _): (u16, Value) = app.get(&format!("/nowhere/zebra{n}")).await;
        assert_eq!(status, 404);
    }
    let text = sent(app.request("GET", "/metrics"))
        .await
        .text()
        .await
        .unwrap();
    assert!(
        !text.contains("zebra") && !text.contains("wordling"),
        "{text}"
    );
    let before = text.lines().count();
    for _ in 0..3 {
        body["context"]["messageId"] = json!(format!("m{before}"));
        app.post(&body).send().await.unwrap();
    }
    assert!(sum(&scrape(&app).await, "conclave_runs_in_flight_limit", &[]) >= 4.0);
}

#[tokio::test]
async fn the_log_has_one_line_per_step_with_the_run_id_without_content() {
    let provider = MockProvider::start().await;
    let folder = tempfile::TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("RUST_LOG", "info"),
        ("LOG_FORMAT", "json"),
    ];
    let mut command =
        crate::support::process::conclave(folder.path(), &["ask", "--json", QUESTION], &variables);
    let output = command.output().await.unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let steps: Vec<&Value> = lines
        .iter()
        .filter(|line| {
            line["fields"]["message"]
                .as_str()
                .unwrap()
                .starts_with("step: ")
        })
        .collect();
    let run = steps[0]["requestId"].as_str().unwrap();
    assert!(steps.iter().all(|line| line["requestId"] == run), "{text}");
    let messages: Vec<&str> = steps
        .iter()
        .map(|line| &line["fields"]["message"].as_str().unwrap()[6..])
        .collect();
    assert_eq!(messages[..3], ["hints", "trimmed", "r1/started"]);
    for agent in ["solver", "critic", "verifier"] {
        for step in [format!("sent:r1/{agent}"), format!("settled:r1/{agent}")] {
            assert!(messages.contains(&step.as_str()), "{step}: {text}");
        }
        let finished = format!("r1/{agent}/finished");
        let lines = messages.iter().filter(|message| **message == finished);
        assert_eq!(lines.count(), 1);
    }
    assert_eq!(
        messages[messages.len() - 3..],
        ["synthesis", "gate", "finished"]
    );
    assert!(
        !text.contains("boiling"),
        "user text is at debug level only: {text}"
    );
}
