//! Tests that the mock follows both documented wire formats and rejects what a vendor would reject.

use serde_json::{Value, json};

use super::{completions, forced_tool, messages, send, send_json, text_of};
use crate::support::{MockProvider, Scenario, client};

#[tokio::test]
async fn the_messages_format_is_as_documented() {
    let mock = MockProvider::start().await;
    let response = send(&mock, "r1/solver", &messages("Q")).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("request-id"));
    let reply: Value = response.json().await.unwrap();
    assert_eq!(
        (&reply["type"], &reply["role"], &reply["stop_reason"]),
        (&json!("message"), &json!("assistant"), &json!("end_turn"))
    );
    assert_eq!(
        serde_json::from_str::<Value>(&text_of(&reply)).unwrap(),
        Scenario::agreeing().report("r1/solver")
    );
    let output = text_of(&reply).len() / 4;
    assert_eq!(reply["usage"]["output_tokens"], json!(output));
    assert!(reply["usage"]["input_tokens"].as_i64().unwrap() > 10);
}

#[tokio::test]
async fn a_forced_tool_gets_its_input() {
    let mock = MockProvider::start().await;
    let reply = send_json(&mock, "question", &forced_tool("Q")).await;
    assert_eq!(reply["stop_reason"], "tool_use");
    assert_eq!(
        (&reply["content"][0]["type"], &reply["content"][0]["name"]),
        (&json!("tool_use"), &json!("report"))
    );
    assert_eq!(
        reply["content"][0]["input"],
        Scenario::agreeing().question()
    );
}

#[tokio::test]
async fn the_chat_completions_format_is_as_documented() {
    let mock = MockProvider::start().await;
    let reply = send_json(&mock, "plan", &completions("Q")).await;
    assert_eq!(
        (&reply["object"], &reply["choices"][0]["finish_reason"]),
        (&json!("chat.completion"), &json!("stop"))
    );
    assert_eq!(
        serde_json::from_str::<Value>(&text_of(&reply)).unwrap(),
        Scenario::agreeing().plan()
    );
    let usage = &reply["usage"];
    assert_eq!(
        usage["total_tokens"].as_i64(),
        Some(
            usage["prompt_tokens"].as_i64().unwrap() + usage["completion_tokens"].as_i64().unwrap()
        )
    );
}

#[tokio::test]
async fn streams_carry_the_same_text() {
    use eventsource_stream::Eventsource as _;
    use futures_util::StreamExt as _;
    let mock = MockProvider::start().await;
    for body in [messages("Q"), forced_tool("Q"), completions("Q")] {
        let mut body = body;
        body["stream"] = json!(true);
        let response = send(&mock, "question", &body).await;
        assert!(
            response.headers()["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/event-stream")
        );
        let events: Vec<_> = response
            .bytes_stream()
            .eventsource()
            .map(Result::unwrap)
            .collect()
            .await;
        let text: String = events
            .iter()
            .filter_map(|event| serde_json::from_str::<Value>(&event.data).ok())
            .filter_map(|data| {
                let delta = if data["delta"].is_null() {
                    &data["choices"][0]["delta"]
                } else {
                    &data["delta"]
                };
                let keys = ["text", "partial_json", "content"];
                keys.iter()
                    .find_map(|key| delta[*key].as_str())
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            Scenario::agreeing().question()
        );
    }
}

#[tokio::test]
async fn plain_text_roles_get_prose() {
    let mock = MockProvider::start().await;
    let mut body = messages("Q");
    body.as_object_mut().unwrap().remove("output_config");
    let text = text_of(&send_json(&mock, "r1/solver", &body).await);
    assert!(text.starts_with("100 °C") && !text.contains('{'), "{text}");
}

#[tokio::test]
async fn requests_that_a_vendor_would_reject_are_rejected() {
    let mock = MockProvider::start().await;
    let mut open = messages("Q");
    open["output_config"]["format"]["schema"]["additionalProperties"] = json!(true);
    let mut bounded = messages("Q");
    bounded["output_config"]["format"]["schema"]["properties"]["question"]["maxLength"] = json!(9);
    let mut optional = completions("Q");
    optional["response_format"]["json_schema"]["schema"]["required"] = json!(["question"]);
    let mut mute = messages("Q");
    mute["messages"] = json!([]);
    for body in [open, bounded, optional, mute] {
        assert_eq!(send(&mock, "plan", &body).await.status(), 400);
    }
    assert_eq!(mock.complaints().len(), 4);
    let keyless = client()
        .post(format!("{}/v1/messages", mock.url()))
        .json(&messages("Q"))
        .send()
        .await
        .unwrap();
    assert_eq!(keyless.status(), 401);
}

#[tokio::test]
async fn steps_that_no_scenario_knows_get_what_their_schema_allows() {
    let mock = MockProvider::start().await;
    let reply = send_json(&mock, "doctor/solver", &messages("Q")).await;
    let sample: Value = serde_json::from_str(&text_of(&reply)).unwrap();
    assert_eq!(sample, json!({"options": [], "question": "ok"}));
}
