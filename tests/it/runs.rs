//! `/api/runs`, health, streams, limits, and errors.

use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::Ending;
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::support::{Fault, MockProvider, Setup, TestApp, chat};

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

async fn events(response: reqwest::Response) -> Vec<(String, i64, Value)> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let events: Vec<_> = response.bytes_stream().eventsource().map(Result::unwrap).collect().await;
    events.into_iter().map(|e| (e.event, e.id.parse().unwrap(), serde_json::from_str(&e.data).unwrap())).collect()
}

#[tokio::test]
async fn a_stream_tells_the_progress_and_ends_with_the_reply() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let request = app.post(&chat("audit", QUESTION)).header("accept", "text/event-stream");
    let response = request.send().await.unwrap();
    let run: RunId = response.headers()["x-request-id"].to_str().unwrap().parse().unwrap();
    let events = events(response).await;
    let names: Vec<&str> = events.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names[..3], ["run", "plan", "round"]);
    assert_eq!(names.iter().filter(|n| **n == "agent.started").count(), 3);
    assert_eq!(names.iter().filter(|n| **n == "agent.finished").count(), 3);
    assert_eq!(names[names.len() - 3..], ["score", "synthesis", "reply"]);
    assert!(events.windows(2).all(|pair| pair[0].1 < pair[1].1), "ids rise");
    let stored = app.entries(run).await;
    assert_eq!(events.last().unwrap().1, stored.last().unwrap().seq);
    let body = &events.last().unwrap().2;
    assert!(body["reply"].as_str().unwrap().contains("## Confidence") && body["audit"].is_object());

    let path = format!("{}/api/runs/{run}/events", app.url);
    let half = events[4].1.to_string();
    let resumed = app.client.get(&path).header("last-event-id", half).send().await.unwrap();
    let resumed = self::events(resumed).await;
    assert_eq!(resumed, events[5..], "a broken stream goes on where it broke");
    let over = app.client.get(&path).header("last-event-id", events.last().unwrap().1).send().await.unwrap();
    assert_eq!(over.status(), 204);
}

#[tokio::test]
async fn a_stream_from_beyond_the_end_of_a_running_run_ends_with_the_run() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_millis(300)));
    let app = TestApp::start(&provider).await;
    let response = app.post(&chat("ask", QUESTION)).header("prefer", "respond-async").send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    while provider.in_flight() < 3 {
        tokio::task::yield_now().await;
    }
    let stream = app.client.get(format!("{}/api/runs/{id}/events", app.url)).header("last-event-id", "100000");
    let response = stream.timeout(Duration::from_secs(15)).send().await.unwrap();
    let (name, ..) = events(response).await.pop().unwrap();
    assert_eq!(name, "reply");
}

#[tokio::test]
async fn a_failed_run_ends_its_stream_with_the_problem() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Status(400));
    let app = TestApp::start(&provider).await;
    let response = app.post(&chat("ask", QUESTION)).header("accept", "text/event-stream").send().await.unwrap();
    let (name, _, data) = events(response).await.pop().unwrap();
    assert_eq!((name.as_str(), data["status"].as_u64()), ("error", Some(502)));
}

#[tokio::test]
async fn respond_async_gives_the_place_where_the_run_will_be() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let response = app.post(&chat("ask", QUESTION)).header("prefer", "respond-async").send().await.unwrap();
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let id: RunId = location.rsplit('/').next().unwrap().parse().unwrap();
    assert!(matches!(app.ended(id).await, Ending::Replied { .. }));
    let (status, run) = app.get(&location).await;
    assert_eq!((status, run["state"].as_str()), (200, Some("answered")));
    assert!(run["reply"].as_str().unwrap().starts_with("## TL;DR"));
    assert!(run["timings"]["totalMs"].as_i64().is_some());
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cancel_its_run() {
    let provider = MockProvider::start().await;
    provider.latency(Duration::from_millis(150));
    let app = TestApp::start(&provider).await;
    let mut body = chat("ask", QUESTION);
    body["context"]["messageId"] = json!("m-gone");
    let gone = app.post(&body).timeout(Duration::from_millis(200)).send().await;
    assert!(gone.is_err());
    let got = app.reply(app.post(&body)).await;
    assert_eq!(provider.count_step("plan"), 1, "the same message joins its run");
    assert_eq!(got.outcome, "answered");
}

