//! Tests replies to a defective draft of the master. The draft is repaired where possible;
//! otherwise the best single report replaces it, and the audit says so.

use conclave::journal::Event;
use serde_json::{Value, json};

use crate::support::{
    Fault, Got, MockProvider, QUESTION, Scenario, Setup, TINY_PNG, TestApp, chat, sent,
};

const PLAN: &str = "1. Install Docker.\n2. Configure the firewall.\n3. Deploy the container.";

const ALONE: &str = "no synthesis: this is the best single report";

/// Returns the synthesis of the boiling-point scenario with another main answer and further
/// changes.
pub fn synthesis(main: &str, change: impl Fn(&mut Value)) -> Value {
    let mut synthesis = Scenario::agreeing().synthesis;
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

#[tokio::test]
async fn a_text_that_ends_in_a_question_is_quoted_on_demand_and_keeps_it() {
    let post = "Water boils at 100 degrees.\n\nWhat did you boil last?";
    let (provider, app) = staged(synthesis(post, |_| {})).await;
    provider.reply_by("synthesis/repair", move |call| {
        let says_how = call.body.to_string().contains("into a block quote");
        let quoted = format!("> {}", post.replace('\n', "\n> "));
        synthesis(if says_how { &quoted } else { post }, |_| {})
    });
    let got = app.ask("ask", QUESTION).await;
    assert_eq!(provider.count_step("synthesis/repair"), 1);
    assert!(
        got.text().contains("> What did you boil last?"),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn a_plan_with_unusable_figures_still_has_an_estimate() {
    let two =
        json!([{ "step": "a", "o": 1, "m": 2, "p": 3 }, { "step": "b", "o": 1, "m": 2, "p": 3 }]);
    let partial = json!({ "planUnit": "minutes", "planSteps": two, "planAssumptions": [], "planRisks": [],
                          "planConfidence": 0.3 });
    let draft = synthesis(PLAN, |synthesis| {
        synthesis["meta"]["planSteps"] = two.clone();
    });
    for what in ["fails", "is garbage", "gives two again"] {
        let (provider, app) = staged(draft.clone()).await;
        match what {
            "fails" => drop(provider.on("estimate*", Fault::Status(500))),
            "is garbage" => drop(provider.on("estimate*", Fault::Malformed)),
            _ => drop(provider.reply_with("estimate*", partial.clone())),
        }
        let got = app.ask("audit", QUESTION).await;
        let steps = got.body["audit"]["executionEstimate"]["steps"]
            .as_array()
            .unwrap();
        let likely: Vec<f64> = steps
            .iter()
            .map(|step| step["M"].as_f64().unwrap())
            .collect();
        assert_eq!(likely, [2.0, 2.0, 15.0], "the estimate call {what}");
        assert!(
            got.text().contains("No model gave figures for step 3"),
            "{}",
            got.text()
        );
    }
}

#[tokio::test]
async fn a_step_of_several_lines_is_one_item_of_the_plan() {
    let mut report = Scenario::agreeing().report("r1/solver");
    let steps = [
        "Stop it.",
        "Copy the database.\n\nUse cp with -a.",
        "Start it.",
    ];
    report["stepsOrDeliverables"] = json!(steps);
    let provider = MockProvider::start().await;
    provider.reply_with("r1/*", report);
    provider.on("synthesis*", Fault::Malformed);
    let got = TestApp::start(&provider).await.ask("audit", QUESTION).await;
    let list = "\n1. Stop it.\n2. Copy the database.\n   \n   Use cp with -a.\n3. Start it.\n";
    assert!(got.text().contains(list), "{}", got.text());
    let estimate = &got.body["audit"]["executionEstimate"]["steps"];
    assert_eq!(estimate.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_audit_has_figures_in_full_and_the_text_two_decimals() {
    let steps = json!([{ "step": "a", "o": 0.125, "m": 0.25, "p": 0.5 }, { "step": "b", "o": 0.125, "m": 0.25, "p": 0.5 },
                       { "step": "c", "o": 0.125, "m": 0.25, "p": 0.5 }]);
    let draft = synthesis(PLAN, |synthesis| {
        synthesis["meta"]["planSteps"] = steps.clone();
    });
    let (_provider, app) = staged(draft).await;
    let got = app.ask("audit", QUESTION).await;
    let estimate = &got.body["audit"]["executionEstimate"];
    assert_eq!(estimate["steps"][0]["O"], 0.125);
    assert_eq!(estimate["steps"][0]["E"].as_f64(), Some(1.625 / 6.0));
    assert_eq!(
        (&estimate["total"]["O"], estimate["total"]["E"].as_f64()),
        (&json!(0.375), Some(4.875 / 6.0))
    );
    assert!(
        got.text()
            .contains("O_total=0.38, M_total=0.75, P_total=1.5, E_total=0.81"),
        "{}",
        got.text()
    );
    assert!(
        !got.body["audit"]["synthesis"]
            .to_string()
            .contains("put in order")
    );
}

#[tokio::test]
async fn every_assumption_has_a_handle_and_omitted_ones_are_counted() {
    let (_provider, app) = staged(synthesis("100 °C.", |synthesis| {
        let stated: Vec<Value> = (1..=30)
            .map(|n| json!({ "text": format!("Point {n} holds of matter{n}."), "kind": "guess" }))
            .collect();
        synthesis["meta"]["assumptions"] = json!(stated);
    }))
    .await;
    let got = app.ask("ask", QUESTION).await;
    assert!(
        got.text().contains("- A24 (guess): Point 24 holds"),
        "{}",
        got.text()
    );
    assert!(
        got.text()
            .contains("- 6 more were stated and are left out here\n"),
        "{}",
        got.text()
    );
    let corrected = app.ask("ask", "A10 is wrong: it is 7").await;
    let continued = corrected.events().find_map(|event| match event {
        Event::Accepted(accepted) => accepted.continues.clone(),
        _ => None,
    });
    let by = serde_json::to_value(continued.unwrap().by).unwrap();
    assert_eq!(
        (&by["handle"], &by["wrong"]),
        (&json!("A10"), &json!("Point 10 holds of matter10."))
    );
}

#[tokio::test]
async fn an_assumption_keeps_its_handle_though_a_reply_in_between_leaves_it_out() {
    let stating = |texts: &[&str]| {
        let stated = texts
            .iter()
            .map(|text| json!({ "text": text, "kind": "guess" }));
        let stated: Vec<Value> = stated.collect();
        synthesis("100 °C.", move |synthesis| {
            synthesis["meta"]["assumptions"] = json!(stated);
        })
    };
    let all = [
        "The stove burns gas.",
        "The water is soft.",
        "The pot is open.",
    ];
    let (provider, app) = staged(stating(&all)).await;
    let first = app.ask("ask", QUESTION).await;
    assert!(first.text().contains("- A2 (guess): The water is soft."));
    provider
        .reply_with("synthesis", stating(&all[2..]))
        .times(1);
    let second = app.ask("ask", "A1 is wrong: it is electric").await;
    assert!(!second.text().contains("- A2 ("), "{}", second.text());
    let third = app.ask("ask", "A3 is wrong: it is closed").await;
    assert!(
        third.text().contains("- A2 (guess): The water is soft."),
        "{}",
        third.text()
    );
}

#[tokio::test]
async fn a_blank_main_answer_is_replaced_by_the_best_report() {
    for blank in ["", "  \n\n "] {
        let (provider, app) = staged(synthesis(blank, |_| {})).await;
        let got = app.ask("audit", QUESTION).await;
        assert!(got.text().contains(ALONE), "{}", got.text());
        assert_eq!(provider.count_step("synthesis/repair"), 1);
        assert_eq!(got.body["audit"]["synthesis"]["obtained"], "no synthesis");
    }
}

#[tokio::test]
async fn an_agent_that_a_plan_names_twice_runs_once() {
    let names = [
        "solver", "Solver ", "critic", "verifier", "critic", "editor", "editor",
    ];
    let scenario =
        Scenario::agreeing().with(|scenario| scenario.plan["agentsToRun"] = json!(names));
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    assert_eq!(
        got.body["audit"]["plan"]["agentsToRun"],
        json!(["solver", "critic", "verifier", "editor"])
    );
    let told = got.body["audit"]["planCorrections"].as_array().unwrap();
    let twice: Vec<&str> = told
        .iter()
        .filter_map(Value::as_str)
        .filter(|c| c.contains("more than once"))
        .collect();
    assert_eq!(twice.len(), 3, "{told:?}");
    assert!(twice[0].starts_with("solver "), "{twice:?}");
}

#[tokio::test]
async fn the_options_of_a_plans_question_have_one_letter_each() {
    let mut plan = Scenario::agreeing().plan;
    plan["needsClarification"] = json!(true);
    plan["clarificationQuestion"] = json!({
        "question": "I have to know. 哪一天？And why? Also how",
        "options": ["A Foo: one？", "B. Bar: two", "Baz: three"],
    });
    let provider = MockProvider::start().await;
    provider.reply_with("plan*", plan);
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    assert_eq!(
        got.text(),
        "哪一天?\n\nA) Foo: one\nB) Bar: two\nC) Baz: three"
    );
    let asked = &got.body["audit"]["plan"]["clarificationQuestion"];
    let options = json!(["A Foo: one", "B Bar: two", "C Baz: three"]);
    assert_eq!(asked["options"], options);
    let chosen = app.ask("ask", "option B").await;
    let story: String = chosen.entries[0].body.clone();
    assert!(
        story.contains(r#""answer":"Bar: two","option":"B""#),
        "{story}"
    );
}

#[tokio::test]
async fn a_plans_question_that_would_fit_any_request_is_repaired() {
    let mut plan = Scenario::agreeing().plan;
    plan["needsClarification"] = json!(true);
    plan["clarificationQuestion"] = json!({
        "question": "Which version would you like?",
        "options": ["A the short version", "B the long version", "C another angle"],
    });
    let provider = MockProvider::start().await;
    provider.reply_with("plan", plan.clone());
    plan["clarificationQuestion"] = json!({
        "question": "Which calendar is meant?",
        "options": ["A Gregorian: 61 days", "B Roman: 60 days", "C lunar: 59 days"],
    });
    provider.reply_with("plan/repair", plan);
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    let asked =
        "Which calendar is meant?\n\nA) Gregorian: 61 days\nB) Roman: 60 days\nC) lunar: 59 days";
    assert_eq!(got.text(), asked);
    let corrections = got.body["audit"]["planCorrections"].to_string();
    assert!(
        corrections.contains("do not say what each would change"),
        "{corrections}"
    );
}

const LONG: &str = "March and April have thirty days each by the old calendar of the Romans, which still holds, says MARKERLONG.";

/// Starts a service whose agents disagree: solver and verifier say 61 days, the critic says 60 and
/// adds LONG. `tau` sets the thresholds that decide the status of the critic's output.
async fn outvoted(
    tau: [f64; 2],
    synthesis: impl Fn(&mut Value),
) -> (MockProvider, TestApp, String) {
    let scenario = Scenario::converging().with(|scenario| scenario.plan["rounds"] = json!(1));
    let message = scenario.message.clone();
    let mut critic = scenario.report("r1/critic");
    critic["units"][1]["text"] = json!("March has 30 days, MARKERSHORT.");
    critic["failureModes"] = json!([LONG]);
    let mut draft = scenario.synthesis.clone();
    draft["audit"]["unitsUsed"] = json!(["solver:u1"]);
    draft["audit"]["quarantineJustifications"] = json!([]);
    synthesis(&mut draft);
    let provider = MockProvider::playing(scenario).await;
    provider.reply_with("r1/critic", critic);
    provider.reply_with("synthesis*", draft);
    let setup = Setup::default()
        .set("/policy/tauHard", json!(tau[0]))
        .set("/policy/tauSoft", json!(tau[1]));
    // A low threshold, so that the reply ships: this tests its content, not the gate.
    let app = TestApp::with(&provider, setup.set("/policy/askUserThreshold", json!(0.3))).await;
    (provider, app, message)
}

const DISCARD: [f64; 2] = [0.72, 0.73];
const QUARANTINE: [f64; 2] = [0.01, 0.73];

fn statuses(got: &Got) -> (&Value, &Value) {
    let invalidation = &got.body["meta"]["invalidation"];
    (&invalidation["discarded"], &invalidation["quarantined"])
}

fn main_part(got: &Got) -> &str {
    got.text().split("## Assumptions").next().unwrap()
}

#[tokio::test]
async fn a_discarded_output_is_not_shown_to_the_master_and_no_unit_of_it_is_named() {
    let (provider, app, message) = outvoted(DISCARD, |draft| {
        draft["replyMarkdown"] = json!("It is 61 days [critic:u1], as critic:u2 says.");
        draft["audit"]["disagreements"] =
            json!([{ "topic": "days", "summary": "the critic says 60 (critic:u2)" }]);
    })
    .await;
    for mode in ["ask", "audit", "deep"] {
        let got = app.ask(mode, &format!("new: {message}")).await;
        assert_eq!(statuses(&got), (&json!(["critic"]), &json!([])));
        let main = main_part(&got);
        assert!(
            main.contains("\nIt is 61 days, as critic says.\n"),
            "{main}"
        );
        assert!(!got.body.to_string().contains("critic:u"), "{}", got.body);
    }
    for call in provider.calls_of("synthesis") {
        assert!(!call.text().contains("MARKER"), "{}", call.text());
    }
}

#[tokio::test]
async fn a_quarantined_output_in_the_text_needs_its_reason() {
    let (provider, app, message) = outvoted(QUARANTINE, |draft| {
        draft["replyMarkdown"] = json!("It is 61 days, see critic:u2.");
    })
    .await;
    let got = app.ask("audit", &message).await;
    assert_eq!(statuses(&got), (&json!([]), &json!(["critic"])));
    assert!(
        main_part(&got).contains("\nIt is 61 days, see critic.\n"),
        "{}",
        got.text()
    );
    let told = provider.calls_of("synthesis/repair");
    assert!(
        told[0].text().contains("is used without a justification"),
        "{}",
        told[0].text()
    );
}

#[tokio::test]
async fn a_quarantined_unit_with_a_reason_is_listed_as_used() {
    let (provider, app, message) = outvoted(QUARANTINE, |draft| {
        draft["replyMarkdown"] = json!("It is 61 days, or 60 as in critic:u1.");
        draft["audit"]["quarantineJustifications"] =
            json!([{ "agent": "critic", "why": "the other way to count" }]);
    })
    .await;
    let got = app.ask("audit", &message).await;
    assert!(
        main_part(&got).contains("60 as in critic:u1."),
        "{}",
        got.text()
    );
    assert_eq!(
        got.body["audit"]["synthesis"]["unitsUsed"],
        json!(["solver:u1", "critic:u1"])
    );
    assert_eq!(provider.count_step("synthesis/repair"), 0);
}

#[tokio::test]
async fn a_reply_that_breaks_a_rule_is_replaced_by_the_best_report() {
    // Written with two spaces, so that it is only the secret once its line has been rendered.
    let secret = "planted key 8c1f2e9a7b6d";
    let draft = synthesis("100 °C.", |draft| {
        draft["meta"]["tldr"] = json!(["100 °C.", secret.replace(' ', "  ")]);
    });
    let provider = MockProvider::start().await;
    provider.reply_with("synthesis*", draft);
    let app = TestApp::with(&provider, Setup::default().env("ANTHROPIC_API_KEY", secret)).await;
    let response = app.post(&chat("audit", QUESTION)).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let body: Value = response.json().await.unwrap();
    assert!(body["reply"].as_str().unwrap().contains(ALONE), "{body:#}");
    assert!(!body.to_string().contains(secret));
    assert_eq!(
        body["audit"]["synthesis"]["brokenRules"],
        json!(["no secret anywhere"])
    );
    assert!(
        body["reply"]
            .as_str()
            .unwrap()
            .contains("would have broken a rule of the service: no secret anywhere")
    );
    let metrics = sent(app.request("GET", "/metrics"))
        .await
        .text()
        .await
        .unwrap();
    assert!(
        metrics.contains(r#"conclave_broken_rules_total{rule="no secret anywhere"} "#),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_master_that_repeats_its_instructions_is_replaced_and_one_that_quotes_the_request_is_not()
{
    let instruction =
        "Answer the question yourself from the reports; do not average or retell them.";
    let provider = MockProvider::start().await;
    let main = format!("100 °C. My orders are these. {instruction}");
    provider.reply_with("synthesis*", synthesis(&main, |_| {}));
    let app = TestApp::start(&provider).await;
    let response = app.post(&chat("audit", QUESTION)).send().await.unwrap();
    let body: Value = response.json().await.unwrap();
    let rule = json!(["no instruction of the prompts is repeated"]);
    assert_eq!(body["audit"]["synthesis"]["brokenRules"], rule);
    assert!(!body["reply"].as_str().unwrap().contains("retell"));
    let asked = format!("{QUESTION} And what does this mean: {instruction}");
    let got = app.ask("audit", &asked).await;
    assert_eq!(got.body["audit"]["synthesis"]["brokenRules"], json!([]));
}

#[tokio::test]
async fn a_requested_section_stays_and_a_plan_in_prose_has_an_estimate() {
    let record = "## Context\n\nWe measure at the coast.\n\n## Assumptions\n\n- The sea is calm.\n\n## Deployment plan\n\n\
        First fill the kettle.\n\nThen heat the water.\n\nFinally read the thermometer.";
    let (provider, app) = staged(synthesis(record, |_| {})).await;
    let got = app
        .ask("audit", "Write an ADR on boiling water with the sections Context, Assumptions and Deployment plan.")
        .await;
    assert!(
        got.text()
            .contains("\n**Assumptions**\n\n- The sea is calm.\n"),
        "{}",
        got.text()
    );
    assert_eq!(got.text().matches("## Assumptions\n").count(), 1);
    assert!(
        got.body["audit"]["synthesis"]["corrections"]
            .to_string()
            .contains("it is set in bold")
    );
    assert_eq!(
        got.body["audit"]["executionEstimate"]["steps"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(provider.count_step("estimate"), 1);
    let other = app.ask("audit", &format!("new: {QUESTION}")).await;
    assert!(
        !other.text().contains("The sea is calm"),
        "{}",
        other.text()
    );
}

#[tokio::test]
async fn a_question_by_rule_names_an_unseen_image_in_the_language_of_the_plan() {
    for (language, first) in [
        (Value::Null, "The image \"a.png\" was not seen: "),
        (json!("nl-BE"), "De afbeelding 'a.png' is niet gezien: "),
        (json!("sw"), "The image \"a.png\" was not seen: "),
    ] {
        let provider = MockProvider::playing(Scenario::agreeing().with(|scenario| {
            scenario.plan["agentsToRun"] = json!(["solver", "critic", "verifier", "visual"]);
            scenario.plan["taskType"] = json!("VISUAL_ANALYSIS");
            scenario.plan["language"] = language;
        }))
        .await;
        provider.on("question", Fault::Malformed);
        provider.on("question/repair", Fault::Malformed);
        let app = TestApp::start(&provider).await;
        let mut body = chat("ask", "Which colour has the car in this picture?");
        body["attachments"] =
            json!([{ "filename": "a.png", "url": "https://internal.example/a.png" }]);
        let got = app.reply(app.post(&body)).await;
        assert_eq!(got.outcome, "clarification", "{}", got.text());
        assert!(got.text().starts_with(first), "{}", got.text());
    }
}

#[tokio::test]
async fn an_agent_that_keeps_another_answer_is_named() {
    let scenario = Scenario::converging();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let low = Setup::default().set("/policy/askUserThreshold", json!(0.3));
    let app = TestApp::with(&provider, low).await;
    let got = app.ask("ask", &message).await;
    assert_eq!(got.outcome, "answered", "{}", got.text());
    let note = "critic: another final answer (60)";
    assert!(got.text().contains(note), "{}", got.text());
}

#[tokio::test]
async fn an_answer_about_an_image_that_no_agent_saw_does_not_ship() {
    let untyped = TINY_PNG.replace("image/png", "application/octet-stream");
    let heic = "data:image/heic;base64,AAAA";
    for (name, url, fault, outcome) in [
        ("gauge", untyped.as_str(), None, "answered"),
        ("photo.txt", untyped.as_str(), None, "answered"),
        ("a.png", TINY_PNG, Some(Fault::Status(400)), "clarification"),
        ("a.heic", heic, None, "clarification"),
        ("a.txt", "data:text/plain;base64,AAAA", None, "answered"),
    ] {
        let provider = MockProvider::playing(Scenario::agreeing().with(|scenario| {
            scenario.plan["agentsToRun"] = json!(["solver", "critic", "verifier", "visual"]);
            scenario.plan["taskType"] = json!("VISUAL_ANALYSIS");
        }))
        .await;
        if let Some(fault) = fault {
            provider.on("r1/visual", fault);
        }
        let app = TestApp::start(&provider).await;
        let mut body = chat("ask", QUESTION);
        body["attachments"] = json!([{ "filename": name, "url": url }]);
        let got = app.reply(app.post(&body)).await;
        assert_eq!(got.outcome, outcome, "{name}: {}", got.text());
        let is_shown = provider.count_step("r1/visual") > 0;
        assert_eq!(is_shown, url.contains("iVBOR"), "{name}");
    }
}
