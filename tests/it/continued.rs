//! Tests runs that continue another one: what their question means, and what they buy.

use std::collections::BTreeSet;
use std::sync::Arc;

use conclave::domain::Choice;
use conclave::journal::Event;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Fault, Got, MockProvider, Scenario, Setup, TINY_PNG, TestApp, chat, run_of};

/// A config under which no run is confident enough to answer at once.
fn unsure() -> Setup {
    Setup::default()
        .set("/policy/askUserThreshold", json!(0.98))
        .set("/policy/maxCoverageBonus", json!(0))
}

/// Asks a question of which nothing is contested, so that rules make the question of the gate.
async fn asked(provider: &MockProvider, setup: Setup) -> (TestApp, Got) {
    let message = Scenario::agreeing().message;
    let app = TestApp::with(provider, setup).await;
    let got = app.ask("audit", &message).await;
    assert_eq!(got.outcome, "clarification", "{}", got.text());
    (app, got)
}

fn choices(got: &Got) -> Option<[Choice; 3]> {
    got.events().find_map(|event| match event {
        Event::Synthesized(synthesized) => synthesized.question.choices,
        _ => None,
    })
}

/// Lets the master give no question that can be asked.
fn without_question(provider: &MockProvider) {
    provider.reply_with("question*", json!({ "question": "", "options": [] }));
}

const HOW_TO_GO_ON: Option<[Choice; 3]> = Some([Choice::BestAnswer, Choice::Deeper, Choice::Stop]);

#[tokio::test]
async fn rules_make_the_question_of_a_master_that_writes_plain_text() {
    let provider = MockProvider::playing(Scenario::agreeing()).await;
    let setup = unsure().set("/models/roles/master/output", json!("text"));
    let (app, got) = asked(&provider, setup).await;
    assert_eq!(choices(&got), HOW_TO_GO_ON, "{}", got.text());
    assert_eq!(provider.count_step("question"), 0);
    provider.state().calls.clear();
    let stopped = app.ask("audit", "C").await;
    assert_eq!(stopped.outcome, "answered");
    assert_eq!(provider.calls().len(), 0, "the user chose to stop");
}

#[tokio::test]
async fn an_image_that_comes_with_the_answer_is_seen() {
    for before in [0, 1] {
        let provider = MockProvider::playing(Scenario::agreeing().with(|scenario| {
            scenario.plan["agentsToRun"] = json!(["solver", "critic", "verifier", "visual"]);
        }))
        .await;
        let app = TestApp::with(&provider, unsure()).await;
        let with_image = |message: &str, images: usize| {
            let mut body = chat("audit", message);
            let image = json!({ "filename": "pot.png", "url": TINY_PNG });
            body["attachments"] = json!(vec![image; images]);
            body
        };
        let first = with_image(&Scenario::agreeing().message, before);
        assert_eq!(app.reply(app.post(&first)).await.outcome, "clarification");
        let second = with_image("This is the label of the pot.", 1);
        let got = app.reply(app.post(&second)).await;
        let calls = provider.calls_of("r1/visual");
        assert_eq!(calls.last().unwrap().images(), before + 1);
        assert_eq!(calls.len(), before + 1);
        let used = got.body["meta"]["usedAgents"].to_string();
        assert!(used.contains("visual"), "{used}");
    }
}

#[tokio::test]
async fn a_question_that_fits_any_request_is_not_asked_if_nothing_is_contested_either() {
    let provider = MockProvider::playing(Scenario::agreeing()).await;
    let options = [
        "A the short version",
        "B the long version",
        "C another angle",
    ];
    let generic = json!({ "question": "Which version", "options": options });
    provider.reply_with("question*", generic);
    let (_app, got) = asked(&provider, unsure()).await;
    assert_eq!(choices(&got), HOW_TO_GO_ON, "{}", got.text());
    let corrections = got.body["audit"]["synthesis"]["corrections"].to_string();
    assert!(
        corrections.contains("do not say what each would change"),
        "{corrections}"
    );
}

