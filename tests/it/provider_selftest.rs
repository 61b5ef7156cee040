//! The mock provider itself: what other tests rely on.

use std::time::Duration;

use conclave::domain::{AgentReport, Clarification, Pert};
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::{Ended, Fault, MockProvider, Scenario, StepKey, client};

const RUN: &str = "01980000-0000-7000-8000-000000000001";

fn schema() -> Value {
    let list = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object", "properties": {"question": {"type": "string"}, "options": list},
        "required": ["question", "options"], "additionalProperties": false,
    })
}

fn messages(prompt: &str) -> Value {
    json!({
        "model": "claude-mock", "max_tokens": 4000, "system": "You sit on a committee.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
        "output_config": {"format": {"type": "json_schema", "schema": schema()}},
    })
}

fn forced_tool(prompt: &str) -> Value {
    json!({
        "model": "claude-mock", "max_tokens": 4000, "messages": [{"role": "user", "content": prompt}],
        "tools": [{"name": "report", "input_schema": schema()}], "tool_choice": {"type": "tool", "name": "report"},
    })
}

fn completions(prompt: &str) -> Value {
    let format = json!({"name": "report", "strict": true, "schema": schema()});
    json!({
        "model": "gpt-mock", "max_completion_tokens": 4000,
        "messages": [{"role": "system", "content": "You sit on a committee."}, {"role": "user", "content": prompt}],
        "response_format": {"type": "json_schema", "json_schema": format},
    })
}

fn request(mock: &MockProvider, step: &str, body: &Value) -> reqwest::RequestBuilder {
    let path = if body["response_format"].is_null() { "/v1/messages" } else { "/v1/chat/completions" };
    client()
        .post(format!("{}{path}", mock.url()))
        .header("idempotency-key", format!("{RUN}/{step}"))
        .header("x-api-key", "k")
        .header("anthropic-version", "2023-06-01")
        .json(body)
}

async fn send(mock: &MockProvider, step: &str, body: &Value) -> Response {
    request(mock, step, body).send().await.unwrap()
}

async fn send_json(mock: &MockProvider, step: &str, body: &Value) -> Value {
    send(mock, step, body).await.json().await.unwrap()
}

fn text_of(reply: &Value) -> String {
    let text = reply["content"][0]["text"].as_str().or_else(|| reply["choices"][0]["message"]["content"].as_str());
    text.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_messages_format_is_as_documented() {
    let mock = MockProvider::start().await;
    let response = send(&mock, "r1/solver", &messages("Q")).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("request-id"));
    let reply: Value = response.json().await.unwrap();
    assert_eq!(
        (&reply["type"], &reply["role"], &reply["stop_reason"]),
        (&json!("message"), &json!("assistant"), &json!("end_turn"))
    );
    assert_eq!(serde_json::from_str::<Value>(&text_of(&reply)).unwrap(), Scenario::agreeing().report("r1/solver"));
    let output = text_of(&reply).len() / 4;
    assert_eq!(reply["usage"]["output_tokens"], json!(output));
    assert!(reply["usage"]["input_tokens"].as_i64().unwrap() > 10);
}

#[tokio::test]
async fn a_forced_tool_gets_its_input() {
    let mock = MockProvider::start().await;
    let reply = send_json(&mock, "question", &forced_tool("Q")).await;
    assert_eq!(reply["stop_reason"], "tool_use");
    assert_eq!((&reply["content"][0]["type"], &reply["content"][0]["name"]), (&json!("tool_use"), &json!("report")));
    assert_eq!(reply["content"][0]["input"], Scenario::agreeing().question());
}

