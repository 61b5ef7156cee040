//! Tests the output: replies, lists, JSON, colours, proofs, and scored outputs.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CommandLine, QUESTION, run};

use crate::support::process::conclave;

#[tokio::test]
async fn an_audit_prints_progress_reply_and_appendix_and_can_be_verified() {
    let cli = CommandLine::new().await;
    let (code, reply, progress) = cli.run(&["audit", QUESTION]).await;
    assert_eq!(code, 0, "{progress}");
    assert!(reply.starts_with("## TL;DR") && reply.contains("## Audit appendix"));
    for word in [
        "plan ",
        "solver ",
        "critic ",
        "verifier ",
        "synthesis ",
        "gate ",
    ] {
        assert!(progress.contains(word), "{word} is missing in {progress}");
    }
    let id = cli.newest().await;
    let shown = cli.run(&["show", &id]).await.1;
    assert!(
        shown.contains(&reply),
        "the reply and its audit are printed again"
    );
    let proof = cli.run(&["verify", &id]).await;
    assert!(proof.1.contains("the chain holds"));
}

#[tokio::test]
async fn an_altered_journal_fails_the_verification() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let id = cli.newest().await;
    let raw = cli.database();
    // The verification also covers the columns that lists and views show without reading the
    // entries.
    for (change, back, column) in [
        ("c_final = 0.11", "c_final = was.c_final", "c_final"),
        ("message = 'another'", "message = was.message", "message"),
        ("user_id = 'mallory'", "user_id = was.user_id", "user_id"),
        ("guild_id = 'g9'", "guild_id = was.guild_id", "guild_id"),
        (
            "channel_id = 'c9'",
            "channel_id = was.channel_id",
            "channel_id",
        ),
        (
            "spent_nanos = 1",
            "spent_nanos = was.spent_nanos",
            "spent_nanos",
        ),
        ("mode = 'deep'", "mode = was.mode", "mode"),
        ("state = 'failed'", "state = was.state", "state"),
        ("head_seq = 3", "head_seq = was.head_seq", "head_seq"),
    ] {
        let alter = format!("CREATE TABLE was AS SELECT * FROM runs; UPDATE runs SET {change}");
        raw.execute_batch(&alter).unwrap();
        let proof = cli.run(&["verify", &id]).await;
        assert_eq!(proof.0, 9, "{change}");
        let said = proof.2;
        assert!(said.contains(&format!("its {column} is not")), "{said}");
        let exported = cli.run(&["export"]).await;
        assert_eq!(exported.0, 9, "{change}");
        assert!(exported.2.contains(column), "{}", exported.2);
        let back =
            format!("UPDATE runs SET {back} FROM was WHERE was.id = runs.id; DROP TABLE was");
        raw.execute_batch(&back).unwrap();
    }
    assert_eq!(cli.run(&["verify", &id]).await.0, 0);
    for change in ["NULL", "zeroblob(20)"] {
        let alter = format!(
            "CREATE TABLE was AS SELECT run, seq, packed FROM entries; UPDATE entries SET packed = {change}"
        );
        raw.execute_batch(&alter).unwrap();
        assert_eq!(cli.run(&["verify", &id]).await.0, 9, "{change}");
        let back = "UPDATE entries SET packed = was.packed FROM was WHERE was.run = entries.run AND was.seq = entries.seq; DROP TABLE was";
        raw.execute_batch(back).unwrap();
    }
    let alter = "UPDATE entries SET at_ms = at_ms + 1 WHERE key = 'synthesis'";
    raw.execute_batch(alter).unwrap();
    let proof = cli.run(&["verify", &id]).await;
    assert_eq!(proof.0, 9);
    assert!(proof.2.contains("was altered"), "{}", proof.2);
    // Nothing is learned from it.
    assert_eq!(cli.run(&["feedback", &id, "--positive"]).await.0, 0);
    let learned = cli.run(&["learned", "--json"]).await;
    assert!(!learned.1.contains(&id), "{}", learned.1);
    let replay = cli.run(&["replay", &id]).await;
    assert_eq!((replay.0, replay.1.as_str()), (9, ""), "{}", replay.2);
}

#[tokio::test]
async fn an_altered_learned_answer_fails_the_verification_of_its_run() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let id = cli.newest().await;
    for _ in 0..2 {
        assert_eq!(cli.run(&["feedback", &id, "--positive"]).await.0, 0);
    }
    assert_eq!(cli.run(&["verify", &id]).await.0, 0);
    let raw = cli.database();
    for (column, value) in [
        ("answer", "replace(answer, '100', '37')"),
        ("content", "'What else?'"),
        ("confidence", "0.95"),
        ("revoked", "1"),
        ("guild_id", "'other'"),
        ("changed_ms", "changed_ms + 1"),
        // As it was before the second feedback.
        ("confidence", "0.3"),
    ] {
        let alter = format!(
            "CREATE TABLE was AS SELECT * FROM learned_answers; UPDATE learned_answers SET {column} = {value}"
        );
        raw.execute_batch(&alter).unwrap();
        let (code, _, said) = cli.run(&["verify", &id]).await;
        assert!(code == 9 && said.contains("learned"), "{column}: {said}");
        let (code, listed, _) = cli.run(&["learned", "--json"]).await;
        assert_eq!((code, listed.as_str()), (9, ""), "{column}");
        let back =
            format!("UPDATE learned_answers SET {column} = was.{column} FROM was; DROP TABLE was");
        raw.execute_batch(&back).unwrap();
    }
    assert_eq!(cli.run(&["verify", &id]).await.0, 0);
    raw.execute_batch("DELETE FROM learned_answers").unwrap();
    let (code, _, said) = cli.run(&["verify", &id]).await;
    assert!(code == 9 && said.contains("learned"), "{said}");
}

