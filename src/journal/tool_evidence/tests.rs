//! Evidence of many steps, against a count one by one.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::domain::EvidenceFocus;
use crate::journal::RunReader as _;
use crate::journal::sqlite::SqliteStore;
use crate::journal::writes;

/// A recorded step: its tool, whether it succeeded, its file, its diagnostic, and its time.
struct Step(&'static str, bool, String, Option<&'static str>, i64);

/// Steps of 30 executions: of all tools, files and diagnostics, several at one time.
fn steps() -> Vec<Step> {
    let step = |number: usize| {
        let tool = ["lsp_check", "file_write", "file_read", "splice_patch"][number * 7 % 4];
        let codes = [None, Some("E1"), Some("E2"), None, Some("E3")];
        let code = codes[number % 5].filter(|_| tool == "lsp_check" && number > 30);
        let (file, at) = (format!("f{}", number % 13), number as i64 / 3 * 10);
        Step(tool, number % 11 > 2, file, code, at)
    };
    (0..600).map(step).collect()
}

async fn recorded(store: &SqliteStore, steps: &[Step]) {
    for run in 0..30 {
        let statement =
            "INSERT INTO runs (id, state, mode, source, user_id, message, cap_nanos, accepted_ms,
            body_hash, head_seq, head_hash) VALUES ($1, '', '', '', '', '', 0, 0, '', 0, '')";
        let id = format!("r{run:02}").into();
        writes::change(store, statement, vec![id]).await.unwrap();
    }
    for (number, Step(tool, ok, file, code, at)) in steps.iter().enumerate() {
        let error = (!ok).then(|| format!("error {number}"));
        let changed = ["file_write", "splice_patch"].contains(tool) && *ok;
        let changed = if changed {
            vec![json!({ "path": file })]
        } else {
            vec![]
        };
        let body = json!({ "data": { "tool": tool, "ok": ok, "error": error, "files": [file],
            "codes": Vec::from_iter(code), "changed": changed } });
        let statement = "INSERT INTO entries (run, seq, at_ms, key, body, prev, hash)
            VALUES ($1, $2, $3, $4, $5, '', '')";
        let seq = (number % 20) as i64;
        let values = vec![
            format!("r{:02}", number / 20).into(),
            seq.into(),
            (*at).into(),
            format!("step/{seq}/finished").into(),
            body.to_string().into(),
        ];
        writes::change(store, statement, values).await.unwrap();
    }
}

/// The changes after each diagnostic, counted one by one.
fn fixes(steps: &[Step], code: Option<&str>, file: Option<&str>) -> Vec<Value> {
    let is_fix = |it: &&Step| {
        it.1 && ["file_write", "splice_patch"].contains(&it.0)
            && file.is_none_or(|file| it.2 == file)
    };
    let found = ["E1", "E2", "E3"].map(|name| {
        let seen = |before: i64| {
            let of = steps
                .iter()
                .filter(|it| it.3 == Some(name) && it.4 < before);
            of.map(|it| it.4).max()
        };
        let after = steps.iter().rev().filter(is_fix);
        let after: Vec<(i64, &str)> = after
            .filter_map(|it| Some((it.4 - seen(it.4)?, it.0)))
            .collect();
        let shown = after.iter().take(10);
        let tools: BTreeSet<&str> = shown.clone().map(|it| it.1).collect();
        json!({ "code": name, "fix_attempts": after.len(), "tools": tools,
            "temporal_gaps": shown.map(|it| it.0).collect::<Vec<_>>() })
    });
    let is_meant = |it: &Value| code.is_none_or(|code| it["code"] == code);
    found.into_iter().filter(is_meant).collect()
}

#[tokio::test]
async fn evidence_counts_many_steps_as_one_counts_them_one_by_one() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("a.db"), "o")
        .await
        .unwrap();
    let steps = steps();
    recorded(&store, &steps).await;
    for (file, code) in [(None, None), (Some("f3"), Some("E2")), (Some("none"), None)] {
        let focus = EvidenceFocus {
            file: file.map(str::to_owned),
            diagnostic: code.map(str::to_owned),
            no_index: None,
        };
        let found = store.tool_evidence(&focus).await.unwrap();
        let of = |tool: &str| steps.iter().filter(|it| it.0 == tool).collect::<Vec<_>>();
        for row in found["Q1"].as_array().unwrap() {
            let of = of(row["tool"].as_str().unwrap());
            let good = of.iter().filter(|it| it.1).count();
            assert_eq!(
                (&row["count"], &row["successes"], &row["last_success"]),
                (&json!(of.len()), &json!(good), &json!(of.last().unwrap().1))
            );
        }
        for row in found["Q2"].as_array().unwrap() {
            let tool = row["tool"].as_str().unwrap();
            let last = steps.iter().rposition(|it| it.0 == tool && !it.1).unwrap();
            let bad = of(tool).iter().filter(|it| !it.1).count();
            assert_eq!(row["count"], bad);
            assert_eq!(row["last_error"], format!("error {last}"));
        }
        let files = found["Q4"].as_array().unwrap();
        for row in files {
            let on: Vec<&Step> = steps.iter().filter(|it| row["file"] == it.2).collect();
            let last = if on.last().unwrap().1 {
                "success"
            } else {
                "failure"
            };
            assert_eq!(
                (&row["executions"], &row["last"]),
                (&json!(on.len()), &json!(last))
            );
        }
        let listed = match file {
            None => (4, 4, 10, 3),
            Some("f3") => (4, 4, 1, 1),
            Some(_) => (4, 4, 0, 0),
        };
        let count = |query: &str| found[query].as_array().unwrap().len();
        assert_eq!((count("Q1"), count("Q2"), count("Q4"), count("Q8")), listed);
        let fixes = if file == Some("none") {
            vec![]
        } else {
            fixes(&steps, code, file)
        };
        assert_eq!(found["Q8"], json!(fixes), "{file:?}");
    }
}
