//! Tests finished runs: lists, the journal, feedback, and refused cancellations.

use serde_json::{Value, json};

use super::events;
use crate::support::{Fault, MockProvider, QUESTION, TestApp, chat, run_of, sent};

#[tokio::test]
async fn a_finished_run_cannot_be_cancelled_and_an_unknown_one_is_404() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    let delete = |id: &str| app.request("DELETE", &format!("/api/runs/{id}")).send();
    assert_eq!(delete(&got.run.to_string()).await.unwrap().status(), 409);
    assert_eq!(
        delete("01890000-0000-7000-8000-000000000000")
            .await
            .unwrap()
            .status(),
        404
    );
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
        body["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, first) = app.get("/api/runs?limit=2").await;
    assert_eq!(list(&first), ids[..2]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let (_, second) = app.get(&format!("/api/runs?limit=2&cursor={cursor}")).await;
    assert_eq!(
        (list(&second), &second["nextCursor"]),
        (ids[2..].to_vec(), &Value::Null)
    );
    assert_eq!(list(&app.get("/api/runs?mode=audit").await.1), ids[1..2]);
    for outcome in [
        "clarification",
        "heuristic",
        "failed",
        "cancelled",
        "queued",
        "running",
    ] {
        let (status, body) = app.get(&format!("/api/runs?outcome={outcome}")).await;
        assert_eq!((status, list(&body)), (200, vec![]), "{outcome}");
    }
    assert_eq!(list(&app.get("/api/runs?outcome=answered").await.1), ids);
    let (status, problem) = app.get("/api/runs?outcome=nonsense").await;
    assert_eq!(
        (status, problem["errors"][0]["pointer"].as_str()),
        (400, Some("/outcome"))
    );
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
async fn feedback_goes_into_the_journal_of_a_run_with_a_reply() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let run = app.ask("ask", QUESTION).await.run;
    let give = async |run: &str, body: Value| {
        let url = format!("{}/api/runs/{run}/feedback", app.url);
        let response = app.client.post(url).json(&body).send().await.unwrap();
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap(),
        )
    };
    let id = run.to_string();
    let (status, body) = give(&id, json!({ "positive": false, "comment": " no " })).await;
    let noted =
        json!({ "runId": id, "number": 1, "positive": false, "comment": "no", "learned": null });
    assert_eq!((status, body), (200, noted));
    assert_eq!(give(&id, json!({ "positive": true })).await.1["number"], 2);
    let (_, journal) = app.get(&format!("/api/runs/{id}/journal")).await;
    let entries = journal["entries"].as_array().unwrap();
    let last: Vec<&Value> = entries.iter().rev().take(2).map(|e| &e["key"]).collect();
    assert_eq!(journal["verified"], true);
    assert_eq!(last, ["learned/1", "feedback/2"]);
    let events = sent(app.request("GET", &format!("/api/runs/{id}/events"))).await;
    assert_eq!(
        self::events(events).await.last().unwrap().0,
        "reply",
        "the stream ends where it did"
    );

    assert_eq!(give(&id, json!({ "positive": "yes" })).await.0, 400);
    assert_eq!(
        give(&id, json!({ "positive": true, "stars": 5 })).await.1["errors"][0]["pointer"],
        "/stars"
    );
    assert_eq!(
        give(
            "01890000-0000-7000-8000-000000000000",
            json!({ "positive": true })
        )
        .await
        .0,
        404
    );
    provider.on("*", Fault::Status(400));
    let failed = app.post(&chat("ask", QUESTION)).send().await.unwrap();
    let failed = run_of(&failed).to_string();
    assert_eq!(give(&failed, json!({ "positive": true })).await.0, 409);
}