#[tokio::test]
async fn the_list_of_runs_has_aligned_headings() {
    let cli = CommandLine::new().await;
    cli.run(&["ask", QUESTION]).await;
    let runs = cli.run(&["runs"]).await.1;
    let (headings, row) = runs.trim_end().split_once('\n').unwrap();
    let ends = |line: &str, word: &str| line.find(word).unwrap() + word.len();
    let begins = |line: &str, word: &str| line.find(word).unwrap();
    assert_eq!(begins(headings, "state"), begins(row, "answered"), "{runs}");
    assert_eq!(begins(headings, "USD"), begins(row, "$"), "{runs}");
    assert_eq!(begins(headings, "message"), begins(row, "What"), "{runs}");
    assert_eq!(ends(headings, "c_final") + 2, begins(row, "$"), "{runs}");
}

#[tokio::test]
async fn no_colours_reach_a_pipe() {
    let cli = CommandLine::new().await;
    for arguments in [&["audit", QUESTION][..], &["runs"], &["show", "last"]] {
        let (_, out, error) = cli.run(arguments).await;
        let all = out + &error;
        assert!(!all.is_empty() && !all.contains('\u{1b}'), "{all:?}");
    }
}

#[tokio::test]
async fn statuses_states_and_the_gate_are_coloured_where_colours_are_shown() {
    let cli = CommandLine::new().await;
    // This variable makes `console` assume a colour terminal.
    let coloured =
        async |arguments: &[&str]| run(cli.command(arguments, &[("CLICOLOR_FORCE", "1")])).await;
    let progress = coloured(&["audit", QUESTION]).await.2;
    assert!(
        progress.contains("\u{1b}[32mVALID\u{1b}[0m") && progress.contains("\u{1b}[32mc_final "),
        "{progress:?}"
    );
    let runs = coloured(&["runs"]).await.1;
    assert!(
        runs.contains("\u{1b}[32manswered     \u{1b}[0m"),
        "{runs:?}"
    );
    let shown = coloured(&["show", "last"]).await.1;
    assert!(
        shown.contains("| \u{1b}[32mVALID\u{1b}[0m |") && shown.contains("\u{1b}[32m- c_final: "),
        "{shown:?}"
    );
}

#[tokio::test]
async fn json_is_the_reply_as_the_api_gives_it_and_nothing_else() {
    let cli = CommandLine::new().await;
    let output = cli.run(&["deep", "--json", QUESTION]).await;
    let body: Value = serde_json::from_str(&output.1).unwrap();
    assert!(
        body["reply"].is_string()
            && body["meta"]["c_final"].is_number()
            && body["audit"].is_object()
    );
    assert_eq!(output.2, "");
}

#[tokio::test]
async fn a_closed_output_pipe_ends_the_program_quietly() {
    let cli = CommandLine::new().await;
    cli.run(&["audit", QUESTION]).await;
    let id = cli.newest().await;
    let mut child = cli.command(&["show", &id], &[]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[tokio::test]
async fn recorded_outputs_are_scored_line_by_line_without_a_key() {
    let folder = TempDir::new().unwrap();
    let line = |id: u32, answers: [&str; 2]| {
        let outputs = answers.map(|text| json!({ "agent": text, "text": text }));
        json!({ "id": id, "message": "What is 2 + 2?", "outputs": outputs }).to_string()
    };
    let lines = [
        line(1, ["It is 4.", "4"]),
        "no JSON".to_owned(),
        String::new(),
        line(2, ["4", "5"]),
    ]
    .join("\n");
    std::fs::write(folder.path().join("recorded.jsonl"), lines).unwrap();
    let score = |file| run(conclave(folder.path(), &["score", file], &[]));
    let output = score("recorded.jsonl").await;
    assert_eq!(output.0, 4, "{}", output.2);
    assert!(output.2.contains("line 2:"), "{}", output.2);
    let scored: Vec<Value> = output
        .1
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        scored.iter().map(|s| s["id"].clone()).collect::<Vec<_>>(),
        [json!(1), json!(2)]
    );
    assert_eq!(
        scored
            .iter()
            .map(|s| s["answerGroups"].as_array().unwrap().len())
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(scored[0]["c_final"].as_f64() > scored[1]["c_final"].as_f64());
    assert_eq!(score("nowhere.jsonl").await.0, 4);
}

#[tokio::test]
async fn a_round_ends_after_all_of_its_agents() {
    let cli = CommandLine::new().await;
    let lines = "2026-11-02 07:00 supply 70.1 C return 44.0 C flow 11.0 m3/h\n".repeat(430);
    let question = format!("The log of the last month: is there a fault in it?\n{lines}");
    let output = cli.run(&["audit", &question]).await;
    let told = output.2;
    let at = |words: &str| {
        told.find(words)
            .unwrap_or_else(|| panic!("{words}: {told}"))
    };
    let ended = at("round 1    ended");
    assert!(at("can run after all") < ended, "{told}");
    assert!(
        at("verifier   answered") < ended && ended < at("check      "),
        "{told}"
    );
    assert_eq!(told.matches("round 1    ended").count(), 1, "{told}");
}
