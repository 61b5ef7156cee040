//! The tables of `make bench` about the service: how runs end when calls fail, the time of actions
//! and of replies from memory, what `escalate` saves, and the cost of 2,000 runs in flight.
//!
//! Everything runs on loopback against the mock provider of the tests. Figures are ratios and
//! counts within one run of the bench, so that they are comparable between slow and fast machines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench: a panic is its way to fail"
)]

#[path = "../tests/it/support/mod.rs"]
mod support;

#[path = "service/decisions.rs"]
mod decisions;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use conclave::journal::{Ending, Transcript};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use support::process::Service;
use support::{Fault, MockProvider, Setup, TestApp, chat, client, mix};

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

/// Runs per row of the fault table, and of its mixed row.
const RUNS: usize = 100;
const MIXED_RUNS: usize = 400;

/// Concurrent runs for the fault table.
const AT_ONCE: usize = 32;

/// The percentage of calls that fail.
const PERCENT: u64 = 20;

/// Runs in flight for the load table.
const IN_FLIGHT: usize = 2000;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let is_wanted = |table: &str| wanted.is_empty() || wanted.iter().any(|w| w == table);
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        if is_wanted("faults") {
            faults().await;
        }
        if is_wanted("act") {
            act().await;
        }
        if is_wanted("decisions") {
            decisions::escalate().await;
            decisions::memory().await;
        }
        if is_wanted("load") {
            load().await;
        }
    });
}

/// The outcomes of the runs of one row.
#[derive(Default)]
struct Row {
    runs: usize,
    valid: usize,
    clean_502: usize,
    other: usize,
    calls: usize,
    cost: f64,
    /// Why runs failed, with the length of their questions.
    failures: Vec<String>,
}

async fn faults() {
    println!(
        "\nFaults: {PERCENT} of 100 calls meet the fault; {RUNS} runs a row, {MIXED_RUNS} in the mixed one."
    );
    println!("Calls and cost are those of a run, divided by those of a run without faults.\n");
    println!("| fault                | valid reply | clean 502 | other | calls | cost |");
    println!("| -------------------- | ----------: | --------: | ----: | ----: | ---: |");
    let honest = row(RUNS, vec![]).await;
    print_row("none", &honest, &honest);
    for (name, fault) in mix::kinds() {
        print_row(name, &row(RUNS, vec![fault]).await, &honest);
    }
    let every: Vec<Fault> = mix::kinds().map(|(_, fault)| fault).into();
    print_row("every kind, mixed", &row(MIXED_RUNS, every).await, &honest);
}

fn print_row(name: &str, row: &Row, honest: &Row) {
    let share = |count: usize| 100.0 * count as f64 / row.runs as f64;
    let calls = row.calls as f64 * honest.runs as f64 / (row.runs as f64 * honest.calls as f64);
    let cost = row.cost * honest.runs as f64 / (row.runs as f64 * honest.cost);
    println!(
        "| {name:<20} | {:>9.2} % | {:>7.2} % | {:>3.1} % | {calls:>5.2} | {cost:>4.2} |",
        share(row.valid),
        share(row.clean_502),
        share(row.other)
    );
    for failure in &row.failures {
        eprintln!("bench: {name}: {failure}");
    }
}

/// Asks `runs` questions of a service whose provider applies these faults to calls.
async fn row(runs: usize, faults: Vec<Fault>) -> Row {
    let provider = MockProvider::start().await;
    if !faults.is_empty() {
        provider.canned("*", mix::of(3, PERCENT, faults));
    }
    // Calls time out early, so that a row ends soon. All other settings are as shipped.
    let setup = Setup::default()
        .set(
            "/policy/deadlines",
            json!({ "connect": 2, "call": 2, "ask": 60, "audit": 60, "deep": 60 }),
        )
        .set(
            "/policy/retry",
            json!({ "attempts": 4, "baseMs": 50, "maxMs": 1000 }),
        )
        .set(
            "/policy/breaker",
            json!({ "failures": 8, "openSeconds": 15 }),
        );
    let app = TestApp::with(&provider, setup).await;
    let mut ends = stream::iter(0..runs)
        .map(|case| one(&app, case))
        .buffer_unordered(AT_ONCE);
    let mut row = Row {
        runs,
        ..Row::default()
    };
    while let Some(end) = ends.next().await {
        match (end.status, end.is_clean) {
            (200, true) => row.valid += 1,
            (502, true) => row.clean_502 += 1,
            _ => row.other += 1,
        }
        row.cost += end.cost;
        row.failures.extend(end.failure);
    }
    row.calls = provider.calls().len();
    row
}

/// Lengths of the questions, in characters. Without faults each gets a reply under the shipped
/// caps. For the longest, the solver is the only agent.
const LENGTHS: [usize; 7] = [200, 1000, 4000, 8000, 16_000, 24_000, 30_000];

