//! Tests the SQLite database as a file: its permissions, its path, and limits of its size.

use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use conclave::journal::{RunFilter, RunReader as _, SqliteStore};
use tempfile::TempDir;
use tokio::process::Command;

use crate::cli::run;
use crate::support::process::{DEFAULT_CONFIG, Service, conclave};
use crate::support::{Fault, MockProvider, QUESTION, TestApp, chat, client, status_of, until};

fn rights(path: &Path) -> u32 {
    std::fs::metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .permissions()
        .mode()
        & 0o777
}

#[tokio::test]
async fn only_the_owner_reads_the_database_its_log_and_its_folders() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("new/data");
    let database = data.join("conclave.db");
    let check = || {
        for name in [
            "conclave.db",
            "conclave.db-wal",
            "conclave.db-shm",
            "conclave.db.owners/.door",
        ] {
            assert_eq!(rights(&data.join(name)), 0o600, "{name}");
        }
        assert_eq!(rights(&data.join("conclave.db.owners")), 0o700);
    };
    let store = SqliteStore::open(&database, "first").await.unwrap();
    check();
    assert_eq!(rights(&data), 0o700);
    drop(store);
    // Sets the permissions that earlier releases left.
    for (name, mode) in [
        ("conclave.db", 0o644),
        ("conclave.db.owners", 0o755),
        ("conclave.db.owners/.door", 0o600),
    ] {
        std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let _store = SqliteStore::open(&database, "second").await.unwrap();
    check();
}

#[tokio::test]
async fn a_database_file_that_was_deleted_or_replaced_stops_new_runs() {
    if crate::support::postgres::is_chosen() {
        return;
    }
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    assert_eq!(app.get("/ready").await.0, 200);
    let (file, aside) = (
        app.folder.path().join("conclave.db"),
        app.folder.path().join("aside"),
    );
    std::fs::rename(&file, &aside).unwrap();
    for replaced in [false, true] {
        if replaced {
            std::fs::write(&file, "").unwrap();
        }
        let (status, problem) = app.get("/ready").await;
        assert_eq!(
            (status, problem["type"].as_str()),
            (503, Some("urn:conclave:problem:not-ready"))
        );
        let refused = app.post(&chat("ask", QUESTION)).send().await.unwrap();
        assert_eq!(refused.status(), 503);
        let said = refused.text().await.unwrap();
        assert!(said.contains("deleted or replaced"), "{said}");
    }
    std::fs::rename(&aside, &file).unwrap();
    assert_eq!(app.get("/ready").await.0, 200);
    assert_eq!(app.ask("ask", QUESTION).await.outcome, "answered");
    assert_eq!(
        provider.count_step("plan"),
        1,
        "the refused ones bought nothing"
    );
}

#[tokio::test]
async fn no_new_file_is_made_beside_the_log_of_a_missing_one() {
    if crate::support::postgres::is_chosen() {
        return;
    }
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    assert_eq!(app.ask("ask", QUESTION).await.outcome, "answered");
    let [file, aside] = ["conclave.db", "aside"].map(|name| app.folder.path().join(name));
    std::fs::rename(&file, &aside).unwrap();
    let other = SqliteStore::open(&file, "other").await;
    let error = other.err().unwrap().to_string();
    assert!(error.contains("its log is there"), "{error}");
    assert!(!file.exists());
    std::fs::rename(&aside, &file).unwrap();
    assert_eq!(app.get("/ready").await.0, 200);
    let other = SqliteStore::open(&file, "other").await.unwrap();
    let all = RunFilter {
        limit: 9,
        ..RunFilter::default()
    };
    assert_eq!(other.runs(&all).await.unwrap().len(), 1);
}

/// Overwrites the first page of the table of entries.
fn damage_entries(file: &Path) {
    let raw = rusqlite::Connection::open(file).unwrap();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'entries'";
    let page: u32 = raw.query_row(root, [], |row| row.get(0)).unwrap();
    drop(raw);
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.write_all_at(&[0x5a; 4096], u64::from(page - 1) * 4096)
        .unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_not_ready_and_nothing_is_promised() {
    let folder = TempDir::new().unwrap();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("CONCLAVE_BIND", "127.0.0.1:0"),
        ("DATABASE_URL", "sqlite://conclave.db"),
    ];
    let mut created = conclave(folder.path(), &["act", "roll 1d6"], &variables);
    assert!(created.status().await.unwrap().success());
    damage_entries(&folder.path().join("conclave.db"));
    let service = Service::start(folder.path(), &variables).await;
    let act = client().post(format!("{}/api/act", service.url));
    let refused = act.json(&crate::act::said("u", "roll 1d6"));
    let refused = refused.send().await.unwrap().text().await.unwrap();
    assert!(refused.contains("the file is damaged"), "{refused}");
    assert!(!refused.contains("nothing was lost"), "{refused}");
    let ready = client().get(format!("{}/ready", service.url));
    assert_eq!(status_of(ready).await, 503);
    service.stop().await;
}

