//! Tests proposals: they wait for their user's confirmation, are executed once, and expire.

use std::sync::Arc;

use conclave::app::Confirmation;
use conclave::journal::Event;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::act::{
    Answer, act, confirm, confirm_with_key, keys, post, post_with_key, proposal, proposes,
    proposing, said,
};
use crate::support::{MockProvider, TestApp};

#[tokio::test]
async fn a_model_gives_arguments_as_a_list_of_texts() {
    let provider = MockProvider::start().await;
    let args = json!([
        { "name": "ability", "value": "dex" }, { "name": "dc", "value": "15" },
        { "name": "advantage", "value": "advantage" },
    ]);
    let mut said = proposal("check", args, 0.4);
    said["alternatives"] =
        json!([{ "action": "roll", "args": [{ "name": "expression", "value": "1d20" }] }]);
    provider.reply_with("proposal", said);
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "could I please somehow dodge this thing").await;
    assert_eq!(
        offered.body["proposed_action"]["args"],
        json!({ "ability": "dex", "dc": 15, "advantage": "advantage" })
    );
    let choices = offered.body["choices"].to_string();
    assert!(choices.contains(r#"{"expression":"1d20"}"#), "{choices}");
    let sent = provider.calls_of("proposal").remove(0);
    assert_eq!(sent.schema()["properties"]["args"]["type"], "array");
}

#[tokio::test]
async fn an_argument_that_is_listed_twice_executes_nothing() {
    let provider = MockProvider::start().await;
    let args = json!([{ "name": "content", "value": "a" }, { "name": "content", "value": "b" }]);
    proposes(&provider, "memory.add", args, 0.99);
    let setup = proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true");
    let app = TestApp::with(&provider, setup).await;
    let declined = act(&app, "ada", "zap thirteen").await;
    assert_eq!(declined.body["error"], "unknown_intent");
    assert!(
        declined.gates().contains(&"schema!".to_owned()),
        "{:?}",
        declined.gates()
    );
    let args = json!([{ "name": "content", "value": "a" }]);
    let mut said = proposal("memory.add", args, 0.8);
    said["reason"] = json!("@everyone\n\u{1b}[31mlook");
    provider.reply_with("proposal", said);
    let offered = act(&app, "ada", "zap fourteen").await;
    let reason = offered.body["proposed_action"]["reason"].as_str().unwrap();
    assert!(
        !reason.contains(['\n', '\u{1b}']) && !reason.contains("@everyone"),
        "{reason:?}"
    );
}

#[tokio::test]
async fn only_a_reply_of_exact_json_is_executed_without_a_question() {
    let exact = proposal("memory.add", json!({ "content": "rope" }), 0.95).to_string();
    let fenced = format!("```json\n{exact}\n```");
    let in_prose = format!("Sure: {exact}");
    let two = format!("{exact}\n{exact}");
    let with_a_duplicate = exact.replacen('{', r#"{"confidence": 0.2,"#, 1);
    for (reply, executed) in [
        (exact, true),
        (fenced, true),
        (in_prose, false),
        (two, false),
        (with_a_duplicate, false),
    ] {
        let provider = MockProvider::start().await;
        provider.reply_text("proposal", reply.clone());
        let setup = proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true");
        let app = TestApp::with(&provider, setup).await;
        let answer = act(&app, "ada", "well, rope and so on").await;
        assert_eq!(answer.body["executed"], json!(executed), "{reply}");
    }
}

/// Has a memory offered to Ada.
async fn rope_offered(provider: &MockProvider) -> (TestApp, Answer) {
    let args = json!({ "content": "buy rope", "query": null });
    proposes(provider, "memory.add", args, 0.94);
    let app = TestApp::with(provider, proposing()).await;
    let offered = act(&app, "ada", "rope would be good to have, keep it in mind").await;
    (app, offered)
}

/// Returns how many memories of Ada are about rope.
async fn ropes(app: &TestApp) -> usize {
    let found = act(app, "ada", "/memory search rope").await;
    let memories = &found.body["actions"][0]["result"]["memories"];
    memories.as_array().unwrap().len()
}

#[tokio::test]
async fn a_proposal_waits_for_its_users_confirmation() {
    let provider = MockProvider::start().await;
    let (app, offered) = rope_offered(&provider).await;
    let names = "intent mode proposed_action executed result actions proposal";
    assert_eq!(keys(&offered.body).join(" "), names);
    let args = json!({ "content": "buy rope" });
    let expected = json!({ "action": "memory.add", "args": args, "confidence": 0.94, "reason": "it sounds like it" });
    assert_eq!(offered.body["proposed_action"], expected);
    assert_eq!(offered.body["intent"]["parameters"], args);
    assert_eq!(offered.body["executed"], json!(false));
    assert_eq!(offered.body["result"], Value::Null);
    assert_eq!(offered.body["actions"], json!([]));
    let gates = ["allowlist", "schema", "policy", "auto_execution!"];
    assert_eq!(offered.gates(), gates);
    let begun = ["accepted", "claimed/1", "sent:proposal", "settled:proposal"];
    assert_eq!(offered.keys[..4], begun);
    assert_eq!(ropes(&app).await, 0);
    let of_another = confirm(&app, "ben", &offered).await;
    assert_eq!(of_another.status, 404, "another user's is not found");
    let taken = provider.complaints();
    assert_eq!(taken, [""; 0], "a vendor would have taken the schema");
}

#[tokio::test]
async fn a_confirmed_proposal_is_executed_once() {
    let provider = MockProvider::start().await;
    let (app, offered) = rope_offered(&provider).await;
    let done = confirm(&app, "ada", &offered).await;
    assert_eq!((done.status, &done.body["executed"]), (200, &json!(true)));
    assert_eq!(done.body["mode"], "llm_proposal");
    assert_eq!(done.body["result"]["text"], "Remembered: buy rope");
    assert_eq!(done.body["actions"][0]["action"], "memory.add");
    let Event::Accepted(accepted) = &done.events[0] else {
        panic!("{:?}", done.keys)
    };
    assert_eq!(accepted.parent(), offered.run);
    let again = confirm(&app, "ada", &offered).await;
    assert_eq!(again.status, 409);
    assert_eq!(again.body["type"], "urn:conclave:problem:proposal-gone");
    assert_eq!(ropes(&app).await, 1);
    assert_eq!(provider.count_step("proposal"), 1);
    let mut body = said("ada", "");
    body.as_object_mut().unwrap().remove("message");
    let path = format!("/api/act/proposals/{}/confirm", done.run.unwrap());
    let unknown = post(&app, &path, &body).await;
    assert_eq!(unknown.status, 404, "an action without a proposal has none");
}

#[tokio::test]
async fn a_confirmation_without_a_channel_applies_to_the_original_one() {
    let provider = MockProvider::start().await;
    proposes(
        &provider,
        "memory.add",
        json!({ "content": "buy rope" }),
        0.94,
    );
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "rope, keep it in mind").await;
    let path = format!("/api/act/proposals/{}/confirm", offered.run.unwrap());
    let without_a_place = |user: &str| {
        let mut body = said(user, "the text of the action, sent again");
        body.as_object_mut().unwrap().remove("context");
        body
    };
    assert_eq!(post(&app, &path, &without_a_place("ben")).await.status, 404);
    assert_eq!(
        post(&app, &path, &without_a_place("ada")).await.body["executed"],
        true
    );
    assert_eq!(post(&app, &path, &without_a_place("ada")).await.status, 409);
}

#[tokio::test]
async fn a_hundred_concurrent_confirmations_execute_a_proposal_once() {
    let provider = MockProvider::start().await;
    proposes(
        &provider,
        "memory.add",
        json!({ "content": "buy rope" }),
        0.94,
    );
    let setup = proposing().set(
        "/policy/actions",
        json!({ "userPerMinute": 1000, "userBurst": 1000 }),
    );
    let app = TestApp::with(&provider, setup).await;
    let offered = act(&app, "ada", "rope, keep it in mind").await;
    let all = (0..100).map(|_| confirm(&app, "ada", &offered));
    let statuses: Vec<u16> = futures_util::future::join_all(all)
        .await
        .iter()
        .map(|answer| answer.status)
        .collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 99);
    let found = act(&app, "ada", "/memory search rope").await;
    assert_eq!(
        found.body["actions"][0]["result"]["memories"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_failed_confirmation_leaves_the_proposal_open() {
    let provider = MockProvider::start().await;
    proposes(&provider, "sheet.show", json!({ "name": "Aria" }), 0.94);
    let setup = proposing().set(
        "/policy/actions",
        json!({ "userPerMinute": 1000, "userBurst": 1000 }),
    );
    let app = TestApp::with(&provider, setup).await;
    let offered = act(&app, "ada", "Aria, what was she like").await;
    for _ in 0..2 {
        let declined = confirm(&app, "ada", &offered).await;
        assert_eq!(
            (declined.status, &declined.body["error"]),
            (200, &json!("not_found"))
        );
        assert_eq!(
            declined.keys,
            ["accepted", "parsed", "finished"],
            "it is in the journal all the same"
        );
    }
    act(&app, "ada", "create a character named Aria").await;
    assert_eq!(confirm(&app, "ada", &offered).await.body["executed"], true);
    assert_eq!(confirm(&app, "ada", &offered).await.status, 409);

    // The first of a hundred confirmations changes the data. The others are told that they
    // conflict.
    proposes(&provider, "sheet.create", json!({ "name": "Bo" }), 0.94);
    let offered = act(&app, "ada", "Bo would be a good one").await;
    let all =
        futures_util::future::join_all((0..100).map(|_| confirm(&app, "ada", &offered))).await;
    let told: Vec<(u16, &Value)> = all
        .iter()
        .map(|answer| (answer.status, &answer.body["executed"]))
        .collect();
    assert_eq!(
        told.iter()
            .filter(|told| **told == (200, &json!(true)))
            .count(),
        1,
        "{told:?}"
    );
    assert_eq!(
        told.iter().filter(|told| told.0 == 409).count(),
        99,
        "{told:?}"
    );
}

#[tokio::test]
async fn a_repeated_confirmation_with_the_same_key_gets_the_stored_result() {
    let provider = MockProvider::start().await;
    proposes(&provider, "roll", json!({ "expression": "3d6" }), 0.7);
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "dice, go").await;
    // Also if they come at the same time.
    let ten = (0..10).map(|_| confirm_with_key(&app, "ada", &offered, Some("k1")));
    let ten = futures_util::future::join_all(ten).await;
    let first = &ten[0];
    for again in ten
        .iter()
        .chain([&confirm_with_key(&app, "ada", &offered, Some("k1")).await])
    {
        assert_eq!((again.status, &again.body["executed"]), (200, &json!(true)));
        assert_eq!((&again.body, again.run), (&first.body, first.run));
    }
    for key in [Some("k2"), None] {
        let other = confirm_with_key(&app, "ada", &offered, key).await;
        assert_eq!(other.status, 409, "{key:?}");
    }
    let stranger = confirm_with_key(&app, "eve", &offered, Some("k1")).await;
    assert_eq!(stranger.status, 404);
    let id = offered.body["proposal"]["id"].as_str().unwrap();
    let mut another = said("ada", "");
    another.as_object_mut().unwrap().remove("message");
    another["choice"] = json!(2);
    let path = format!("/api/act/proposals/{id}/confirm");
    let another = post_with_key(&app, &path, &another, Some("k1")).await;
    assert_eq!(another.status, 422, "{:#}", another.body);
}

#[tokio::test]
async fn a_proposal_expires() {
    let provider = MockProvider::start().await;
    proposes(&provider, "roll", json!({ "expression": "1d6" }), 0.7);
    let folder = Arc::new(TempDir::new().unwrap());
    let app = TestApp::on(&provider, proposing(), Arc::clone(&folder)).await;
    let offered = act(&app, "ada", "dice, go").await;
    let config = crate::support::app::config(
        &provider.url(),
        &crate::support::app::database_of(&folder).await,
        &proposing(),
    );
    // Reads the same journal with the clock one hour ahead.
    let later = conclave::clock::Clock::System
        .now()
        .saturating_add(jiff::SignedDuration::from_hours(1))
        .unwrap();
    let late = conclave::app::App::start(config, conclave::clock::Clock::fixed(later))
        .await
        .unwrap();
    let body = said("ada", "x");
    let confirmation = Confirmation {
        source: serde_json::from_value(body["source"].clone()).unwrap(),
        user: serde_json::from_value(body["user"].clone()).unwrap(),
        context: serde_json::from_value(body["context"].clone()).unwrap(),
        choice: 1,
    };
    let confirmed = late.confirm(offered.run.unwrap(), confirmation, None).await;
    let refused = confirmed.unwrap_err();
    assert_eq!(refused.to_string(), "the proposal has expired");
    assert_eq!(confirm(&app, "ada", &offered).await.status, 200);
}
