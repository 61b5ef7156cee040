//! Tests two replicas on one PostgreSQL database: every request works at either replica.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::{BackendStore as _, Ending, Event, PostgresStore, RunState};
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use sqlx::PgPool;
use tempfile::TempDir;

use crate::support::{
    Fault, MockProvider, QUESTION, Scenario, Setup, TestApp, chat, execute, postgres, status_of,
    until,
};

/// Whether the replicas notify each other of events.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Whole,
    Cut,
}

/// Starts two replicas in this process, each with its own connections, owner and tasks.
async fn two(provider: &MockProvider, wire: Wire, lease_seconds: u64) -> [TestApp; 2] {
    let url = postgres::fresh().await;
    let start = async |owner: &str| {
        let setup = Setup::default().set("/policy/leaseSeconds", json!(lease_seconds));
        let store = PostgresStore::open(&url, owner).await.unwrap();
        let app = TestApp::with_store(
            provider,
            setup,
            Arc::new(TempDir::new().unwrap()),
            store,
            owner,
        )
        .await;
        if wire == Wire::Whole {
            app.app.keep_recovering();
        }
        app
    };
    [start("first").await, start("second").await]
}

/// Submits a question and waits until its three agents are in flight.
async fn under_way(at: &TestApp, provider: &MockProvider) -> RunId {
    let run = at.accept(&chat("ask", QUESTION)).await;
    until(async || provider.state().in_flight >= 3).await;
    run
}

async fn state(at: &TestApp, run: RunId) -> RunState {
    at.app.run(run).await.unwrap().unwrap().state
}

/// Returns the replica that works on a run, then the other one. Either may have accepted the run.
async fn worker_first([one, two]: &[TestApp; 2], run: RunId) -> [&TestApp; 2] {
    let entries = one.entries(run).await;
    let claimed = entries.iter().find_map(|e| {
        if let Event::Claimed(c) = &e.event {
            Some(c.owner.clone())
        } else {
            None
        }
    });
    if claimed.as_deref() == Some("first") {
        [one, two]
    } else {
        [two, one]
    }
}

#[tokio::test]
async fn a_run_can_be_cancelled_at_the_other_replica() {
    for (wire, lease) in [(Wire::Whole, 3600), (Wire::Cut, 2)] {
        let provider = MockProvider::start().await;
        provider.on("r1/*", Fault::Latency(Duration::from_secs(60)));
        let replicas = two(&provider, wire, lease).await;
        let run = under_way(&replicas[0], &provider).await;
        let [_, other] = worker_first(&replicas, run).await;
        let url = format!("{}/api/runs/{run}", other.url);
        assert_eq!(status_of(other.client.delete(&url)).await, 202);
        // With the wire whole, the lease is renewed too late to notice the cancellation by it.
        assert!(matches!(other.ended(run).await, Ending::Cancelled));
        until(async || provider.state().in_flight == 0).await;
        assert_eq!(state(other, run).await, RunState::Cancelled);
    }
}

#[tokio::test]
async fn a_replica_that_shuts_down_sends_those_away_who_wait_for_a_run_of_the_other() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(60)));
    let replicas = two(&provider, Wire::Whole, 3600).await;
    let mut body = chat("ask", QUESTION);
    body["context"]["messageId"] = json!("m-1");
    let run = replicas[0].accept(&body).await;
    until(async || provider.state().in_flight >= 3).await;
    let [_, other] = worker_first(&replicas, run).await;
    let joined = other.post(&body).send();
    let events = other
        .client
        .get(format!("{}/api/runs/{run}/events", other.url))
        .send();
    let events = async { events.await.unwrap().text().await.unwrap() };
    let leaving = async {
        until(async || provider.state().in_flight >= 3).await;
        other.app.drain(Duration::from_secs(60)).await;
    };
    let (joined, events, ()) = tokio::join!(joined, events, leaving);
    let joined = joined.unwrap();
    assert_eq!(joined.status(), 503);
    assert!(joined.headers().contains_key("retry-after"));
    assert!(events.contains("the service is shutting down"), "{events}");
    assert_eq!(state(other, run).await, RunState::Running);
}

#[tokio::test]
async fn a_broken_stream_resumes_at_the_other_replica() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(Duration::from_millis(200)));
    let [one, two] = two(&provider, Wire::Whole, 30).await;
    let read = async |app: &TestApp,
                      run: RunId,
                      after: &str,
                      most: usize|
           -> Vec<(String, String, String)> {
        let request = app
            .request("GET", &format!("/api/runs/{run}/events"))
            .header("last-event-id", after.to_owned());
        let events = request
            .send()
            .await
            .unwrap()
            .bytes_stream()
            .eventsource()
            .take(most);
        events
            .map(|e| e.map(|e| (e.id, e.event, e.data)).unwrap())
            .collect()
            .await
    };
    let run = one.accept(&chat("audit", QUESTION)).await;
    let begun = read(&one, run, "0", 4).await;
    let rest = read(&two, run, &begun[3].0, usize::MAX).await;
    assert_eq!(rest.last().unwrap().1, "reply");
    let whole = read(&one, run, "0", usize::MAX).await;
    assert_eq!([begun, rest].concat(), whole);
}

