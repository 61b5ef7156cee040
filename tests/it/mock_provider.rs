//! Tests what other tests rely on silently: the mock provider rejects what a real one would reject,
//! bills as a fault says, and the HTTP client of the tests refuses other hosts.

use serde_json::{Value, json};

use crate::support::{Fault, MockProvider, client};

fn schema() -> Value {
    json!({
        "type": "object", "properties": { "question": { "type": "string" } },
        "required": ["question"], "additionalProperties": false,
    })
}

fn messages() -> Value {
    json!({
        "model": "claude-sonnet-5-5", "max_tokens": 4000,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Why?" }] }],
        "output_config": { "format": { "type": "json_schema", "schema": schema() } },
    })
}

fn completions() -> Value {
    let format = json!({ "name": "report", "strict": true, "schema": schema() });
    json!({
        "model": "gpt-6.1-sol", "max_completion_tokens": 4000,
        "messages": [{ "role": "user", "content": "Why?" }],
        "response_format": { "type": "json_schema", "json_schema": format },
    })
}

async fn send(provider: &MockProvider, body: &Value) -> (u16, Value) {
    let path = match body["response_format"] {
        Value::Null => "messages",
        _ => "chat/completions",
    };
    let request = client().post(format!("{}/v1/{path}", provider.url()));
    let request = request
        .header("idempotency-key", "run/plan")
        .header("x-api-key", "k")
        .header("anthropic-version", "2023-06-01");
    let response = request.json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn requests_that_a_provider_would_reject_are_rejected() {
    let provider = MockProvider::start().await;
    let schema = "/output_config/format/schema";
    let strict = "/response_format/json_schema";
    let of_messages = [
        ("/max_tokens", json!(0)),
        ("/messages", json!([])),
        ("/messages/0/role", json!("assistant")),
        ("/messages/0/content", json!(" ")),
        ("/temperature", json!(0.2)),
        ("/thinking", json!({ "type": "disabled" })),
        (&format!("{schema}/additionalProperties"), json!(true)),
        (&format!("{schema}/properties/question/maxLength"), json!(9)),
    ];
    let of_completions = [
        ("/max_tokens", json!(5)),
        ("/reasoning_effort", json!("none")),
        ("/temperature", json!(0.2)),
        (&format!("{strict}/name"), json!("a report")),
        (&format!("{strict}/schema/required"), json!([])),
        (
            &format!("{strict}/schema/additionalProperties"),
            json!(true),
        ),
    ];
    let mut rejected = 0;
    for (body, changes) in [
        (messages(), &of_messages[..]),
        (completions(), &of_completions),
    ] {
        assert_eq!(send(&provider, &body).await.0, 200, "{body}");
        for (pointer, value) in changes {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let mut body = body.clone();
            body.pointer_mut(parent).unwrap()[key] = value.clone();
            assert_eq!(send(&provider, &body).await.0, 400, "{pointer}");
            rejected += 1;
        }
    }
    assert_eq!(provider.complaints().len(), rejected);
}

#[tokio::test]
async fn bills_are_as_their_fault_says() {
    let provider = MockProvider::start().await;
    for fault in [
        Fault::NoUsage,
        Fault::NegativeUsage,
        Fault::HugeUsage(9_000_000),
    ] {
        provider.on("plan", fault).once();
    }
    let mut billed = vec![];
    for _ in 0..3 {
        let (_, reply) = send(&provider, &messages()).await;
        billed.push(reply["usage"]["output_tokens"].clone());
    }
    assert_eq!(billed, [Value::Null, json!(-5), json!(9_000_000)]);
    assert_eq!(provider.unmet_rules(), [""; 0]);
    assert_eq!(provider.repeated_keys(), ["run/plan"; 2]);
}

#[test]
#[should_panic(expected = "not to http://192.0.2.1/")]
fn the_client_never_leaves_loopback() {
    let _ = client().get("http://192.0.2.1/");
}
