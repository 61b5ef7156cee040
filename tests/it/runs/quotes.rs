//! Tests quotes: the price of a question, and that the run keeps to it.

use serde_json::{Value, json};

use crate::support::{MockProvider, QUESTION, Setup, TestApp, chat, sent, status_of};

#[tokio::test]
async fn a_question_that_would_be_refused_has_no_price() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set("/policy/normalMaxUsd", json!(0.001));
    let app = TestApp::with(&provider, setup).await;
    let quote = app
        .request("POST", "/api/quote")
        .json(&chat("ask", QUESTION));
    let response = quote.send().await.unwrap();
    assert_eq!(response.status(), 422);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["type"], "urn:conclave:problem:over-budget");
    assert_eq!(
        status_of(app.post(&chat("ask", QUESTION))).await,
        422,
        "as the chat says"
    );
}

#[tokio::test]
async fn a_quoted_question_is_not_refused_after_its_plan() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, Setup::default().env("NORMAL_MAX_USD", "0.09")).await;
    let mut seen = std::collections::BTreeSet::new();
    for characters in (23_000..31_500).step_by(700) {
        let text: String = "The quick brown fox jumps over the lazy dog. "
            .chars()
            .cycle()
            .take(characters)
            .collect();
        let body = chat("ask", &format!("new: {text}"));
        let quote = app
            .request("POST", "/api/quote")
            .json(&body)
            .send()
            .await
            .unwrap()
            .status();
        let before = provider.calls().len();
        let asked = app.post(&body).send().await.unwrap().status();
        assert_eq!(quote, asked, "{characters} characters");
        if asked == 422 {
            assert_eq!(
                provider.calls().len(),
                before,
                "{characters} characters: nothing is bought for nothing"
            );
        }
        seen.insert(asked.as_u16());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [200, 422]);
}

#[tokio::test]
async fn a_quote_costs_nothing_and_its_run_keeps_to_it() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let quote = |mode: &'static str| {
        let request = app
            .request("POST", "/api/quote")
            .json(&chat(mode, QUESTION));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let ask = quote("ask").await;
    let figure = |name: &str| ask[name].as_f64().unwrap();
    assert_eq!((figure("capUsd"), ask["calls"].as_u64()), (0.10, Some(6)));
    assert!(figure("expectedUsd") > 0.0 && figure("expectedUsd") < figure("worstUsd"));
    assert!(figure("worstUsd") <= figure("capUsd"));
    assert!(quote("deep").await["worstUsd"].as_f64() > ask["worstUsd"].as_f64());
    assert_eq!(provider.calls().len(), 0);
    assert_eq!(app.get("/api/runs").await.1["runs"], json!([]));
    let got = app.ask("ask", QUESTION).await;
    assert!(got.body["meta"]["budget"]["estimatedUsd"].as_f64().unwrap() <= figure("worstUsd"));
    let wrong = sent(app.request("POST", "/api/quote").json(&chat("ask", " "))).await;
    assert_eq!(wrong.status(), 422);
}
