//! What a reply is when the master's draft is not what it should be: mended where it can be, else the best single report,
//! and the audit says so.

use serde_json::{Value, json};

use crate::support::{Fault, MockProvider, Scenario, TestApp};

const PLAN: &str = "1. Install Docker.\n2. Configure the firewall.\n3. Deploy the container.";

const ALONE: &str = "no synthesis: this is the best single report";

/// The boiling point with another main answer, and whatever else is changed.
fn synthesis(main: &str, change: impl Fn(&mut Value)) -> Value {
    let mut synthesis = Scenario::agreeing().synthesis();
    synthesis["replyMarkdown"] = json!(main);
    change(&mut synthesis);
    synthesis
}

async fn staged(synthesis: Value) -> (MockProvider, TestApp) {
    let provider = MockProvider::start().await;
    provider.reply_with("synthesis*", synthesis);
    let app = TestApp::start(&provider).await;
    (provider, app)
}

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

#[tokio::test]
async fn a_plan_whose_figures_do_not_fit_has_an_estimate_whatever_happens() {
    let two = json!([{ "step": "a", "o": 1, "m": 2, "p": 3 }, { "step": "b", "o": 1, "m": 2, "p": 3 }]);
    let partial = json!({ "planUnit": "minutes", "planSteps": two, "planAssumptions": [], "planRisks": [],
                          "planConfidence": 0.3 });
    let draft = synthesis(PLAN, |synthesis| synthesis["meta"]["planSteps"] = two.clone());
    for what in ["fails", "is garbage", "gives two again"] {
        let (provider, app) = staged(draft.clone()).await;
        match what {
            "fails" => drop(provider.on("estimate*", Fault::Status(500))),
            "is garbage" => drop(provider.on("estimate*", Fault::Malformed)),
            _ => drop(provider.reply_with("estimate*", partial.clone())),
        }
        let got = app.ask("audit", QUESTION).await;
        let steps = got.body["audit"]["executionEstimate"]["steps"].as_array().unwrap();
        let likely: Vec<f64> = steps.iter().map(|step| step["M"].as_f64().unwrap()).collect();
        assert_eq!(likely, [2.0, 2.0, 15.0], "the estimate call {what}");
        assert!(got.text().contains("No model gave figures for step 3"), "{}", got.text());
    }
}

#[tokio::test]
async fn the_audit_has_figures_in_full_and_the_text_two_decimals() {
    let steps = json!([{ "step": "a", "o": 0.125, "m": 0.25, "p": 0.5 }, { "step": "b", "o": 0.125, "m": 0.25, "p": 0.5 },
                       { "step": "c", "o": 0.125, "m": 0.25, "p": 0.5 }]);
    let draft = synthesis(PLAN, |synthesis| synthesis["meta"]["planSteps"] = steps.clone());
    let (_provider, app) = staged(draft).await;
    let got = app.ask("audit", QUESTION).await;
    let estimate = &got.body["audit"]["executionEstimate"];
    assert_eq!(estimate["steps"][0]["O"], 0.125);
    assert_eq!(estimate["steps"][0]["E"].as_f64(), Some(1.625 / 6.0));
    assert_eq!((&estimate["total"]["O"], estimate["total"]["E"].as_f64()), (&json!(0.375), Some(4.875 / 6.0)));
    assert!(got.text().contains("O_total=0.38, M_total=0.75, P_total=1.5, E_total=0.81"), "{}", got.text());
    assert!(!got.body["audit"]["synthesis"].to_string().contains("put in order"));
}

#[tokio::test]
async fn every_assumption_has_a_handle_and_what_is_left_out_is_counted() {
    let (_provider, app) = staged(synthesis("100 °C.", |synthesis| {
        let stated: Vec<Value> =
            (1..=30).map(|n| json!({ "text": format!("Point {n} holds of matter{n}."), "kind": "guess" })).collect();
        synthesis["meta"]["assumptions"] = json!(stated);
    }))
    .await;
    let got = app.ask("ask", QUESTION).await;
    assert!(got.text().contains("- A24 (guess): Point 24 holds"), "{}", got.text());
    assert!(got.text().contains("- 6 more were stated and are left out here\n"), "{}", got.text());
    let corrected = app.ask("ask", "A10 is wrong: it is 7").await;
    let continued = corrected.events().find_map(|event| match event {
        conclave::journal::Event::Accepted(accepted) => accepted.continues.clone(),
        _ => None,
    });
    let by = serde_json::to_value(continued.unwrap().by).unwrap();
    assert_eq!((&by["handle"], &by["wrong"]), (&json!("A10"), &json!("Point 10 holds of matter10.")));
}

#[tokio::test]
async fn a_blank_main_answer_gives_way_to_the_best_report() {
    for blank in ["", "  \n\n "] {
        let (provider, app) = staged(synthesis(blank, |_| {})).await;
        let got = app.ask("audit", QUESTION).await;
        assert!(got.text().contains(ALONE), "{}", got.text());
        assert_eq!(provider.count_step("synthesis/repair"), 1);
        assert_eq!(got.body["audit"]["synthesis"]["obtained"], "no synthesis");
    }
}

#[tokio::test]
async fn an_agent_that_a_plan_names_twice_runs_once_and_the_audit_says_so() {
    let names = ["solver", "Solver ", "critic", "verifier", "critic", "editor", "editor"];
    let scenario = Scenario::agreeing().agents(&names);
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    assert_eq!(got.body["audit"]["plan"]["agentsToRun"], json!(["solver", "critic", "verifier", "editor"]));
    let told = got.body["audit"]["planCorrections"].as_array().unwrap();
    let twice: Vec<&str> = told.iter().filter_map(Value::as_str).filter(|c| c.contains("more than once")).collect();
    assert_eq!(twice.len(), 3, "{told:?}");
    assert!(twice[0].starts_with("solver "), "{twice:?}");
}

#[tokio::test]
async fn a_plans_question_has_lettered_options_in_the_audit_and_single_letters_in_the_text() {
    let mut plan = Scenario::agreeing().plan();
    plan["needsClarification"] = json!(true);
    plan["clarificationQuestion"] = json!({
        "question": "I have to know. 哪一天？And why? Also how",
        "options": ["A Foo？", "B. Bar", "Baz"],
    });
    let provider = MockProvider::start().await;
    provider.reply_with("plan", plan);
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    assert_eq!(got.text(), "哪一天?\n\nA) Foo\nB) Bar\nC) Baz");
    let asked = &got.body["audit"]["plan"]["clarificationQuestion"];
    assert_eq!(asked["options"], json!(["A Foo", "B Bar", "C Baz"]));
    let chosen = app.ask("ask", "I'd go with B").await;
    let story: String = chosen.entries[0].body.clone();
    assert!(story.contains(r#""answer":"Bar","option":"B""#), "{story}");
}
