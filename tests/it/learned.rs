//! Learned answers: feedback makes them, and the strategy `heuristic_first` replies with them.

use conclave::journal::Event;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::app::database_of;
use crate::support::process::conclave;
use crate::support::{Fault, Got, MockProvider, Setup, TestApp, chat, sent};

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

    let (_, listed) = app.get("/api/runs?outcome=heuristic").await;
    assert_eq!(listed["runs"][0]["id"], again.run.to_string());
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    assert_eq!(listed["runs"][0]["state"], "answered");
    let (_, shown) = app.get(&format!("/api/runs/{}", again.run)).await;
    assert_eq!(shown["state"], "answered");

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
async fn questions_without_spaces_or_rare_words_are_answered_from_memory() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    for question in [
        "富士山の高さは何メートルですか",
        "ประเทศไทยมีเมืองหลวงชื่ออะไร",
        "Who are you?",
        "Why not?",
    ] {
        let first = asked(&app, question, Some("g1")).await;
        feedback(&app, &first, true).await;
        let again = asked(&app, question, Some("g1")).await;
        assert_eq!(again.outcome, "heuristic", "{question}");
    }
}

#[tokio::test]
async fn three_times_positive_feedback_reaches_the_default_threshold() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[("HEURISTIC_THRESHOLD", "0.7")]).await;
    let first = asked(&app, QUESTION, None).await;
    for (confidence, outcome) in [(0.3, "answered"), (0.5, "answered"), (0.7, "heuristic")] {
        assert_eq!(
            feedback(&app, &first, true).await["learned"]["confidence"],
            confidence
        );
        assert_eq!(asked(&app, QUESTION, None).await.outcome, outcome);
    }
}

#[tokio::test]
async fn an_assumption_of_a_reply_from_memory_can_be_corrected() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let first = asked(&app, QUESTION, None).await;
    feedback(&app, &first, true).await;
    let again = asked(&app, QUESTION, None).await;
    assert_eq!(again.outcome, "heuristic");
    assert!(again.text().contains("A1"), "{}", again.text());
    provider.state().calls.clear();
    let corrected = asked(&app, "A1 is wrong: the water is on a mountain", None).await;
    assert_eq!(corrected.outcome, "answered");
    let handles = corrected.text().matches("- A1 (").count();
    assert_eq!(handles, 1, "{}", corrected.text());
    let accepted = corrected.events().find_map(|event| match event {
        Event::Accepted(accepted) => accepted.continues.as_ref(),
        _ => None,
    });
    assert_eq!(accepted.unwrap().parent, again.run);
    let solver = provider.calls_of("r1/solver")[0].text();
    assert!(
        solver.contains(QUESTION) && solver.contains("on a mountain"),
        "{solver}"
    );
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
async fn a_comparison_leaves_the_committee_its_room() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let long = format!(
        "{QUESTION} {}",
        "The log says nothing of note. ".repeat(900)
    );
    let first = asked(&app, &long, None).await;
    assert_eq!(
        feedback(&app, &first, true).await["learned"]["confidence"],
        0.3
    );
    let second = asked(&app, &format!("{long} Please."), None).await;
    assert_eq!(second.outcome, "answered");
    assert_eq!(provider.count_step("same_question"), 0, "it costs too much");
}

#[tokio::test]
async fn a_hanging_comparison_leaves_the_committee_its_time() {
    let provider = MockProvider::start().await;
    let deadlines = json!({ "connect": 1, "call": 6, "ask": 6, "audit": 6, "deep": 6 });
    let setup = Setup::default()
        .env("DECISION_STRATEGY", "heuristic_first")
        .env("HEURISTIC_THRESHOLD", "0.3")
        .set("/policy/deadlines", deadlines);
    let app = TestApp::with(&provider, setup).await;
    let first = asked(&app, QUESTION, None).await;
    feedback(&app, &first, true).await;
    provider.on("same_question*", Fault::Hang(Duration::from_secs(10)));
    let similar = "At sea level, what is the boiling point of water?";
    assert_eq!(asked(&app, similar, None).await.outcome, "answered");
    assert_eq!(provider.count_step("same_question"), 1);
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
    let journal = sent(app.client.get(url)).await.text().await.unwrap();
    assert!(journal.contains("feedback") && !journal.contains("learned/1"));
}