#[tokio::test]
async fn the_chat_completions_format_is_as_documented() {
    let mock = MockProvider::start().await;
    let reply = send_json(&mock, "plan", &completions("Q")).await;
    assert_eq!((&reply["object"], &reply["choices"][0]["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
    assert_eq!(serde_json::from_str::<Value>(&text_of(&reply)).unwrap(), Scenario::agreeing().plan());
    let usage = &reply["usage"];
    assert_eq!(
        usage["total_tokens"].as_i64(),
        Some(usage["prompt_tokens"].as_i64().unwrap() + usage["completion_tokens"].as_i64().unwrap())
    );
}

#[tokio::test]
async fn streams_carry_the_same_text() {
    use eventsource_stream::Eventsource as _;
    use futures_util::StreamExt as _;
    let mock = MockProvider::start().await;
    for body in [messages("Q"), forced_tool("Q"), completions("Q")] {
        let mut body = body;
        body["stream"] = json!(true);
        let response = send(&mock, "question", &body).await;
        assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        let events: Vec<_> = response.bytes_stream().eventsource().map(Result::unwrap).collect().await;
        let text: String = events
            .iter()
            .filter_map(|event| serde_json::from_str::<Value>(&event.data).ok())
            .filter_map(|data| {
                let delta = if data["delta"].is_null() { &data["choices"][0]["delta"] } else { &data["delta"] };
                let keys = ["text", "partial_json", "content"];
                keys.iter().find_map(|key| delta[*key].as_str()).map(str::to_owned)
            })
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Scenario::agreeing().question());
    }
}

#[tokio::test]
async fn plain_text_roles_get_prose() {
    let mock = MockProvider::start().await;
    let mut body = messages("Q");
    body.as_object_mut().unwrap().remove("output_config");
    let text = text_of(&send_json(&mock, "r1/solver", &body).await);
    assert!(text.starts_with("100 °C") && !text.contains('{'), "{text}");
}

#[tokio::test]
async fn calls_are_recorded_by_step_and_attempt() {
    let mock = MockProvider::start().await;
    for step in ["r1/solver", "r1/solver#2", "r1/solver/repair", "r1/critic"] {
        send(&mock, step, &messages("what is it")).await;
    }
    assert_eq!(
        (mock.count_step("r1/solver"), mock.count_step("r1/solver*"), mock.count_step("r1/solver#2")),
        (2, 3, 1)
    );
    let call = &mock.calls()[1];
    assert_eq!(
        (call.run.as_str(), call.key.as_str(), call.step.as_str(), call.attempt),
        (RUN, "r1/solver#2", "r1/solver", 2)
    );
    assert_eq!((call.model.as_str(), call.path.as_str(), call.ended), ("claude-mock", "/v1/messages", Ended::Answered));
    assert_eq!((call.system().as_str(), call.prompt().as_str()), ("You sit on a committee.", "what is it"));
    assert!(mock.repeated_keys().is_empty() && mock.complaints().is_empty());
    assert_eq!(mock.steps_of(RUN)["r1/solver"], 2);
    mock.reset();
    assert!(mock.calls().is_empty());
}

#[test]
fn keys_are_taken_apart() {
    let key = StepKey::parse("run/r2/solver#2/repair#3");
    assert_eq!((key.step.as_str(), key.attempt, key.key.as_str()), ("r2/solver/repair", 3, "r2/solver#2/repair#3"));
    assert_eq!(StepKey::parse("").step, "");
}

#[tokio::test]
async fn statuses_come_with_the_errors_of_their_wire() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::Status(529)).once();
    mock.on("plan", Fault::RateLimited { retry_after_secs: 7 }).once();
    let overloaded = send(&mock, "plan", &messages("Q")).await;
    assert_eq!(overloaded.status(), 529);
    assert_eq!(overloaded.json::<Value>().await.unwrap()["error"]["type"], "overloaded_error");
    let limited = send(&mock, "plan#2", &completions("Q")).await;
    assert_eq!((limited.status().as_u16(), &limited.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    assert_eq!(limited.json::<Value>().await.unwrap()["error"]["code"], "rate_limit_exceeded");
    assert_eq!(send(&mock, "plan#3", &messages("Q")).await.status(), 200);
    assert!(mock.unmet_rules().is_empty());
}

#[tokio::test]
async fn texts_are_spoilt_in_the_way_that_was_asked_for() {
    let mock = MockProvider::start().await;
    let parses = |text: &str| serde_json::from_str::<Value>(text).ok();
    for body in [messages("Q"), completions("Q")] {
        let cut = ["max_tokens", "length"];
        for (fault, check) in [
            (Fault::CutJson, &(|text: &str| text.starts_with('{') && parses(text).is_none()) as &dyn Fn(&str) -> bool),
            (Fault::Malformed, &|text: &str| !text.contains('{') && text.len() > 20),
            (Fault::FencedJson, &|text: &str| text.contains("```json\n{") && parses(text).is_none()),
            (Fault::WrongSchema, &|text: &str| parses(text).unwrap()["units"].is_null()),
            (Fault::EmptyText, &str::is_empty),
        ] {
            mock.on("r1/critic", fault.clone()).once();
            let reply = send_json(&mock, "r1/critic", &body).await;
            assert!(check(&text_of(&reply)), "{fault:?} {reply}");
            let stop = reply["stop_reason"].as_str().or_else(|| reply["choices"][0]["finish_reason"].as_str()).unwrap();
            assert_eq!(cut.contains(&stop), fault == Fault::CutJson, "{fault:?} {stop}");
        }
    }
    mock.on("r1/critic", Fault::Refusal);
    assert_eq!(send_json(&mock, "r1/critic", &messages("Q")).await["stop_reason"], "refusal");
    let refused = send_json(&mock, "r1/critic", &completions("Q")).await;
    assert!(refused["choices"][0]["message"]["refusal"].is_string());
    assert_eq!(send_json(&mock, "r1/critic/repair", &messages("Q")).await["stop_reason"], "end_turn");
    mock.heal();
    mock.on("*", Fault::CutJson);
    assert_eq!(send_json(&mock, "plan", &forced_tool("Q")).await["stop_reason"], "max_tokens");
}

#[tokio::test]
async fn usage_can_be_missing_negative_or_huge() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::NoUsage).once();
    mock.on("plan", Fault::NegativeUsage).once();
    mock.on("plan", Fault::HugeUsage(9_000_000)).once();
    let usages = [messages("Q"), completions("Q"), messages("Q")];
    assert!(send_json(&mock, "plan", &usages[0]).await.get("usage").is_none());
    assert_eq!(send_json(&mock, "plan", &usages[1]).await["usage"]["completion_tokens"], -5);
    assert_eq!(send_json(&mock, "plan", &usages[2]).await["usage"]["output_tokens"], 9_000_000);
}

