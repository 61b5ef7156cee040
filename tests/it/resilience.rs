//! Tests a failing provider: circuit breakers, fallback models, and how runs end if a fifth of all
//! calls fails.

use std::time::Duration;

use conclave::domain::FailureCause;
use conclave::journal::{CallResult, Cause, Ending, Event, Transcript};
use conclave::llm::CircuitPosition;
use serde_json::{Value, json};

use crate::support::{Fault, MockProvider, QUESTION, Scenario, Setup, TestApp, chat, mix, run_of};

/// A breaker that opens after so many failures. One call is made after the other, so that they count.
/// There is one attempt at an output: the failures need not last for the pauses between attempts.
fn breaking_after(failures: u32) -> Setup {
    let breaker = json!({ "failures": failures, "openSeconds": 60 });
    let setup = Setup::default().set("/policy/breaker", breaker);
    let setup = setup.set("/policy/retry/attempts", json!(1));
    setup.set("/policy/speculate", json!(false))
}

/// As [`breaking_after`], with a solver on a model of its own and the master's as its fallback.
fn falling_back_after(failures: u32) -> Setup {
    let solver = json!({ "provider": "anthropic", "model": "EDITOR_MODEL", "maxTokens": 1000,
                         "fallback": { "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 1000 } });
    let setup = breaking_after(failures).env("EDITOR_MODEL", "claude-opus-5-5");
    setup.set("/models/roles/solver", solver)
}

#[tokio::test]
async fn an_open_circuit_costs_nothing_and_the_run_is_502() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Status(529));
    let app = TestApp::with(&provider, breaking_after(2)).await;
    for calls in [1, 2] {
        assert_eq!(refused(&app).await.0, 502);
        assert_eq!(provider.calls().len(), calls);
    }
    let second = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(second.status(), 502);
    let body: Value = second.json().await.unwrap();
    let detail = body["detail"].as_str().unwrap();
    assert!(
        detail.contains(
            "provider error (529); the circuit of claude-sonnet-5-5 at anthropic is open for "
        ) && !detail.contains("circuit open"),
        "{detail}"
    );
    assert_eq!(provider.calls().len(), 2, "the model is not asked");
    let run = body["requestId"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        app.app.run(run).await.unwrap().unwrap().spent,
        conclave::domain::Usd::ZERO
    );
    let circuits = app.app.committee().models.circuits();
    let opened = circuits.iter().filter(|it| it.opened_total > 0);
    let opened: Vec<_> = opened.map(|it| (&*it.model, it.state)).collect();
    assert_eq!(opened, [("claude-sonnet-5-5", CircuitPosition::Open)]);
}

#[tokio::test]
async fn no_plan_is_bought_if_no_core_agent_can_be_called() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Status(529));
    let app = TestApp::with(&provider, breaking_after(3)).await;
    assert_eq!(refused(&app).await.0, 502);
    let calls = provider.calls().len();
    let (status, problem) = refused(&app).await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        status == 502 && detail.contains("no core agent can be called: provider error (529); "),
        "{problem}"
    );
    assert_eq!(provider.calls().len(), calls, "no plan");
    // An agent whose fallback can be called is enough.
    let critic = json!({ "provider": "anthropic", "model": "CRITIC_MODEL", "maxTokens": 1000,
                         "fallback": { "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 1000 } });
    let setup = breaking_after(3).set("/models/roles/critic", critic);
    let app = TestApp::with(&provider, setup).await;
    for _ in 0..2 {
        refused(&app).await;
    }
    assert_eq!(provider.count_step("plan"), 3);
}

#[tokio::test]
async fn a_short_outage_does_not_open_the_circuit_of_a_lone_run() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Status(529)).times(9);
    let breaker = json!({ "failures": 8, "openSeconds": 60 });
    let setup = Setup::default().set("/policy/breaker", breaker).set(
        "/policy/retry",
        json!({ "attempts": 4, "baseMs": 400, "maxMs": 1600 }),
    );
    let app = TestApp::with(&provider, setup).await;
    assert_eq!(app.ask("ask", QUESTION).await.outcome, "answered");
}

#[tokio::test]
async fn an_open_circuit_sends_the_role_to_its_fallback_at_once() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, falling_back_after(2)).await;
    for fails in [true, true, false] {
        if fails {
            provider.on("r1/solver", Fault::Status(500)).times(1);
        }
        let got = app.ask("ask", QUESTION).await;
        assert_eq!(got.body["meta"]["invalidation"]["discarded"], json!([]));
    }
    let models: Vec<String> = provider
        .calls_of("r1/solver")
        .into_iter()
        .map(|call| call.model)
        .collect();
    assert_eq!(
        models,
        [
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-sonnet-5-5"
        ]
    );
}