#[tokio::test]
async fn altered_runs_teach_nothing_and_damaged_answers_keep_no_question_from_the_committee() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let address = database_of(&app.folder).await;
    let change = async |statement: &'static str| {
        if let Some(file) = address.strip_prefix("sqlite://") {
            let database = rusqlite::Connection::open(file).unwrap();
            assert_eq!(database.execute(statement, []).unwrap(), 1);
        } else {
            let database = sqlx::PgPool::connect(&address).await.unwrap();
            let done = sqlx::query(statement).execute(&database).await.unwrap();
            assert_eq!(done.rows_affected(), 1);
        }
    };
    let first = asked(&app, QUESTION, None).await;
    change("UPDATE runs SET user_id = 'eve'").await;
    assert_eq!(feedback(&app, &first, true).await["learned"], json!(null));
    change("UPDATE runs SET user_id = 'u1'").await;
    let taught = feedback(&app, &first, true).await;
    assert_eq!(taught["learned"]["confidence"], 0.3, "{taught}");
    feedback(&app, &first, true).await;
    feedback(&app, &first, true).await;

    let asked_again = async |learned: bool| {
        let before = provider.calls().len();
        let again = asked(&app, QUESTION, None).await;
        let outcome = if learned { "heuristic" } else { "answered" };
        assert_eq!(again.outcome, outcome);
        assert_eq!(provider.calls().len() == before, learned);
    };
    asked_again(true).await;
    change("UPDATE learned_answers SET confidence = 0.9").await;
    asked_again(false).await;
    // Feedback changes the confidence that the journal has.
    let raised = feedback(&app, &first, true).await;
    assert_eq!(raised["learned"]["confidence"], 0.9, "{raised}");
    change("UPDATE learned_answers SET confidence = 0.5").await;
    asked_again(false).await;
    change("UPDATE learned_answers SET confidence = 0.9").await;
    asked_again(true).await;
    change("UPDATE learned_answers SET answer = 'no JSON'").await;
    asked_again(false).await;
}

#[tokio::test]
async fn learned_answers_are_listed_revoked_and_compared_on_the_command_line() {
    let (provider, folder) = (MockProvider::start().await, TempDir::new().unwrap());
    let url = provider.url();
    let run = async |arguments: &[&str]| {
        let variables = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("DECISION_STRATEGY", "split:heuristic_first=100"),
            ("EXECUTIVE_HEURISTIC_THRESHOLD", "0.3"),
        ];
        let command = conclave(folder.path(), arguments, &variables).output();
        let output = command.await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    assert_eq!(run(&["ask", QUESTION]).await.0, 0);
    let listed = run(&["runs", "--json"]).await.1;
    let first: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = first["id"].as_str().unwrap();
    let (code, _, said) = run(&["feedback", id, "--positive"]).await;
    assert!(code == 0 && said.contains("is 0.30 now"), "{said}");
    let before = provider.calls().len();
    let (code, reply, _) = run(&["ask", QUESTION]).await;
    assert!(code == 0 && reply.contains("from memory"), "{reply}");
    assert_eq!(provider.calls().len(), before);

    let (_, shown, _) = run(&["show", "last"]).await;
    let decision = "Decision: heuristic: a learned answer fits and is trusted; the most similar";
    assert!(
        shown.contains(decision) && !shown.contains("Audit appendix"),
        "{shown}"
    );

    let (_, listed, _) = run(&["learned", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (&listed["runId"], &listed["question"]),
        (&json!(id), &json!(QUESTION))
    );
    assert!(run(&["learned"]).await.1.contains("0.30"));
    let (_, report, _) = run(&["report", "strategies", "--json"]).await;
    let report: Value = serde_json::from_str(&report).unwrap();
    let arm = &report["arms"][0];
    assert_eq!(
        (
            &arm["arm"],
            &arm["runs"],
            &arm["fromMemory"],
            &arm["positive"]
        ),
        (&json!("heuristic_first"), &json!(2), &json!(1), &json!(1))
    );
    assert!(
        run(&["report", "strategies"])
            .await
            .1
            .contains("heuristic_first")
    );

    // The newest run is the reply from memory, which taught nothing.
    assert_eq!(run(&["learned", "revoke", "last"]).await.0, 4);
    let start = &id[..id.len() - 1];
    assert_eq!(run(&["learned", "revoke", start]).await.0, 0);
    assert_ne!(
        run(&["learned", "revoke", id]).await.0,
        0,
        "it is revoked already"
    );
    assert!(run(&["learned"]).await.1.contains("revoked"));
    let (_, reply, _) = run(&["ask", QUESTION]).await;
    assert!(!reply.contains("from memory"), "{reply}");
    assert_eq!(run(&["verify", id]).await.0, 0, "the chain goes on");
}

#[tokio::test]
async fn feedback_at_the_same_time_counts_each_time() {
    let provider = MockProvider::start().await;
    let app = app(&provider, &[]).await;
    let first = asked(&app, QUESTION, Some("g1")).await;
    let all = || async {
        let each = (0..3).map(|_| feedback(&app, &first, true));
        futures_util::future::join_all(each).await
    };
    let mut confidences: Vec<String> = all()
        .await
        .iter()
        .map(|noted| noted["learned"]["confidence"].to_string())
        .collect();
    confidences.sort();
    assert_eq!(confidences, ["0.3", "0.5", "0.7"]);
    let four = (0..4).map(|_| feedback(&app, &first, false));
    futures_util::future::join_all(four).await;
    let last = feedback(&app, &first, true).await;
    assert_eq!(
        last["learned"]["confidence"], 0.2,
        "0.7 less 4 times 0.3 is 0"
    );
}
