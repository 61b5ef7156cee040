//! Tests backup and restore with the real binary.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::support::MockProvider;
use crate::support::process::Service;
use crate::support::process::conclave;

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";
const DATABASE: &str = "data/conclave.db";

/// A working folder of the binary, with its mock provider.
struct Place {
    folder: TempDir,
    provider: MockProvider,
}

struct Said {
    code: i32,
    out: String,
    error: String,
}

impl Place {
    async fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            provider: MockProvider::start().await,
        }
    }

    /// Returns a place whose database has this number of runs.
    async fn with_runs(runs: usize) -> Self {
        let place = Self::new().await;
        for _ in 0..runs {
            let said = place.run(&["ask", "--new", QUESTION]).await;
            assert_eq!(said.code, 0, "{}", said.error);
        }
        place
    }

    async fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, &[]).await
    }

    async fn run_with(&self, arguments: &[&str], more: &[(&str, &str)]) -> Said {
        let url = self.provider.url();
        let variables = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
        ];
        let mut command = conclave(self.folder.path(), arguments, &variables);
        let Output {
            status,
            stdout,
            stderr,
        } = command.envs(more.iter().copied()).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said {
            code: status.code().unwrap(),
            out: text(stdout),
            error: text(stderr),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Returns every finished run with its journal and the hashes of its chain.
    async fn runs(&self) -> Vec<String> {
        let said = self.run(&["export"]).await;
        assert_eq!(said.code, 0, "{}", said.error);
        let mut lines: Vec<String> = said.out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    async fn backup(&self) -> String {
        let said = self.run(&["backup", "backup.db"]).await;
        assert_eq!(said.code, 0, "{}", said.error);
        self.path("backup.db").to_str().unwrap().to_owned()
    }

    /// Returns the file names in the database's folder.
    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.path("data")).unwrap();
        let mut names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn pool(path: &Path) -> sqlx::SqlitePool {
    sqlx::SqlitePool::connect_with(sqlx::sqlite::SqliteConnectOptions::new().filename(path))
        .await
        .unwrap()
}

/// Runs a statement on a database that no service has open.
async fn change(path: &Path, statement: &'static str) {
    let pool = pool(path).await;
    sqlx::raw_sql(statement).execute(&pool).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn a_backup_of_a_running_service_is_restored_into_an_empty_folder() {
    let here = Place::with_runs(2).await;
    let url = here.provider.url();
    let service = Service::start(
        here.folder.path(),
        &[
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("CONCLAVE_BIND", "127.0.0.1:0"),
        ],
    )
    .await;
    let asked = here
        .run(&["ask", "--new", "--server", &service.url, "Name one planet."])
        .await;
    assert_eq!(asked.code, 0, "{}", asked.error);
    let backup = here.backup().await;
    assert_eq!(mode(Path::new(&backup)), 0o600);
    service.stop().await;

    let there = Place::new().await;
    let said = there.run(&["restore", &backup]).await;
    assert_eq!((said.code, said.error.as_str()), (0, ""));
    assert_eq!(
        said.out,
        "restored data/conclave.db: 3 runs, all chains verified\n"
    );
    assert_eq!(mode(&there.path(DATABASE)), 0o600);
    assert_eq!(there.names(), ["conclave.db", "conclave.db.owners"]);
    let runs = there.runs().await;
    assert_eq!((runs.len(), &runs), (3, &here.runs().await));
    let listed = there.run(&["runs", "--json"]).await.out;
    assert_eq!(listed, here.run(&["runs", "--json"]).await.out);
    for line in listed.lines() {
        let run: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            there
                .run(&["verify", run["id"].as_str().unwrap()])
                .await
                .code,
            0
        );
    }
    // The restored database accepts new runs.
    assert_eq!(there.run(&["ask", "--new", QUESTION]).await.code, 0);
    assert_eq!(there.runs().await.len(), 4);
}

#[tokio::test]
async fn a_database_in_use_is_not_replaced_even_by_force() {
    let place = Place::with_runs(1).await;
    let backup = place.backup().await;
    assert_eq!(place.run(&["ask", "--new", QUESTION]).await.code, 0);
    let url = place.provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let service = Service::start(place.folder.path(), &variables).await;
    for arguments in [&["restore", &backup][..], &["restore", "--force", &backup]] {
        let said = place.run(arguments).await;
        assert_eq!(said.code, 4, "{}", said.error);
        assert!(
            said.error.contains("in use by a running service"),
            "{}",
            said.error
        );
    }
    service.stop().await;
    assert_eq!(place.runs().await.len(), 2);

    // Another program holds the file open and does not know the locks of Conclave.
    let other = pool(&place.path(DATABASE)).await;
    sqlx::query("SELECT COUNT(*) FROM runs")
        .execute(&other)
        .await
        .unwrap();
    let said = place.run(&["restore", "--force", &backup]).await;
    assert!(
        said.code == 4 && said.error.contains("in use"),
        "{} {}",
        said.code,
        said.error
    );
    other.close().await;
    assert_eq!(place.runs().await.len(), 2);
    assert_eq!(place.run(&["restore", "--force", &backup]).await.code, 0);
    assert_eq!(place.runs().await.len(), 1);
}

#[tokio::test]
async fn a_database_with_data_is_replaced_only_by_force_and_kept() {
    let place = Place::with_runs(1).await;
    let backup = place.backup().await;
    assert_eq!(place.run(&["ask", "--new", QUESTION]).await.code, 0);
    let before = place.runs().await;
    let said = place.run(&["restore", &backup]).await;
    assert!(
        said.code == 4 && said.error.contains("the database has data; with --force"),
        "{}",
        said.error
    );
    assert_eq!(place.runs().await, before);

    let said = place.run(&["restore", "--force", &backup]).await;
    assert_eq!(said.code, 0, "{}", said.error);
    assert_eq!(place.runs().await.len(), 1);
    let former = said
        .out
        .lines()
        .nth(1)
        .unwrap()
        .strip_prefix("the former database is ")
        .unwrap();
    assert!(former.starts_with("data/conclave.db.20"), "{former}");
    let kept = place
        .run_with(
            &["export"],
            &[("DATABASE_URL", &format!("sqlite://{former}"))],
        )
        .await
        .out;
    let mut kept: Vec<&str> = kept.lines().collect();
    kept.sort_unstable();
    assert_eq!(kept, before);
}

#[tokio::test]
async fn a_database_without_rows_is_replaced() {
    let place = Place::with_runs(1).await;
    let backup = place.backup().await;
    let fresh = Place::new().await;
    assert_eq!(fresh.run(&["runs"]).await.code, 0);
    assert!(fresh.path(DATABASE).exists());
    assert_eq!(fresh.run(&["restore", &backup]).await.code, 0);
    assert_eq!(fresh.runs().await, place.runs().await);

    // A database with only a token counts as data.
    let with_token = Place::new().await;
    assert_eq!(
        with_token
            .run(&["token", "create", "--name", "a", "--scope", "chat"])
            .await
            .code,
        0
    );
    assert_eq!(with_token.run(&["restore", &backup]).await.code, 4);
}

#[tokio::test]
async fn an_invalid_backup_changes_nothing() {
    let place = Place::with_runs(2).await;
    let backup = place.backup().await;
    let sound = std::fs::read(&backup).unwrap();
    let there = Place::new().await;
    std::fs::create_dir(there.path("data")).unwrap();

    let bad = there.path("bad.db");
    let refused = async |code: i32, words: &str| {
        let said = there.run(&["restore", bad.to_str().unwrap()]).await;
        assert_eq!(said.code, code, "{}", said.error);
        assert!(
            said.error.contains("nothing was restored") && said.error.contains(words),
            "{}",
            said.error
        );
        assert_eq!(there.names(), ["conclave.db.owners"], "{words}");
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

    std::fs::write(&bad, &sound).unwrap();
    change(
        &bad,
        "UPDATE entries SET body = replace(body, 'boiling', 'melting') WHERE seq = 1",
    )
    .await;
    refused(9, "entry 1 (accepted) was altered").await;
    std::fs::write(&bad, &sound).unwrap();
    change(
        &bad,
        "UPDATE runs SET spent_nanos = 0 WHERE id = (SELECT MIN(id) FROM runs)",
    )
    .await;
    refused(9, "its spent_nanos is not what the entries say").await;
    std::fs::write(&bad, &sound).unwrap();
    change(
        &bad,
        "DELETE FROM entries WHERE run = (SELECT MIN(id) FROM runs) AND key = 'finished'",
    )
    .await;
    refused(9, "the backup is damaged").await;
    std::fs::write(&bad, &sound).unwrap();
    change(
        &bad,
        "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time)
         VALUES (9999, 'later', '2030-01-01', TRUE, X'00', 0)",
    )
    .await;
    refused(4, "schema version 9999").await;

    std::fs::write(&bad, &sound).unwrap();
    std::fs::write(there.path("bad.db-wal"), "frames").unwrap();
    refused(4, "it has a log beside it").await;
    std::fs::remove_file(there.path("bad.db-wal")).unwrap();
    assert_eq!(
        there.run(&["restore", bad.to_str().unwrap()]).await.code,
        0,
        "what was changed is what was refused"
    );

    assert_eq!(there.run(&["restore", "absent.db"]).await.code, 1);
    let said = there.run(&["restore", "--force", DATABASE]).await;
    assert!(
        said.code == 4 && said.error.contains("the database itself"),
        "{}",
        said.error
    );
}

#[tokio::test]
async fn force_replaces_an_unreadable_database_and_its_log() {
    let place = Place::with_runs(1).await;
    let backup = place.backup().await;
    let expected = place.runs().await;
    std::fs::write(place.path(DATABASE), [0x55; 8192]).unwrap();
    std::fs::write(place.path("data/conclave.db-wal"), "left by a crash").unwrap();
    std::fs::write(place.path("data/conclave.db-shm"), "left by a crash").unwrap();
    assert_eq!(place.run(&["restore", &backup]).await.code, 4);
    let said = place.run(&["restore", "--force", &backup]).await;
    assert_eq!(said.code, 0, "{}", said.error);
    assert_eq!(place.runs().await, expected);
    let former = place.path(
        said.out
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

    // The database file is missing, but its write-ahead log is still there.
    let empty = Place::new().await;
    std::fs::create_dir(empty.path("data")).unwrap();
    std::fs::write(empty.path("data/conclave.db-wal"), "left by a crash").unwrap();
    assert_eq!(empty.run(&["restore", &backup]).await.code, 0);
    assert_eq!(empty.names(), ["conclave.db", "conclave.db.owners"]);
    assert_eq!(empty.runs().await, expected);
}

#[tokio::test]
async fn a_backup_of_an_older_release_is_brought_up_to_date() {
    let place = Place::new().await;
    let old = place.path("old.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&old)
        .create_if_missing(true)
        .foreign_keys(false);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::raw_sql(include_str!("../fixtures/database-0001.sql"))
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let before = std::fs::read(&old).unwrap();
    let said = place.run(&["restore", "old.db"]).await;
    assert_eq!(
        (said.code, said.out.as_str()),
        (
            0,
            "restored data/conclave.db: 2 runs, all chains verified\n"
        )
    );
    assert_eq!(place.run(&["runs", "--json"]).await.out.lines().count(), 2);
    assert_eq!(
        std::fs::read(&old).unwrap(),
        before,
        "the backup itself stays as it is"
    );
}

#[tokio::test]
async fn a_failed_backup_reports_its_reason() {
    let place = Place::new().await;
    let said = place.run(&["backup", "copy.db"]).await;
    assert!(
        said.code == 4 && said.error.contains("there is no database data/conclave.db"),
        "{}",
        said.error
    );
    assert!(!place.path("copy.db").exists() && !place.path("data").exists());
    for arguments in [["backup", "copy.db"], ["restore", "copy.db"]] {
        let postgres = [(
            "DATABASE_URL",
            "postgres://ada:planted-secret@127.0.0.1:1/x",
        )];
        let said = place.run_with(&arguments, &postgres).await;
        assert_eq!(said.code, 2, "{}", said.error);
        assert!(
            said.error.contains("pg_dump") && said.error.contains("pg_restore"),
            "{}",
            said.error
        );
        assert!(!said.error.contains("planted-secret"), "{}", said.error);
    }
}
