//! Tests the limits of proposals in calls, time and money, and the user rate limit.

use std::time::{Duration, Instant};

use conclave::actions::reply::{TOO_LONG, not_understood};
use conclave::domain::CommandName;
use conclave::journal::Event;
use serde_json::{Value, json};

use crate::act::{act, confirm, post, proposes, proposing, said};
use crate::support::{Fault, MockProvider, Setup, TestApp, sent};

/// Returns the message to a text in which no command is found where all are allowed.
fn unknown(text: &str) -> String {
    not_understood(text, &CommandName::ALL.iter().copied().collect())
}

#[tokio::test]
async fn the_same_text_costs_one_call_and_each_user_gets_a_proposal() {
    let provider = MockProvider::start().await;
    proposes(
        &provider,
        "memory.add",
        json!({ "content": "buy rope" }),
        0.94,
    );
    provider.on("*", Fault::Latency(Duration::from_millis(200)));
    let app = TestApp::with(&provider, proposing()).await;
    let text = "rope, keep it in mind";
    let users = ["ada", "ada", "ben", "cyd"];
    let answers = futures_util::future::join_all(users.map(|user| act(&app, user, text))).await;
    assert_eq!(
        provider.count_step("proposal"),
        1,
        "one call for all of them"
    );
    let bought = answers
        .iter()
        .filter(|answer| answer.keys.contains(&"sent:proposal".to_owned()))
        .count();
    assert_eq!(bought, 1);
    assert_eq!(confirm(&app, "ben", &answers[0]).await.status, 404);
    assert_eq!(confirm(&app, "ben", &answers[2]).await.status, 200);
    assert_eq!(
        act(&app, "ada", "/memory search rope").await.body["actions"][0]["result"]["memories"],
        json!([])
    );
    // The same text in another channel needs a call of its own.
    let mut elsewhere = said("ada", text);
    elsewhere["context"]["channelId"] = json!("c2");
    post(&app, "/api/act", &elsewhere).await;
    assert_eq!(provider.count_step("proposal"), 2);
    // With `cacheSeconds` 0 each message needs a call of its own.
    let setup = proposing().set("/policy/actions", json!({ "cacheSeconds": 0 }));
    let hasty = TestApp::with(&provider, setup).await;
    act(&hasty, "ada", text).await;
    act(&hasty, "ada", text).await;
    assert_eq!(provider.count_step("proposal"), 4);
}

#[tokio::test]
async fn an_unreadable_or_empty_proposal_is_not_requested_twice() {
    let billed = [
        (Fault::Malformed, vec!["schema!"]),
        (Fault::Text(String::new()), vec!["schema!"]),
        (Fault::Refusal, vec![]),
    ];
    for (fault, gates) in billed {
        let provider = MockProvider::start().await;
        provider.on("proposal", fault.clone());
        provider.on("*", Fault::Latency(Duration::from_millis(700)));
        let app = TestApp::with(&provider, proposing()).await;
        let at_once = futures_util::future::join_all(
            ["ada", "ben", "cyd"].map(|user| act(&app, user, "hm, what now")),
        );
        let mut answers = at_once.await;
        answers.push(act(&app, "dan", "hm, what now").await);
        for answer in &answers {
            assert_eq!(
                answer.body["message"],
                unknown("hm, what now"),
                "{fault:?}: the same for everybody"
            );
            assert_eq!(answer.gates(), gates, "{fault:?}");
        }
        assert_eq!(provider.count_step("proposal"), 1, "{fault:?}");
    }
    // A failed call that certainly cost nothing is reported to all users who wait for it. A later
    // message makes a new call.
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Status(500));
    provider.on("*", Fault::Latency(Duration::from_millis(700)));
    let app = TestApp::with(&provider, proposing()).await;
    let both =
        futures_util::future::join_all(["ada", "ben"].map(|user| act(&app, user, "hm, what now")))
            .await;
    assert!(
        both.iter()
            .all(|answer| answer.body["message"] == conclave::actions::reply::UNAVAILABLE)
    );
    assert_eq!(provider.count_step("proposal"), 1);
    act(&app, "ada", "hm, what now").await;
    assert_eq!(provider.count_step("proposal"), 2);
}

#[tokio::test]
async fn the_wait_for_a_hanging_model_ends_after_five_seconds() {
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Hang(Duration::from_secs(30)));
    let setup = proposing().set(
        "/policy/deadlines",
        json!({ "call": 20, "ask": 60, "audit": 60, "deep": 60 }),
    );
    let app = TestApp::with(&provider, setup).await;
    let started = Instant::now();
    let both =
        futures_util::future::join_all(["ada", "ben"].map(|user| act(&app, user, "hm, what now")))
            .await;
    let took = started.elapsed();
    assert!(
        (Duration::from_secs(5)..Duration::from_secs(8)).contains(&took),
        "{took:?}"
    );
    for answer in &both {
        assert_eq!(answer.body["error"], "unknown_intent");
        assert!(
            answer.body["message"]
                .as_str()
                .unwrap()
                .contains("too long"),
            "{}",
            answer.body
        );
        assert_eq!(answer.keys.last().unwrap(), "finished");
    }
    let late = act(&app, "cyd", "hm, what now").await;
    assert_eq!(late.body, both[0].body);
    assert_eq!(provider.count_step("proposal"), 1);
    // The call may have been billed, so it is settled at its reservation.
    let asked = both
        .iter()
        .find(|answer| answer.keys.contains(&"settled:proposal".to_owned()))
        .unwrap();
    let sent = asked
        .events
        .iter()
        .find_map(|e| {
            if let Event::CallSent(s) = e {
                s.reserved.clone()
            } else {
                None
            }
        })
        .unwrap();
    assert_eq!(
        app.app
            .run(asked.run.unwrap())
            .await
            .unwrap()
            .unwrap()
            .spent,
        sent.amount
    );
}

