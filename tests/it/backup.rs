//! Tests backup and restore with the real binary.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::cli::{CommandLine, run};
use crate::support::QUESTION;
use crate::support::process::Service;

const DATABASE: &str = "data/conclave.db";

/// Returns a command line whose database has this number of runs.
async fn with_runs(runs: usize) -> CommandLine {
    let cli = CommandLine::new().await;
    for _ in 0..runs {
        let (code, _, error) = cli.run(&["ask", "--new", QUESTION]).await;
        assert_eq!(code, 0, "{error}");
    }
    cli
}

/// Returns every finished run with its journal and the hashes of its chain.
async fn runs(cli: &CommandLine) -> Vec<String> {
    let (code, out, error) = cli.run(&["export"]).await;
    assert_eq!(code, 0, "{error}");
    let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

async fn backup(cli: &CommandLine) -> String {
    let (code, _, error) = cli.run(&["backup", "backup.db"]).await;
    assert_eq!(code, 0, "{error}");
    cli.path("backup.db").to_str().unwrap().to_owned()
}

/// Returns the file names in the database's folder.
fn names(cli: &CommandLine) -> Vec<String> {
    let files = std::fs::read_dir(cli.path("data")).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Runs a statement on a database that no service has open.
fn change(path: &Path, statement: &str) {
    let raw = Connection::open(path).unwrap();
    raw.execute_batch(statement).unwrap();
}

#[tokio::test]
async fn a_backup_of_a_running_service_is_restored_into_an_empty_folder() {
    let here = with_runs(2).await;
    let bind = ("CONCLAVE_BIND", "127.0.0.1:0");
    let service = Service::of(here.command(&["serve"], &[bind])).await;
    let asked = here
        .run(&["ask", "--new", "--server", &service.url, "Name one planet."])
        .await;
    assert_eq!(asked.0, 0, "{}", asked.2);
    let backup = backup(&here).await;
    assert_eq!(mode(Path::new(&backup)), 0o600);
    service.stop().await;

    let there = CommandLine::new().await;
    let said = there.run(&["restore", &backup]).await;
    assert_eq!((said.0, said.2.as_str()), (0, ""));
    assert_eq!(
        said.1,
        "restored data/conclave.db: 3 runs, all chains verified\n"
    );
    assert_eq!(mode(&there.path(DATABASE)), 0o600);
    assert_eq!(names(&there), ["conclave.db", "conclave.db.owners"]);
    let restored = runs(&there).await;
    assert_eq!((restored.len(), &restored), (3, &runs(&here).await));
    let listed = there.run(&["runs", "--json"]).await.1;
    assert_eq!(listed, here.run(&["runs", "--json"]).await.1);
    for line in listed.lines() {
        let run: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            there.run(&["verify", run["id"].as_str().unwrap()]).await.0,
            0
        );
    }
    // The restored database accepts new runs.
    assert_eq!(there.run(&["ask", "--new", QUESTION]).await.0, 0);
    assert_eq!(runs(&there).await.len(), 4);
}

#[tokio::test]
async fn a_database_in_use_is_not_replaced_even_by_force() {
    let place = with_runs(1).await;
    let backup = backup(&place).await;
    assert_eq!(place.run(&["ask", "--new", QUESTION]).await.0, 0);
    let bind = ("CONCLAVE_BIND", "127.0.0.1:0");
    let service = Service::of(place.command(&["serve"], &[bind])).await;
    for arguments in [&["restore", &backup][..], &["restore", "--force", &backup]] {
        let said = place.run(arguments).await;
        assert_eq!(said.0, 4, "{}", said.2);
        assert!(said.2.contains("in use by a running service"), "{}", said.2);
    }
    service.stop().await;
    assert_eq!(runs(&place).await.len(), 2);

    // Another program holds the file open and does not know the locks of Conclave.
    let other = Connection::open(place.path(DATABASE)).unwrap();
    other.execute_batch("SELECT COUNT(*) FROM runs").unwrap();
    let said = place.run(&["restore", "--force", &backup]).await;
    assert!(
        said.0 == 4 && said.2.contains("in use"),
        "{} {}",
        said.0,
        said.2
    );
    drop(other);
    assert_eq!(runs(&place).await.len(), 2);
    assert_eq!(place.run(&["restore", "--force", &backup]).await.0, 0);
    assert_eq!(runs(&place).await.len(), 1);
}

#[tokio::test]
async fn a_database_with_data_is_replaced_only_by_force_and_kept() {
    let place = with_runs(1).await;
    let backup = backup(&place).await;
    assert_eq!(place.run(&["ask", "--new", QUESTION]).await.0, 0);
    let before = runs(&place).await;
    let said = place.run(&["restore", &backup]).await;
    assert!(
        said.0 == 4 && said.2.contains("the database has data; with --force"),
        "{}",
        said.2
    );
    assert_eq!(runs(&place).await, before);

    let said = place.run(&["restore", "--force", &backup]).await;
    assert_eq!(said.0, 0, "{}", said.2);
    assert_eq!(runs(&place).await.len(), 1);
    let former = said
        .1
        .lines()
        .nth(1)
        .unwrap()
        .strip_prefix("the former database is ")
        .unwrap();
    assert!(former.starts_with("data/conclave.db.20"), "{former}");
    let former = format!("sqlite://{former}");
    let kept = run(place.command(&["export"], &[("DATABASE_URL", &former)]))
        .await
        .1;
    let mut kept: Vec<&str> = kept.lines().collect();
    kept.sort_unstable();
    assert_eq!(kept, before);
}

#[tokio::test]
async fn a_database_without_rows_is_replaced() {
    let place = with_runs(1).await;
    let backup = backup(&place).await;
    let fresh = CommandLine::new().await;
    assert_eq!(fresh.run(&["runs"]).await.0, 0);
    assert!(fresh.path(DATABASE).exists());
    assert_eq!(fresh.run(&["restore", &backup]).await.0, 0);
    assert_eq!(runs(&fresh).await, runs(&place).await);

    // A database with only a token counts as data.
    let with_token = CommandLine::new().await;
    assert_eq!(
        with_token
            .run(&["token", "create", "--name", "a", "--scope", "chat"])
            .await
            .0,
        0
    );
    assert_eq!(with_token.run(&["restore", &backup]).await.0, 4);
}

#[tokio::test]
async fn an_invalid_backup_changes_nothing() {
    let place = with_runs(2).await;
    let (code, _, error) = place.run(&["feedback", "last", "--positive"]).await;
    assert_eq!(code, 0, "{error}");
    let backup = backup(&place).await;
    let sound = std::fs::read(&backup).unwrap();
    let there = CommandLine::new().await;
    std::fs::create_dir(there.path("data")).unwrap();

    let bad = there.path("bad.db");
    let refused = async |code: i32, words: &str| {
        let said = there.run(&["restore", bad.to_str().unwrap()]).await;
        assert_eq!(said.0, code, "{}", said.2);
        assert!(
            said.2.contains("nothing was restored") && said.2.contains(words),
            "{}",
            said.2
        );
        assert_eq!(names(&there), ["conclave.db.owners"], "{words}");
    };
    let mut zeroed = sound.clone();
    let middle = zeroed.len() / 2 / 4096 * 4096;
    zeroed[middle..middle + 4096].fill(0);
    std::fs::write(&bad, zeroed).unwrap();
    refused(9, "the backup is damaged").await;
    std::fs::write(&bad, &sound[..sound.len() / 2]).unwrap();
    refused(9, "the backup is damaged").await;
    std::fs::write(
        &bad,
        "no database at all, but a text of some length that is longer than a header",
    )
    .unwrap();
    refused(9, "it is no SQLite database").await;
    std::fs::write(&bad, "").unwrap();
    refused(4, "it holds no Conclave database").await;

    for (statement, code, words) in [
        (
            "UPDATE entries SET body = replace(body, 'boiling', 'melting') WHERE seq = 1",
            9,
            "entry 1 (accepted) was altered",
        ),
        (
            "UPDATE runs SET spent_nanos = 0 WHERE id = (SELECT MIN(id) FROM runs)",
            9,
            "its spent_nanos is not what the entries say",
        ),
        (
            "UPDATE learned_answers SET confidence = 0.95",
            9,
            "the answer that was learned from the run was altered",
        ),
        (
            "DELETE FROM learned_answers",
            9,
            "the answer that was learned from the run was altered",
        ),
        (
            "DELETE FROM entries WHERE run = (SELECT MIN(id) FROM runs) AND key = 'finished'",
            9,
            "the backup is damaged",
        ),
        (
            "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time)
             VALUES (9999, 'later', '2030-01-01', TRUE, X'00', 0)",
            4,
            "schema version 9999",
        ),
    ] {
        std::fs::write(&bad, &sound).unwrap();
        change(&bad, statement);
        refused(code, words).await;
    }
    std::fs::write(&bad, &sound).unwrap();
    std::fs::write(there.path("bad.db-wal"), "frames").unwrap();
    refused(4, "it has a log beside it").await;
    std::fs::remove_file(there.path("bad.db-wal")).unwrap();
    assert_eq!(
        there.run(&["restore", bad.to_str().unwrap()]).await.0,
        0,
        "what was changed is what was refused"
    );

    assert_eq!(there.run(&["restore", "absent.db"]).await.0, 4);
    let said = there.run(&["restore", "--force", DATABASE]).await;
    assert!(
        said.0 == 4 && said.2.contains("the database itself"),
        "{}",
        said.2
    );
}

#[tokio::test]
async fn force_replaces_an_unreadable_database_and_its_log() {
    let place = with_runs(1).await;
    let backup = backup(&place).await;
    let expected = runs(&place).await;
    std::fs::write(place.path(DATABASE), [0x55; 8192]).unwrap();
    std::fs::write(place.path("data/conclave.db-wal"), "left by a crash").unwrap();
    std::fs::write(place.path("data/conclave.db-shm"), "left by a crash").unwrap();
    assert_eq!(place.run(&["restore", &backup]).await.0, 4);
    let said = place.run(&["restore", "--force", &backup]).await;
    assert_eq!(said.0, 0, "{}", said.2);
    assert_eq!(runs(&place).await, expected);
    let former = place.path(
        said.1
            .lines()
            .nth(1)
            .unwrap()
            .strip_prefix("the former database is ")
            .unwrap(),
    );
    assert_eq!(std::fs::read(&former).unwrap(), [0x55; 8192]);
    assert_eq!(
        std::fs::read_to_string(format!("{}-wal", former.display())).unwrap(),
        "left by a crash"
    );
}

#[tokio::test]
async fn a_log_whose_database_is_missing_is_replaced_only_by_force_and_kept() {
    let place = with_runs(1).await;
    let backup = backup(&place).await;
    let empty = CommandLine::new().await;
    std::fs::create_dir(empty.path("data")).unwrap();
    let log = empty.path("data/conclave.db-wal");
    std::fs::write(&log, "runs that no file has").unwrap();
    for has_file in [false, true] {
        if has_file {
            std::fs::write(empty.path(DATABASE), "").unwrap();
        }
        let (code, _, error) = empty.run(&["restore", &backup]).await;
        assert!(code == 4 && error.contains("its log is there"), "{error}");
        assert!(log.exists());
    }
    std::fs::remove_file(empty.path(DATABASE)).unwrap();
    let (code, out, error) = empty.run(&["restore", "--force", &backup]).await;
    assert_eq!(code, 0, "{error}");
    let kept = out.lines().nth(1).unwrap();
    let kept = kept.strip_prefix("the log of the former database is ");
    let kept = std::fs::read_to_string(empty.path(kept.unwrap())).unwrap();
    assert_eq!(kept, "runs that no file has");
    assert_eq!(names(&empty).len(), 3);
    assert_eq!(runs(&empty).await, runs(&place).await);
}

#[tokio::test]
async fn a_backup_that_is_killed_leaves_nothing_under_its_name() {
    let place = with_runs(1).await;
    let ballast = "CREATE TABLE ballast AS SELECT zeroblob(40000000) AS bytes";
    change(&place.path(DATABASE), ballast);
    let mut backup = place.command(&["backup", "backup.db"], &[]);
    let mut backup = backup.spawn().unwrap();
    let begun = || {
        let files = std::fs::read_dir(place.folder.path()).unwrap();
        let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.any(|name| name.starts_with("backup.db"))
    };
    while !begun() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    backup.kill().await.unwrap();
    assert!(!place.path("backup.db").exists());
    let (code, _, error) = place.run(&["backup", "backup.db"]).await;
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = place.run(&["backup", "backup.db"]).await;
    assert!(code == 4 && error.contains("File exists"), "{error}");
}

#[tokio::test]
async fn a_backup_of_an_older_release_is_brought_up_to_date() {
    let place = CommandLine::new().await;
    let old = place.path("old.db");
    let dump = include_str!("../fixtures/database-0001.sql");
    change(&old, &format!("PRAGMA foreign_keys = FALSE; {dump}"));
    let before = std::fs::read(&old).unwrap();
    let said = place.run(&["restore", "old.db"]).await;
    assert_eq!(
        (said.0, said.1.as_str()),
        (
            0,
            "restored data/conclave.db: 2 runs, all chains verified\n"
        )
    );
    assert_eq!(place.run(&["runs", "--json"]).await.1.lines().count(), 2);
    assert_eq!(
        std::fs::read(&old).unwrap(),
        before,
        "the backup itself stays as it is"
    );
}

#[tokio::test]
async fn a_failed_backup_reports_its_reason() {
    let place = CommandLine::new().await;
    let said = place.run(&["backup", "copy.db"]).await;
    assert!(
        said.0 == 4 && said.2.contains("there is no database data/conclave.db"),
        "{}",
        said.2
    );
    assert!(!place.path("copy.db").exists() && !place.path("data").exists());
    for arguments in [["backup", "copy.db"], ["restore", "copy.db"]] {
        let postgres = [(
            "DATABASE_URL",
            "postgres://ada:planted-secret@127.0.0.1:1/x",
        )];
        let said = run(place.command(&arguments, &postgres)).await;
        assert_eq!(said.0, 2, "{}", said.2);
        assert!(
            said.2.contains("pg_dump") && said.2.contains("pg_restore"),
            "{}",
            said.2
        );
        assert!(!said.2.contains("planted-secret"), "{}", said.2);
    }
}
