//! Tests the scenarios that the mock plays.

use conclave::domain::{AgentReport, Clarification, Pert};
use serde_json::{Value, json};

use super::{messages, send_json, text_of};
use crate::support::{MockProvider, Scenario};

fn all() -> Vec<Scenario> {
    vec![
        Scenario::agreeing(),
        Scenario::howto(),
        Scenario::arithmetic(),
        Scenario::miscounted(),
        Scenario::disagreeing(),
        Scenario::vague(),
        Scenario::converging(),
    ]
}

/// Returns the mock's reply to a step whose request has this prompt.
async fn said(scenario: &Scenario, step: &str, prompt: &str) -> Value {
    let mock = MockProvider::playing(scenario.clone()).await;
    serde_json::from_str(&text_of(&send_json(&mock, step, &messages(prompt)).await)).unwrap()
}

#[test]
fn every_report_and_question_has_its_domain_type() {
    for scenario in all() {
        for step in [
            "r1/solver",
            "r1/critic",
            "r1/verifier",
            "r2/critic",
            "r3/editor",
        ] {
            let report: AgentReport = serde_json::from_value(scenario.report(step)).unwrap();
            assert!(
                step.ends_with(&report.agent)
                    && report.units.len() >= 2
                    && !report.failure_modes.is_empty()
            );
        }
        let question = scenario.question();
        let options: Vec<String> = serde_json::from_value(question["options"].clone()).unwrap();
        let clarification =
            Clarification::new(question["question"].as_str().unwrap(), &options).unwrap();
        assert!(scenario.options().is_empty() || scenario.options() == clarification.options);
    }
}

#[test]
fn every_synthesis_has_its_three_keys() {
    for scenario in all() {
        let synthesis = scenario.synthesis();
        let mut keys: Vec<&String> = synthesis.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["audit", "meta", "replyMarkdown"]);
        assert!(
            synthesis["replyMarkdown"]
                .as_str()
                .unwrap()
                .split_whitespace()
                .count()
                <= 250
        );
    }
}

#[test]
fn the_howto_claims_wrong_totals() {
    let synthesis = Scenario::howto().synthesis();
    let steps = synthesis["meta"]["planSteps"].as_array().unwrap();
    let sum = |key: &str| {
        steps
            .iter()
            .map(|step| step[key].as_f64().unwrap())
            .sum::<f64>()
    };
    let total = Pert::new(sum("o"), sum("m"), sum("p"));
    assert_eq!(
        (
            total.optimistic,
            total.likely,
            total.pessimistic,
            total.expected
        ),
        (15.0, 30.0, 75.0, 35.0)
    );
    assert!(
        synthesis["replyMarkdown"]
            .as_str()
            .unwrap()
            .contains("O 12, M 25, P 60 and E 28")
    );
    assert_eq!(
        Scenario::howto().without_figures().synthesis()["meta"]["planSteps"],
        json!([])
    );
    assert_eq!(
        Scenario::howto().estimate()["planSteps"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[tokio::test]
async fn the_chosen_option_settles_the_disagreement() {
    let scenario = Scenario::disagreeing();
    let first = |report: &Value| {
        report["answerSummary"][0]
            .as_str()
            .unwrap()
            .split(':')
            .next()
            .unwrap()
            .to_owned()
    };
    let asked = ["r1/solver", "r1/critic", "r1/verifier"].map(|step| first(&scenario.report(step)));
    assert_eq!(asked, ["42", "17", "99"]);
    let options = scenario.options();
    let plain = format!("{} The user has chosen: {}", scenario.message, options[1]);
    let quoted = format!(
        "{} A) {} B) {} C) {}\nThe answer: B",
        scenario.message, options[0], options[1], options[2]
    );
    for prompt in [plain, quoted] {
        assert_eq!(first(&said(&scenario, "r1/solver", &prompt).await), "17");
        assert_eq!(
            said(&scenario, "synthesis", &prompt).await["audit"]["conflictPenalty"],
            0.0
        );
    }
}

#[tokio::test]
async fn the_vague_plan_asks_until_the_user_has_answered() {
    let scenario = Scenario::vague();
    assert_eq!(scenario.plan()["needsClarification"], true);
    let answered = format!("Make it faster. Answer: {}", scenario.options()[2]);
    assert_eq!(
        said(&scenario, "plan", &answered).await["needsClarification"],
        false
    );
    assert!(
        said(&scenario, "synthesis", &answered).await["replyMarkdown"]
            .as_str()
            .unwrap()
            .contains("cache")
    );
}

#[test]
fn the_second_round_converges() {
    let scenario = Scenario::converging();
    let says =
        |step: &str| scenario.report(step)["answerSummary"][0].as_str().unwrap()[..2].to_owned();
    assert_eq!(
        ["r1/solver", "r1/critic", "r1/verifier"].map(says),
        ["61", "60", "61"]
    );
    let contested = |own: &str| {
        format!("<<<a CONTESTED\nC1: final answer\n  yours: {own}\n  A: 60\n  B: 61\na>>>")
    };
    let decides =
        |own: &str| scenario.reply_to("r2/resolve/critic", &contested(own))["decisions"][0].clone();
    assert_eq!(
        (&decides("60")["decision"], &decides("60")["to"]),
        (&json!("concede"), &json!("B"))
    );
    assert_eq!(decides("61")["decision"], "keep");
}

#[tokio::test]
async fn a_synthesis_cites_shown_units_and_justifies_quarantined_ones() {
    let scenario = Scenario::agreeing();
    let solver = scenario.report("r1/solver").to_string();
    let prompt = format!("solver (VALID): {solver}\ncritic (status QUARANTINE): ...");
    let audit = said(&scenario, "synthesis", &prompt).await["audit"].clone();
    assert_eq!(audit["unitsUsed"], json!(["solver:u1", "solver:u2"]));
    assert_eq!(audit["quarantineJustifications"][0]["agent"], "critic");
    assert_eq!(
        audit["quarantineJustifications"].as_array().unwrap().len(),
        1
    );
}
