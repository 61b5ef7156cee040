//! Tests requests: health, bad input, the token, a service with no free run slot, and the threshold
//! for asking.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Fault, MockProvider, QUESTION, Setup, TestApp, chat, run_of, sent};

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
    let response = sent(app.request("GET", "/ready")).await;
    assert_eq!(response.status(), 503);
    let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
}

/// Posts a body to the chat. Returns the status of the problem with its places.
async fn problem(app: &TestApp, content_type: &str, body: String) -> String {
    let request = app.request("POST", "/api/chat");
    let request = request.header("content-type", content_type).body(body);
    let response = request.send().await.unwrap();
    let (status, id) = (response.status().as_u16(), run_of(&response));
    let own_type = &response.headers()["content-type"];
    assert_eq!(own_type, "application/problem+json");
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["requestId"], json!(id.to_string()));
    let errors = problem["errors"].as_array().into_iter().flatten();
    let mut places: Vec<&Value> = errors.map(|error| &error["pointer"]).collect();
    places.sort_unstable_by_key(|place| place.as_str());
    format!("{status} {}", json!(places))
}

#[tokio::test]
async fn a_body_that_is_no_json_of_a_chat_gets_a_problem() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let body = chat("ask", "x").to_string();
    for (content_type, body, expected) in [
        ("text/plain", &*body, "415 []"),
        ("application/json; charset=utf-16", &*body, "415 []"),
        ("application/json; charset=UTF-8", "{", "400 []"),
        ("application/json", "[]", r#"400 [""]"#),
    ] {
        let found = problem(&app, content_type, body.to_owned()).await;
        assert_eq!(found, expected, "{content_type}: {body}");
    }
    assert_eq!(app.get("/nowhere").await.0, 404);
    assert_eq!(app.get("/api/chat").await.0, 405);
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn bad_input_gets_a_problem_that_names_the_place() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let with = |key: &str, value: Value| {
        let mut body = chat("ask", "x");
        body[key] = value;
        body.to_string()
    };
    let mut unknown = chat("ask", "x");
    unknown["extra"] = json!(1);
    unknown["user"]["id"] = json!(7);
    let mut missing = chat("ask", "x");
    missing.as_object_mut().unwrap().remove("user");
    let file = json!({ "filename": "a", "url": "https://x/a" });
    let (longest, too_long) = ("x".repeat(100), "x".repeat(101));
    let svg = "image/svg+xml; charset=utf-8";
    let declared = [svg, &longest, &too_long, "a/b\n", "a/\u{e4}"]
        .map(|it| json!({ "filename": "a", "url": "https://x/a", "contentType": it }));
    let wrong_types = r#"422 ["/attachments/2/contentType","/attachments/3/contentType","/attachments/4/contentType"]"#;
    // Clients on Windows send a byte order mark.
    let marked = format!("\u{feff}{}", with("message", json!("  ")));
    for (body, expected) in [
        (marked, r#"422 ["/message"]"#),
        (unknown.to_string(), r#"400 ["/extra","/user/id"]"#),
        (with("mode", json!("shout")), r#"400 ["/mode"]"#),
        (missing.to_string(), r#"400 ["/user"]"#),
        (with("message", json!("  ")), r#"422 ["/message"]"#),
        (
            with("message", json!("x".repeat(32_001))),
            r#"422 ["/message"]"#,
        ),
        (
            with("attachments", json!(vec![file; 11])),
            r#"422 ["/attachments"]"#,
        ),
        (with("attachments", json!(declared)), wrong_types),
        (with("message", json!("x".repeat(300_000))), "413 []"),
    ] {
        let found = problem(&app, "application/json", body.clone()).await;
        assert_eq!(found, expected, "{body:.80}");
    }
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn the_api_needs_a_token_and_health_does_not() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().env("CONCLAVE_TOKEN", "correct horse battery");
    let app = TestApp::with(&provider, setup).await;
    let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let request = app
        .post(&chat("ask", QUESTION))
        .bearer_auth("correct horse");
    let wrong = sent(request).await;
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
    let setup = Setup::default().set("/policy/limits/maxInFlight", json!(1));
    let app = TestApp::with(&provider, setup).await;
    let request = app
        .post(&chat("ask", QUESTION))
        .header("prefer", "respond-async");
    let first = sent(request).await;
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