#[tokio::test]
async fn the_same_key_joins_and_another_body_is_refused() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let send = |message: &str| app.post(&chat("ask", message)).header("idempotency-key", "k1");
    let (a, b) = tokio::join!(app.reply(send(QUESTION)), app.reply(send(QUESTION)));
    assert_eq!((a.run, &a.body), (b.run, &b.body));
    assert_eq!(provider.calls().len(), 6);
    let reused = send("Something else").send().await.unwrap();
    assert_eq!(reused.status(), 422);
}

#[tokio::test]
async fn a_run_in_flight_is_cancelled_with_its_calls() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(20)));
    let app = TestApp::start(&provider).await;
    let response = app.post(&chat("ask", QUESTION)).header("prefer", "respond-async").send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    while provider.in_flight() < 3 {
        tokio::task::yield_now().await;
    }
    let url = format!("{}/api/runs/{id}", app.url);
    assert_eq!(app.client.delete(&url).send().await.unwrap().status(), 202);
    assert!(matches!(app.ended(id.parse().unwrap()).await, Ending::Cancelled));
    while provider.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    let again = app.client.delete(&url).send().await.unwrap();
    assert_eq!(again.status(), 200);
    let (_, run) = app.get(&format!("/api/runs/{id}")).await;
    assert_eq!(run["state"], "cancelled");
    assert!(run["cost"]["spentUsd"].as_f64().unwrap() > 0.0, "what was in flight may have been billed");
}

#[tokio::test]
async fn a_finished_run_cannot_be_cancelled_and_an_unknown_one_not_found() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    let delete = |id: &str| app.client.delete(format!("{}/api/runs/{id}", app.url)).send();
    assert_eq!(delete(&got.run.to_string()).await.unwrap().status(), 409);
    assert_eq!(delete("01890000-0000-7000-8000-000000000000").await.unwrap().status(), 404);
    assert_eq!(app.get("/api/runs/nonsense").await.0, 404);
}

