//! Tests what rounds may cost and how long agents may be added to the first one.

use std::time::Duration;

use conclave::domain::Role;
use conclave::journal::{AgentOutcome, CheckScope, Event, Trimmed};
use serde_json::json;

use crate::cross_check::{check_otherwise, run};
use crate::support::{Fault, Got, MockProvider, Scenario, Setup, TestApp};

fn fits(got: &Got) -> Vec<&Trimmed> {
    got.events()
        .filter_map(|event| match event {
            Event::Trimmed(trimmed) => Some(trimmed),
            _ => None,
        })
        .collect()
}

/// Returns the output limit of the synthesis as it was fitted, and as it was asked for.
fn synthesis_limits(got: &Got) -> Option<(u32, u32)> {
    let fitted = fits(got).last()?.max_tokens.clone();
    let (_, fitted) = fitted.into_iter().find(|(role, _)| *role == Role::Master)?;
    let asked = got.events().find_map(|event| match event {
        Event::CallSent(sent) if sent.call == "synthesis" => Some(sent.max_tokens),
        _ => None,
    });
    Some((fitted, asked?))
}

#[tokio::test]
async fn a_hung_agent_leaves_time_for_a_cross_check_that_fits_only_later() {
    let provider = MockProvider::start().await;
    let deadlines = json!({ "connect": 1, "call": 12, "ask": 12, "audit": 12, "deep": 12 });
    let setup = Setup::default()
        .set("/policy/deadlines", deadlines)
        .set("/policy/normalMaxUsd", json!(0.16))
        .set("/models/roles/verifier/model", json!("EDITOR_MODEL"))
        .env("EDITOR_MODEL", "claude-opus-5-5");
    let app = TestApp::with(&provider, setup).await;
    // The first run compiles the patterns, which takes about as long as the check has here.
    app.ask("audit", &Scenario::agreeing().message).await;
    provider.on("r1/solver", Fault::Hang(Duration::from_secs(30)));
    let got = app.ask("audit", &Scenario::agreeing().message).await;
    let checks = fits(&got).into_iter().map(|fit| fit.cross_check.is_some());
    assert_eq!(checks.collect::<Vec<_>>(), [false, true]);
    let checked = got.events().find_map(|event| match event {
        Event::CrossChecked(checked) => Some(checked),
        _ => None,
    });
    assert_eq!(checked.unwrap().passes.len(), 1, "there was time for it");
}

#[tokio::test]
async fn a_report_in_a_later_round_takes_no_money_from_the_synthesis() {
    let scenario = Scenario::agreeing().with(|s| s.plan["rounds"] = json!(2));
    let mut long = scenario.report("r1/critic");
    long["reasoning"] = json!("Pressure, salt and altitude were weighed once more. ".repeat(290));
    let (mut reported, mut skipped) = (0, 0);
    for mills in (66..=80).step_by(2) {
        let provider = MockProvider::playing(scenario.clone()).await;
        provider.on("r1/critic", Fault::Refusal);
        provider.reply_with("r2/critic", long.clone());
        // All others cost what was reserved for them.
        for (step, tokens) in [("plan", 700), ("r1/solver", 1600), ("r1/verifier", 1600)] {
            provider.on(step, Fault::Usage(Some(tokens)));
        }
        let setup = Setup::default()
            .set("/models/roles/critic/maxTokens", json!(4000))
            .env("NORMAL_MAX_USD", format!("0.{mills:03}"));
        let app = TestApp::with(&provider, setup).await;
        let got = app.ask("audit", &scenario.message).await;
        if provider.count_step("r2/critic") == 0 {
            let why = got.events().find_map(|event| match event {
                Event::RoundSkipped(skipped) => Some(skipped.why.to_string()),
                _ => None,
            });
            assert!(why.as_ref().unwrap().starts_with("it may cost "), "{why:?}");
            skipped += 1;
            continue;
        }
        reported += 1;
        let (fitted, asked) = synthesis_limits(&got).unwrap();
        assert!(
            asked >= fitted,
            "{asked} of {fitted} tokens at 0.{mills:03}"
        );
    }
    assert!(reported > 3 && skipped > 0, "{reported}, {skipped}");
}

#[tokio::test]
async fn no_agent_is_added_without_time_for_its_report_and_the_cross_check_is_fitted_again() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_millis(3700)));
    let deadlines = json!({ "connect": 2, "call": 10, "ask": 10, "audit": 10, "deep": 10 });
    let setup = Setup::default().set("/policy/deadlines", deadlines);
    let app = TestApp::with(&provider, setup).await;
    let question = "The log of the last month, line by line: is there a fault in it?";
    let lines = "2026-11-02 07:00 supply 70.1 C return 44.0 C flow 11.0 m3/h\n".repeat(430);
    let got = app.ask("audit", &format!("{question}\n{lines}")).await;
    let outcomes = got.events().filter_map(|event| match event {
        Event::AgentFinished(finished) => Some(&finished.outcome),
        _ => None,
    });
    let outcomes: Vec<&AgentOutcome> = outcomes.collect();
    assert!(outcomes.iter().all(|o| o.is_answered()), "{outcomes:?}");
    let fits = fits(&got);
    assert!(fits.last().unwrap().agents.len() < 3, "{fits:?}");
    let checked = fits.last().unwrap().cross_check;
    assert_eq!(checked.map(|size| size.scope), Some(CheckScope::Key));
    assert!(got.text().contains("did not run: the cap has no room"));
}

#[tokio::test]
async fn an_agent_whose_claim_was_refuted_does_not_get_rid_of_the_finding_by_a_new_report() {
    let scenario = Scenario::howto().with(|scenario| scenario.plan["rounds"] = json!(2));
    let (got, provider) = run(scenario.clone(), "audit", Setup::default(), |provider| {
        check_otherwise(provider, &scenario, "cross-check", |reply| {
            for claim in reply["claims"].as_array_mut().unwrap() {
                claim["supportedBy"] = json!([]);
                claim["contradictedBy"] = json!([]);
                claim["holds"] = json!("no");
                claim["by"] = json!("source");
                claim["evidence"] = json!("The manual says the reverse.");
            }
        });
    })
    .await;
    let valid = &got.body["meta"]["invalidation"]["valid"];
    assert!(valid.as_array().unwrap().len() < 3, "{valid}");
    assert_eq!(provider.count_step("r2/*"), 0);
    assert_eq!(got.outcome, "clarification", "{}", got.text());
}
