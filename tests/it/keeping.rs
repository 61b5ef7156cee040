//! Tests export, import, retention and backup with the real binary.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::MockProvider;
use crate::support::process::conclave;

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

async fn run(
    folder: &TempDir,
    arguments: &[&str],
    provider: &MockProvider,
) -> (i32, String, String) {
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let Output {
        status,
        stdout,
        stderr,
    } = conclave(folder.path(), arguments, &variables)
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[tokio::test]
async fn exported_runs_are_imported_completely() {
    let provider = MockProvider::start().await;
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for message in [QUESTION, "Name one planet."] {
        assert_eq!(
            run(&here, &["audit", "--new", message], &provider).await.0,
            0
        );
    }
    let (code, lines, note) = run(&here, &["export"], &provider).await;
    assert_eq!(
        (code, lines.lines().count(), note.as_str()),
        (0, 2, "exported 2 runs\n")
    );
    let file = there.path().join("runs.jsonl");
    let name = file.to_str().unwrap();
    let altered = lines
        .lines()
        .next()
        .unwrap()
        .replace("boiling", "freezing")
        .replace("planet", "comet");
    std::fs::write(&file, format!("{lines}\n{altered}\nnonsense\n")).unwrap();
    let (code, _, note) = run(&there, &["import", name], &provider).await;
    assert_eq!(code, 4, "{note}");
    assert!(
        note.contains("line 4: the archive of run") && note.contains("was altered"),
        "{note}"
    );
    assert!(note.contains("line 5: is not an exported run"), "{note}");
    assert!(
        note.ends_with("imported 2 runs; 0 were here already; 2 lines were refused\n"),
        "{note}"
    );
    std::fs::write(&file, &lines).unwrap();
    let (code, _, note) = run(&there, &["import", name], &provider).await;
    assert_eq!(
        (code, note.as_str()),
        (
            0,
            "imported 0 runs; 2 were here already; 0 lines were refused\n"
        )
    );

    for line in lines.lines() {
        let archive: Value = serde_json::from_str(line).unwrap();
        let id = archive["run"].as_str().unwrap();
        assert_eq!(run(&there, &["verify", id], &provider).await.0, 0);
        assert_eq!(
            run(&there, &["show", id], &provider).await.1,
            run(&here, &["show", id], &provider).await.1
        );
    }
    assert_eq!(
        run(&there, &["runs", "--json"], &provider).await.1,
        run(&here, &["runs", "--json"], &provider).await.1
    );
}

#[tokio::test]
async fn an_export_to_a_file_is_private_and_overwrites_nothing() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    assert_eq!(run(&folder, &["ask", QUESTION], &provider).await.0, 0);
    for (command, name) in [
        (&["export", "--output"][..], "runs.jsonl"),
        (&["backup"][..], "copy.db"),
    ] {
        let arguments: Vec<&str> = command.iter().copied().chain([name]).collect();
        assert_eq!(run(&folder, &arguments, &provider).await.0, 0);
        let path = folder.path().join(name);
        let first = std::fs::read(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let (code, _, error) = run(&folder, &arguments, &provider).await;
        assert!(code == 4 && error.contains("File exists"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), first);
    }
}

#[tokio::test]
async fn a_backup_taken_during_writes_is_a_working_database() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    // A backup needs an existing database, so a first run creates one.
    assert_eq!(
        run(&folder, &["ask", "--new", QUESTION], &provider).await.0,
        0
    );
    let asking = async {
        for _ in 0..2 {
            assert_eq!(
                run(&folder, &["ask", "--new", QUESTION], &provider).await.0,
                0
            );
        }
    };
    let copying = async {
        for n in 0..3 {
            let (code, _, error) =
                run(&folder, &["backup", &format!("copy{n}.db")], &provider).await;
            assert_eq!(code, 0, "{error}");
        }
    };
    tokio::join!(asking, copying);
    let (code, _, error) = run(&folder, &["backup", "last.db"], &provider).await;
    assert_eq!(code, 0, "{error}");
    let restored = TempDir::new().unwrap();
    std::fs::create_dir(restored.path().join("data")).unwrap();
    std::fs::copy(
        folder.path().join("last.db"),
        restored.path().join("data/conclave.db"),
    )
    .unwrap();
    let list = run(&restored, &["runs", "--json"], &provider).await.1;
    assert_eq!(
        (list.lines().count(), list),
        (3, run(&folder, &["runs", "--json"], &provider).await.1)
    );
}

#[tokio::test]
async fn pruning_removes_old_runs_and_reports_their_number() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    for _ in 0..2 {
        assert_eq!(
            run(&folder, &["ask", "--new", QUESTION], &provider).await.0,
            0
        );
    }
    let (code, _, error) = run(&folder, &["prune", "--older-than", "1h"], &provider).await;
    assert!(
        code == 2 && error.contains("of the last day are kept"),
        "{error}"
    );
    assert!(
        run(&folder, &["prune", "--older-than", "90d"], &provider)
            .await
            .1
            .starts_with("removed 0 runs")
    );
    // Moves the end of one of the two runs into the past.
    let database =
        sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("data/conclave.db"));
    let pool = sqlx::SqlitePool::connect_with(database).await.unwrap();
    sqlx::query("UPDATE runs SET finished_ms = 1 WHERE id = (SELECT MIN(id) FROM runs)")
        .execute(&pool)
        .await
        .unwrap();
    let (_, would, _) = run(
        &folder,
        &["prune", "--older-than", "90d", "--dry-run"],
        &provider,
    )
    .await;
    assert!(
        would.starts_with("1 run ended before") && would.contains("nothing was removed"),
        "{would}"
    );
    assert!(
        run(&folder, &["prune", "--older-than", "90d"], &provider)
            .await
            .1
            .starts_with("removed 1 run that")
    );
    assert_eq!(
        run(&folder, &["runs", "--json"], &provider)
            .await
            .1
            .lines()
            .count(),
        1
    );
    let (left,): (i64,) = sqlx::query_as("SELECT COUNT(DISTINCT run) FROM entries")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 1, "the journal went with its run");
}
