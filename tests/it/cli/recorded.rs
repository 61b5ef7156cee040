//! Tests how `show`, `verify` and `replay` find a run, here and on a server, and what they say of an
//! altered journal.

use serde_json::Value;
use tempfile::TempDir;

use super::{QUESTION, run, text};
use crate::support::{MockProvider, TestApp};

/// Returns the ids of all runs, newest first.
async fn ids(folder: &TempDir, provider: &MockProvider) -> Vec<String> {
    let runs = text(&run(folder, &["runs", "--json"], provider).await.stdout);
    let id = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["id"].as_str().unwrap().to_owned()
    };
    runs.lines().map(id).collect()
}

#[tokio::test]
async fn a_run_is_named_by_its_id_a_unique_prefix_or_last() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let nothing = run(&folder, &["show", "last"], &provider).await;
    assert_eq!(nothing.status.code(), Some(4));
    for _ in 0..6 {
        run(&folder, &["ask", QUESTION], &provider).await;
    }
    let ids = ids(&folder, &provider).await;
    for name in ["last", ids[0].as_str(), &ids[0][..ids[0].len() - 2]] {
        let proof = run(&folder, &["verify", name], &provider).await;
        let said = text(&proof.stdout);
        assert!(
            said.starts_with(&format!("run {}: ", ids[0])),
            "{name}: {said}"
        );
        assert_eq!(
            run(&folder, &["show", name], &provider).await.status.code(),
            Some(0)
        );
        let replayed = run(&folder, &["replay", name, "--json"], &provider).await;
        assert!(text(&replayed.stdout).contains(&ids[0]), "{name}");
    }
    let ambiguous = run(&folder, &["show", &ids[0][..2]], &provider).await;
    let said = text(&ambiguous.stderr);
    assert_eq!(ambiguous.status.code(), Some(4), "{said}");
    let listed: Vec<bool> = ids.iter().map(|id| said.contains(id)).collect();
    assert_eq!(listed, [true, true, true, true, true, false], "{said}");
    assert!(said.trim_end().ends_with("and more"), "{said}");
    for (name, code) in [("ffff", 4), ("lately", 2)] {
        let unknown = run(&folder, &["verify", name], &provider).await;
        assert_eq!(
            unknown.status.code(),
            Some(code),
            "{}",
            text(&unknown.stderr)
        );
        assert!(text(&unknown.stderr).contains(name));
    }
}

#[tokio::test]
async fn a_run_on_a_server_is_shown_verified_and_replayed() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let folder = TempDir::new().unwrap();
    let got = app.ask("audit", QUESTION).await;
    let id = got.run.to_string();
    let server = ["--server", &app.url];
    for name in ["last", &id, &id[..30]] {
        let shown = run(&folder, &["show", name, server[0], server[1]], &provider).await;
        assert!(
            text(&shown.stdout).contains(got.text()),
            "{}",
            text(&shown.stderr)
        );
        let proof = run(&folder, &["verify", name, server[0], server[1]], &provider).await;
        let said = text(&proof.stdout);
        assert!(
            said.contains(&format!("as verified by {}", app.url)),
            "{said}"
        );
        let replayed = run(&folder, &["replay", name, server[0], server[1]], &provider).await;
        let said = text(&replayed.stdout);
        assert!(
            said.contains("the reply would be the same"),
            "{}",
            text(&replayed.stderr)
        );
    }
    let unknown = "01890000-0000-7000-8000-000000000000";
    let shown = run(&folder, &["show", unknown, server[0], server[1]], &provider).await;
    assert_eq!(shown.status.code(), Some(4), "{}", text(&shown.stderr));
}

#[tokio::test]
async fn a_run_with_an_altered_journal_is_shown_with_a_warning() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    run(&folder, &["ask", QUESTION], &provider).await;
    let exported = run(&folder, &["export"], &provider).await;
    assert_eq!(text(&exported.stderr), "exported 1 run\n");
    let path = folder.path().join("data/conclave.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("UPDATE entries SET body = replace(body, '100', '101') WHERE key = 'synthesis'")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let shown = run(&folder, &["show", "last"], &provider).await;
    let (first, rest) = (text(&shown.stdout), text(&shown.stderr));
    assert_eq!(shown.status.code(), Some(9), "{rest}");
    assert!(first.starts_with("WARNING: the journal of run "), "{first}");
    assert!(rest.contains("was altered"), "{rest}");
    assert!(
        first.contains(QUESTION),
        "the run is shown all the same: {first}"
    );
    let shown = run(&folder, &["show", "last", "--json"], &provider).await;
    let body: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(body["broken"].is_string(), "{body}");
    assert_eq!(shown.status.code(), Some(9));
}