#[tokio::test]
async fn runs_are_listed_newest_first_by_pages_and_filters() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let mut ids = vec![];
    for mode in ["ask", "audit", "ask"] {
        ids.push(app.ask(mode, QUESTION).await.run.to_string());
    }
    ids.reverse();
    let list = |body: &Value| -> Vec<String> {
        body["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let (_, first) = app.get("/api/runs?limit=2").await;
    assert_eq!(list(&first), ids[..2]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let (_, second) = app.get(&format!("/api/runs?limit=2&cursor={cursor}")).await;
    assert_eq!((list(&second), &second["nextCursor"]), (ids[2..].to_vec(), &Value::Null));
    assert_eq!(list(&app.get("/api/runs?mode=audit").await.1), ids[1..2]);
    for outcome in ["clarification", "heuristic", "failed", "cancelled", "queued", "running"] {
        let (status, body) = app.get(&format!("/api/runs?outcome={outcome}")).await;
        assert_eq!((status, list(&body)), (200, vec![]), "{outcome}");
    }
    assert_eq!(list(&app.get("/api/runs?outcome=answered").await.1), ids);
    let (status, problem) = app.get("/api/runs?outcome=nonsense").await;
    assert_eq!((status, problem["errors"][0]["pointer"].as_str()), (400, Some("/outcome")));
    assert_eq!(app.get("/api/runs?mode=nonsense").await.0, 400);
    assert_eq!(app.get("/api/runs?limit=0").await.0, 400);
}

#[tokio::test]
async fn the_journal_is_shown_with_its_proof() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    let (_, journal) = app.get(&format!("/api/runs/{}/journal", got.run)).await;
    assert_eq!(journal["verified"], true);
    let entries = journal["entries"].as_array().unwrap();
    assert_eq!(entries[0]["key"], "accepted");
    assert_eq!(entries.last().unwrap()["key"], "finished");
    assert_eq!(entries.last().unwrap()["hash"], journal["head"]);
}

#[tokio::test]
async fn health_and_readiness() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let (status, health) = app.get("/health").await;
    assert_eq!((status, health["version"].as_str()), (200, Some(env!("CARGO_PKG_VERSION"))));
    assert_eq!(app.get("/ready").await.0, 200);
    app.app.drain(Duration::from_millis(10)).await;
    let response = app.client.get(format!("{}/ready", app.url)).send().await.unwrap();
    assert_eq!(response.status(), 503);
    let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn bad_input_gets_a_problem_that_names_the_place() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let url = format!("{}/api/chat", app.url);
    let send = |content_type: &str, body: String| {
        app.client.post(&url).header("content-type", content_type.to_owned()).body(body).send()
    };
    let mut unknown = chat("ask", "x");
    unknown["extra"] = json!(1);
    unknown["user"]["id"] = json!(7);
    let mut wrong_mode = chat("ask", "x");
    wrong_mode["mode"] = json!("shout");
    let mut many = chat("ask", "x");
    many["attachments"] = json!(vec![json!({ "filename": "a", "url": "https://x/a" }); 11]);
    let mut missing = chat("ask", "x");
    missing.as_object_mut().unwrap().remove("user");
    let cases = [
        ("text/plain", chat("ask", "x").to_string(), 415, vec![]),
        ("application/json", "{".to_owned(), 400, vec![]),
        ("application/json", "[]".to_owned(), 400, vec![""]),
        ("application/json", unknown.to_string(), 400, vec!["/extra", "/user/id"]),
        ("application/json", wrong_mode.to_string(), 400, vec!["/mode"]),
        ("application/json", missing.to_string(), 400, vec!["/user"]),
        ("application/json", chat("ask", "  ").to_string(), 422, vec!["/message"]),
        ("application/json", chat("ask", &"x".repeat(32_001)).to_string(), 422, vec!["/message"]),
        ("application/json", many.to_string(), 422, vec!["/attachments"]),
        ("application/json", chat("ask", &"x".repeat(300_000)).to_string(), 413, vec![]),
    ];
    for (content_type, body, status, pointers) in cases {
        let response = send(content_type, body.clone()).await.unwrap();
        assert_eq!(response.status(), status, "{body:.80}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["requestId"], json!(id));
        let mut found: Vec<&str> =
            problem["errors"].as_array().into_iter().flatten().map(|e| e["pointer"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{problem}");
    }
    assert_eq!(app.get("/nowhere").await.0, 404);
    assert_eq!(app.get("/api/chat").await.0, 405);
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn a_token_guards_the_api_and_not_the_health() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, Setup::default().env("CONCLAVE_TOKEN", "correct horse battery")).await;
    let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let wrong = app.post(&chat("ask", QUESTION)).bearer_auth("correct horse").send().await.unwrap();
    assert_eq!(wrong.status(), 401);
    assert_eq!(
        app.reply(app.post(&chat("ask", QUESTION)).bearer_auth("correct horse battery")).await.outcome,
        "answered"
    );
    assert_eq!(app.get("/health").await.0, 200);
}

#[tokio::test]
async fn a_well_formed_request_id_is_kept_as_a_correlation_id() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let got = app.reply(app.post(&chat("ask", QUESTION)).header("x-request-id", "bot-17.a")).await;
    let (_, run) = app.get(&format!("/api/runs/{}", got.run)).await;
    assert_eq!(run["correlationId"], "bot-17.a");
    let other = app.reply(app.post(&chat("ask", QUESTION)).header("x-request-id", "bad id\t")).await;
    let (_, run) = app.get(&format!("/api/runs/{}", other.run)).await;
    assert_eq!(run["correlationId"], Value::Null);
}

#[tokio::test]
async fn a_full_house_answers_503_and_says_when_to_come_back() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(20)));
    let app = TestApp::with(&provider, Setup::default().set("/policy/limits/maxInFlight", json!(1))).await;
    let first = app.post(&chat("ask", QUESTION)).header("prefer", "respond-async").send().await.unwrap();
    assert_eq!(first.status(), 202);
    let second = app.post(&chat("ask", "Another one?")).send().await.unwrap();
    assert_eq!(second.status(), 503);
    assert!(second.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn the_same_answer_sent_twice_joins_the_run_in_flight() {
    let scenario = crate::support::Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    app.ask("ask", &message).await;
    provider.latency(Duration::from_millis(150));
    let (first, second) = tokio::join!(app.ask("ask", "B"), app.ask("ask", "B"));
    assert_eq!(first.run, second.run);
}

#[tokio::test]
async fn an_answer_whose_run_was_cancelled_can_be_given_again() {
    let scenario = crate::support::Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    let asked = app.ask("ask", &message).await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(20))).times(9);
    let answer = app.post(&chat("ask", "B")).header("prefer", "respond-async").send().await.unwrap();
    let id: RunId = answer.headers()["x-request-id"].to_str().unwrap().parse().unwrap();
    app.app.cancel(id).await.unwrap();
    app.ended(id).await;
    provider.heal();
    let again = app.ask("ask", "B").await;
    let (_, run) = app.get(&format!("/api/runs/{}", again.run)).await;
    assert_eq!(run["parent"], asked.run.to_string());
}