#[tokio::test]
async fn the_example_in_the_prompt_for_the_question_is_asked_as_it_is() {
    let prompt = include_str!("../../prompts/question.md");
    let example = prompt.split("battery last?\": ").nth(1).unwrap();
    let example: Value = serde_json::from_str(example.lines().next().unwrap()).unwrap();
    let provider = MockProvider::playing(Scenario::agreeing()).await;
    provider.reply_with("question*", example);
    let (_app, asked) = asked(&provider, unsure()).await;
    let question = "Which use should the figure be for?\n\nA) standby: the answer is the time";
    assert!(asked.text().starts_with(question), "{}", asked.text());
    assert_eq!(provider.count_step("*/repair"), 0);
}

#[tokio::test]
async fn only_those_are_asked_again_who_do_not_agree_with_the_chosen_option() {
    for (letter, agreeing, again) in [
        ("A", json!([["critic"], ["solver"], []]), vec!["solver"]),
        (
            "B",
            json!([["critic"], ["Solver ", "verifier"], []]),
            vec!["critic"],
        ),
        (
            "C",
            json!([["critic"], ["solver"], []]),
            vec!["critic", "solver"],
        ),
        // One agent is always asked.
        (
            "A",
            json!([["critic", "solver", "verifier"], [], []]),
            vec!["solver"],
        ),
    ] {
        let question = json!({
            "question": "Which speed should the answer use",
            "options": ["A the nominal speed: 95 km", "B the measured speed: 90 km", "C none: no figure"],
            "agreeing": agreeing,
        });
        let provider = MockProvider::playing(Scenario::agreeing()).await;
        provider.reply_with("question*", question);
        let (app, _) = asked(&provider, unsure()).await;
        let got = app.ask("audit", letter).await;
        let steps = provider.steps_of(&got.run.to_string());
        let reports = steps.keys().filter_map(|step| step.strip_prefix("r1/"));
        assert_eq!(reports.collect::<Vec<_>>(), again, "{letter}: {agreeing}");
    }
}

#[tokio::test]
async fn the_best_answer_costs_one_synthesis_and_no_second_cross_check() {
    let scenario = Scenario::agreeing().with(|s| s.plan["rounds"] = json!(2));
    let provider = MockProvider::playing(scenario).await;
    without_question(&provider);
    let (app, got) = asked(&provider, unsure()).await;
    assert_eq!(choices(&got), HOW_TO_GO_ON);
    let best = app.ask("audit", "A").await;
    let steps = provider.steps_of(&best.run.to_string());
    assert_eq!(steps.keys().collect::<Vec<_>>(), ["synthesis"]);
    assert_eq!(best.body["audit"]["plan"]["rounds"], 1);
    let verdicts = |got: &Got| got.body["audit"]["crossCheck"]["passes"].clone();
    assert_eq!(verdicts(&best), verdicts(&got));
    assert!(
        !best.text().contains("not cross-checked"),
        "{}",
        best.text()
    );
}

#[tokio::test]
async fn what_the_user_adds_is_cross_checked_although_the_reports_stay_the_same() {
    let provider = MockProvider::playing(Scenario::agreeing()).await;
    without_question(&provider);
    let (app, got) = asked(&provider, unsure()).await;
    assert_eq!(choices(&got), HOW_TO_GO_ON);
    let deeper = app.ask("audit", "B").await;
    let steps = provider.steps_of(&deeper.run.to_string());
    assert!(steps.contains_key("cross-check"), "{steps:?}");
}

#[tokio::test]
async fn the_best_answer_says_again_which_agent_failed() {
    let provider = MockProvider::playing(Scenario::agreeing()).await;
    provider.on("r1/critic", Fault::Refusal);
    without_question(&provider);
    let (app, _) = asked(&provider, unsure()).await;
    let best = app.ask("audit", "A").await;
    assert_eq!(
        best.body["meta"]["usedAgents"],
        json!(["solver", "critic", "verifier"])
    );
    let text = best.text();
    assert!(
        text.contains("critic: no usable output") && !text.contains("did not run"),
        "{text}"
    );
    assert_eq!(provider.count_step("r1/critic"), 1);
}