#[tokio::test]
async fn a_repetition_joins_at_the_other_replica_during_and_after_the_run() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(Duration::from_millis(100)));
    let [one, two] = two(&provider, Wire::Whole, 30).await;
    let send = |app: &TestApp, message: &str| {
        app.post(&chat("ask", message))
            .header("idempotency-key", "k")
    };
    let (a, b) = tokio::join!(
        one.reply(send(&one, QUESTION)),
        two.reply(send(&two, QUESTION))
    );
    let c = two.reply(send(&two, QUESTION)).await;
    assert_eq!((a.run, &a.body), (b.run, &b.body));
    assert_eq!((a.run, &a.body), (c.run, &c.body));
    assert_eq!(provider.calls().len(), 6);
    assert_eq!(status_of(send(&two, "Something else")).await, 422);
}

#[tokio::test]
async fn a_hundred_repetitions_over_both_replicas_make_one_run_and_equal_replies() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(Duration::from_millis(50)));
    let replicas = two(&provider, Wire::Whole, 30).await;
    let mut body = chat("ask", QUESTION);
    body["context"]["messageId"] = json!("m-100");
    let sends = (0..100).map(|n| replicas[n % 2].post(&body).send());
    let mut replies = vec![];
    for response in futures_util::future::join_all(sends).await {
        let response = response.unwrap();
        assert_eq!(response.status(), 200);
        replies.push(response.text().await.unwrap());
    }
    replies.dedup();
    assert_eq!(replies.len(), 1);
    assert_eq!(provider.calls().len(), 6);
}

#[tokio::test]
async fn a_question_of_one_replica_is_answered_at_the_other() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let [one, two] = two(&provider, Wire::Whole, 30).await;
    let asked = one.ask("ask", &message).await;
    assert_eq!(asked.outcome, "clarification");
    let answered = two.ask("ask", "B").await;
    assert_eq!(answered.outcome, "answered", "{}", answered.text());
    let (_, run) = one.get(&format!("/api/runs/{}", answered.run)).await;
    assert_eq!(run["parent"], asked.run.to_string());
    let steps = provider.steps_of(&answered.run.to_string());
    assert!(
        !steps.contains_key("plan"),
        "the plan is not bought again: {steps:?}"
    );
}

#[tokio::test]
async fn notifications_reach_the_other_replica_and_not_their_sender() {
    let url = postgres::fresh().await;
    let (one, two) = (
        PostgresStore::open(&url, "one").await.unwrap(),
        PostgresStore::open(&url, "two").await.unwrap(),
    );
    let (mut ours, mut theirs) = (
        one.notifications().await.unwrap(),
        two.notifications().await.unwrap(),
    );
    let runs: Vec<RunId> = (1..=3)
        .map(|n| RunId::from_uuid(uuid::Uuid::from_u128(n)))
        .collect();
    one.announce(&runs).await.unwrap();
    assert_eq!((&mut theirs).take(3).collect::<Vec<_>>().await, runs);
    two.announce(&runs[..1]).await.unwrap();
    assert_eq!(
        ours.next().await,
        Some(runs[0]),
        "the first that it hears is not its own"
    );
    // A terminated connection ends the stream. A new stream can be opened.
    let raw = PgPool::connect(&url).await.unwrap();
    execute(
        &raw,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'",
    )
    .await;
    assert_eq!(theirs.next().await, None);
    let mut theirs = two.notifications().await.unwrap();
    one.announce(&runs[1..2]).await.unwrap();
    assert_eq!(theirs.next().await, Some(runs[1]));
}

#[tokio::test]
async fn runs_continue_after_their_connections_are_cut() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_millis(300)));
    let url = postgres::fresh().await;
    let store = PostgresStore::open(&url, "only").await.unwrap();
    let setup = Setup::default()
        .set("/policy/leaseSeconds", json!(6))
        .env("NORMAL_MAX_USD", "20");
    let app = TestApp::with_store(
        &provider,
        setup,
        Arc::new(TempDir::new().unwrap()),
        store,
        "only",
    )
    .await;
    app.app.keep_recovering();
    let run = under_way(&app, &provider).await;
    let raw = PgPool::connect(&url).await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    execute(&raw, cut).await;
    assert!(matches!(app.ended(run).await, Ending::Replied { .. }));
    let (_, journal): (_, Value) = app.get(&format!("/api/runs/{run}/journal")).await;
    assert_eq!(journal["verified"], true);
    // What was answered while the connections were cut is written afterwards: the process keeps its
    // lease and buys nothing again.
    let entries = app.entries(run).await;
    let is_claim = |event: &Event| matches!(event, Event::Claimed(_));
    assert_eq!(entries.iter().filter(|e| is_claim(&e.event)).count(), 1);
    assert_eq!(provider.calls().len(), 6);
    assert_eq!(provider.repeated_keys(), Vec::<String>::new());
}
