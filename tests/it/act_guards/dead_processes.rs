//! Tests how actions end when their process dies.

use std::sync::Arc;
use std::time::Duration;

use conclave::actions::reply::{CANCELLED, INTERRUPTED, not_understood};
use conclave::domain::{ActionMode, CommandName};
use conclave::journal::{
    ActionOutcome, ActionSubmission, Ending, Event, Executed, Parsed, Proposed, RunFilter,
    SqliteStore,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::act::{act, post_with_key, proposing, said};
use crate::support::process::Home;
use crate::support::{Fault, MockProvider, TestApp, client, sent, until};

#[tokio::test]
async fn an_action_whose_process_died_is_ended_and_not_executed_later() {
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Hang(Duration::from_secs(60)));
    let folder = Arc::new(TempDir::new().unwrap());
    let path = folder.path().join("conclave.db");
    let owner = "00000000-0000-7000-8000-00000000dead";
    let store = SqliteStore::open(&path, owner).await.unwrap();
    let setup = proposing().set("/policy/actions", json!({ "timeoutMs": 60000 }));
    let run = {
        let app = TestApp::with_store(&provider, setup, Arc::clone(&folder), store, owner).await;
        let body = said("ada", "hm, what now");
        let request = app.request("POST", "/api/act").json(&body);
        let request = request.header("idempotency-key", "k");
        tokio::select! {
            answer = request.send() => panic!("{answer:?}"),
            () = until(async || provider.state().in_flight == 1) => {}
        }
        let rows = app
            .app
            .runs(&RunFilter {
                limit: 1,
                ..RunFilter::default()
            })
            .await
            .unwrap();
        assert!(!rows[0].state.is_terminal());
        rows[0].id
    };
    assert_eq!(provider.state().in_flight, 1);
    // The process has died: its lease expires at once.
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE runs SET lease_until_ms = 0")
        .unwrap();
    let app = TestApp::on(&provider, proposing(), folder).await;
    app.app.keep_recovering();
    let ending = app.ended(run).await;
    assert!(
        matches!(&ending, Ending::Failed { detail, .. } if detail.contains("nothing was done")),
        "{ending:?}"
    );
    let again = post_with_key(&app, "/api/act", &said("ada", "hm, what now"), Some("k")).await;
    assert_eq!(again.body["message"], INTERRUPTED);
    let entries = app.entries(run).await;
    let reserved = entries.iter().find_map(|e| {
        if let Event::CallSent(s) = &e.event {
            s.reserved.clone()
        } else {
            None
        }
    });
    let row = app.app.run(run).await.unwrap().unwrap();
    assert_eq!(
        row.spent,
        reserved.unwrap().amount,
        "the call may be billed"
    );
    assert_eq!(provider.count_step("proposal"), 1, "and is not made again");
}

#[tokio::test]
async fn a_cancelled_action_is_not_too_slow_for_those_who_wait_for_its_call() {
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Latency(Duration::from_secs(2)));
    let app = TestApp::with(&provider, proposing()).await;
    let text = "hm, what now";
    let oldest = async || {
        let listed = app.get("/api/runs?kind=action").await.1;
        let runs = listed["runs"].as_array().unwrap().clone();
        (runs.len(), runs.last().map(|run| run["id"].clone()))
    };
    let waits = async {
        until(async || provider.state().in_flight == 1).await;
        act(&app, "ben", text).await
    };
    let cancelled = async {
        until(async || oldest().await.0 == 2).await;
        let id = oldest().await.1.unwrap();
        let request = app.request("DELETE", &format!("/api/runs/{}", id.as_str().unwrap()));
        request.send().await.unwrap();
    };
    let (answer, waited, ()) = tokio::join!(act(&app, "ada", text), waits, cancelled);
    assert_eq!(answer.body["message"], CANCELLED);
    let all = CommandName::ALL.iter().copied().collect();
    assert_eq!(waited.body["message"], not_understood(text, &all));
    assert_eq!(provider.count_step("proposal"), 1, "it may be billed");
    act(&app, "ada", text).await;
    assert_eq!(provider.count_step("proposal"), 2);
}