#[tokio::test]
async fn an_agent_whose_report_is_reused_is_not_asked_for_those_that_the_cap_leaves_out() {
    let scenario = Scenario::disagreeing();
    let mut left_out = BTreeSet::new();
    for mills in 33..=41 {
        let provider = MockProvider::playing(scenario.clone()).await;
        let folder = Arc::new(TempDir::new().unwrap());
        let first = TestApp::on(&provider, Setup::default(), Arc::clone(&folder)).await;
        let asked = first.ask("audit", &scenario.message).await;
        assert_eq!(asked.outcome, "clarification");
        drop(first);
        let cap = Setup::default().env("NORMAL_MAX_USD", format!("0.{mills:03}"));
        let poor = TestApp::on(&provider, cap, folder).await;
        // "A" is the solver's own answer, so its report holds.
        let body = crate::support::chat("audit", "A");
        let response = poor.post(&body).send().await.unwrap();
        let run = run_of(&response).to_string();
        let steps = provider.steps_of(&run);
        assert!(
            !steps.contains_key("r1/solver"),
            "at 0.{mills:03}: {steps:?}"
        );
        let made = steps.keys().filter(|step| step.starts_with("r1/"));
        left_out.insert(2 - made.count());
    }
    assert!(
        left_out.contains(&0) && left_out.contains(&2),
        "{left_out:?}"
    );
}

#[tokio::test]
async fn a_message_that_asks_something_new_continues_nothing() {
    let scenario = Scenario::howto();
    let (message, mut plan) = (scenario.message.clone(), scenario.report("plan"));
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    app.ask("audit", &message).await;
    plan["continuation"] = json!({ "continues": false, "correction": "", "affected": [] });
    provider.reply_with("plan", plan);
    let anew = app.ask("audit", "A1 steak sauce recipe, please").await;
    let audit = &anew.body["audit"];
    assert_eq!(audit["continues"], json!(null));
    let corrections = audit["planCorrections"].to_string();
    assert!(corrections.contains("asks something new"), "{corrections}");
    let (_, run) = app.get(&format!("/api/runs/{}", anew.run)).await;
    assert_eq!(
        (&run["continues"], &run["parent"]),
        (&json!(null), &json!(null))
    );
}

#[tokio::test]
async fn a_report_bought_under_a_correction_is_bought_again_for_the_one_that_replaces_it() {
    let assumed = "The clock is UTC.";
    let scenario = Scenario::agreeing().with(|s| {
        s.reports["r1/verifier"]["assumptions"] = json!([assumed]);
        s.synthesis["meta"]["assumptions"] = json!([{ "text": assumed, "kind": "guess" }]);
    });
    let provider = MockProvider::playing(scenario.clone()).await;
    let app = TestApp::start(&provider).await;
    app.ask("audit", &scenario.message).await;
    for zone in ["CET", "EST"] {
        let message = format!("A1 is wrong: the clock is {zone}");
        let got = app.ask("audit", &message).await;
        let steps = provider.steps_of(&got.run.to_string());
        let reports = steps.keys().filter(|step| step.starts_with("r1/"));
        assert_eq!(reports.collect::<Vec<_>>(), ["r1/verifier"], "{zone}");
    }
}

#[tokio::test]
async fn the_rounds_of_a_reused_plan_are_bounded_by_the_mode_of_the_answer() {
    let scenario = Scenario::disagreeing().with(|s| s.plan["rounds"] = json!(3));
    for (mode, rounds) in [("ask", 1), ("deep", 3)] {
        let provider = MockProvider::playing(scenario.clone()).await;
        let app = TestApp::start(&provider).await;
        let asked = app.ask("ask", &scenario.message).await;
        assert_eq!(asked.outcome, "clarification");
        let answered = app.ask(mode, "A").await;
        let planned = answered.events().find_map(|event| match event {
            Event::Planned(planned) => Some(planned),
            _ => None,
        });
        let planned = planned.unwrap();
        assert_eq!(planned.plan.rounds, rounds, "{mode}");
        let corrections = planned.corrections.join("; ");
        assert_eq!(corrections.contains("from 3 to 1"), mode == "ask");
    }
}