#[tokio::test]
async fn a_failing_provider_gives_a_friendly_answer_without_its_message() {
    use conclave::actions::reply::UNAVAILABLE;
    let message = unknown("hm, what now");
    let unknown = ("unknown_intent", message.as_str());
    for (fault, (error, message)) in [
        (Fault::Status(500), ("unavailable", UNAVAILABLE)),
        (Fault::Status(401), ("unavailable", UNAVAILABLE)),
        (Fault::Malformed, unknown),
        (Fault::Refusal, unknown),
        (Fault::Text(String::new()), unknown),
        (Fault::Body(200, "<html>".into()), unknown),
        (Fault::CutJson, unknown),
    ] {
        let provider = MockProvider::start().await;
        provider.on("proposal", fault.clone());
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "hm, what now").await;
        assert_eq!(answer.body["error"], error, "{fault:?}");
        assert_eq!(answer.body["message"], message);
        assert_eq!(
            provider.count_step("proposal"),
            1,
            "{fault:?}: one call, without retry and repair"
        );
    }
}

#[tokio::test]
async fn a_repetition_with_the_same_key_has_no_effect() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let send = |key: &'static str, message: &'static str| {
        let request = app
            .request("POST", "/api/act")
            .header("idempotency-key", key);
        request.json(&said("ada", message)).send()
    };
    let first: Value = send("k", "roll 20d20").await.unwrap().json().await.unwrap();
    let second: Value = send("k", "roll 20d20").await.unwrap().json().await.unwrap();
    assert_eq!(first, second);
    assert_eq!(send("k", "roll 21d20").await.unwrap().status(), 422);
    let mut body = said("ada", "remember that it rains");
    body["context"]["messageId"] = json!("m1");
    let (one, two) = (
        post(&app, "/api/act", &body).await,
        post(&app, "/api/act", &body).await,
    );
    assert_eq!(one.run, two.run);
    let found = act(&app, "ada", "/memory search rains").await;
    assert_eq!(
        found.body["actions"][0]["result"]["memories"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn the_user_rate_limit_does_not_affect_other_users() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set(
        "/policy/actions",
        json!({ "userPerMinute": 2, "userBurst": 2 }),
    );
    let app = TestApp::with(&provider, setup).await;
    let mut statuses = vec![];
    for user in ["ada", "ada", "ada", "ben"] {
        let request = app
            .request("POST", "/api/act")
            .json(&said(user, "roll 1d6"));
        let response = sent(request).await;
        statuses.push((
            response.status().as_u16(),
            response.headers().contains_key("retry-after"),
        ));
    }
    assert_eq!(
        statuses,
        [(200, false), (200, false), (429, true), (200, false)]
    );
}

#[tokio::test]
async fn a_text_that_is_too_long_and_a_narration_beyond_a_limit_say_why() {
    let provider = MockProvider::start().await;
    let setup = proposing()
        .set("/policy/limits/userDailyUsd", json!(0.1))
        .set("/policy/deepMaxUsd", json!(0.1))
        .set("/policy/actions", json!({ "narration": true }));
    let app = TestApp::with(&provider, setup).await;
    let long = act(&app, "ada", &"hm, what now? ".repeat(200)).await;
    assert_eq!(long.body["message"], TOO_LONG);
    assert_eq!(provider.calls().len(), 0);
    act(&app, "ada", "/do climb the tower").await;
    let refused = act(&app, "ada", "/do climb the wall").await;
    assert_eq!(
        refused.body["actions"][0]["result"]["narration"],
        json!({ "run": null, "unavailable": "the spending limit is reached" })
    );
}

#[tokio::test]
async fn a_spending_limit_and_a_small_cap_apply_to_proposals() {
    let provider = MockProvider::start().await;
    proposes(&provider, "roll", json!({ "expression": "1d6" }), 0.7);
    let setup = proposing().set("/policy/actions", json!({ "maxUsd": 0.0001 }));
    let poor = TestApp::with(&provider, setup).await;
    assert_eq!(
        act(&poor, "ada", "dice, go").await.body["error"],
        "unknown_intent"
    );
    assert_eq!(
        provider.calls().len(),
        0,
        "the cap has no room for the call"
    );
    let setup = proposing()
        .set("/policy/limits/userDailyUsd", json!(0.5))
        .set("/policy/actions", json!({ "maxUsd": 0.4 }));
    let app = TestApp::with(&provider, setup).await;
    let spent: u64 = app
        .app
        .run(act(&app, "ada", "dice, go").await.run.unwrap())
        .await
        .unwrap()
        .unwrap()
        .spent
        .nanos();
    assert!(spent > 0);
    provider.on("proposal", Fault::Usage(Some(20_000)));
    act(&app, "ada", "dice, go on").await;
    let refused = post(&app, "/api/act", &said("ada", "dice, go once more")).await;
    assert_eq!(
        (refused.status, &refused.body["type"]),
        (429, &json!("urn:conclave:problem:limit-spent"))
    );
    assert_eq!(
        act(&app, "ada", "roll 1d6").await.body["executed"],
        json!(true),
        "what costs nothing is not limited"
    );
}
