//! Tests that the mock records and counts calls, uses replies set by a test, and stops when
//! dropped.

use std::time::Duration;

use serde_json::json;

use super::{RUN, messages, request, send, send_json, text_of};
use crate::support::{Ended, Fault, MockProvider, StepKey, client};

#[tokio::test]
async fn calls_are_recorded_by_step_and_attempt() {
    let mock = MockProvider::start().await;
    for step in ["r1/solver", "r1/solver#2", "r1/solver/repair", "r1/critic"] {
        send(&mock, step, &messages("what is it")).await;
    }
    assert_eq!(
        (
            mock.count_step("r1/solver"),
            mock.count_step("r1/solver*"),
            mock.count_step("r1/solver#2")
        ),
        (2, 3, 1)
    );
    let call = &mock.calls()[1];
    assert_eq!(
        (
            call.run.as_str(),
            call.key.as_str(),
            call.step.as_str(),
            call.attempt
        ),
        (RUN, "r1/solver#2", "r1/solver", 2)
    );
    assert_eq!(
        (call.model.as_str(), call.path.as_str(), call.ended),
        ("claude-mock", "/v1/messages", Ended::Answered)
    );
    assert_eq!(
        (call.system().as_str(), call.prompt().as_str()),
        ("You sit on a committee.", "what is it")
    );
    assert!(mock.repeated_keys().is_empty() && mock.complaints().is_empty());
    assert_eq!(mock.steps_of(RUN)["r1/solver"], 2);
    mock.reset();
    assert!(mock.calls().is_empty());
}

#[test]
fn step_keys_are_parsed() {
    let key = StepKey::parse("run/r2/solver#2/repair#3");
    assert_eq!(
        (key.step.as_str(), key.attempt, key.key.as_str()),
        ("r2/solver/repair", 3, "r2/solver#2/repair#3")
    );
    assert_eq!(StepKey::parse("").step, "");
}

#[tokio::test]
async fn long_system_prompts_are_cached_when_marked() {
    let mock = MockProvider::start().await;
    let mut body = messages("Q");
    body["system"] =
        json!([{"type": "text", "text": "x".repeat(8000), "cache_control": {"type": "ephemeral"}}]);
    let first = send_json(&mock, "plan", &body).await["usage"].clone();
    let second = send_json(&mock, "plan#2", &body).await["usage"].clone();
    assert_eq!(
        (
            &first["cache_creation_input_tokens"],
            &first["cache_read_input_tokens"]
        ),
        (&json!(2000), &json!(0))
    );
    assert_eq!(
        (
            &second["cache_creation_input_tokens"],
            &second["cache_read_input_tokens"]
        ),
        (&json!(0), &json!(2000))
    );
    assert_eq!(first["input_tokens"], second["input_tokens"]);
}

#[tokio::test]
async fn a_caller_that_disconnects_is_recorded() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::Hang(Duration::from_secs(60)));
    let impatient = request(&mock, "plan", &messages("Q"))
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(impatient.unwrap_err().is_timeout());
    while mock.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(mock.calls()[0].ended, Ended::Abandoned);
}

#[tokio::test]
async fn concurrency_is_counted() {
    let mock = MockProvider::start().await;
    mock.latency(Duration::from_millis(300));
    let body = messages("Q");
    futures_util::future::join_all(
        ["r1/solver", "r1/critic", "r1/verifier"].map(|step| send(&mock, step, &body)),
    )
    .await;
    assert_eq!((mock.most_in_flight(), mock.in_flight()), (3, 0));
}

#[tokio::test]
async fn replies_can_be_set_and_the_newest_wins() {
    let mock = MockProvider::start().await;
    mock.reply_text("plan", "old");
    mock.reply_text("plan", "new");
    mock.reply_with("plan", json!({"first": true})).once();
    mock.reply_by("r*/critic", |call| json!({"step": call.step}));
    let mut texts = vec![];
    for step in ["plan", "plan", "r2/critic"] {
        texts.push(text_of(&send_json(&mock, step, &messages("Q")).await));
    }
    assert_eq!(
        texts,
        [r#"{"first":true}"#, "new", r#"{"step":"r2/critic"}"#]
    );
}

#[tokio::test]
async fn a_dropped_provider_answers_no_more() {
    let mock = MockProvider::start().await;
    mock.on("*", Fault::Latency(Duration::from_secs(60)));
    let pending = request(&mock, "plan", &messages("Q")).send();
    let gone = async {
        while mock.in_flight() == 0 {
            tokio::task::yield_now().await;
        }
        let url = mock.url();
        drop(mock);
        url
    };
    let (pending, url) = tokio::join!(pending, gone);
    assert!(pending.is_err());
    assert!(
        client()
            .post(format!("{url}/v1/messages"))
            .json(&messages("Q"))
            .send()
            .await
            .unwrap_err()
            .is_connect()
    );
    let dead = MockProvider::dead_url().await;
    assert!(client().get(dead).send().await.unwrap_err().is_connect());
}

#[test]
#[should_panic(expected = "loopback only")]
fn the_client_never_leaves_loopback() {
    let _ = client().get("http://192.0.2.1/");
}
