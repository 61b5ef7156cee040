//! The strategy `escalate`: the solver first, and the others only if its report is not clearly VALID.

use conclave::journal::{Event, SolverJudged};
use serde_json::{Value, json};

use crate::support::{Fault, Got, MockProvider, Scenario, Setup, TestApp, chat, sent};

fn setup() -> Setup {
    Setup::default().env("DECISION_STRATEGY", "escalate")
}

fn judged(got: &Got) -> Option<&SolverJudged> {
    got.events().find_map(|event| match event {
        Event::SolverJudged(judged) => Some(&**judged),
        _ => None,
    })
}

/// Returns the steps of the run's calls, in the order of their intents.
fn calls(got: &Got) -> Vec<&str> {
    let sent = got.events().filter_map(|event| match event {
        Event::CallSent(sent) => Some(sent.call.as_str()),
        _ => None,
    });
    sent.collect()
}

const ALONE: [&str; 4] = ["plan", "r1/solver", "cross-check/solver", "synthesis"];
const ESCALATED: [&str; 7] = [
    "plan",
    "r1/solver",
    "cross-check/solver",
    "r1/critic",
    "r1/verifier",
    "cross-check",
    "synthesis",
];

async fn ask(scenario: &Scenario, setup: Setup) -> Got {
    let provider = MockProvider::playing(scenario.clone()).await;
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask("ask", &scenario.message).await;
    assert_eq!(provider.complaints(), Vec::<String>::new());
    got
}

#[tokio::test]
async fn a_clearly_valid_report_of_the_solver_is_enough() {
    let scenario = Scenario::agreeing();
    let whole = ask(&scenario, Setup::default()).await;
    let got = ask(&scenario, setup()).await;
    assert_eq!(got.outcome, "answered");
    assert_eq!(calls(&got), ALONE);
    assert_eq!(judged(&got).unwrap().others, []);
    assert!(got.c_final() >= 0.7 && got.c_final() <= whole.c_final());
    assert_eq!(got.body["meta"]["usedAgents"], json!(["solver"]));
    assert!(got.text().contains("one view"), "{}", got.text());
    let cost = |got: &Got| got.body["meta"]["budget"]["estimatedUsd"].as_f64().unwrap();
    assert!(cost(&got) < cost(&whole));
}

#[tokio::test]
async fn a_report_that_does_not_hold_wakes_the_others_and_is_not_bought_again() {
    for holds in ["no", "unknown"] {
        let scenario = Scenario::agreeing();
        let provider = MockProvider::playing(scenario.clone()).await;
        let of_scenario = scenario.clone();
        provider.reply_by("cross-check/solver", move |call| {
            let mut reply = of_scenario.reply("cross-check", &call.text()).unwrap();
            for claim in reply["claims"].as_array_mut().unwrap() {
                claim["holds"] = json!(holds);
            }
            reply
        });
        let app = TestApp::with(&provider, setup()).await;
        let got = app.ask("ask", &scenario.message).await;
        assert_eq!(calls(&got), ESCALATED, "{holds}");
        assert_eq!(got.outcome, "answered", "the whole committee agrees");
        assert_eq!(judged(&got).unwrap().others.len(), 2);
    }
}

#[tokio::test]
async fn without_the_solver_the_others_answer() {
    let scenario = Scenario::agreeing();
    let provider = MockProvider::playing(scenario.clone()).await;
    provider.on("r1/solver*", Fault::Status(400));
    let app = TestApp::with(&provider, setup()).await;
    let got = app.ask("ask", &scenario.message).await;
    assert!(judged(&got).unwrap().why.contains("there is none"));
    assert!(calls(&got).contains(&"r1/critic"), "{:?}", calls(&got));
}

#[tokio::test]
async fn a_request_for_a_new_answer_asks_the_solver_first_too() {
    let scenario = Scenario::agreeing();
    let provider = MockProvider::playing(scenario.clone()).await;
    let app = TestApp::with(&provider, setup()).await;
    let got = app.ask("ask", &format!("new: {}", scenario.message)).await;
    assert_eq!(calls(&got), ALONE);
}

#[tokio::test]
async fn a_grave_request_asks_all_at_once() {
    let scenario = Scenario::agreeing();
    let provider = MockProvider::playing(scenario.clone()).await;
    let app = TestApp::with(&provider, setup()).await;
    let asked = |salience: Value| {
        let mut body = chat("ask", &scenario.message);
        body["salience"] = salience;
        body
    };
    let grave = app.reply(app.post(&asked(json!({ "gravity": 0.5 })))).await;
    assert!(judged(&grave).is_none());
    assert!(calls(&grave).contains(&"r1/critic"));
    let slight = app
        .reply(app.post(&asked(json!({ "gravity": 0.4, "urgency": 1 }))))
        .await;
    assert_eq!(calls(&slight), ALONE);
    let response = sent(app.post(&asked(json!({ "gravity": 1.5 })))).await;
    assert_eq!(response.status(), 400);
    let problem = response.text().await.unwrap();
    assert!(problem.contains("/salience/gravity"), "{problem}");
    assert!(problem.contains("is more than 1"), "{problem}");
}

#[tokio::test]
async fn audit_and_deep_always_ask_the_whole_committee() {
    let scenario = Scenario::agreeing();
    let provider = MockProvider::playing(scenario.clone()).await;
    let app = TestApp::with(&provider, setup()).await;
    for mode in ["audit", "deep"] {
        let got = app.ask(mode, &scenario.message).await;
        assert!(
            judged(&got).is_none() && calls(&got).contains(&"r1/critic"),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn a_small_cap_keeps_its_room_for_the_others() {
    let scenario = Scenario::agreeing();
    for cap in ["0.04", "0.05", "0.08"] {
        let got = ask(&scenario, setup().env("NORMAL_MAX_USD", cap)).await;
        let spent = got.body["meta"]["budget"]["estimatedUsd"].as_f64().unwrap();
        assert!(spent <= cap.parse().unwrap(), "{cap}");
    }
}

#[tokio::test]
async fn after_a_solver_that_cost_much_the_critic_is_left_out_before_the_verifier() {
    let scenario = Scenario::agreeing();
    let mut called = vec![];
    for mills in 39..=51 {
        let provider = MockProvider::playing(scenario.clone()).await;
        provider.on("r1/solver*", Fault::OutputSpentOnThinking);
        let setup = setup().env("NORMAL_MAX_USD", format!("0.{mills:03}"));
        let app = TestApp::with(&provider, setup).await;
        let body = chat("ask", &scenario.message);
        sent(app.post(&body)).await;
        let others = ["r1/critic", "r1/verifier"].map(|step| provider.count_step(step));
        called.push(others);
    }
    assert!(!called.contains(&[1, 0]), "{called:?}");
    assert!(
        called.contains(&[0, 1]) && called.contains(&[1, 1]),
        "{called:?}"
    );
}