/// Returns the ending of a proposed action whose process died after these events.
fn left_behind(more: Vec<Event>, guilds: &Value) -> Ending {
    let mut accepted = crate::store::new_run(1, None, "rope").accepted;
    accepted.action = Some(ActionSubmission::default());
    accepted.question.context.guild_id = Some("g".into());
    let setup = proposing().set("/policy/actions", json!({ "guilds": guilds }));
    let config = crate::support::app::config("http://127.0.0.1:9", "sqlite://data/x.db", &setup);
    let events = [vec![Event::Accepted(Box::new(accepted))], more].concat();
    let (policy, now) = (&config.policy.actions, crate::store::at(5));
    conclave::actions::left_behind(crate::store::id(1), &events, policy, now)
}

fn proposed(ok: bool) -> Event {
    Event::Proposed(Box::new(Proposed {
        ok,
        confidence: 0.95,
        action: "memory.add".into(),
        args: json!({ "content": "rope" }),
        reason: "r".into(),
        alternatives: vec![],
        raw: String::new(),
        was_repaired: false,
        reused_from: None,
    }))
}

fn parsed() -> Event {
    Event::Parsed(Parsed {
        command: CommandName::MemoryAdd,
        arguments: json!({ "content": "rope" }),
        mode: ActionMode::LlmProposal,
        confidence: 0.95,
        reason: Some("r".into()),
    })
}

#[test]
fn an_action_executed_before_a_crash_is_reported_as_executed() {
    let executed = Event::Executed(Box::new(Executed {
        command: CommandName::MemoryAdd,
        result: json!({ "text": "Remembered: rope" }),
        effect: None,
    }));
    let ending = left_behind(vec![proposed(true), parsed(), executed], &json!({}));
    let Ending::Acted { outcome, response } = ending else {
        panic!("it was executed")
    };
    assert_eq!(
        (outcome, &response["executed"]),
        (ActionOutcome::Executed, &json!(true))
    );
}

#[test]
fn a_proposal_that_was_paid_for_before_a_crash_is_offered() {
    let ending = left_behind(vec![proposed(true), parsed()], &json!({}));
    let Ending::Acted { outcome, response } = ending else {
        panic!("it was proposed")
    };
    assert_eq!(
        (
            outcome,
            &response["executed"],
            &response["proposed_action"]["action"]
        ),
        (ActionOutcome::Offered, &json!(false), &json!("memory.add"))
    );
    let declined = left_behind(vec![proposed(false)], &json!({}));
    assert!(matches!(
        declined,
        Ending::Acted {
            outcome: ActionOutcome::Declined,
            ..
        }
    ));
    for nothing in [
        left_behind(vec![], &json!({})),
        left_behind(vec![proposed(true)], &json!({ "g": { "shadow": true } })),
    ] {
        assert!(matches!(nothing, Ending::Failed { .. }), "{nothing:?}");
    }
}

#[tokio::test]
async fn actions_and_their_changes_survive_kills_of_the_process() {
    let provider = MockProvider::start().await;
    let home = Home::sqlite();
    let client = client();
    let mut answered = 0;
    for round in 0..3 {
        let service = home.serve(&provider, &[]).await;
        let mut said_so = said(&format!("u{round}"), "");
        for n in 0..15 {
            said_so["message"] = json!(format!("remember that wagon {n} is full"));
            let request = client
                .post(format!("{}/api/act", service.url))
                .json(&said_so);
            let response = sent(request).await;
            assert_eq!(
                response.json::<Value>().await.unwrap()["executed"],
                json!(true)
            );
            answered += 1;
        }
        // Kills the service right after its last answer.
        service.kill().await;
    }
    let store = home.store().await;
    let rows = store
        .runs(&RunFilter {
            limit: 200,
            ..RunFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(rows.len(), answered);
    for row in &rows {
        let entries = store.entries(row.id, 0).await.unwrap();
        assert_eq!(
            conclave::journal::verify(row.id, &entries, &row.head_hash),
            Ok(())
        );
    }
    let owner = conclave::journal::Owner {
        source: conclave::domain::Source::Http,
        user_id: "u2".into(),
        guild_id: Some("g1".into()),
    };
    assert_eq!(store.memory_count(&owner).await.unwrap(), 15);
}