#[tokio::test]
async fn a_reply_longer_than_max_tokens_is_cut() {
    let mock = MockProvider::start().await;
    let mut body = messages("Q");
    body["max_tokens"] = json!(10);
    let reply = send_json(&mock, "r1/solver", &body).await;
    assert_eq!((&reply["stop_reason"], text_of(&reply).len()), (&json!("max_tokens"), 40));
    assert_eq!(reply["usage"]["output_tokens"], 10);
}

#[tokio::test]
async fn long_system_prompts_are_cached_when_marked() {
    let mock = MockProvider::start().await;
    let mut body = messages("Q");
    body["system"] = json!([{"type": "text", "text": "x".repeat(8000), "cache_control": {"type": "ephemeral"}}]);
    let first = send_json(&mock, "plan", &body).await["usage"].clone();
    let second = send_json(&mock, "plan#2", &body).await["usage"].clone();
    assert_eq!((&first["cache_creation_input_tokens"], &first["cache_read_input_tokens"]), (&json!(2000), &json!(0)));
    assert_eq!((&second["cache_creation_input_tokens"], &second["cache_read_input_tokens"]), (&json!(0), &json!(2000)));
    assert_eq!(first["input_tokens"], second["input_tokens"]);
}

#[tokio::test]
async fn bodies_break_off_and_hangs_end_without_a_reply() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::CutBody).once();
    mock.on("plan", Fault::Stall(Duration::from_millis(30))).once();
    for _ in 0..2 {
        let response = send(&mock, "plan", &messages("Q")).await;
        let promised = response.content_length().unwrap();
        assert!(response.status() == 200 && promised > 50);
        assert!(response.bytes().await.is_err());
    }
    mock.on("plan", Fault::Html).once();
    assert!(send(&mock, "plan", &messages("Q")).await.json::<Value>().await.is_err());
    mock.on("plan", Fault::Hang(Duration::from_millis(20)));
    assert!(request(&mock, "plan", &messages("Q")).send().await.is_err());
    assert_eq!(mock.calls().iter().map(|call| call.ended).collect::<Vec<_>>()[3], Ended::Broken);
    assert_eq!(mock.in_flight(), 0);
}

