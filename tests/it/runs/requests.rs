//! Tests requests: health, bad input, the token, a service with no free run slot, and the threshold
//! for asking.

use std::time::Duration;

use serde_json::{Value, json};

use super::QUESTION;
use crate::support::{Fault, MockProvider, Setup, TestApp, chat, run_of};

#[tokio::test]
async fn health_and_readiness() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let (status, health) = app.get("/health").await;
    assert_eq!(
        (status, health["version"].as_str()),
        (200, Some(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(app.get("/ready").await.0, 200);
    app.app.drain(Duration::from_millis(10)).await;
    let response = app
        .client
        .get(format!("{}/ready", app.url))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 503);
    let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn bad_input_gets_a_problem_that_names_the_place() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let url = format!("{}/api/chat", app.url);
    let send = |content_type: &str, body: String| {
        app.client
            .post(&url)
            .header("content-type", content_type.to_owned())
            .body(body)
            .send()
    };
    let mut unknown = chat("ask", "x");
    unknown["extra"] = json!(1);
    unknown["user"]["id"] = json!(7);
    let mut wrong_mode = chat("ask", "x");
    wrong_mode["mode"] = json!("shout");
    let mut many = chat("ask", "x");
    many["attachments"] = json!(vec![json!({ "filename": "a", "url": "https://x/a" }); 11]);
    let mut declared = chat("ask", "x");
    let (longest, too_long) = ("x".repeat(100), "x".repeat(101));
    let types = [
        "image/svg+xml; charset=utf-8",
        &longest,
        &too_long,
        "a/b\n",
        "a/\u{e4}",
    ];
    declared["attachments"] = types
        .map(|it| json!({ "filename": "a", "url": "https://x/a", "contentType": it }))
        .into();
    let mut missing = chat("ask", "x");
    missing.as_object_mut().unwrap().remove("user");
    let cases = [
        ("text/plain", chat("ask", "x").to_string(), 415, vec![]),
        (
            "application/json; charset=utf-16",
            chat("ask", "x").to_string(),
            415,
            vec![],
        ),
        (
            "application/json; charset=UTF-8",
            "{".to_owned(),
            400,
            vec![],
        ),
        // Clients on Windows send a byte order mark.
        (
            "application/json",
            format!("\u{feff}{}", chat("ask", "  ")),
            422,
            vec!["/message"],
        ),
        ("application/json", "[]".to_owned(), 400, vec![""]),
        (
            "application/json",
            unknown.to_string(),
            400,
            vec!["/extra", "/user/id"],
        ),
        (
            "application/json",
            wrong_mode.to_string(),
            400,
            vec!["/mode"],
        ),
        ("application/json", missing.to_string(), 400, vec!["/user"]),
        (
            "application/json",
            chat("ask", "  ").to_string(),
            422,
            vec!["/message"],
        ),
        (
            "application/json",
            chat("ask", &"x".repeat(32_001)).to_string(),
            422,
            vec!["/message"],
        ),
        (
            "application/json",
            many.to_string(),
            422,
            vec!["/attachments"],
        ),
        (
            "application/json",
            declared.to_string(),
            422,
            vec![
                "/attachments/2/contentType",
                "/attachments/3/contentType",
                "/attachments/4/contentType",
            ],
        ),
        (
            "application/json",
            chat("ask", &"x".repeat(300_000)).to_string(),
            413,
            vec![],
        ),
    ];
    for (content_type, body, status, pointers) in cases {
        let response = send(content_type, body.clone()).await.unwrap();
        assert_eq!(response.status(), status, "{body:.80}");
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
        let id = run_of(&response).to_string();
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["requestId"], json!(id));
        let mut found: Vec<&str> = problem["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| e["pointer"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{problem}");
    }
    assert_eq!(app.get("/nowhere").await.0, 404);
    assert_eq!(app.get("/api/chat").await.0, 405);
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn the_api_needs_a_token_and_health_does_not() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(
        &provider,
        Setup::default().env("CONCLAVE_TOKEN", "correct horse battery"),
    )
    .await;
    let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let wrong = app
        .post(&chat("ask", QUESTION))
        .bearer_auth("correct horse")
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 401);
    assert_eq!(
        app.reply(
            app.post(&chat("ask", QUESTION))
                .bearer_auth("correct horse battery")
        )
        .await
        .outcome,
        "answered"
    );
    assert_eq!(app.get("/health").await.0, 200);
}

#[tokio::test]
async fn a_well_formed_request_id_is_kept_as_a_correlation_id() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let got = app
        .reply(
            app.post(&chat("ask", QUESTION))
                .header("x-request-id", "bot-17.a"),
        )
        .await;
    let (_, run) = app.get(&format!("/api/runs/{}", got.run)).await;
    assert_eq!(run["correlationId"], "bot-17.a");
    let other = app
        .reply(
            app.post(&chat("ask", QUESTION))
                .header("x-request-id", "bad id\t"),
        )
        .await;
    let (_, run) = app.get(&format!("/api/runs/{}", other.run)).await;
    assert_eq!(run["correlationId"], Value::Null);
}

#[tokio::test]
async fn without_a_free_run_slot_the_answer_is_503_with_a_wait() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(20)));
    let app = TestApp::with(
        &provider,
        Setup::default().set("/policy/limits/maxInFlight", json!(1)),
    )
    .await;
    let first = app
        .post(&chat("ask", QUESTION))
        .header("prefer", "respond-async")
        .send()
        .await
        .unwrap();
    assert_eq!(first.status(), 202);
    let second = app.post(&chat("ask", "Another one?")).send().await.unwrap();
    assert_eq!(second.status(), 503);
    assert!(second.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn a_threshold_of_zero_asks_only_if_the_master_cannot_plan() {
    let scenario = crate::support::Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let setup = || Setup::default().set("/policy/askUserThreshold", json!(0.0));
    let app = TestApp::with(&provider, setup()).await;
    assert_eq!(app.ask("ask", &message).await.outcome, "answered");
    let vague = crate::support::Scenario::vague();
    let message = vague.message.clone();
    let provider = MockProvider::playing(vague).await;
    let app = TestApp::with(&provider, setup()).await;
    assert_eq!(app.ask("ask", &message).await.outcome, "clarification");
}
