//! Tests the first round that begins before the plan (`policy.speculate`).

use std::time::Duration;

use conclave::domain::{Agent, Usd};
use conclave::journal::{CallResult, Event};
use serde_json::{Value, json};

use crate::support::{Fault, Got, MockProvider, QUESTION, Scenario, Setup, TestApp};

/// Returns the place of the first event of which this holds.
fn place(got: &Got, wanted: impl Fn(&Event) -> bool) -> usize {
    got.events().position(wanted).unwrap()
}

fn is_sent(event: &Event, call: &str) -> bool {
    matches!(event, Event::CallSent(sent) if sent.call == call)
}

fn speculating(modes: Value) -> Setup {
    Setup::default().set("/policy/speculate", modes)
}

/// Asks in `mode`. Returns true if the solver was asked before there was a plan.
async fn is_ahead(mode: &str, speculate: Option<Value>) -> bool {
    let provider = MockProvider::start().await;
    let setup = speculate.map_or_else(Setup::default, speculating);
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask(mode, QUESTION).await;
    assert_eq!(got.outcome, "answered", "{}", got.text());
    let planned = place(&got, |event| matches!(event, Event::Planned(_)));
    place(&got, |event| is_sent(event, "r1/solver")) < planned
}

#[tokio::test]
async fn the_modes_are_those_of_the_policy() {
    assert!(is_ahead("ask", None).await);
    assert!(!is_ahead("audit", None).await);
    assert!(!is_ahead("ask", Some(json!(false))).await);
    assert!(is_ahead("audit", Some(json!(true))).await);
    assert!(is_ahead("audit", Some(json!(["deep", "audit"]))).await);
    assert!(!is_ahead("ask", Some(json!(["deep", "audit"]))).await);
}

#[tokio::test]
async fn an_agent_that_the_plan_adds_is_asked_while_the_core_answers() {
    let scenario = Scenario::agreeing().with(|it| {
        it.plan["agentsToRun"] = json!(["solver", "critic", "verifier", "implementer"]);
    });
    let provider = MockProvider::playing(scenario).await;
    provider.on("r1/solver", Fault::Latency(Duration::from_secs(1)));
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    let finished =
        |event: &Event| matches!(event, Event::AgentFinished(it) if it.agent == Agent::Solver);
    let added = place(&got, |event| is_sent(event, "r1/implementer"));
    assert!(added < place(&got, finished), "the core is not waited for");
    let used = &got.body["meta"]["usedAgents"];
    assert_eq!(
        used,
        &json!(["solver", "critic", "verifier", "implementer"])
    );
    assert_eq!(provider.calls().len(), 7, "none is asked twice");
}

#[tokio::test]
async fn the_question_of_the_plan_does_not_wait_for_an_agent_that_hangs() {
    let scenario = Scenario::vague().with(|it| it.reports = Scenario::agreeing().reports);
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    provider.on("r1/critic", Fault::Hang(Duration::from_secs(60)));
    let deadlines = json!({ "connect": 2, "call": 11, "ask": 12, "audit": 12, "deep": 12 });
    let setup = Setup::default().set("/policy/deadlines", deadlines);
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask("ask", &message).await;
    assert_eq!(got.outcome, "clarification");
    let reserved = got.events().find_map(|event| match event {
        Event::CallSent(sent) if sent.call == "r1/critic" => Some(sent.reserved_amount()),
        _ => None,
    });
    let settled = got.events().find_map(|event| match event {
        Event::CallSettled(settled) if settled.call == "r1/critic" => Some(settled),
        _ => None,
    });
    let settled = settled.unwrap();
    assert_eq!(settled.result, CallResult::InDoubt, "it was given up");
    assert_eq!(Some(settled.cost), reserved, "what it may cost is kept");
    let told = got.body["meta"]["budget"]["estimatedUsd"].as_f64().unwrap();
    let spent = got.events().find_map(|event| match event {
        Event::Finished(finished) => Some(finished.spent.dollars()),
        _ => None,
    });
    assert!((told - spent.unwrap()).abs() < 1e-9, "{told} {spent:?}");
}

#[tokio::test]
async fn what_was_asked_in_vain_is_said_and_not_reused() {
    let scenario = Scenario::vague().with(|it| it.reports = Scenario::agreeing().reports);
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::with(&provider, speculating(json!(true))).await;
    let got = app.ask("audit", &message).await;
    assert_eq!(
        (got.outcome.as_str(), got.c_final()),
        ("clarification", 0.0)
    );
    assert_eq!(provider.calls().len(), 4);
    let rounds = got.body["audit"]["rounds"].as_array().unwrap();
    let why = rounds[0]["why"].as_str().unwrap();
    let vain = "the core answers while the plan is made; not used, because the master asks the user first: its calls cost ";
    let cost = why.strip_prefix(vain).unwrap();
    let of_agents = |event: &Event| match event {
        Event::CallSettled(settled) if settled.call.starts_with("r1/") => Some(settled.cost),
        _ => None,
    };
    let sum: Usd = got.events().filter_map(of_agents).sum();
    assert_eq!((cost, sum > Usd::ZERO), (sum.to_string().as_str(), true));
    let metrics = app.request("GET", "/metrics");
    let metrics = metrics.send().await.unwrap().text().await.unwrap();
    assert!(
        metrics.contains("conclave_speculations_total{outcome=\"wasted\"} 1"),
        "{metrics}"
    );
    provider.state().calls.clear();
    let answer = app.ask("audit", "B").await;
    assert_eq!(answer.outcome, "answered", "{}", answer.text());
    assert_eq!(provider.steps_of(&answer.run.to_string())["r1/solver"], 1);
}

#[tokio::test]
async fn without_money_for_both_the_plan_is_made_first() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set("/policy/normalMaxUsd", json!(0.055));
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask("ask", QUESTION).await;
    assert_eq!(got.outcome, "answered", "{}", got.text());
    let planned = place(&got, |event| matches!(event, Event::Planned(_)));
    assert!(place(&got, |event| is_sent(event, "r1/solver")) > planned);
}

#[tokio::test]
async fn a_plan_that_fails_leaves_the_reports_of_use() {
    let provider = MockProvider::start().await;
    provider.on("plan", Fault::Malformed);
    provider.on("plan/repair", Fault::Malformed);
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    assert_eq!(got.outcome, "answered", "{}", got.text());
    assert_eq!(provider.steps_of(&got.run.to_string())["r1/solver"], 1);
}
