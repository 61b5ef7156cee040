//! Tests that recorded journals are read alike by every later version. `conclave export` wrote
//! `tests/fixtures/journals.jsonl` from the runs of [`new_journals_are_read_alike`]. Their audits,
//! judgements and gates must stay the same, unless the audit or the scoring engine is meant to change.
//! Then `UPDATE_JOURNALS=1` writes them anew. Those of an earlier engine must stay readable.

use std::time::Duration;

use conclave::app::open_store;
use conclave::committee::{audit_view, replay};
use conclave::config::Database;
use conclave::domain::RunKind;
use conclave::journal::{self, Ending, Event, RunFilter, Transcript};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::app::{config, database_of};
use crate::support::process::conclave;
use crate::support::{Fault, MockProvider, Scenario, Setup, TestApp, postgres, status_of};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/journals.jsonl");

/// Journals of an earlier engine.
const EARLIER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/journals-2026-11-23.jsonl"
);

async fn run(folder: &TempDir, database: &str, arguments: &[&str]) {
    let output = conclave(folder.path(), arguments, &[("DATABASE_URL", database)])
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// Imports the journals and checks each run: its chain, its audit, its judgement and its gate. Of an
/// earlier engine, judgement and gate may differ, and the audit may have fewer fields.
async fn journals_are_read_alike(database: String, file: &str) {
    let folder = TempDir::new().unwrap();
    run(&folder, &database, &["import", file]).await;
    let store = open_store(&Database::at(&database).unwrap(), "reader")
        .await
        .unwrap();
    let policy = config("http://127.0.0.1:1", &database, &Setup::default()).policy;
    let filter = RunFilter {
        limit: 100,
        ..RunFilter::default()
    };
    let rows = store.runs(&filter).await.unwrap();
    assert_eq!(rows.len(), 9);
    let mut replayed_runs = 0;
    for row in rows {
        let entries = store.entries(row.id, 0).await.unwrap();
        assert_eq!(journal::verify(row.id, &entries, &row.head_hash), Ok(()));
        if row.kind == RunKind::Action {
            continue;
        }
        let whole = Transcript::of_entries(&entries);
        let Some(Ending::Replied { reply }) = whole.finished.map(|f| &f.ending) else {
            panic!("run {} has no reply", row.id)
        };
        // The reply was rendered before the run's end.
        let events = entries.iter().map(|entry| &entry.event);
        let before = Transcript::of(events.filter(|e| !matches!(e, Event::Finished(_))));
        let mode = whole.accepted.unwrap().question.mode;
        let audit: Option<Value> = audit_view(row.id, &before).filter(|_| mode.has_audit());
        assert_eq!(audit.is_some(), reply.audit.is_some());
        assert!(
            file == EARLIER || audit == reply.audit,
            "the audit of {}",
            row.id
        );
        let accepted = whole.accepted.unwrap();
        let ancestors = journal::ancestors(Some(accepted), |id| store.entries(id, 0))
            .await
            .unwrap();
        if let Some(replayed) = replay(&entries, &ancestors, &policy) {
            assert!(file == EARLIER || replayed.recorded == replayed.replayed);
            replayed_runs += 1;
        }
    }
    assert_eq!(
        replayed_runs, 7,
        "all chats but the one in which no agent ran"
    );
}

#[tokio::test]
async fn recorded_journals_are_read_alike_in_sqlite() {
    let folder = TempDir::new().unwrap();
    let database = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    journals_are_read_alike(database("new.db"), RECORDED).await;
    journals_are_read_alike(database("old.db"), EARLIER).await;
}

#[tokio::test]
async fn recorded_journals_are_read_alike_in_postgresql() {
    journals_are_read_alike(postgres::fresh().await, RECORDED).await;
    journals_are_read_alike(postgres::fresh().await, EARLIER).await;
}

/// Makes runs in every mode, a question with its answer, a question of the plan, an action, a run
/// with a failed agent and one that was interrupted.
#[tokio::test]
async fn new_journals_are_read_alike() {
    let provider = MockProvider::playing(Scenario::agreeing()).await;
    let app = TestApp::start(&provider).await;
    let ask = async |mode: &str, scenario: Scenario| {
        let message = format!("new: {}", scenario.message);
        provider.state().scenario = scenario;
        app.ask(mode, &message).await
    };
    ask("ask", Scenario::agreeing()).await;
    ask("audit", Scenario::howto()).await;
    ask("deep", Scenario::converging()).await;
    ask("audit", Scenario::vague()).await;
    ask("audit", Scenario::disagreeing()).await;
    app.ask("audit", "B").await;
    provider.on("r1/verifier", Fault::Malformed);
    provider.on("r1/verifier/repair", Fault::Malformed);
    ask("audit", Scenario::agreeing()).await;
    provider.state().script = Default::default();
    let said = crate::act::said("ada", "/roll 2d6+3");
    let acted = app.request("POST", "/api/act").json(&said);
    assert_eq!(status_of(acted).await, 200);
    // A second service on the same folder completes what this one leaves.
    provider
        .on("synthesis", Fault::Hang(Duration::from_secs(60)))
        .times(1);
    let question = crate::support::chat("ask", &format!("new: {}", Scenario::agreeing().message));
    let run_id = app.accept(&question).await;
    crate::support::until(async || provider.state().in_flight > 0).await;
    app.app.drain(Duration::from_millis(1)).await;
    let folder = std::sync::Arc::clone(&app.folder);
    let next = TestApp::on(&provider, Setup::default(), folder).await;
    next.app.keep_recovering();
    next.ended(run_id).await;
    let file = if std::env::var_os("UPDATE_JOURNALS").is_some() {
        std::fs::remove_file(RECORDED).unwrap();
        RECORDED.to_owned()
    } else {
        next.folder
            .path()
            .join("journals.jsonl")
            .display()
            .to_string()
    };
    let database = database_of(&next.folder).await;
    run(&next.folder, &database, &["export", "--output", &file]).await;
    let again = TempDir::new().unwrap();
    let path = again.path().join("conclave.db");
    journals_are_read_alike(format!("sqlite://{}", path.display()), &file).await;
}
