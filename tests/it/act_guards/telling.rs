//! Tests what answers and metrics reveal about an action, and what they do not.

use conclave::journal::Event;
use serde_json::json;

use crate::act::{act, confirm, post, proposal, proposes, proposing, said};
use crate::support::app::PLANTED_KEY;
use crate::support::{Fault, MockProvider, TestApp, sent};

#[tokio::test]
async fn the_models_reason_is_cut_and_never_shown_to_discord() {
    let provider = MockProvider::start().await;
    let mut reply = proposal("roll", json!({ "expression": "1d6" }), 0.7);
    reply["reason"] = json!("because ".repeat(40));
    provider.reply_with("proposal", reply);
    let app = TestApp::with(&provider, proposing()).await;
    let shown = act(&app, "ada", "dice, go").await;
    assert_eq!(
        shown.body["proposed_action"]["reason"]
            .as_str()
            .unwrap()
            .chars()
            .count(),
        120
    );
    let mut discord = said("ada", "dice, go");
    discord["source"] = json!("discord");
    let hidden = post(&app, "/api/act", &discord).await;
    assert_eq!(hidden.body["proposed_action"]["reason"], "");
    assert!(!hidden.body.to_string().contains("because"));
    assert!(
        hidden
            .events
            .iter()
            .any(|e| matches!(e, Event::Proposed(p) if p.reason.starts_with("because")))
    );
}

#[tokio::test]
async fn metrics_count_actions() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    act(&app, "ada", "roll 1d6").await;
    // Understood and refused.
    act(&app, "ada", "/roll 1/0").await;
    proposes(&provider, "bananas", json!({}), 0.9);
    act(&app, "ada", "hm, one").await;
    provider.on("proposal", Fault::Malformed);
    act(&app, "ada", "hm, two").await;
    let text = sent(app.request("GET", "/metrics"))
        .await
        .text()
        .await
        .unwrap();
    for line in [
        "conclave_act_requests_total{outcome=\"executed\",mode=\"deterministic\"} 1",
        "conclave_act_requests_total{outcome=\"declined\",mode=\"none\"} 3",
        "conclave_act_accepted_total{command=\"roll\",mode=\"deterministic\"} 1",
        "conclave_act_rejected_total{gate=\"allowlist\"} 1",
        "conclave_act_rejected_total{gate=\"schema\"} 1",
        "conclave_act_parse_failures_total 1",
        "conclave_act_seconds_count{mode=\"deterministic\"} 1",
    ] {
        assert!(
            text.contains(line),
            "{line} is not in\n{}",
            text.lines()
                .filter(|l| l.contains("_act_"))
                .collect::<Vec<_>>()
                .join("\n")
        );
    }
}

#[tokio::test]
async fn a_secret_in_text_of_a_user_or_model_is_not_repeated() {
    let provider = MockProvider::start().await;
    proposes(
        &provider,
        "memory.add",
        json!({ "content": format!("key {PLANTED_KEY}") }),
        0.94,
    );
    let app = TestApp::with(&provider, proposing()).await;
    let told = act(
        &app,
        "ada",
        &format!("remember that the key is {PLANTED_KEY}"),
    )
    .await;
    assert!(
        !told.body.to_string().contains(PLANTED_KEY),
        "{}",
        told.body
    );
    let offered = act(&app, "ada", &format!("hm, {PLANTED_KEY}, keep it in mind")).await;
    assert!(
        !offered.body.to_string().contains(PLANTED_KEY),
        "{}",
        offered.body
    );
    assert!(
        !provider
            .calls()
            .iter()
            .any(|call| call.text().contains(PLANTED_KEY))
    );
    assert!(
        !confirm(&app, "ada", &offered)
            .await
            .body
            .to_string()
            .contains(PLANTED_KEY)
    );
}
