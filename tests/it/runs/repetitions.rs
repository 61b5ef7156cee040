//! Tests repeated requests: each joins its run or gets the stored reply.

use std::time::Duration;

use serde_json::json;

use crate::support::{Fault, MockProvider, QUESTION, Scenario, Setup, TestApp, chat};

#[tokio::test]
async fn the_same_key_joins_and_another_body_is_refused() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let send = |message: &str| {
        app.post(&chat("ask", message))
            .header("idempotency-key", "k1")
    };
    let (a, b) = tokio::join!(app.reply(send(QUESTION)), app.reply(send(QUESTION)));
    assert_eq!((a.run, &a.body), (b.run, &b.body));
    assert_eq!(provider.calls().len(), 6);
    let reused = send("Something else").send().await.unwrap();
    assert_eq!(reused.status(), 422);
}

/// Returns a slow service that has asked its user a question.
async fn with_a_question() -> (MockProvider, TestApp) {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    app.ask("ask", &message).await;
    provider.on("*", Fault::Latency(Duration::from_millis(150)));
    (provider, app)
}

#[tokio::test]
async fn the_same_answer_sent_twice_joins_the_run_in_flight() {
    let (provider, app) = with_a_question().await;
    let answer = |key: &'static str| {
        let answer = app.post(&chat("ask", "B")).header("idempotency-key", key);
        app.reply(answer)
    };
    let (first, second) = tokio::join!(answer("k1"), answer("k2"));
    assert_eq!(first.run, second.run);
    // Each key gets the reply again, at no cost.
    provider.state().calls.clear();
    for key in ["k1", "k2"] {
        assert_eq!(answer(key).await.run, first.run, "{key}");
    }
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn the_same_answer_in_another_mode_gets_a_reply_of_that_mode() {
    let (_provider, app) = with_a_question().await;
    let (plain, audited) = tokio::join!(app.ask("ask", "B"), app.ask("audit", "B"));
    assert_ne!(plain.run, audited.run);
    assert!(
        plain
            .body
            .get("audit")
            .is_none_or(serde_json::Value::is_null)
    );
    assert!(audited.body["audit"].is_object(), "{}", audited.body);
}

#[tokio::test]
async fn an_answer_whose_run_was_cancelled_can_be_given_again() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    let asked = app.ask("ask", &message).await;
    provider
        .on("r1/*", Fault::Latency(Duration::from_secs(20)))
        .times(9);
    let id = app.accept(&chat("ask", "B")).await;
    app.app.cancel(id).await.unwrap();
    app.ended(id).await;
    provider.state().script = Default::default();
    let again = app.ask("ask", "B").await;
    let (_, run) = app.get(&format!("/api/runs/{}", again.run)).await;
    assert_eq!(run["parent"], asked.run.to_string());
}

#[tokio::test]
async fn a_correction_sent_again_joins_its_run_after_a_reply_without_the_assumption() {
    let scenario = Scenario::howto().with(|scenario| {
        scenario.synthesis["meta"]["assumptions"] = json!([
            { "text": "The VPS runs Ubuntu 24.04.", "kind": "guess" },
            { "text": "The domain points to the VPS.", "kind": "guess" },
        ]);
    });
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    app.ask("ask", &message).await;
    let correct = || {
        let correction = chat("ask", "A2 is wrong: it has no domain");
        app.post(&correction).header("idempotency-key", "k")
    };
    let corrected = app.reply(correct()).await;
    provider.state().scenario = Scenario::agreeing().with(|scenario| {
        scenario.synthesis["meta"]["assumptions"] =
            json!([{ "text": "The water is at sea level.", "kind": "guess" }]);
    });
    let other = app.ask("ask", "new: At how many degrees does water boil?");
    let other = other.await;
    assert!(other.text().contains("- A1 (") && !other.text().contains("- A2 ("));
    assert_eq!(app.reply(correct()).await.run, corrected.run);
}

#[tokio::test]
async fn a_repetition_after_a_restart_gets_the_stored_reply() {
    let provider = MockProvider::start().await;
    let first = TestApp::start(&provider).await;
    let send = |app: &TestApp| {
        app.post(&chat("audit", QUESTION))
            .header("idempotency-key", "k-restart")
    };
    let before = first.reply(send(&first)).await;
    let folder = std::sync::Arc::clone(&first.folder);
    drop(first);
    let second = TestApp::on(&provider, Setup::default(), folder).await;
    let after = second.reply(send(&second)).await;
    assert_eq!((before.run, before.body), (after.run, after.body));
    assert_eq!(provider.calls().len(), 6);
}

#[tokio::test]
async fn a_hundred_repetitions_at_once_make_one_run_and_equal_replies() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(Duration::from_millis(50)));
    let app = TestApp::start(&provider).await;
    let mut body = chat("ask", QUESTION);
    body["context"]["messageId"] = json!("m-100");
    let sends = (0..100).map(|_| app.post(&body).send());
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
