//! Tests that the mock applies the faults that a test sets: statuses, texts, usage, and broken
//! bodies.

use std::time::Duration;

use serde_json::{Value, json};

use super::{completions, forced_tool, messages, request, send, send_json, text_of};
use crate::support::{Ended, Fault, MockProvider};

#[tokio::test]
async fn statuses_come_with_the_errors_of_their_format() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::Status(529)).once();
    mock.on(
        "plan",
        Fault::RateLimited {
            retry_after_secs: 7,
        },
    )
    .once();
    let overloaded = send(&mock, "plan", &messages("Q")).await;
    assert_eq!(overloaded.status(), 529);
    assert_eq!(
        overloaded.json::<Value>().await.unwrap()["error"]["type"],
        "overloaded_error"
    );
    let limited = send(&mock, "plan#2", &completions("Q")).await;
    assert_eq!(
        (limited.status().as_u16(), &limited.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    assert_eq!(
        limited.json::<Value>().await.unwrap()["error"]["code"],
        "rate_limit_exceeded"
    );
    assert_eq!(send(&mock, "plan#3", &messages("Q")).await.status(), 200);
    assert!(mock.unmet_rules().is_empty());
}

#[tokio::test]
async fn texts_are_broken_as_their_fault_says() {
    let mock = MockProvider::start().await;
    let parses = |text: &str| serde_json::from_str::<Value>(text).ok();
    for body in [messages("Q"), completions("Q")] {
        let cut = ["max_tokens", "length"];
        for (fault, check) in [
            (
                Fault::CutJson,
                &(|text: &str| text.starts_with('{') && parses(text).is_none())
                    as &dyn Fn(&str) -> bool,
            ),
            (Fault::Malformed, &|text: &str| {
                !text.contains('{') && text.len() > 20
            }),
            (Fault::FencedJson, &|text: &str| {
                text.contains("```json\n{") && parses(text).is_none()
            }),
            (Fault::WrongSchema, &|text: &str| {
                parses(text).unwrap()["units"].is_null()
            }),
            (Fault::EmptyText, &str::is_empty),
        ] {
            mock.on("r1/critic", fault.clone()).once();
            let reply = send_json(&mock, "r1/critic", &body).await;
            assert!(check(&text_of(&reply)), "{fault:?} {reply}");
            let stop = reply["stop_reason"]
                .as_str()
                .or_else(|| reply["choices"][0]["finish_reason"].as_str())
                .unwrap();
            assert_eq!(
                cut.contains(&stop),
                fault == Fault::CutJson,
                "{fault:?} {stop}"
            );
        }
    }
    mock.on("r1/critic", Fault::Refusal);
    assert_eq!(
        send_json(&mock, "r1/critic", &messages("Q")).await["stop_reason"],
        "refusal"
    );
    let refused = send_json(&mock, "r1/critic", &completions("Q")).await;
    assert!(refused["choices"][0]["message"]["refusal"].is_string());
    assert_eq!(
        send_json(&mock, "r1/critic/repair", &messages("Q")).await["stop_reason"],
        "end_turn"
    );
    mock.heal();
    mock.on("*", Fault::CutJson);
    assert_eq!(
        send_json(&mock, "plan", &forced_tool("Q")).await["stop_reason"],
        "max_tokens"
    );
}

#[tokio::test]
async fn usage_can_be_missing_negative_or_huge() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::NoUsage).once();
    mock.on("plan", Fault::NegativeUsage).once();
    mock.on("plan", Fault::HugeUsage(9_000_000)).once();
    let usages = [messages("Q"), completions("Q"), messages("Q")];
    assert!(
        send_json(&mock, "plan", &usages[0])
            .await
            .get("usage")
            .is_none()
    );
    assert_eq!(
        send_json(&mock, "plan", &usages[1]).await["usage"]["completion_tokens"],
        -5
    );
    assert_eq!(
        send_json(&mock, "plan", &usages[2]).await["usage"]["output_tokens"],
        9_000_000
    );
}

#[tokio::test]
async fn a_reply_longer_than_max_tokens_is_cut() {
    let mock = MockProvider::start().await;
    let mut body = messages("Q");
    body["max_tokens"] = json!(10);
    let reply = send_json(&mock, "r1/solver", &body).await;
    assert_eq!(
        (&reply["stop_reason"], text_of(&reply).len()),
        (&json!("max_tokens"), 40)
    );
    assert_eq!(reply["usage"]["output_tokens"], 10);
}

#[tokio::test]
async fn bodies_break_off_and_hangs_end_without_a_reply() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::CutBody).once();
    mock.on("plan", Fault::Stall(Duration::from_millis(30)))
        .once();
    for _ in 0..2 {
        let response = send(&mock, "plan", &messages("Q")).await;
        let promised = response.content_length().unwrap();
        assert!(response.status() == 200 && promised > 50);
        assert!(response.bytes().await.is_err());
    }
    mock.on("plan", Fault::Html).once();
    assert!(
        send(&mock, "plan", &messages("Q"))
            .await
            .json::<Value>()
            .await
            .is_err()
    );
    mock.on("plan", Fault::Hang(Duration::from_millis(20)));
    assert!(request(&mock, "plan", &messages("Q")).send().await.is_err());
    assert_eq!(
        mock.calls()
            .iter()
            .map(|call| call.ended)
            .collect::<Vec<_>>()[3],
        Ended::Broken
    );
    assert_eq!(mock.in_flight(), 0);
}