#[tokio::test]
async fn a_caller_that_goes_away_is_noticed() {
    let mock = MockProvider::start().await;
    mock.on("plan", Fault::Hang(Duration::from_secs(60)));
    let impatient = request(&mock, "plan", &messages("Q")).timeout(Duration::from_millis(200)).send().await;
    assert!(impatient.unwrap_err().is_timeout());
    while mock.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(mock.calls()[0].ended, Ended::Abandoned);
}

#[tokio::test]
async fn concurrency_is_counted() {
    let mock = MockProvider::start().await;
    mock.latency(Duration::from_millis(300));
    let body = messages("Q");
    futures_util::future::join_all(["r1/solver", "r1/critic", "r1/verifier"].map(|step| send(&mock, step, &body)))
        .await;
    assert_eq!((mock.most_in_flight(), mock.in_flight()), (3, 0));
}

#[tokio::test]
async fn replies_can_be_set_and_the_newest_wins() {
    let mock = MockProvider::start().await;
    mock.reply_text("plan", "old");
    mock.reply_text("plan", "new");
    mock.reply_with("plan", json!({"first": true})).once();
    mock.reply_by("r*/critic", |call| json!({"step": call.step}));
    let mut texts = vec![];
    for step in ["plan", "plan", "r2/critic"] {
        texts.push(text_of(&send_json(&mock, step, &messages("Q")).await));
    }
    assert_eq!(texts, [r#"{"first":true}"#, "new", r#"{"step":"r2/critic"}"#]);
}

#[tokio::test]
async fn requests_that_a_vendor_would_reject_are_rejected() {
    let mock = MockProvider::start().await;
    let mut open = messages("Q");
    open["output_config"]["format"]["schema"]["additionalProperties"] = json!(true);
    let mut bounded = messages("Q");
    bounded["output_config"]["format"]["schema"]["properties"]["question"]["maxLength"] = json!(9);
    let mut optional = completions("Q");
    optional["response_format"]["json_schema"]["schema"]["required"] = json!(["question"]);
    let mut mute = messages("Q");
    mute["messages"] = json!([]);
    for body in [open, bounded, optional, mute] {
        assert_eq!(send(&mock, "plan", &body).await.status(), 400);
    }
    assert_eq!(mock.complaints().len(), 4);
    let keyless = client().post(format!("{}/v1/messages", mock.url())).json(&messages("Q")).send().await.unwrap();
    assert_eq!(keyless.status(), 401);
}

#[tokio::test]
async fn steps_that_no_scenario_knows_get_what_their_schema_allows() {
    let mock = MockProvider::start().await;
    let reply = send_json(&mock, "doctor/solver", &messages("Q")).await;
    let sample: Value = serde_json::from_str(&text_of(&reply)).unwrap();
    assert_eq!(sample, json!({"options": [], "question": "ok"}));
}

#[tokio::test]
async fn a_dropped_provider_answers_no_more() {
    let mock = MockProvider::start().await;
    mock.on("*", Fault::Latency(Duration::from_secs(60)));
    let pending = request(&mock, "plan", &messages("Q")).send();
    let gone = async {
        while mock.in_flight() == 0 {
            tokio::task::yield_now().await;
        }
        let url = mock.url();
        drop(mock);
        url
    };
    let (pending, url) = tokio::join!(pending, gone);
    assert!(pending.is_err());
    assert!(client().post(format!("{url}/v1/messages")).json(&messages("Q")).send().await.unwrap_err().is_connect());
    let dead = MockProvider::dead_url().await;
    assert!(client().get(dead).send().await.unwrap_err().is_connect());
}

#[test]
#[should_panic(expected = "loopback only")]
fn the_client_leaves_loopback_never() {
    let _ = client().get("http://192.0.2.1/");
}

mod scenarios {
    use super::*;

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

    /// The scenario as the mock plays it to a request with this prompt.
    async fn said(scenario: &Scenario, step: &str, prompt: &str) -> Value {
        let mock = MockProvider::playing(scenario.clone()).await;
        serde_json::from_str(&text_of(&send_json(&mock, step, &messages(prompt)).await)).unwrap()
    }

    #[test]
    fn every_report_and_question_is_one_of_the_domain() {
        for scenario in all() {
            for step in ["r1/solver", "r1/critic", "r1/verifier", "r2/critic", "r3/editor"] {
                let report: AgentReport = serde_json::from_value(scenario.report(step)).unwrap();
                assert!(step.ends_with(&report.agent) && report.units.len() >= 2 && !report.failure_modes.is_empty());
            }
            let question = scenario.question();
            let options: Vec<String> = serde_json::from_value(question["options"].clone()).unwrap();
            let clarification = Clarification::new(question["question"].as_str().unwrap(), &options).unwrap();
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
            assert!(synthesis["replyMarkdown"].as_str().unwrap().split_whitespace().count() <= 250);
        }
    }

    #[test]
    fn the_howto_claims_totals_that_its_steps_do_not_have() {
        let synthesis = Scenario::howto().synthesis();
        let steps = synthesis["meta"]["planSteps"].as_array().unwrap();
        let sum = |key: &str| steps.iter().map(|step| step[key].as_f64().unwrap()).sum::<f64>();
        let total = Pert::new(sum("o"), sum("m"), sum("p"));
        assert_eq!((total.optimistic, total.likely, total.pessimistic, total.expected), (15.0, 30.0, 75.0, 35.0));
        assert!(synthesis["replyMarkdown"].as_str().unwrap().contains("O 12, M 25, P 60 and E 28"));
        assert_eq!(Scenario::howto().without_figures().synthesis()["meta"]["planSteps"], json!([]));
        assert_eq!(Scenario::howto().estimate()["planSteps"].as_array().unwrap().len(), 4);
    }

    #[tokio::test]
    async fn the_chosen_option_settles_the_disagreement() {
        let scenario = Scenario::disagreeing();
        let first = |report: &Value| report["answerSummary"][0].as_str().unwrap().split(':').next().unwrap().to_owned();
        let asked = ["r1/solver", "r1/critic", "r1/verifier"].map(|step| first(&scenario.report(step)));
        assert_eq!(asked, ["42", "17", "99"]);
        let options = scenario.options();
        let plain = format!("{} The user has chosen: {}", scenario.message, options[1]);
        let quoted =
            format!("{} A) {} B) {} C) {}\nThe answer: B", scenario.message, options[0], options[1], options[2]);
        for prompt in [plain, quoted] {
            assert_eq!(first(&said(&scenario, "r1/solver", &prompt).await), "17");
            assert_eq!(said(&scenario, "synthesis", &prompt).await["audit"]["conflictPenalty"], 0.0);
        }
    }

    #[tokio::test]
    async fn the_vague_plan_asks_until_the_user_has_answered() {
        let scenario = Scenario::vague();
        assert_eq!(scenario.plan()["needsClarification"], true);
        let answered = format!("Make it faster. Answer: {}", scenario.options()[2]);
        assert_eq!(said(&scenario, "plan", &answered).await["needsClarification"], false);
        assert!(said(&scenario, "synthesis", &answered).await["replyMarkdown"].as_str().unwrap().contains("cache"));
    }

    #[test]
    fn the_second_round_converges() {
        let scenario = Scenario::converging();
        let says = |step: &str| scenario.report(step)["answerSummary"][0].as_str().unwrap()[..2].to_owned();
        assert_eq!(["r1/solver", "r1/critic", "r1/verifier"].map(says), ["61", "60", "61"]);
        let contested = |own: &str| format!("<<<a CONTESTED\nC1: final answer\n  yours: {own}\n  A: 60\n  B: 61\na>>>");
        let decides = |own: &str| scenario.reply_to("r2/resolve/critic", &contested(own))["decisions"][0].clone();
        assert_eq!((&decides("60")["decision"], &decides("60")["to"]), (&json!("concede"), &json!("B")));
        assert_eq!(decides("61")["decision"], "keep");
    }

    #[tokio::test]
    async fn a_synthesis_cites_what_it_was_shown_and_justifies_what_is_quarantined() {
        let scenario = Scenario::agreeing();
        let solver = scenario.report("r1/solver").to_string();
        let prompt = format!("solver (VALID): {solver}\ncritic (status QUARANTINE): ...");
        let audit = said(&scenario, "synthesis", &prompt).await["audit"].clone();
        assert_eq!(audit["unitsUsed"], json!(["solver:u1", "solver:u2"]));
        assert_eq!(audit["quarantineJustifications"][0]["agent"], "critic");
        assert_eq!(audit["quarantineJustifications"].as_array().unwrap().len(), 1);
    }
}
