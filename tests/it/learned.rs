//! Learned answers: feedback makes them, and the strategy `heuristic_first` replies with them.

use serde_json::{Value, json};

use crate::support::{Got, MockProvider, Setup, TestApp, chat};

const QUESTION: &str = "What is the boiling point of water at sea level?";

async fn app(provider: &MockProvider, more: &[(&str, &str)]) -> TestApp {
    let setup = Setup::default()
        .env("DECISION_STRATEGY", "heuristic_first")
        .env("HEURISTIC_THRESHOLD", "0.3");
    let setup = more
        .iter()
        .fold(setup, |setup, (name, value)| setup.env(name, *value));
    TestApp::with(provider, setup).await
}

fn asks(message: &str, guild: Option<&str>) -> Value {
    let mut body = chat("ask", message);
    if let Some(guild) = guild {
        body["context"]["guildId"] = json!(guild);
    }
    body
}

async fn asked(app: &TestApp, message: &str, guild: Option<&str>) -> Got {
    app.reply(app.post(&asks(message, guild))).await
}

async fn feedback(app: &TestApp, got: &Got, positive: bool) -> Value {
    let url = format!("{}/api/runs/{}/feedback", app.url, got.run);
    let body = json!({ "positive": positive });
    let response = app.client.post(url).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_repeated_question_is_answered_from_memory_without_a_call() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let first = asked(&app, QUESTION, Some("g1")).await;
    assert_eq!(first.outcome, "answered");
    let noted = feedback(&app, &first, true).await;
    assert_eq!(noted["learned"]["runId"], first.run.to_string());
    assert_eq!(
        noted["learned"]["confidence"], 0.3,
        "whatever the models thought"
    );
    let before = provider.calls().len();
    let again = asked(
        &app,
        "what is the boiling point of water at sea level",
        Some("g1"),
    )
    .await;
    assert_eq!(again.outcome, "heuristic");
    assert_eq!(provider.calls().len(), before, "nothing is bought");
    assert!(
        again.text().contains("## Confidence\n\n0.30"),
        "{}",
        again.text()
    );
    assert!(
        again.text().contains(&first.run.to_string()),
        "{}",
        again.text()
    );
    assert_eq!(again.body["meta"]["budget"]["estimatedUsd"], 0.0);
    let main = |got: &Got| {
        got.text()
            .split("## Assumptions")
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(main(&again), main(&first));

    // Feedback on the repeated answer moves the confidence of the one that was learned.
    let noted = feedback(&app, &again, true).await;
    assert_eq!(noted["learned"]["runId"], first.run.to_string());
    assert_eq!(noted["learned"]["confidence"], 0.5);
    for _ in 0..2 {
        feedback(&app, &again, false).await;
    }
    let distrusted = asked(&app, QUESTION, Some("g1")).await;
    assert_eq!(distrusted.outcome, "answered");
}

#[tokio::test]
async fn an_answer_stays_in_its_guild_and_new_asks_the_committee() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let first = asked(&app, QUESTION, Some("g1")).await;
    feedback(&app, &first, true).await;
    for (message, guild) in [
        (QUESTION.to_owned(), Some("g2")),
        (QUESTION.to_owned(), None),
        (format!("new: {QUESTION}"), Some("g1")),
        (QUESTION.replace("sea level", "3000 m"), Some("g1")),
    ] {
        let other = asked(&app, &message, guild).await;
        assert_eq!(other.outcome, "answered", "{message} {guild:?}");
    }
    let mut deep = asks(QUESTION, Some("g1"));
    deep["mode"] = json!("audit");
    assert_eq!(app.reply(app.post(&deep)).await.outcome, "answered");
}

#[tokio::test]
async fn a_similar_question_fires_only_if_a_model_confirms_it() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let first = asked(&app, QUESTION, None).await;
    feedback(&app, &first, true).await;
    let similar = "At sea level, what is the boiling point of water?";
    for (same, outcome) in [(false, "answered"), (true, "heuristic")] {
        provider.reply_with("same_question", json!({ "same": same }));
        let before = provider.calls().len();
        let got = asked(&app, similar, None).await;
        assert_eq!(got.outcome, outcome);
        if same {
            assert_eq!(provider.calls().len(), before + 1, "one call compares");
        }
    }
}

#[tokio::test]
async fn the_master_sees_goals_and_learned_answers_without_scores() {
    let provider = MockProvider::start().await;
    let app = app(
        &provider,
        &[
            ("GOALS", "Be kind; Use metric units"),
            ("HEURISTIC_THRESHOLD", "0.9"),
        ],
    )
    .await;
    let first = asked(&app, QUESTION, None).await;
    feedback(&app, &first, true).await;
    let before = provider.calls().len();
    let second = asked(&app, QUESTION, None).await;
    assert_eq!(second.outcome, "answered");
    for call in &provider.calls()[before..] {
        let is_master = ["plan", "synthesis"].contains(&call.step.as_str());
        let (system, prompt) = (call.system(), call.prompt());
        assert_eq!(
            system.contains("- Use metric units"),
            is_master,
            "{}",
            call.step
        );
        assert_eq!(
            prompt.contains("you may ignore them"),
            is_master,
            "{}",
            call.step
        );
        assert!(!prompt.contains("0.3"), "no scores");
    }
}

#[tokio::test]
async fn what_does_not_stand_alone_is_not_learned() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let first = asked(&app, QUESTION, None).await;
    let noted = feedback(&app, &first, false).await;
    assert_eq!(
        noted["learned"],
        Value::Null,
        "negative feedback teaches nothing"
    );
    let url = format!("{}/api/runs/{}/journal", app.url, first.run);
    let journal = app
        .client
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(journal.contains("feedback") && !journal.contains("learned/1"));
}
