//! Tests a database that is full, locked or unreachable. The service answers 503, loses and
//! corrupts nothing, and continues its runs after the trouble is over.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::{
    self, BackendStore as _, Ending, Error, JournalStore as _, PostgresStore, SqliteBounds,
    SqliteStore,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use sqlx::PgPool;
use tempfile::TempDir;

use crate::support::process::{Home, conclave};
use crate::support::{
    Fault, MockProvider, QUESTION, Setup, TestApp, chat, client, execute, postgres, run_of, sent,
    until,
};

const FILL: &str = "INSERT INTO ballast VALUES (zeroblob(2000000))";

/// Returns a service whose file may grow by at most `most_pages` and whose lock timeout is short,
/// with a raw connection.
async fn cramped(provider: &MockProvider, most_pages: Option<u32>) -> (TestApp, Connection) {
    let folder = Arc::new(TempDir::new().unwrap());
    let path = folder.path().join("conclave.db");
    // The ballast is data that an operator can delete to free space.
    drop(SqliteStore::open(&path, "before").await.unwrap());
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("CREATE TABLE ballast (bytes BLOB)")
        .unwrap();
    raw.execute_batch(FILL).unwrap();
    let pages = raw.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0));
    let pages = pages.unwrap();
    let bounds = SqliteBounds {
        patience: Duration::from_millis(50),
        most_pages: most_pages.map(|more| pages + more),
    };
    let store = SqliteStore::open_within(&path, "cramped", bounds)
        .await
        .unwrap();
    // Uses the shipped caps: calls in doubt after the full disk must leave money for an answer.
    let setup = Setup::default().set("/policy/leaseSeconds", json!(2));
    (
        TestApp::with_store(provider, setup, folder, store, "cramped").await,
        raw,
    )
}

/// Submits a question. Returns the run's id, or the status and the problem.
async fn hand_in(app: &TestApp, message: &str) -> Result<RunId, (u16, Value)> {
    let request = app
        .post(&chat("ask", message))
        .header("prefer", "respond-async");
    let response = sent(request).await;
    let status = response.status().as_u16();
    if status != 202 {
        assert!(response.headers().contains_key("retry-after"));
        return Err((status, response.json().await.unwrap()));
    }
    Ok(run_of(&response))
}

/// Checks that every run has its reply and an intact chain, and that the file passes the integrity
/// check.
async fn hold(app: &TestApp, raw: &Connection, runs: &[RunId]) {
    for run in runs {
        let ending = app.ended(*run).await;
        assert!(matches!(ending, Ending::Replied { .. }), "{ending:?}");
        let row = app.app.run(*run).await.unwrap().unwrap();
        assert_eq!(
            journal::verify(*run, &app.entries(*run).await, &row.head_hash),
            Ok(())
        );
    }
    let sound = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    assert_eq!(sound, Ok("ok".to_owned()));
}

