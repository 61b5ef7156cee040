//! Tests export, import, retention and backup with the real binary.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::cli::CommandLine;
use crate::support::QUESTION;

#[tokio::test]
async fn exported_runs_are_imported_completely() {
    let (here, there) = (CommandLine::new().await, CommandLine::new().await);
    for message in [QUESTION, "Name one planet."] {
        assert_eq!(here.run(&["audit", "--new", message]).await.0, 0);
    }
    let (code, lines, note) = here.run(&["export"]).await;
    assert_eq!(
        (code, lines.lines().count(), note.as_str()),
        (0, 2, "exported 2 runs\n")
    );
    let file = there.path("runs.jsonl");
    let name = file.to_str().unwrap();
    let altered = lines
        .lines()
        .next()
        .unwrap()
        .replace("boiling", "freezing")
        .replace("planet", "comet");
    std::fs::write(&file, format!("{lines}\n{altered}\nnonsense\n")).unwrap();
    let (code, _, note) = there.run(&["import", name]).await;
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
    let (code, _, note) = there.run(&["import", name]).await;
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
        assert_eq!(there.run(&["verify", id]).await.0, 0);
        assert_eq!(
            there.run(&["show", id]).await.1,
            here.run(&["show", id]).await.1
        );
    }
    assert_eq!(
        there.run(&["runs", "--json"]).await.1,
        here.run(&["runs", "--json"]).await.1
    );
}

#[tokio::test]
async fn a_damaged_index_is_found_by_export_and_doctor() {
    if crate::support::postgres::is_chosen() {
        return;
    }
    let here = CommandLine::new().await;
    assert_eq!(here.run(&["audit", QUESTION]).await.0, 0);
    let raw = here.database();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_runs_1'";
    let page: u32 = raw.query_row(root, [], |row| row.get(0)).unwrap();
    drop(raw);
    let file = here.path("data/conclave.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The last bytes of a page have the first entry.
    let end = page as usize * 4096;
    bytes[end - 30..end - 4]
        .iter_mut()
        .for_each(|byte| *byte ^= 0x55);
    std::fs::write(&file, bytes).unwrap();
    for command in [&["export"][..], &["doctor", "--offline"]] {
        let (code, _, note) = here.run(command).await;
        assert_eq!(code, 9, "{command:?}: {note}");
        assert!(note.contains("the database is damaged"), "{note}");
    }
}

#[tokio::test]
async fn an_export_to_a_file_is_private_and_overwrites_nothing() {
    let cli = CommandLine::new().await;
    assert_eq!(cli.run(&["ask", QUESTION]).await.0, 0);
    for (command, name) in [
        (&["export", "--output"][..], "runs.jsonl"),
        (&["backup"][..], "copy.db"),
    ] {
        let arguments: Vec<&str> = command.iter().copied().chain([name]).collect();
        assert_eq!(cli.run(&arguments).await.0, 0);
        let path = cli.path(name);
        let first = std::fs::read(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let (code, _, error) = cli.run(&arguments).await;
        assert!(code == 4 && error.contains("File exists"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), first);
    }
}

#[tokio::test]
async fn a_backup_taken_during_writes_is_a_working_database() {
    let cli = CommandLine::new().await;
    // A backup needs an existing database, so a first run creates one.
    assert_eq!(cli.run(&["ask", "--new", QUESTION]).await.0, 0);
    let asking = async {
        for _ in 0..2 {
            assert_eq!(cli.run(&["ask", "--new", QUESTION]).await.0, 0);
        }
    };
    let copying = async {
        for n in 0..3 {
            let (code, _, error) = cli.run(&["backup", &format!("copy{n}.db")]).await;
            assert_eq!(code, 0, "{error}");
        }
    };
    tokio::join!(asking, copying);
    let (code, _, error) = cli.run(&["backup", "last.db"]).await;
    assert_eq!(code, 0, "{error}");
    let restored = CommandLine::new().await;
    std::fs::create_dir(restored.path("data")).unwrap();
    std::fs::copy(cli.path("last.db"), restored.path("data/conclave.db")).unwrap();
    let list = restored.run(&["runs", "--json"]).await.1;
    assert_eq!(
        (list.lines().count(), list),
        (3, cli.run(&["runs", "--json"]).await.1)
    );
}

#[tokio::test]
async fn pruning_removes_old_runs_and_reports_their_number() {
    let cli = CommandLine::new().await;
    let secret = format!("{QUESTION} Xyzzy?");
    for question in [&secret, QUESTION] {
        assert_eq!(cli.run(&["ask", "--new", question]).await.0, 0);
        let log = cli.path("data/conclave.db-wal");
        assert!(!log.exists(), "a command ends with its log written back");
    }
    let (code, _, error) = cli.run(&["prune", "--older-than", "1h"]).await;
    assert!(
        code == 2 && error.contains("of the last day are kept"),
        "{error}"
    );
    assert!(
        cli.run(&["prune", "--older-than", "90d"])
            .await
            .1
            .starts_with("removed 0 runs")
    );
    // Moves the end of one of the two runs into the past.
    let raw = cli.database();
    let aged = "UPDATE runs SET finished_ms = 1 WHERE id = (SELECT MIN(id) FROM runs)";
    raw.execute_batch(aged).unwrap();
    let (_, would, _) = cli
        .run(&["prune", "--older-than", "90d", "--dry-run"])
        .await;
    assert!(
        would.starts_with("1 run ended before") && would.contains("nothing was removed"),
        "{would}"
    );
    assert!(
        cli.run(&["prune", "--older-than", "90d"])
            .await
            .1
            .starts_with("removed 1 run that")
    );
    assert_eq!(cli.run(&["runs", "--json"]).await.1.lines().count(), 1);
    let left = raw.query_row("SELECT COUNT(DISTINCT run) FROM entries", [], |row| {
        row.get(0)
    });
    assert_eq!(left, Ok(1), "the journal went with its run");
    drop(raw);
    if !crate::support::postgres::is_chosen() {
        let file = std::fs::read(cli.path("data/conclave.db")).unwrap();
        let has = |word: &str| file.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(
            has(QUESTION) && !has("Xyzzy"),
            "deleted rows are overwritten"
        );
    }
}
