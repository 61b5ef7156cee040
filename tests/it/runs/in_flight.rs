//! Tests runs in flight: streams, the `Location` of a run, and cancellation.

use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::Ending;
use serde_json::json;

use super::events;
use crate::support::{
    Fault, MockProvider, QUESTION, TestApp, chat, run_of, sent, status_of, until,
};

#[tokio::test]
async fn a_stream_shows_the_progress_and_ends_with_the_reply() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let request = app
        .post(&chat("audit", QUESTION))
        .header("accept", "text/event-stream");
    let response = request.send().await.unwrap();
    let run: RunId = run_of(&response);
    let events = events(response).await;
    let names: Vec<&str> = events.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names[..6],
        ["run", "plan.started", "call", "plan", "fit", "round"]
    );
    assert_eq!(names.iter().filter(|n| **n == "agent.started").count(), 3);
    assert_eq!(names.iter().filter(|n| **n == "agent.finished").count(), 3);
    assert_eq!(
        names[names.len() - 6..],
        [
            "score",
            "synthesis",
            "call",
            "synthesis.finished",
            "gate",
            "reply"
        ]
    );
    assert!(
        events.windows(2).all(|pair| pair[0].1 < pair[1].1),
        "ids rise"
    );
    let stored = app.entries(run).await;
    assert_eq!(events.last().unwrap().1, stored.last().unwrap().seq);
    let body = &events.last().unwrap().2;
    assert!(body["reply"].as_str().unwrap().contains("## Confidence") && body["audit"].is_object());

    let path = format!("{}/api/runs/{run}/events", app.url);
    let half = events[4].1.to_string();
    let resumed = sent(app.client.get(&path).header("last-event-id", half)).await;
    let resumed = self::events(resumed).await;
    assert_eq!(
        resumed,
        events[5..],
        "a broken stream goes on where it broke"
    );
    let last = events.last().unwrap().1.to_string();
    let over = async || {
        let request = app.client.get(&path).header("last-event-id", &last);
        request.send().await.unwrap().status()
    };
    assert_eq!(over().await, 204);
    let given = app.client.post(path.replace("events", "feedback"));
    let given = given.json(&json!({ "positive": true })).send().await;
    assert_eq!(given.unwrap().status(), 200);
    assert_eq!(over().await, 204, "feedback is no event of the stream");
}

#[tokio::test]
async fn a_stream_from_a_future_event_ends_with_the_run() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_millis(300)));
    let app = TestApp::start(&provider).await;
    let id = app.accept(&chat("ask", QUESTION)).await.to_string();
    until(async || provider.state().in_flight >= 3).await;
    let stream = app
        .request("GET", &format!("/api/runs/{id}/events"))
        .header("last-event-id", "100000");
    let response = sent(stream.timeout(Duration::from_secs(15))).await;
    let (name, ..) = events(response).await.pop().unwrap();
    assert_eq!(name, "reply");
}

#[tokio::test]
async fn a_failed_run_ends_its_stream_with_the_problem() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Status(400));
    let app = TestApp::start(&provider).await;
    let request = app
        .post(&chat("ask", QUESTION))
        .header("accept", "text/event-stream");
    let response = sent(request).await;
    let (name, _, data) = events(response).await.pop().unwrap();
    assert_eq!(
        (name.as_str(), data["status"].as_u64()),
        ("error", Some(502))
    );
}

#[tokio::test]
async fn respond_async_returns_the_location_of_the_run() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let request = app
        .post(&chat("ask", QUESTION))
        .header("prefer", "respond-async");
    let response = sent(request).await;
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let id: RunId = location.rsplit('/').next().unwrap().parse().unwrap();
    assert!(matches!(app.ended(id).await, Ending::Replied { .. }));
    let (status, run) = app.get(&location).await;
    assert_eq!((status, run["state"].as_str()), (200, Some("answered")));
    assert!(run["reply"].as_str().unwrap().starts_with("## TL;DR"));
    assert!(run["timings"]["totalMs"].as_i64().is_some());
}

#[tokio::test]
async fn a_client_that_disconnects_does_not_cancel_its_run() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(Duration::from_millis(150)));
    let app = TestApp::start(&provider).await;
    let mut body = chat("ask", QUESTION);
    body["context"]["messageId"] = json!("m-gone");
    let gone = app
        .post(&body)
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(gone.is_err());
    let got = app.reply(app.post(&body)).await;
    assert_eq!(
        provider.count_step("plan"),
        1,
        "the same message joins its run"
    );
    assert_eq!(got.outcome, "answered");
}

#[tokio::test]
async fn a_run_in_flight_is_cancelled_with_its_calls() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(20)));
    let app = TestApp::start(&provider).await;
    let id = app.accept(&chat("ask", QUESTION)).await.to_string();
    until(async || provider.state().in_flight >= 3).await;
    let url = format!("{}/api/runs/{id}", app.url);
    assert_eq!(status_of(app.client.delete(&url)).await, 202);
    assert!(matches!(
        app.ended(id.parse().unwrap()).await,
        Ending::Cancelled
    ));
    until(async || provider.state().in_flight == 0).await;
    let again = app.client.delete(&url).send().await.unwrap();
    assert_eq!(again.status(), 200);
    let (_, run) = app.get(&format!("/api/runs/{id}")).await;
    assert_eq!(run["state"], "cancelled");
    assert!(
        run["cost"]["spentUsd"].as_f64().unwrap() > 0.0,
        "what was in flight may have been billed"
    );
}