#[tokio::test]
async fn a_full_disk_refuses_new_runs_and_delays_those_in_flight() {
    let provider = MockProvider::start().await;
    let (app, raw) = cramped(&provider, Some(12)).await;
    // Large questions fill the last pages, and small ones what is left, so that runs in flight meet
    // the full disk.
    let mut accepted = vec![];
    let mut fill = async |times: usize| loop {
        let question = format!(
            "{QUESTION} {}",
            format!("And why, in case {}? ", accepted.len()).repeat(times)
        );
        match hand_in(&app, &question).await {
            Ok(run) => accepted.push(run),
            Err(refused) => break refused,
        }
    };
    fill(300).await;
    let (status, problem) = fill(1).await;
    assert!((1..40).contains(&accepted.len()), "{accepted:?}");
    assert_eq!(
        (status, problem["type"].as_str()),
        (503, Some("urn:conclave:problem:no-journal"))
    );
    assert_eq!(
        (app.get("/health").await.0, app.get("/ready").await.0),
        (200, 503)
    );
    for run in &accepted {
        assert!(
            !app.app
                .run(*run)
                .await
                .unwrap()
                .unwrap()
                .state
                .is_terminal(),
            "what was taken on is not lost"
        );
    }
    raw.execute_batch("DELETE FROM ballast").unwrap();
    hold(&app, &raw, &accepted).await;
    assert!(hand_in(&app, "And now?").await.is_ok());
    assert_eq!(app.get("/ready").await.0, 200);
    assert_eq!(provider.repeated_keys(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_in_flight_keeps_its_answers_until_a_full_disk_has_space() {
    let provider = MockProvider::start().await;
    provider
        .on("r1/*", Fault::Latency(Duration::from_millis(300)))
        .times(3);
    let (app, raw) = cramped(&provider, Some(1)).await;
    let run = hand_in(&app, QUESTION).await.unwrap();
    until(async || provider.state().in_flight >= 3).await;
    raw.execute_batch(FILL).unwrap();
    until(async || app.get("/ready").await.0 == 503).await;
    raw.execute_batch("DELETE FROM ballast").unwrap();
    hold(&app, &raw, &[run]).await;
    let bought: Vec<String> = provider.calls().into_iter().map(|it| it.key).collect();
    assert!(bought.iter().all(|it| !it.contains('#')), "{bought:?}");
}

#[tokio::test]
async fn a_locked_database_refuses_new_runs_and_delays_those_in_flight() {
    let provider = MockProvider::start().await;
    provider
        .on("r1/*", Fault::Latency(Duration::from_millis(300)))
        .times(3);
    let (app, raw) = cramped(&provider, None).await;
    let run = hand_in(&app, QUESTION).await.unwrap();
    until(async || provider.state().in_flight >= 3).await;
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (status, problem) = hand_in(&app, "Another?").await.unwrap_err();
    assert_eq!(
        (status, problem["type"].as_str()),
        (503, Some("urn:conclave:problem:no-journal"))
    );
    assert!(!problem.to_string().contains("INSERT"));
    assert_eq!(
        app.get(&format!("/api/runs/{run}")).await.0,
        200,
        "reading needs no lock"
    );
    until(async || provider.state().in_flight == 0).await;
    raw.execute_batch("ROLLBACK").unwrap();
    hold(&app, &raw, &[run]).await;
    assert!(hand_in(&app, "Another?").await.is_ok());
    assert_eq!(provider.repeated_keys(), Vec::<String>::new());
}

#[tokio::test]
async fn sqlite_errors_have_clear_messages() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let bounds = SqliteBounds {
        patience: Duration::from_millis(20),
        most_pages: Some(1),
    };
    let full = SqliteStore::open_within(&path, "one", bounds)
        .await
        .err()
        .unwrap();
    assert_eq!(
        full.to_string(),
        "the database is not available: the disk is full"
    );
    let store = SqliteStore::open_within(
        &path,
        "one",
        SqliteBounds {
            most_pages: None,
            ..bounds
        },
    )
    .await
    .unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = store
        .cancel("01890000-0000-7000-8000-000000000000".parse().unwrap())
        .await
        .unwrap_err();
    assert_eq!(
        locked.to_string(),
        "the database is not available: it is locked by another process"
    );
    raw.execute_batch("ROLLBACK").unwrap();
}

#[tokio::test]
async fn postgresql_errors_have_clear_messages_without_address_or_statement() {
    let url = postgres::fresh().await;
    let store = PostgresStore::open(&url, "one").await.unwrap();
    let raw = PgPool::connect(&url).await.unwrap();
    // The trigger refuses every insert of a run with the SQLSTATE that is its user id.
    execute(
        &raw,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'planted INSERT' USING ERRCODE = NEW.user_id; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION refuse();",
    )
    .await;
    let cases = [
        ("53100", "the disk is full"),
        ("53300", "it has no connection left"),
        ("55P03", "it is locked by another process"),
        ("25006", "it is read-only"),
        ("40001", "too many others write at the same time"),
        ("XX001", "PostgreSQL error XX001"),
    ];
    for (code, name) in cases {
        let mut run = crate::store::new_run(1, None, "one");
        run.accepted.question.user.id = code.into();
        let error = store.accept(run).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the database is not available: {name}")
        );
    }
}

#[tokio::test]
async fn a_lock_that_only_refuses_writes_is_seen_by_readiness() {
    let url = postgres::fresh().await;
    let store = PostgresStore::open(&url, "one").await.unwrap();
    let raw = PgPool::connect(&url).await.unwrap();
    let mut lock = raw.begin().await.unwrap();
    execute(&mut *lock, "LOCK TABLE runs IN SHARE MODE").await;
    let why = store.ready().await.unwrap_err().to_string();
    assert!(
        why.contains("it does not answer") || why.contains("locked"),
        "{why}"
    );
    lock.rollback().await.unwrap();
    store.ready().await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_store_every_text_is_refused() {
    let url = postgres::fresh().await;
    let raw = PgPool::connect(&url).await.unwrap();
    let latin = format!("latin_{:x}", rand::random::<u64>());
    let create = format!("CREATE DATABASE {latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    execute(&raw, create).await;
    let mut url = url::Url::parse(&url).unwrap();
    url.set_path(&latin);
    let refused = PostgresStore::open(url.as_str(), "one")
        .await
        .err()
        .unwrap();
    let refused = refused.to_string();
    assert!(refused.contains("its encoding is LATIN1"), "{refused}");
}

/// Ends all other connections to the database of a raw connection.
const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test]
async fn connections_to_a_read_only_server_are_replaced() {
    let url = postgres::fresh().await;
    let store = PostgresStore::open(&url, "one").await.unwrap();
    store.ready().await.unwrap();
    let raw = PgPool::connect(&url).await.unwrap();
    let read_only = async |value: &str| {
        let statement = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}',
             current_database()); END $$"
        );
        let statement = format!("BEGIN READ WRITE; {statement}; COMMIT; {CUT}");
        execute(&raw, statement).await;
    };
    read_only("on").await;
    let accepted = store.accept(crate::store::new_run(1, None, "one")).await;
    let said = "the database is not available: it is read-only";
    assert_eq!(accepted.unwrap_err().to_string(), said);
    assert_eq!(store.ready().await.unwrap_err().to_string(), said);
    // New sessions can write. Those in the pool cannot, so they must not be used any more.
    let statement =
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only',
                     current_database()); END $$";
    let statement = format!("BEGIN READ WRITE; {statement}; COMMIT");
    execute(&raw, statement).await;
    store.ready().await.unwrap();
    let accepted = store.accept(crate::store::new_run(1, None, "one")).await;
    assert_eq!(accepted.unwrap(), journal::Acceptance::New);
}