/// Returns the question of a case, padded with prose.
fn question_of_length(case: usize) -> String {
    let prose = "The pump was replaced in March, and the pressure has been falling slowly since the last inspection. ";
    let question = format!("{QUESTION} (case {case}) ");
    question
        .chars()
        .chain(prose.chars().cycle())
        .take(LENGTHS[case % LENGTHS.len()])
        .collect()
}

/// The end of one run.
struct End {
    status: u16,
    /// True if the journal is intact and agrees with the answer.
    is_clean: bool,
    /// US dollars.
    cost: f64,
    /// The length of the question, and why there is no reply.
    failure: Option<String>,
}

/// Asks one question.
async fn one(app: &TestApp, case: usize) -> End {
    let question = question_of_length(case);
    let mut body = chat("ask", &question);
    body["user"]["id"] = json!(format!("u{case}"));
    let response = app.post(&body).send().await.unwrap();
    let status = response.status().as_u16();
    let run = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let body: Value = response.json().await.unwrap();
    let row = app.app.run(run).await.unwrap().unwrap();
    let entries = app.entries(run).await;
    let whole =
        conclave::journal::verify(run, &entries, &row.head_hash).is_ok() && row.spent <= row.cap;
    let agrees = match Transcript::of_entries(&entries)
        .finished
        .map(|finished| &finished.ending)
    {
        Some(Ending::Replied { reply }) => body["reply"].as_str() == Some(&reply.text),
        Some(Ending::Failed { detail, .. }) => body["detail"].as_str() == Some(detail),
        Some(Ending::Cancelled | Ending::Acted { .. }) | None => false,
    };
    let failure = body["detail"]
        .as_str()
        .map(|detail| format!("{} characters: {detail}", question.len()));
    End {
        status,
        is_clean: whole && agrees,
        cost: row.spent.dollars(),
        failure,
    }
}

/// Starts the service as a separate process.
async fn service(folder: &TempDir, provider: &MockProvider) -> Service {
    let mut file: Value = serde_json::from_str(support::SHIPPED).unwrap();
    file["providers"]["anthropic"]["maxConcurrent"] = json!(2048);
    std::fs::write(folder.path().join("config.json"), file.to_string()).unwrap();
    let url = provider.url();
    let variables = [
        ("CONCLAVE_CONFIG", "config.json"),
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("RUST_LOG", "conclave=info"),
    ];
    Service::start(folder.path(), &variables).await
}

/// Stops the service and prints the errors in its log.
async fn stop(service: Service) {
    for line in service.stop().await.lines() {
        if line.contains("ERROR") || line.contains("panicked") {
            eprintln!("bench: the service says: {line}");
        }
    }
}

async fn load() {
    let provider = MockProvider::start().await;
    provider.state().repeated = Some(Default::default());
    // Measures the six calls of a run without the service: one, three at once, one, one.
    provider.on("*", Fault::Latency(Duration::from_secs(1)));
    let direct = client();
    let pure = all_at_once(|_| pure_path(&direct, provider.url())).await;
    drop(direct);
    eprintln!("bench: directly done in {:.1} s", pure.at(100));
    let folder = TempDir::new().unwrap();
    let service = service(&folder, &provider).await;
    let client = client();
    let served = all_at_once(|case| served_path(&client, &service.url, case)).await;
    stop(service).await;
    println!(
        "\nLoad: {IN_FLIGHT} runs in flight at once, the mock answers after 1 s; journal in SQLite, on disk."
    );
    println!(
        "Times are divided by those of the same six calls made directly, without a service.\n"
    );
    println!("| runs | errors | calls in flight at most | p50 | p99 |");
    println!("| ---: | -----: | ----------------------: | --: | --: |");
    let errors: usize = served
        .statuses
        .iter()
        .filter(|(status, _)| **status != 200)
        .map(|(_, count)| count)
        .sum();
    println!(
        "| {IN_FLIGHT} | {errors} | {} | {:.2} | {:.2} |",
        provider.state().most_in_flight,
        served.at(50) / pure.at(50),
        served.at(99) / pure.at(99)
    );
    if errors > 0 {
        println!("\nstatuses: {:?}", served.statuses);
    }
    println!(
        "\n(directly: p50 {:.1} s, p99 {:.1} s; through the service: p50 {:.1} s, p99 {:.1} s)",
        pure.at(50),
        pure.at(99),
        served.at(50),
        served.at(99)
    );
}

/// Actions per row of the action table, one after the other.
const ACTIONS: usize = 3300;

/// The number of blocks in which a row of actions is measured.
const BLOCKS: usize = 11;

