//! Tests how `show`, `verify` and `replay` find a run, here and on a server, and what they say of an
//! altered journal.

use serde_json::Value;

use super::{CommandLine, QUESTION};
use crate::support::TestApp;

/// Returns the ids of all runs, newest first.
async fn ids(cli: &CommandLine) -> Vec<String> {
    let runs = cli.run(&["runs", "--json"]).await.1;
    let id = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["id"].as_str().unwrap().to_owned()
    };
    runs.lines().map(id).collect()
}

#[tokio::test]
async fn a_run_is_named_by_its_id_a_unique_prefix_or_last() {
    let cli = CommandLine::new().await;
    let nothing = cli.run(&["show", "last"]).await;
    assert_eq!(nothing.0, 4);
    for _ in 0..6 {
        cli.run(&["ask", QUESTION]).await;
    }
    let ids = ids(&cli).await;
    for name in ["last", ids[0].as_str(), &ids[0][..ids[0].len() - 2]] {
        let proof = cli.run(&["verify", name]).await;
        let said = proof.1;
        assert!(
            said.starts_with(&format!("run {}: ", ids[0])),
            "{name}: {said}"
        );
        assert_eq!(cli.run(&["show", name]).await.0, 0);
        let replayed = cli.run(&["replay", name, "--json"]).await;
        assert!(replayed.1.contains(&ids[0]), "{name}");
        let noted = cli.run(&["feedback", name, "--positive"]).await;
        assert!(noted.1.contains(&ids[0]), "{name}: {}", noted.2);
    }
    let ambiguous = cli.run(&["show", &ids[0][..2]]).await;
    let said = ambiguous.2;
    assert_eq!(ambiguous.0, 4, "{said}");
    let listed: Vec<bool> = ids.iter().map(|id| said.contains(id)).collect();
    assert_eq!(listed, [true, true, true, true, true, false], "{said}");
    assert!(said.trim_end().ends_with("and more"), "{said}");
    for (name, code) in [("ffff", 4), ("lately", 2)] {
        let unknown = cli.run(&["verify", name]).await;
        assert_eq!(unknown.0, code, "{}", unknown.2);
        assert!(unknown.2.contains(name));
    }
}

#[tokio::test]
async fn a_run_on_a_server_is_shown_verified_and_replayed() {
    let cli = CommandLine::new().await;
    let app = TestApp::start(&cli.provider).await;
    let got = app.ask("audit", QUESTION).await;
    let id = got.run.to_string();
    let server = ["--server", &app.url];
    for name in ["last", &id, &id[..30]] {
        let shown = cli.run(&["show", name, server[0], server[1]]).await;
        assert!(shown.1.contains(got.text()), "{}", shown.2);
        let proof = cli.run(&["verify", name, server[0], server[1]]).await;
        let said = proof.1;
        assert!(
            said.contains(&format!("as verified by {}", app.url)),
            "{said}"
        );
        let replayed = cli.run(&["replay", name, server[0], server[1]]).await;
        assert!(replayed.1.contains("c_final"), "{}", replayed.2);
    }
    let unknown = "01890000-0000-7000-8000-000000000000";
    let shown = cli.run(&["show", unknown, server[0], server[1]]).await;
    assert_eq!(shown.0, 4, "{}", shown.2);
}

#[tokio::test]
async fn an_unreadable_run_is_named_and_hides_no_other() {
    let cli = CommandLine::new().await;
    for _ in 0..4 {
        assert_eq!(cli.run(&["ask", "--new", QUESTION]).await.0, 0);
    }
    let ids = ids(&cli).await;
    let raw = cli.database();
    for (statement, id) in [
        ("UPDATE runs SET state = 'bogus' WHERE id = $1", &ids[0]),
        ("DELETE FROM entries WHERE run = $1", &ids[1]),
        (
            "UPDATE entries SET packed = x'00' WHERE run = $1 AND key = 'finished'",
            &ids[2],
        ),
    ] {
        let changed = raw.execute(statement, [&**id]);
        assert!(changed.unwrap() > 0, "{statement}");
    }
    let (code, lines, named) = cli.run(&["export"]).await;
    assert_eq!((code, lines.lines().count()), (9, 1), "{named}");
    assert!(lines.contains(&ids[3]) && named.starts_with("exported 1 run\n"));
    for (id, why) in ids.iter().zip(["runs.state", "missing", "entries.packed"]) {
        let line = named.lines().find(|line| line.contains(&**id)).unwrap();
        assert!(
            line.contains(why) && line.contains("not exported"),
            "{line}"
        );
    }
    for command in ["show", "verify"] {
        let (code, _, error) = cli.run(&[command, "last"]).await;
        assert!(code == 9 && error.contains(&*ids[0]), "{error}");
    }

    assert_eq!(cli.run(&["backup", "bad.db"]).await.0, 0);
    let there = CommandLine::new().await;
    let bad = cli.path("bad.db");
    let bad = bad.to_str().unwrap();
    let (code, _, error) = there.run(&["restore", bad]).await;
    assert!(
        code == 9 && error.contains("nothing was restored") && error.contains("--force"),
        "{error}"
    );
    let (code, out, error) = there.run(&["restore", "--force", bad]).await;
    assert!(
        code == 9 && out.contains(": 4 runs\n") && ids[..3].iter().all(|id| error.contains(&**id)),
        "{out}{error}"
    );
    assert_eq!(there.run(&["verify", &ids[3]]).await.0, 0);
}

#[tokio::test]
async fn a_run_with_an_altered_journal_is_shown_with_a_warning() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let exported = cli.run(&["export"]).await;
    assert_eq!(exported.2, "exported 1 run\n");
    let raw = cli.database();
    let alter = "UPDATE entries SET at_ms = at_ms + 1 WHERE key = 'synthesis'";
    raw.execute_batch(alter).unwrap();
    let shown = cli.run(&["show", "last"]).await;
    let (code, first, rest) = shown;
    assert_eq!(code, 9, "{rest}");
    assert!(first.starts_with("WARNING: the journal of run "), "{first}");
    assert!(rest.contains("was altered"), "{rest}");
    assert!(
        first.contains(QUESTION),
        "the run is shown all the same: {first}"
    );
    let shown = cli.run(&["show", "last", "--json"]).await;
    let body: Value = serde_json::from_str(&shown.1).unwrap();
    assert!(body["broken"].is_string(), "{body}");
    assert_eq!(shown.0, 9);
    let exported = cli.run(&["export"]).await;
    assert_eq!(exported.0, 9, "{}", exported.2);
    assert!(exported.2.contains("was altered"), "{}", exported.2);
}