#[tokio::test]
async fn a_repetition_after_a_restart_gets_the_stored_reply() {
    let provider = MockProvider::start().await;
    let first = TestApp::start(&provider).await;
    let send = |app: &TestApp| app.post(&chat("audit", QUESTION)).header("idempotency-key", "k-restart");
    let before = first.reply(send(&first)).await;
    let folder = std::sync::Arc::clone(&first.folder);
    drop(first);
    let second = TestApp::on(&provider, Setup::default(), folder).await;
    let after = second.reply(send(&second)).await;
    assert_eq!((before.run, before.body), (after.run, after.body));
    assert_eq!(provider.calls().len(), 6);
}

#[tokio::test]
async fn a_threshold_of_zero_never_asks_but_where_the_master_cannot_plan() {
    let scenario = crate::support::Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let setup = || Setup::default().set("/policy/askUserThreshold", json!(0.0));
    let app = TestApp::with(&provider, setup()).await;
    assert_eq!(app.ask("ask", &message).await.outcome, "answered");
    let vague = crate::support::Scenario::vague();
    let message = vague.message.clone();
    let provider = MockProvider::playing(vague).await;
    let app = TestApp::with(&provider, setup()).await;
    assert_eq!(app.ask("ask", &message).await.outcome, "clarification");
}

#[tokio::test]
async fn a_question_that_would_be_refused_has_no_price() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, Setup::default().set("/policy/normalMaxUsd", json!(0.001))).await;
    let quote = app.client.post(format!("{}/api/quote", app.url)).json(&chat("ask", QUESTION));
    let response = quote.send().await.unwrap();
    assert_eq!(response.status(), 422);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["type"], "urn:conclave:problem:over-budget");
    assert_eq!(app.post(&chat("ask", QUESTION)).send().await.unwrap().status(), 422, "as the chat says");
}

#[tokio::test]
async fn what_has_a_price_is_not_refused_after_its_plan_was_bought() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, Setup::default().env("NORMAL_MAX_USD", "0.09")).await;
    let mut seen = std::collections::BTreeSet::new();
    for characters in (23_000..31_500).step_by(700) {
        let text: String = "The quick brown fox jumps over the lazy dog. ".chars().cycle().take(characters).collect();
        let body = chat("ask", &format!("new: {text}"));
        let quote = app.client.post(format!("{}/api/quote", app.url)).json(&body).send().await.unwrap().status();
        let before = provider.calls().len();
        let asked = app.post(&body).send().await.unwrap().status();
        assert_eq!(quote, asked, "{characters} characters");
        if asked == 422 {
            assert_eq!(provider.calls().len(), before, "{characters} characters: nothing is bought for nothing");
        }
        seen.insert(asked.as_u16());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [200, 422]);
}