/// Measures actions by fixed rules next to `/health`, which does no work. The difference is the
/// time of the action.
async fn act() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let service = service(&folder, &provider).await;
    let client = client();
    let health = || client.get(format!("{}/health", service.url));
    let said = |message: &str, case: usize| {
        let mut body = chat("ask", message);
        body.as_object_mut().unwrap().remove("mode");
        body["user"]["id"] = json!(format!("u{case}"));
        client.post(format!("{}/api/act", service.url)).json(&body)
    };
    println!(
        "\nActions by fixed rules: {ACTIONS} a row, one at a time, each beside a `/health`; journal in SQLite, on disk."
    );
    println!("Each figure is the median of {BLOCKS} blocks' own.");
    println!(
        "Service time is what an action takes beyond a `/health`. {} models were asked.\n",
        provider.calls().len()
    );
    println!("| action | p50 / health | p99 / health | service time p50 | p99 |");
    println!("| ------ | -----------: | -----------: | ---------------: | --: |");
    for (name, message) in [
        ("roll 2d6+3", "roll 2d6+3"),
        ("check with a sheet", "dex check dc 15"),
        ("memory.add", "remember that the duke hates dogs"),
        ("memory.search", "what do you remember about dogs?"),
        ("not understood", "tell me a story"),
    ] {
        // The first requests open connections and compile regular expressions.
        for case in 0..50 {
            timed(health()).await;
            timed(said(message, case)).await;
        }
        let mut blocks = vec![];
        for block in 0..BLOCKS {
            let (mut idle, mut acting) = (vec![], vec![]);
            for case in 0..ACTIONS / BLOCKS {
                idle.push(timed(health()).await);
                acting.push(timed(said(message, 50 + block * (ACTIONS / BLOCKS) + case)).await);
            }
            blocks.push([idle, acting].map(Measured::new));
        }
        // A burst of other load affects one or two blocks, which the median ignores.
        let [idle_half, idle_most, half, most] =
            [(0, 50), (0, 99), (1, 50), (1, 99)].map(|(which, percent)| {
                let mut seconds: Vec<f64> = blocks
                    .iter()
                    .map(|block| block[which].at(percent))
                    .collect();
                seconds.sort_by(f64::total_cmp);
                seconds[BLOCKS / 2]
            });
        println!(
            "| {name} | {:.2} | {:.2} | {:.3} ms | {:.3} ms |",
            half / idle_half,
            most / idle_most,
            (half - idle_half).max(0.0) * 1000.0,
            (most - idle_most).max(0.0) * 1000.0
        );
    }
    assert_eq!(provider.calls().len(), 0);
    stop(service).await;
}

async fn timed(request: reqwest::RequestBuilder) -> f64 {
    let started = Instant::now();
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap();
    started.elapsed().as_secs_f64()
}

struct Measured {
    statuses: BTreeMap<u16, usize>,
    /// Seconds, sorted.
    seconds: Vec<f64>,
}

impl Measured {
    fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self {
            statuses: BTreeMap::new(),
            seconds,
        }
    }

    fn at(&self, percent: usize) -> f64 {
        self.seconds[(self.seconds.len() * percent).div_ceil(100).max(1) - 1]
    }
}

async fn all_at_once<F: Future<Output = u16>>(path: impl Fn(usize) -> F) -> Measured {
    let timed = |case| {
        let path = path(case);
        async move {
            let started = Instant::now();
            (path.await, started.elapsed().as_secs_f64())
        }
    };
    let ends: Vec<(u16, f64)> = stream::iter(0..IN_FLIGHT)
        .map(timed)
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;
    let mut statuses = BTreeMap::new();
    ends.iter()
        .for_each(|(status, _)| *statuses.entry(*status).or_insert(0) += 1);
    let mut seconds: Vec<f64> = ends.into_iter().map(|(_, seconds)| seconds).collect();
    seconds.sort_by(f64::total_cmp);
    Measured { statuses, seconds }
}

async fn pure_path(client: &reqwest::Client, url: String) -> u16 {
    let call = |step: &'static str| {
        let body = json!({
            "model": "claude-haiku-5-5", "max_tokens": 1200, "system": "You answer.",
            "messages": [{ "role": "user", "content": QUESTION }],
        });
        let request = client
            .post(format!("{url}/v1/messages"))
            .header("x-api-key", "k")
            .header("anthropic-version", "2023-06-01")
            .header("idempotency-key", format!("pure/direct/{step}"))
            .json(&body);
        async move {
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            response.bytes().await.unwrap();
            assert_eq!(status, 200);
        }
    };
    call("plan").await;
    tokio::join!(call("r1/solver"), call("r1/critic"), call("r1/verifier"));
    call("cross-check").await;
    call("synthesis").await;
    200
}

/// Returns the status, or 0 if there was no answer.
async fn served_path(client: &reqwest::Client, url: &str, case: usize) -> u16 {
    let mut body = chat("ask", &question_of_length(case));
    body["user"]["id"] = json!(format!("u{case}"));
    let sent = client
        .post(format!("{url}/api/chat"))
        .json(&body)
        .send()
        .await;
    let answered = match sent {
        Ok(response) => {
            let status = response.status().as_u16();
            response.bytes().await.map(|_| status)
        }
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| {
        static FIRST: std::sync::Once = std::sync::Once::new();
        FIRST.call_once(|| eprintln!("bench: no answer: {error:?}"));
        0
    })
}
