//! Tests which questions of the master are asked as they were written.

use serde_json::json;

use crate::reply::synthesis;
use crate::support::{MockProvider, QUESTION, Scenario, Setup, TestApp};

#[tokio::test]
async fn a_question_is_asked_as_written_only_if_it_is_about_the_request() {
    let database = "Should the shop use Postgres or MySQL?";
    for (options, is_asked) in [
        (
            [
                "A the short version: the reply is short",
                "B the long version: the reply is long",
                "C another angle: the reply takes another angle",
            ],
            false,
        ),
        (
            [
                "A Postgres: the answer keeps it and adds an index plan",
                "B MySQL: the answer adds a migration path",
                "C neither: the answer compares hosting offers first",
            ],
            true,
        ),
    ] {
        let scenario = Scenario::agreeing().with(|s| {
            let reports = s
                .reports
                .to_string()
                .replace("100 °C", "Postgres, not MySQL,");
            let reports = reports.replace("\"Postgres, not MySQL,\"", "\"Postgres\"");
            s.reports = reports.parse().unwrap();
            let units = s.reports["r1/critic"]["units"].as_array_mut().unwrap();
            units.last_mut().unwrap()["text"] = json!("MySQL");
        });
        let mut synthesis = scenario.synthesis.clone();
        let question = json!({ "question": "What should the plan rest on?", "options": options });
        synthesis["audit"]["fallbackQuestion"] = question.clone();
        let provider = MockProvider::playing(scenario).await;
        provider.reply_with("synthesis*", synthesis);
        provider.reply_with("question*", question.clone());
        let app = TestApp::start(&provider).await;
        let got = app.ask("audit", database).await;
        assert_eq!(got.outcome, "clarification", "{}", got.text());
        let is_written = got.text().contains("What should the plan rest on?");
        assert_eq!(is_written, is_asked, "{}", got.text());
    }
}

#[tokio::test]
async fn a_question_that_would_fit_any_request_is_not_asked_though_nothing_is_contested() {
    let strict = || Setup::default().set("/policy/askUserThreshold", json!(0.999));
    for (options, is_asked) in [
        (
            [
                "A the short version: a few lines",
                "B the long version: several pages",
                "C another angle: a different view",
            ],
            false,
        ),
        (
            [
                "A at sea level: the figure of the tables",
                "B on a mountain: water boils earlier",
                "C in a pressure cooker: water boils later",
            ],
            true,
        ),
    ] {
        let provider = MockProvider::playing(Scenario::agreeing()).await;
        let question = json!({ "question": "Which one is wanted?", "options": options });
        let draft = synthesis("Water boils at 100 °C.", |synthesis| {
            synthesis["audit"]["fallbackQuestion"] = question.clone();
        });
        provider.reply_with("synthesis*", draft);
        provider.reply_with("question*", question.clone());
        let app = TestApp::with(&provider, strict()).await;
        let got = app.ask("audit", QUESTION).await;
        assert_eq!(got.outcome, "clarification", "{}", got.text());
        let is_written = got.text().contains("Which one is wanted?");
        assert_eq!(is_written, is_asked, "{}", got.text());
    }
}

#[tokio::test]
async fn a_figure_that_no_report_has_is_not_shipped_to_an_open_request() {
    for (answer, text, outcome) in [
        ("30 days", "Take goods back for 30 days.", "answered"),
        ("42 days", "Take goods back for 42 days.", "clarification"),
        ("", "Take goods back for as long as rivals do.", "answered"),
    ] {
        let scenario = Scenario::agreeing().with(|s| {
            for agent in ["solver", "critic", "verifier"] {
                let report = &mut s.reports[format!("r1/{agent}")];
                let units = report["units"].as_array_mut().unwrap();
                let last = units.last_mut().unwrap();
                last["text"] = json!("Thirty days are usual, which is 30 days of risk.");
                last["tags"] = json!(["key", "given"]);
            }
        });
        let provider = MockProvider::playing(scenario).await;
        let draft = synthesis(text, |synthesis| {
            synthesis["meta"]["finalAnswer"] = json!(answer);
            synthesis["meta"]["tldr"] = json!([text]);
        });
        provider.reply_with("synthesis*", draft);
        let app = TestApp::start(&provider).await;
        let got = app
            .ask("audit", "How long should a shop take goods back?")
            .await;
        assert_eq!(got.outcome, outcome, "{answer}: {}", got.text());
    }
}