#[tokio::test]
async fn the_loss_and_the_return_of_the_database_are_logged_once_and_told_by_ready() {
    let provider = MockProvider::start().await;
    let home = Home::postgres(30).await;
    let mut service = home.serve(&provider, &[]).await;
    let mut other: url::Url = home.database.parse().unwrap();
    let name = other.path().trim_start_matches('/').to_owned();
    other.set_path("postgres");
    let raw = PgPool::connect(other.as_str()).await.unwrap();
    let allow = async |is_allowed: bool| {
        let statement = format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {is_allowed};
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        );
        execute(&raw, statement).await;
    };
    let url = format!("{}/ready", service.url);
    let ready = async || {
        let answer = client().get(&url).send().await;
        answer.unwrap().status().as_u16()
    };
    assert_eq!(ready().await, 200);
    allow(false).await;
    service.logged("the database is unavailable").await;
    assert_eq!(ready().await, 503);
    allow(true).await;
    service.logged("the database is available again").await;
    assert_eq!(ready().await, 200);
    let log = service.stop().await;
    let count = |line: &str| log.lines().filter(|l| l.contains(line)).count();
    assert_eq!(
        (
            count("the database is unavailable"),
            count("the database is available again")
        ),
        (1, 1),
        "{log}"
    );
}

#[tokio::test]
async fn a_transaction_that_postgresql_aborts_is_retried() {
    let url = postgres::fresh().await;
    let store = PostgresStore::open(&url, "one").await.unwrap();
    let raw = PgPool::connect(&url).await.unwrap();
    // A sequence keeps its value after a rollback: the first two attempts are aborted, the third
    // succeeds.
    execute(&raw, "CREATE SEQUENCE tries;
         CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN
             IF nextval('tries') <= 2 THEN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER break_off BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION break_off();").await;
    let accepted = store
        .accept(crate::store::new_run(1, None, "one"))
        .await
        .unwrap();
    assert_eq!(accepted, journal::Acceptance::New);
    let (tries,): (i64,) = sqlx::query_as("SELECT last_value FROM tries")
        .fetch_one(&raw)
        .await
        .unwrap();
    assert_eq!(tries, 3);
}

#[tokio::test]
async fn an_unreachable_database_stops_the_start_without_showing_its_password() {
    let good: url::Url = postgres::fresh().await.parse().unwrap();
    let mut no_such = good.clone();
    no_such.set_path("no_such_database");
    no_such.set_password(Some("planted-secret")).unwrap();
    let mut unknown = good.clone();
    unknown.set_password(Some("planted-secret")).unwrap();
    unknown.set_query(Some("sslmod=planted-secret"));
    let cases = [
        (
            "postgres://ada:planted-secret@127.0.0.1:9/conclave".to_owned(),
            "the database is not available: no server listens there",
            1,
        ),
        (no_such.into(), "it has no database of this name", 1),
        (
            unknown.into(),
            "DATABASE_URL: has a parameter that is not known: sslmod",
            3,
        ),
    ];
    let folder = TempDir::new().unwrap();
    for (url, name, code) in cases {
        for arguments in [&["serve"][..], &["runs"][..], &["config", "check"][..]] {
            let variables = [
                ("ANTHROPIC_API_KEY", "k"),
                ("CONCLAVE_BIND", "127.0.0.1:0"),
                ("DATABASE_URL", url.as_str()),
                ("RUST_LOG", "trace"),
            ];
            let output = conclave(folder.path(), arguments, &variables)
                .output()
                .await
                .unwrap();
            let shown = [output.stdout, output.stderr].concat();
            let shown = String::from_utf8_lossy(&shown);
            assert!(!shown.contains("planted-secret"), "{shown}");
            if arguments[0] != "config" {
                assert_eq!(output.status.code(), Some(code), "{shown}");
                assert!(shown.contains(name), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_schema_of_a_later_version_is_refused() {
    let url = postgres::fresh().await;
    drop(PostgresStore::open(&url, "one").await.unwrap());
    let raw = PgPool::connect(&url).await.unwrap();
    let later =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (999, 'later', true, '', 0)";
    execute(&raw, later).await;
    let error = PostgresStore::open(&url, "one").await.err().unwrap();
    assert!(matches!(error, Error::Migration(_)), "{error}");
}
