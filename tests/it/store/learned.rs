//! Tests the search for learned answers.

use std::sync::Arc;

use conclave::domain::{search_terms, search_words};
use conclave::journal::{
    Annotated, Claim, Event, Learned, LearnedChange, Note, Store, learned_scope,
};
use serde_json::json;
use tempfile::TempDir;

use super::{LEASE, at, failed, id, new_run, postgresql, sqlite};
use crate::support::postgres;

/// Stores an answer to a question that the run `n` asked.
async fn teach(store: &dyn Store, n: u128, question: &str) {
    store.accept(new_run(n, None, question)).await.unwrap();
    let claimed = store.claim(Claim::Run(id(n)), "o", LEASE, at(100)).await;
    let lease = claimed.unwrap().unwrap();
    store.append(&lease, at(101), &[&failed()]).await.unwrap();
    let head_seq = store.run(id(n)).await.unwrap().unwrap().head_seq;
    let answer = json!({
        "taskType": "MIXED", "tldr": [], "main": "An answer.", "acceptanceTests": [], "assumptions": [],
        "estimate": null, "unitsUsed": [], "disagreements": [], "quarantineJustifications": [],
        "conflictPenalty": null, "coverageBonus": null,
    });
    let taught = json!({ "condition": question, "answer": answer });
    let learned = Learned {
        number: 1,
        change: LearnedChange::Learned,
        confidence: 0.3,
        judged: None,
        taught: serde_json::from_value(taught).unwrap(),
    };
    let note = Note {
        run: id(n),
        head_seq,
        events: vec![Event::Learned(Box::new(learned))],
    };
    let second = i64::try_from(n).unwrap();
    let noted = store.annotate(at(200 + second), vec![note]).await.unwrap();
    assert_eq!(noted, Annotated::Written);
}

/// Many newer questions share the one word that tells, and the rank alone does not prefer the same
/// question.
async fn the_same_question_comes_first(store: Arc<dyn Store>) {
    teach(&*store, 1, "What is a paladin?").await;
    for n in 2..=30 {
        let question = format!("What is the oath{n} of a paladin?");
        teach(&*store, n, &question).await;
    }
    let scope = learned_scope(&new_run(1, None, "").accepted.question);
    let (words, terms) = (
        search_words("what is a PALADIN"),
        search_terms("what is a PALADIN"),
    );
    let found = store.learned_like(&scope, &words, &terms, 5).await.unwrap();
    let runs: Vec<_> = found.iter().map(|row| row.run).collect();
    assert_eq!((runs.len(), runs[0]), (5, id(1)), "{runs:?}");
    // Of common words and parts of words alone.
    for (n, question) in (31..).zip(["What's this?", "Why don't we?", r"It's a\b | c & !d"]) {
        teach(&*store, n, question).await;
        let as_written = question.split_whitespace().map(str::to_owned);
        let terms: Vec<String> = search_terms(question)
            .into_iter()
            .chain(as_written)
            .collect();
        let words = search_words(question);
        let found = store.learned_like(&scope, &words, &terms, 5).await.unwrap();
        assert_eq!(found.first().map(|row| row.run), Some(id(n)), "{question}");
    }
}

#[tokio::test]
async fn sqlite_finds_the_same_question_first() {
    let folder = TempDir::new().unwrap();
    the_same_question_comes_first(sqlite(&folder, "a.db", "one").await).await;
}

#[tokio::test]
async fn postgresql_finds_the_same_question_first() {
    the_same_question_comes_first(postgresql(&postgres::fresh().await, "one").await).await;
}
