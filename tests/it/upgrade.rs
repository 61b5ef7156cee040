//! Tests that databases of every released schema are upgraded without loss. The release whose
//! newest migration is NNNN wrote `tests/fixtures/database-NNNN.sql`. It holds one finished run,
//! and one that was interrupted in its first round.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::{FailureCause, Role, RunKind, Source, Usd};
use conclave::journal::{
    ActionStore as _, BackendStore as _, CallResult, CallSent, CallSettled, CallStop, Claim,
    Ending, Event, JournalStore as _, Owner, Retryable, RunFilter, RunReader as _, RunState,
    SqliteStore, verify,
};
use tempfile::TempDir;

use crate::store::new_run;
use crate::support::{MockProvider, Scenario, Setup, TestApp};

const RELEASED: [(&str, &str); 2] = [
    ("0001", include_str!("../fixtures/database-0001.sql")),
    ("0003", include_str!("../fixtures/database-0003.sql")),
];

const CHATS: RunFilter = RunFilter {
    mode: None,
    user_id: None,
    state: None,
    since: None,
    before: None,
    kind: Some(RunKind::Chat),
    limit: 10,
};

fn database(dump: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let raw = rusqlite::Connection::open(folder.path().join("conclave.db")).unwrap();
    raw.execute_batch("PRAGMA foreign_keys = FALSE").unwrap();
    raw.execute_batch(dump).unwrap();
    folder
}

#[tokio::test]
async fn every_released_database_is_upgraded_with_intact_chains() {
    for (version, dump) in RELEASED {
        let folder = database(dump);
        let store = SqliteStore::open(&folder.path().join("conclave.db"), "new")
            .await
            .unwrap();
        store.ready().await.unwrap();
        let rows = store.runs(&CHATS).await.unwrap();
        let states: Vec<RunState> = rows.iter().map(|row| row.state).collect();
        assert_eq!(states, [RunState::Running, RunState::Answered], "{version}");
        for row in rows {
            let entries = store.entries(row.id, 0).await.unwrap();
            assert_eq!(
                verify(row.id, &entries, &row.head_hash),
                Ok(()),
                "{version}"
            );
        }
    }
}

#[tokio::test]
async fn a_run_of_an_older_release_is_finished_by_this_one() {
    for (version, dump) in RELEASED {
        let folder = Arc::new(database(dump));
        let provider = MockProvider::start().await;
        let app = TestApp::on(&provider, Setup::default(), folder).await;
        let left = app.app.runs(&CHATS).await.unwrap();
        let run = left[0].id;
        app.app.keep_recovering();
        let ending = app.ended(run).await;
        assert!(
            matches!(ending, Ending::Replied { .. }),
            "{version}: {ending:?}"
        );
        let row = app.app.run(run).await.unwrap().unwrap();
        assert_eq!(verify(run, &app.entries(run).await, &row.head_hash), Ok(()));
    }
}

/// Earlier releases could make a second call beside a slow one. They stored the slower call as
/// "overtaken".
#[tokio::test]
async fn a_call_that_an_older_release_superseded_is_not_made_again() {
    let folder = Arc::new(TempDir::new().unwrap());
    let provider = MockProvider::start().await;
    let run = new_run(1, None, "At what temperature does water boil at sea level?");
    let (id, at) = (run.id, run.at);
    let (slower, faster) = ("plan", "plan#2");
    let sent = |call: &str| {
        Event::CallSent(CallSent {
            call: call.into(),
            role: Role::Master,
            provider: "anthropic".into(),
            model: "m".into(),
            reserved: None,
            max_tokens: 700,
            effort: None,
            prompt_hash: "h".into(),
        })
    };
    let settled = |call: &str, result: CallResult| {
        Event::CallSettled(CallSettled {
            call: call.into(),
            result,
            cost: Usd::ZERO,
            latency_ms: 1,
            usage: None,
            served: None,
        })
    };
    let answer = CallResult::Answered {
        text: Scenario::agreeing().plan.to_string(),
        stop: CallStop::End,
    };
    let overtaken = CallResult::Failed {
        cause: FailureCause::Superseded,
        detail: "its twin answered first; it may be billed".into(),
        said: None,
        retry: Retryable::No,
    };
    {
        let path = folder.path().join("conclave.db");
        let store = SqliteStore::open(&path, "old").await.unwrap();
        store.accept(run).await.unwrap();
        let lease = Duration::from_secs(30);
        let lease = store.claim(Claim::Oldest, "old", lease, at).await;
        let events = [
            sent(slower),
            sent(faster),
            settled(faster, answer),
            settled(slower, overtaken),
        ];
        let lease = lease.unwrap().unwrap();
        store.append(&lease, at, &events.each_ref()).await.unwrap();
    }
    let app = TestApp::on(&provider, Setup::default(), folder).await;
    app.app.keep_recovering();
    let ending = app.ended(id).await;
    assert!(matches!(ending, Ending::Replied { .. }), "{ending:?}");
    assert_eq!(provider.count_step("plan*"), 0);
}

#[tokio::test]
async fn data_of_actions_is_found_after_the_upgrade() {
    let folder = database(RELEASED[1].1);
    let store = SqliteStore::open(&folder.path().join("conclave.db"), "new")
        .await
        .unwrap();
    let actions = RunFilter {
        kind: Some(RunKind::Action),
        ..CHATS
    };
    let rows = store.runs(&actions).await.unwrap();
    assert_eq!(rows.len(), 3);
    let owner = Owner {
        source: Source::Cli,
        user_id: rows[0].user_id.clone(),
        guild_id: None,
    };
    let dog = [vec!["dog".to_owned()]];
    let found = store.memories(&owner, &dog, 10).await.unwrap();
    assert_eq!(
        found.len(),
        1,
        "a memory of before is in the index of words"
    );
    assert_eq!(store.sheets(&owner).await.unwrap()[0].name, "Aria");
    let other = Owner {
        user_id: "somebody".into(),
        ..owner
    };
    assert!(store.memories(&other, &dog, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_database_of_a_newer_release_is_refused_and_left_unchanged() {
    let folder = database(RELEASED[0].1);
    let path = folder.path().join("conclave.db");
    drop(SqliteStore::open(&path, "new").await.unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time)
         VALUES (9999, 'later', '2030-01-01', TRUE, X'00', 0)",
    )
    .unwrap();
    let error = SqliteStore::open(&path, "new")
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("9999"), "{error}");
    let runs = raw.query_row("SELECT COUNT(*) FROM runs", [], |row| row.get(0));
    assert_eq!(runs, Ok(2));
}