#[tokio::test]
async fn calls_beyond_the_limit_of_a_model_go_to_its_fallback() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, falling_back_after(8)).await;
    provider.on("r1/solver", Fault::RateLimited(0)).times(1);
    app.ask("ask", QUESTION).await;
    provider.on("r1/solver", Fault::Latency(Duration::from_secs(3)));
    let at_once = (0..8).map(|_| app.ask("ask", QUESTION));
    let runs = futures_util::future::join_all(at_once).await;
    for run in &runs {
        assert_eq!(run.body["meta"]["invalidation"]["discarded"], json!([]));
    }
    let calls = provider.calls_of("r1/solver");
    let of = |model: &str| calls.iter().filter(|call| call.model == model).count();
    assert_eq!((of("claude-opus-5-5"), of("claude-sonnet-5-5")), (5, 5));
    let loads = app.app.committee().models.loads();
    let limit = |name: &str| {
        let load = loads.iter().find(|(_, model, _)| model == name);
        load.map(|(.., load)| load.limit)
    };
    assert!(
        limit("claude-opus-5-5") < limit("claude-sonnet-5-5"),
        "{loads:?}"
    );
}

#[tokio::test]
async fn a_model_without_a_fallback_that_limits_its_rate_is_asked_until_it_answers() {
    let provider = MockProvider::start().await;
    provider.on("r1/solver", Fault::RateLimited(0)).times(10);
    let setup = Setup::default().set("/policy/retry/baseMs", json!(1));
    let app = TestApp::with(&provider, setup.set("/policy/retry/maxMs", json!(2))).await;
    let got = app.ask("ask", QUESTION).await;
    assert_eq!(got.body["meta"]["invalidation"]["discarded"], json!([]));
    assert_eq!(provider.calls_of("r1/solver").len(), 11);
}

