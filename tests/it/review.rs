//! Peer review and revision in later rounds, over the calls that are really made.

use conclave::domain::{Finding, Review};
use conclave::journal::{AgentFinished, AgentOutcome, Event, Reviewed};
use serde_json::{Value, json};

use crate::support::{Fault, Got, MockProvider, Scenario, Setup, TestApp};

const NAMES: [&str; 3] = ["solver", "critic", "verifier"];

fn reviewed(got: &Got) -> &Reviewed {
    got.events().find_map(|e| if let Event::Reviewed(r) = e { Some(&**r) } else { None }).expect("a review")
}

fn second<'a>(got: &'a Got, agent: &str) -> &'a AgentFinished {
    let of = |e: &'a Event| match e {
        Event::AgentFinished(f) if f.round == 2 && f.agent.as_str() == agent => Some(&**f),
        _ => None,
    };
    got.events().find_map(of).expect("a second report")
}

fn answer(finished: &AgentFinished) -> &str {
    let AgentOutcome::Answered { report, .. } = &finished.outcome else { panic!("{finished:?}") };
    &report.answer_summary[0]
}

/// What stands between CONTESTED and the end of its block.
fn contested(prompt: &str) -> Vec<String> {
    let block = prompt.split(" CONTESTED\n").nth(1).unwrap_or_default();
    block.lines().take_while(|line| !line.ends_with(">>>")).map(str::to_owned).collect()
}

async fn settled(mode: &str, setup: Setup, spoil: impl Fn(&MockProvider)) -> (Got, MockProvider) {
    let scenario = Scenario::converging();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    spoil(&provider);
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask(mode, &message).await;
    assert_eq!(provider.complaints(), Vec::<String>::new());
    (got, provider)
}

#[tokio::test]
async fn in_deep_everybody_reviews_the_contested_claims_twice_without_names_in_swapped_order() {
    let (got, provider) = settled("deep", Setup::default(), |_| {}).await;
    assert_eq!(got.outcome, "answered", "{}", got.text());
    let mut orders = vec![];
    for name in NAMES {
        let once = provider.calls_of(&format!("r2/review/{name}"));
        let twice = provider.calls_of(&format!("r2/review/{name}/swapped"));
        let [once, twice] = [&once[..], &twice[..]].map(|calls| calls[0].prompt());
        for prompt in [&once, &twice] {
            let shown = contested(prompt).join("\n");
            assert!(NAMES.iter().all(|name| !shown.contains(name)), "{shown}");
            assert!(!prompt.contains("VALID") && !prompt.to_lowercase().contains("cred "), "{prompt}");
        }
        let claims = |prompt: &str| -> Vec<String> {
            contested(prompt).into_iter().filter(|line| line.starts_with('C')).collect()
        };
        let positions = |prompt: &str| -> Vec<String> {
            let own = contested(prompt).into_iter().filter(|line| line.starts_with("  "));
            own.map(|line| line.split_once(": ").unwrap().1.to_owned()).collect()
        };
        let reversed = |mut lines: Vec<String>| {
            lines.reverse();
            lines
        };
        assert!(claims(&once).len() >= 2, "{once}");
        assert_eq!(claims(&twice), reversed(claims(&once)));
        assert_eq!(positions(&twice), reversed(positions(&once)));
        orders.push(positions(&once));
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "each reviewer has an order of his own: {orders:?}");

    let Reviewed { reviews, notes, .. } = reviewed(&got);
    assert_eq!(notes, &Vec::<String>::new());
    let of_critic: Vec<&Review> = reviews.iter().filter(|r| r.on_final_answer && r.counts()).collect();
    assert!(of_critic.iter().all(|r| r.is_consistent() && r.swapped.is_some()), "{of_critic:?}");
    let found = |holder: &str| {
        let about: Vec<Finding> =
            of_critic.iter().filter(|r| r.holders.iter().any(|h| h == holder)).map(|r| r.finding).collect();
        about
    };
    assert_eq!(found("critic"), [Finding::Fails, Finding::Fails]);
    assert_eq!(found("solver"), [Finding::Holds]);
}

#[tokio::test]
async fn a_reviewer_s_reason_reaches_those_who_revise_and_a_revision_names_its_reason() {
    let (got, provider) = settled("deep", Setup::default(), |_| {}).await;
    let prompt = provider.calls_of("r2/critic")[0].prompt();
    let lines = contested(&prompt);
    assert!(lines.iter().any(|line| line.starts_with("    - checked: Redone")), "{lines:?}");
    let revision = second(&got, "critic").revision.clone().unwrap();
    assert!(revision.reasons.iter().any(|r| r.topic == "final answer" && r.reason.contains("31 + 30 = 61")));
    assert!(answer(second(&got, "critic")).starts_with("61"));
    assert_eq!(second(&got, "solver").revision.as_ref().unwrap().reasons, vec![]);
    let round = &got.body["audit"]["rounds"][1];
    assert_eq!(round["reviews"].as_array().unwrap().len(), reviewed(&got).reviews.len());
    let revised: Vec<&Value> = round["revisions"].as_array().unwrap().iter().map(|r| &r["agent"]).collect();
    assert_eq!(revised, ["solver", "critic", "verifier"]);
    assert!(got.text().contains("  - critic revised final answer: March has 31 days"), "{}", got.text());
    assert!(got.text().contains("fails (twice)"), "{}", got.text());
}