#[tokio::test]
async fn a_client_of_a_run_that_cannot_be_written_any_more_is_told() {
    if crate::support::postgres::is_chosen() {
        return;
    }
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(Duration::from_millis(500)));
    let app = TestApp::start(&provider).await;
    app.app.keep_recovering();
    let damage = async {
        until(async || provider.state().in_flight > 0).await;
        let file = app.folder.path().join("conclave.db");
        let raw = rusqlite::Connection::open(&file).unwrap();
        raw.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        damage_entries(&file);
        // Makes the other connections read their pages anew.
        raw.execute_batch("CREATE TABLE changed (a)").unwrap();
    };
    let request = app
        .post(&chat("ask", QUESTION))
        .timeout(Duration::from_secs(30));
    let (answer, ()) = tokio::join!(request.send(), damage);
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 503);
    let said = answer.text().await.unwrap();
    assert!(said.contains("the file is damaged"), "{said}");
}

/// Returns the service's command in a folder, executed by an ordinary user.
fn service_of_ordinary_user(folder: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = conclave(folder, &["serve"], variables);
    if is_root() {
        // That user may not read the folder of the build or of the sources.
        let config = reachable(folder, "llm.config.json", DEFAULT_CONFIG);
        command.env("CONCLAVE_CONFIG", config);
        command.env(
            "PROGRAM",
            reachable(folder, "conclave", env!("CARGO_BIN_EXE_conclave")),
        );
        command.uid(OTHER_USER).gid(OTHER_USER);
    }
    command
}

fn reachable(folder: &Path, name: &str, file: &str) -> PathBuf {
    let copy = folder.join(name);
    std::fs::copy(file, &copy).unwrap();
    copy
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const OTHER_USER: u32 = 65534;

fn give_to_other_user(path: &Path) {
    std::os::unix::fs::chown(path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
}

const OWN_DATABASE: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "k"),
    ("CONCLAVE_BIND", "127.0.0.1:0"),
    ("DATABASE_URL", "sqlite://conclave.db"),
];

#[tokio::test]
async fn a_file_that_the_service_cannot_write_is_refused_before_it_listens() {
    let folder = TempDir::new().unwrap();
    let mut created = conclave(folder.path(), &["act", "roll 1d6"], &OWN_DATABASE);
    assert!(created.status().await.unwrap().success());
    if is_root() {
        give_to_other_user(folder.path());
    }
    let file = folder.path().join("conclave.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let service = service_of_ordinary_user(folder.path(), &OWN_DATABASE);
    let (code, _, error) = run(service).await;
    assert_ne!(code, 0);
    let why = "the file conclave.db cannot be written: it belongs to the user ";
    assert!(
        error.contains(why) && error.contains("(mode 444)"),
        "{error}"
    );
}

#[tokio::test]
async fn a_command_of_root_leaves_its_files_to_the_user_of_the_service() {
    if !is_root() {
        return;
    }
    let folder = TempDir::new().unwrap();
    give_to_other_user(folder.path());
    let database = ("DATABASE_URL", "sqlite://new/data/conclave.db");
    let variables = [&OWN_DATABASE[..2], &[database]].concat();
    let token = ["token", "create", "--name", "a", "--scope", "chat"];
    let backup = ["backup", "new/data/copy.db"];
    for arguments in [&token[..], &["act", "roll 1d6"], &backup] {
        let (code, _, error) = run(conclave(folder.path(), arguments, &variables)).await;
        assert_eq!(code, 0, "{error}");
    }
    let copy = std::fs::metadata(folder.path().join("new/data/copy.db")).unwrap();
    assert_eq!(copy.uid(), OTHER_USER);
    let service = service_of_ordinary_user(folder.path(), &variables);
    let log = Service::of(service).await.stop().await;
    assert!(!log.contains("WARN"), "{log}");
}

#[tokio::test]
async fn a_limit_of_the_size_of_files_is_an_error_and_no_crash() {
    let folder = TempDir::new().unwrap();
    let provider = MockProvider::start().await;
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("CONCLAVE_BIND", "127.0.0.1:0"),
        ("DATABASE_URL", "sqlite://conclave.db"),
    ];
    // Creates the database without a size limit.
    assert!(
        conclave(folder.path(), &["act", "roll 1d6"], &variables)
            .status()
            .await
            .unwrap()
            .success()
    );
    // The unit is 1024 bytes: the limit is slightly above the size of the database.
    let limited = [&variables[..], &[("LIMIT", "-f 320")]].concat();
    let mut service = Service::start(folder.path(), &limited).await;
    let url = service.url.clone();
    let client = client();
    let mut refused = None;
    for n in 0..60 {
        let message = format!("{n} {}", "And why? ".repeat(3000));
        let body = crate::act::said("u", &format!("remember {message}"));
        let response = client
            .post(format!("{url}/api/act"))
            .json(&body)
            .send()
            .await
            .expect("the service lives");
        if response.status() == 503 {
            refused = Some(response.text().await.unwrap());
            break;
        }
    }
    let refused = refused.expect("the limit is reached");
    assert!(
        refused.contains("cannot grow") || refused.contains("disk is full"),
        "{refused}"
    );
    assert_eq!(status_of(client.get(format!("{url}/ready"))).await, 503);
    assert_eq!(status_of(client.get(format!("{url}/health"))).await, 200);
    assert!(
        service.child.try_wait().unwrap().is_none(),
        "the process lives"
    );
}