#[tokio::test]
async fn the_fallback_is_called_at_once_if_a_wait_is_too_long() {
    let provider = MockProvider::start().await;
    provider.on("r1/solver", Fault::RateLimited(3600)).times(1);
    let solver = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1000,
                         "fallback": { "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 1000 } });
    let setup = Setup::default().set("/models/roles/solver", solver);
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask("ask", QUESTION).await;
    assert_eq!(got.body["meta"]["invalidation"]["discarded"], json!([]));
    let models: Vec<String> = provider
        .calls_of("r1/solver")
        .into_iter()
        .map(|call| call.model)
        .collect();
    assert_eq!(models, ["claude-haiku-5-5", "claude-sonnet-5-5"]);
}

#[tokio::test]
async fn refusals_and_malformed_outputs_do_not_lead_to_the_fallback_model() {
    for fault in [Fault::Refusal, Fault::Malformed] {
        let provider = MockProvider::start().await;
        provider.on("r1/solver*", fault);
        let solver = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1000,
                             "fallback": { "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 1000 } });
        let setup = Setup::default().set("/models/roles/solver", solver);
        let app = TestApp::with(&provider, setup).await;
        let got = app.ask("ask", QUESTION).await;
        assert_eq!(
            got.body["meta"]["invalidation"]["discarded"],
            json!(["solver"])
        );
        assert!(
            provider
                .calls_of("r1/solver*")
                .iter()
                .all(|call| call.model == "claude-haiku-5-5")
        );
    }
}

#[tokio::test]
async fn without_a_usable_master_the_run_still_gets_a_reply() {
    for fault in [
        Fault::Refusal,
        Fault::Text(String::new()),
        Fault::Status(400),
    ] {
        let provider = MockProvider::start().await;
        for step in ["plan", "synthesis", "plan/repair", "synthesis/repair"] {
            provider.on(step, fault.clone());
        }
        let app = TestApp::start(&provider).await;
        let got = app.ask("audit", QUESTION).await;
        assert_eq!(got.body["audit"]["planObtained"], "by hints", "{fault:?}");
        assert!(
            got.text()
                .contains("no synthesis: this is the best single report"),
            "{fault:?}: {}",
            got.text()
        );
    }
}

async fn refused(app: &TestApp) -> (u16, Value) {
    let response = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn an_empty_output_gets_one_repair_call() {
    let provider = MockProvider::start().await;
    provider.on("r1/critic", Fault::Text(String::new()));
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    assert_eq!(provider.count_step("r1/critic/repair"), 1);
    let critic = got.body["audit"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .find(|a| a["agent"] == "critic")
        .unwrap();
    assert_eq!(critic["obtained"], "repaired", "{critic}");
    provider.on("r1/critic/repair", Fault::Text(String::new()));
    let got = app
        .ask("audit", "new: And what is its freezing point?")
        .await;
    assert!(
        got.text()
            .contains("critic: no usable output (empty output)"),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn the_confidence_section_names_agents_missing_from_a_later_round() {
    let scenario = Scenario::converging();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    provider.on("r2/resolve/solver", Fault::Status(400));
    let app = TestApp::start(&provider).await;
    let got = app.ask("deep", &message).await;
    assert!(provider.count_step("r2/resolve/solver") > 0);
    assert!(
        got.text()
            .contains("gave nothing in round 2 (request rejected)"),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn a_run_without_time_for_its_agents_is_504() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Hang(Duration::from_secs(30)));
    let deadlines = json!({ "connect": 1, "call": 3, "ask": 3, "audit": 3, "deep": 3 });
    let setup = Setup::default().set("/policy/deadlines", deadlines);
    let app = TestApp::with(&provider, setup).await;
    let (status, problem) = refused(&app).await;
    assert_eq!(
        (status, &problem["type"]),
        (504, &json!("urn:conclave:problem:deadline")),
        "{problem}"
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("the run's deadline of 3 s left no more time for round 1: "),
        "{detail}"
    );
    // With enough time, the same failures count as a failure of the provider.
    let deadlines = json!({ "connect": 1, "call": 1, "ask": 20, "audit": 20, "deep": 20 });
    let setup = Setup::default().set("/policy/deadlines", deadlines);
    let app = TestApp::with(&provider, setup).await;
    assert_eq!(refused(&app).await.0, 502);
}

#[tokio::test]
async fn a_provider_message_is_in_the_journal_and_in_no_answer() {
    let provider = MockProvider::start().await;
    let words = "File \"/opt/app/server.py\", line 3: SELECT * FROM users";
    let error = json!({ "type": "error", "error": { "type": "api_error", "message": words } });
    provider.on("plan", Fault::Body(401, error.to_string()));
    let app = TestApp::start(&provider).await;
    let (status, problem) = refused(&app).await;
    assert_eq!(status, 502);
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("anthropic answered 401: wrong key") && !detail.contains("SELECT"),
        "{detail}"
    );
    let run = problem["requestId"].as_str().unwrap();
    let (_, view) = app.get(&format!("/api/runs/{run}")).await;
    assert!(!view.to_string().contains("SELECT"), "{view}");
    let (_, journal) = app.get(&format!("/api/runs/{run}/journal")).await;
    assert!(
        journal.to_string().contains("SELECT * FROM users"),
        "the operator can read it"
    );
}

#[tokio::test]
async fn a_failure_of_the_agents_names_the_status_and_what_it_means() {
    let body = |kind: &str| json!({ "error": { "type": kind, "message": "SELECT" } }).to_string();
    for (status, kind, expected) in [
        (
            404,
            "not_found_error",
            "404: model, address or host not found",
        ),
        (400, "invalid_request_error", "400: invalid request"),
        (403, "permission_error", "403: no permission"),
        (402, "billing_error", "402: no credit is left there"),
        (429, "insufficient_quota", "429: no credit is left there"),
    ] {
        let provider = MockProvider::start().await;
        let body = body(kind);
        provider.on("r1/*", Fault::Body(status, body.clone()));
        let app = TestApp::start(&provider).await;
        let (code, problem) = refused(&app).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            code == 502 && detail.contains(expected) && !detail.contains("SELECT"),
            "{problem}"
        );
        assert_eq!(provider.count_step("r1/solver"), 1, "not retried");
    }
}

#[tokio::test]
async fn streamed_replies_are_whole_and_their_tokens_counted() {
    let streaming = |provider: &MockProvider, openai: bool| {
        let setup = if openai {
            Setup::default().on_openai(provider)
        } else {
            Setup::default()
        };
        // The cap leaves room for a second attempt besides the money earmarked for the cross-check.
        let setup = setup.set("/policy/normalMaxUsd", json!(0.5));
        setup.set(
            if openai {
                "/providers/openai/stream"
            } else {
                "/providers/anthropic/stream"
            },
            json!(true),
        )
    };
    for openai in [false, true] {
        let provider = MockProvider::start().await;
        let app = TestApp::with(&provider, streaming(&provider, openai)).await;
        let got = app.ask("audit", QUESTION).await;
        assert_eq!(got.outcome, "answered");
        assert!(
            provider
                .calls()
                .iter()
                .all(|call| call.body["stream"] == true)
        );
        let settled = got.events().filter_map(|event| {
            if let Event::CallSettled(s) = event {
                Some(s)
            } else {
                None
            }
        });
        for call in settled {
            assert!(
                call.usage
                    .is_some_and(|usage| usage.input > 0 && usage.output > 0),
                "{call:?}"
            );
        }
        // A stream that breaks off is retried, and its first attempt is counted at its reservation.
        let provider = MockProvider::start().await;
        provider.on("r1/solver", Fault::CutBody).times(1);
        provider.on("r1/critic", Fault::Malformed).times(1);
        let app = TestApp::with(&provider, streaming(&provider, openai)).await;
        let got = app.ask("audit", QUESTION).await;
        assert_eq!(
            (
                provider.count_step("r1/solver"),
                provider.count_step("r1/critic/repair")
            ),
            (2, 1)
        );
        let first = got.events().find_map(|event| match event {
            Event::CallSettled(settled) if settled.call == "r1/solver" => Some(settled.clone()),
            _ => None,
        });
        assert!(
            matches!(first.unwrap().result, CallResult::Failed { cause, .. } if cause == FailureCause::ConnectionBroken)
        );
    }
}

#[tokio::test]
async fn a_call_that_may_be_billed_is_counted_before_its_retry() {
    for (fault, billed) in [
        (Fault::Hang(Duration::from_secs(30)), true),
        (Fault::CutBody, true),
        (Fault::Body(200, "<html>".into()), true),
        (Fault::Status(504), true),
        (Fault::Status(408), true),
        (Fault::Status(529), false),
    ] {
        let provider = MockProvider::start().await;
        provider.on("r1/solver", fault.clone()).times(1);
        let deadlines = json!({ "connect": 1, "call": 1, "ask": 10, "audit": 10, "deep": 10 });
        let setup = Setup::default().set("/policy/deadlines", deadlines);
        let app = TestApp::with(&provider, setup).await;
        let got = app.ask("ask", QUESTION).await;
        assert_eq!(provider.count_step("r1/solver"), 2, "{fault:?}");
        let amounts = got
            .events()
            .fold((None, None), |(reserved, cost), event| match event {
                Event::CallSent(e) if e.call == "r1/solver" => {
                    (e.reserved.as_ref().map(|r| r.amount), cost)
                }
                Event::CallSettled(e) if e.call == "r1/solver" => (reserved, Some(e.cost)),
                _ => (reserved, cost),
            });
        let expected = if billed {
            amounts.0
        } else {
            Some(conclave::domain::Usd::ZERO)
        };
        assert_eq!(amounts.1, expected, "{fault:?}");
    }
}

#[tokio::test]
async fn runs_end_as_expected_if_a_fifth_of_calls_fails() {
    const RUNS: usize = 40;
    let provider = MockProvider::start().await;
    let faults = mix::kinds().map(|(_, fault)| fault).into();
    provider.canned("*", mix::of(7, 20, faults));
    let deadlines = json!({ "connect": 2, "call": 3, "ask": 60, "audit": 60, "deep": 60 });
    let retry = json!({ "attempts": 4, "baseMs": 5, "maxMs": 1000 });
    let setup = Setup::default()
        .set("/policy/deadlines", deadlines)
        .set("/policy/retry", retry);
    let app = TestApp::with(&provider, setup).await;
    let asked = (0..RUNS).map(|case| {
        let mut body = chat("ask", &format!("{QUESTION} (case {case})"));
        body["user"]["id"] = json!(format!("u{case}"));
        let request = app.post(&body);
        let app = &app;
        async move {
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let run = run_of(&response);
            (status, run, app.entries(run).await)
        }
    });
    let ends = futures_util::future::join_all(asked).await;
    let mut counts = std::collections::BTreeMap::new();
    for (status, _, entries) in &ends {
        let ending = &Transcript::of_entries(entries).finished.unwrap().ending;
        match status {
            200 => assert!(matches!(ending, Ending::Replied { .. })),
            502 => assert!(matches!(
                ending,
                Ending::Failed {
                    cause: Cause::Provider,
                    ..
                }
            )),
            _ => panic!("{status}: {ending:?}"),
        }
        if *status != 200 {
            eprintln!("{status}: {ending:?}");
        }
        *counts.entry(*status).or_insert(0) += 1;
    }
    assert_eq!(counts, std::collections::BTreeMap::from([(200, RUNS)]));
}

#[tokio::test]
async fn an_agent_beside_the_core_that_fails_lowers_c_final_and_is_named() {
    let with_editor = |scenario: &mut Scenario| {
        scenario.plan["agentsToRun"] = json!(["solver", "critic", "verifier", "editor"]);
    };
    let mut found = vec![];
    for fails in [false, true] {
        let scenario = Scenario::agreeing().with(with_editor);
        let provider = MockProvider::playing(scenario).await;
        if fails {
            provider.on("r1/editor*", Fault::Status(400));
        }
        let app = TestApp::start(&provider).await;
        let got = app.ask("audit", QUESTION).await;
        let confidence = &got.body["audit"]["confidence"];
        found.push(confidence["c_final"].as_f64().unwrap());
        let named = if fails { json!(["editor"]) } else { json!([]) };
        assert_eq!(confidence["restsOn"]["notValid"], named);
    }
    assert!(found[1] < found[0], "{found:?}");
}