#[tokio::test]
async fn in_audit_there_is_one_pass() {
    let (got, provider) = settled("audit", Setup::default().env("NORMAL_MAX_USD", "0.20"), |_| {}).await;
    assert_eq!(provider.count_step("r2/review/*"), 3, "{}", got.body["audit"]["rounds"]);
    assert!(reviewed(&got).reviews.iter().all(|r| r.swapped.is_none()));
}

#[tokio::test]
async fn who_falls_in_with_the_others_without_a_reason_keeps_his_report() {
    let mut conforming = Scenario::converging().report("r2/critic");
    let kept = |revises: Value| {
        conforming["revises"] = revises;
        let reply = conforming.clone();
        async move {
            let (got, _) =
                settled("deep", Setup::default(), |p| p.reply_with("r2/critic", reply.clone()).times(9)).await;
            let finished = second(&got, "critic");
            assert!(answer(finished).starts_with("60"), "{finished:?}");
            let revision = finished.revision.clone().unwrap();
            assert!(revision.reasons.is_empty() && !revision.refused.is_empty(), "{revision:?}");
            assert!(got.body["audit"]["rounds"][1]["revisions"][1]["refused"][0].is_string());
        }
    };
    let mut kept = kept;
    kept(json!([])).await;
    kept(json!([{"claim": "C1", "reason": "The majority says 61."}])).await;
    kept(json!([{"claim": "C7", "reason": "March has 31 days, so 31 + 30 = 61."}])).await;
}

#[tokio::test]
async fn a_review_that_fails_costs_a_note_and_no_round() {
    let (got, _) = settled("deep", Setup::default(), |provider| {
        provider.on("r2/review/critic*", Fault::Malformed);
        provider.on("r2/review/solver/swapped*", Fault::Refusal);
    })
    .await;
    assert_eq!(got.outcome, "answered", "{}", got.text());
    let Reviewed { reviews, notes, .. } = reviewed(&got);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes.iter().any(|n| n == "critic did not review: malformed output"), "{notes:?}");
    assert!(notes.iter().any(|n| n == "solver reviewed once only: refused"), "{notes:?}");
    let by = |name: &str| reviews.iter().filter(|r| r.reviewer.as_str() == name).collect::<Vec<_>>();
    assert!(by("critic").is_empty());
    assert!(by("solver").iter().all(|r| r.swapped.is_none()) && by("verifier").iter().all(|r| r.swapped.is_some()));
}

#[tokio::test]
async fn where_the_cap_has_no_room_for_reviews_the_round_goes_without_them() {
    let mut least = None;
    for mills in [400, 350, 300, 270, 240, 210, 180, 160, 140] {
        let agents = ["SOLVER_MODEL", "CRITIC_MODEL", "VERIFIER_MODEL"];
        let setup = agents.into_iter().fold(Setup::default(), |setup, agent| setup.env(agent, "claude-sonnet-5-5"));
        let setup = setup.env("DEEP_MAX_USD", format!("0.{mills:03}"));
        let (got, provider) = settled("deep", setup, |_| {}).await;
        let budget = &got.body["meta"]["budget"];
        assert!(budget["estimatedUsd"].as_f64() <= budget["capUsd"].as_f64(), "{budget}");
        let Some(Event::Reviewed(reviewed)) = got.events().find(|e| matches!(e, Event::Reviewed(_))) else { continue };
        let calls = provider.count_step("r2/review/*");
        assert!(calls == 6 || !reviewed.notes.is_empty(), "{mills} mills: {calls} calls, {:?}", reviewed.notes);
        least = Some(least.unwrap_or(6usize).min(calls));
    }
    assert!(least.is_some_and(|calls| calls < 6), "some cap is too small for two passes");
}

#[tokio::test]
async fn peer_review_can_be_turned_off() {
    let off = json!({ "points": 0, "answer": 0 });
    let (got, provider) = settled("deep", Setup::default().set("/policy/review", off), |_| {}).await;
    assert_eq!(provider.count_step("r2/review/*"), 0);
    assert!(got.events().all(|e| !matches!(e, Event::Reviewed(_))));
    assert!(second(&got, "critic").revision.is_some(), "claims are revised all the same");
}