#[tokio::test]
async fn a_quote_costs_nothing_and_holds() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let quote = |mode: &'static str| {
        let request = app.client.post(format!("{}/api/quote", app.url)).json(&chat(mode, QUESTION));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let ask = quote("ask").await;
    let figure = |name: &str| ask[name].as_f64().unwrap();
    assert_eq!((figure("capUsd"), ask["calls"].as_u64()), (0.10, Some(6)));
    assert!(figure("expectedUsd") > 0.0 && figure("expectedUsd") < figure("worstUsd"));
    assert!(figure("worstUsd") <= figure("capUsd"));
    assert!(quote("deep").await["worstUsd"].as_f64() > ask["worstUsd"].as_f64());
    assert_eq!(provider.calls().len(), 0);
    assert_eq!(app.get("/api/runs").await.1["runs"], json!([]));
    let got = app.ask("ask", QUESTION).await;
    assert!(got.body["meta"]["budget"]["estimatedUsd"].as_f64().unwrap() <= figure("worstUsd"));
    let wrong = app.client.post(format!("{}/api/quote", app.url)).json(&chat("ask", " ")).send().await.unwrap();
    assert_eq!(wrong.status(), 422);
}

#[tokio::test]
async fn a_hundred_repetitions_at_once_make_one_run_and_equal_replies() {
    let provider = MockProvider::start().await;
    provider.latency(Duration::from_millis(50));
    let app = TestApp::start(&provider).await;
    let mut body = chat("ask", QUESTION);
    body["context"]["messageId"] = json!("m-100");
    let sends = (0..100).map(|_| app.post(&body).send());
    let mut replies = vec![];
    for response in futures_util::future::join_all(sends).await {
        let response = response.unwrap();
        assert_eq!(response.status(), 200);
        replies.push(response.text().await.unwrap());
    }
    replies.dedup();
    assert_eq!(replies.len(), 1);
    assert_eq!(provider.calls().len(), 6);
}

#[tokio::test]
async fn feedback_goes_into_the_journal_of_a_run_with_a_reply() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let run = app.ask("ask", QUESTION).await.run;
    let give = async |run: &str, body: Value| {
        let url = format!("{}/api/runs/{run}/feedback", app.url);
        let response = app.client.post(url).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let id = run.to_string();
    let (status, body) = give(&id, json!({ "positive": false, "comment": " no " })).await;
    let noted = json!({ "runId": id, "number": 1, "positive": false, "comment": "no" });
    assert_eq!((status, body), (200, noted));
    assert_eq!(give(&id, json!({ "positive": true })).await.1["number"], 2);
    let (_, journal) = app.get(&format!("/api/runs/{id}/journal")).await;
    let last = journal["entries"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&journal["verified"], &last["key"]), (&json!(true), &json!("feedback/2")));
    let events = app.client.get(format!("{}/api/runs/{id}/events", app.url)).send().await.unwrap();
    assert_eq!(self::events(events).await.last().unwrap().0, "reply", "the stream ends where it did");

    assert_eq!(give(&id, json!({ "positive": "yes" })).await.0, 400);
    assert_eq!(give(&id, json!({ "positive": true, "stars": 5 })).await.1["errors"][0]["pointer"], "/stars");
    assert_eq!(give("01890000-0000-7000-8000-000000000000", json!({ "positive": true })).await.0, 404);
    provider.on("*", Fault::Status(400));
    let failed = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    let failed = failed.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert_eq!(give(&failed, json!({ "positive": true })).await.0, 409);
}
