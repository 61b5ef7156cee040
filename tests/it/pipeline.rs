//! Snapshots of the journal and of the reply of a run.

use std::collections::BTreeSet;

use conclave::journal::{Ending, Entry, Event, Transcript};

use regex::Regex;

use crate::support::{MockProvider, Scenario, TestApp};

/// Renders the journal with one line per entry, without values that differ between runs.
fn story(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let more = match &entry.event {
            Event::Planned(e) => format!("{:?} rounds {}", e.plan.agents_to_run, e.plan.rounds),
            Event::CallSent(e) => format!("{} asks {}", e.role, e.model),
            Event::RoundStarted(e) => e.why.clone(),
            Event::RoundSkipped(e) => e.why.to_string(),
            Event::Gated(e) => format!("{:?}", e.gate),
            Event::Finished(e) => match &e.ending {
                Ending::Replied { reply } => reply.outcome.into_str().to_owned(),
                Ending::Failed { cause, .. } => cause.into_str().to_owned(),
                Ending::Cancelled => "cancelled".to_owned(),
                Ending::Acted { outcome, .. } => outcome.into_str().to_owned(),
            },
            _ => String::new(),
        };
        format!("{:<22} {more}", entry.key).trim_end().to_owned()
    };
    // The master plans while the agents work, so that their entries come in any order.
    let mut lines: Vec<String> = entries.iter().map(line).collect();
    let concurrent = |line: &String| {
        let is_call = line.contains("r1/") || line.contains("/plan") || line.starts_with("plan");
        is_call && !line.contains("started") && !line.contains("scored")
    };
    let first = lines.iter().position(concurrent).unwrap_or(0);
    let last = lines.iter().rposition(concurrent).map_or(0, |at| at + 1);
    lines[first..last].sort();
    lines.join("\n")
}

async fn entries_of(scenario: Scenario, mode: &str) -> Vec<Entry> {
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    app.ask(mode, &message).await.entries
}

#[tokio::test]
async fn an_ask_writes_this_journal() {
    insta::assert_snapshot!(story(&entries_of(Scenario::agreeing(), "ask").await));
}

#[tokio::test]
async fn a_question_of_the_gate_writes_this_journal() {
    insta::assert_snapshot!(story(&entries_of(Scenario::disagreeing(), "audit").await));
}

#[tokio::test]
async fn a_reply_with_a_plan_reads_like_this() {
    let entries = entries_of(Scenario::howto(), "ask").await;
    let Some(Ending::Replied { reply }) =
        Transcript::of_entries(&entries).finished.map(|f| &f.ending)
    else {
        panic!("no reply")
    };
    insta::assert_snapshot!(reply.text);
}

/// Replaces what differs between runs or follows from a prompt or a weight: ids, figures, features of
/// scores, and the order of agents.
fn form_of(text: &str) -> String {
    let masks = [
        (r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12}\b", "ID"),
        (r"\d[\d.]*", "0"),
        (r"(?m)(^  - \w+ 0/0, .*?):.*$", "$1"),
        (
            r"\b(solver|critic|verifier)(, (solver|critic|verifier))+",
            "AGENTS",
        ),
    ];
    let text = masks.iter().fold(text.to_owned(), |text, (pattern, mask)| {
        let pattern = Regex::new(pattern).unwrap();
        pattern.replace_all(&text, *mask).into_owned()
    });
    // The calls of a round are concurrent.
    let (calls, mut rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("| r0/"));
    let after = rest
        .iter()
        .position(|line| line.starts_with("| plan "))
        .unwrap()
        + 1;
    rest.splice(after..after, BTreeSet::from_iter(calls));
    rest.join("\n")
}

#[tokio::test]
async fn a_reply_with_an_audit_reads_like_this() {
    let entries = entries_of(Scenario::agreeing(), "audit").await;
    let Some(Ending::Replied { reply }) =
        Transcript::of_entries(&entries).finished.map(|f| &f.ending)
    else {
        panic!("no reply")
    };
    insta::assert_snapshot!(form_of(&reply.text));
}
