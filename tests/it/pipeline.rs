//! Tests the pipeline on a scripted model: the journal that a run writes, and the spending cap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conclave::domain::BilledTokens;
use conclave::domain::{Mode, Usd};
use conclave::journal::{Ending, Entry, Event, Transcript};
use conclave::llm::{ChatReply, Error, Stop};
use proptest::prelude::*;

use crate::support::scripted::{Stage, Twist, honest};
use crate::support::{Scenario, Setup};

/// Renders the journal with one line per entry, without values that differ between runs.
fn story(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let more = match &entry.event {
            Event::Planned(e) => format!("{:?} rounds {}", e.plan.agents_to_run, e.plan.rounds),
            Event::CallSent(e) => format!("{} asks {}", e.role, e.model),
            Event::RoundStarted(e) => e.why.clone(),
            Event::RoundSkipped(e) => e.why.clone(),
            Event::Gated(e) => format!("{:?}", e.gate),
            Event::Finished(e) => match &e.ending {
                Ending::Replied { reply } => reply.outcome.as_str().to_owned(),
                Ending::Failed { cause, .. } => cause.as_str().to_owned(),
                Ending::Cancelled => "cancelled".to_owned(),
                Ending::Acted { outcome, .. } => outcome.as_str().to_owned(),
            },
            _ => String::new(),
        };
        format!("{:<22} {more}", entry.key).trim_end().to_owned()
    };
    // Agents of a round work concurrently, so that their entries come in any order.
    let mut lines: Vec<String> = entries.iter().map(line).collect();
    let concurrent = |line: &String| {
        line.contains("r1/") && !line.contains("started") && !line.contains("scored")
    };
    let first = lines.iter().position(concurrent).unwrap_or(0);
    let last = lines.iter().rposition(concurrent).map_or(0, |at| at + 1);
    lines[first..last].sort();
    lines.join("\n")
}

#[tokio::test]
async fn an_ask_writes_this_journal() {
    let stage = Stage::set(Scenario::agreeing(), honest(), &Setup::default()).await;
    let run = stage
        .ask(
            Mode::Ask,
            "What is the boiling point of water at sea level in Celsius?",
        )
        .await;
    insta::assert_snapshot!(story(&stage.app.entries(run).await.unwrap()));
}

#[tokio::test]
async fn a_question_of_the_gate_writes_this_journal() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let stage = Stage::set(scenario, honest(), &Setup::default()).await;
    let run = stage.ask(Mode::Audit, &message).await;
    insta::assert_snapshot!(story(&stage.app.entries(run).await.unwrap()));
}

#[tokio::test]
async fn a_reply_with_a_plan_reads_like_this() {
    let scenario = Scenario::howto();
    let message = scenario.message.clone();
    let stage = Stage::set(scenario, honest(), &Setup::default()).await;
    let run = stage.ask(Mode::Ask, &message).await;
    let entries = stage.app.entries(run).await.unwrap();
    let Some(Ending::Replied { reply }) =
        Transcript::of_entries(&entries).finished.map(|f| &f.ending)
    else {
        panic!("no reply")
    };
    insta::assert_snapshot!(reply.text);
}

/// Applies a fault to one call. Bills stay within the reservation.
fn trouble(kind: u64, request_max: u32, reply: ChatReply) -> Result<ChatReply, Error> {
    let provider = "scripted".to_owned();
    let usage = |input, output| {
        Some(BilledTokens {
            input,
            output,
            ..BilledTokens::default()
        })
    };
    match kind % 12 {
        0 => Err(Error::Timeout {
            provider,
            after: Duration::from_secs(1),
        }),
        1 => Err(Error::Status {
            provider,
            status: 529,
            detail: "busy".into(),
            retry_after: None,
        }),
        2 => Err(Error::Broken {
            provider,
            detail: "cut".into(),
        }),
        3 => Ok(ChatReply {
            text: "prose and no JSON".into(),
            ..reply
        }),
        4 => Ok(ChatReply {
            usage: None,
            ..reply
        }),
        5 => Ok(ChatReply {
            usage: usage(900, u64::from(request_max)),
            ..reply
        }),
        6 => Ok(ChatReply {
            stop: Stop::Refusal,
            ..reply
        }),
        7 => Ok(ChatReply {
            text: reply.text.chars().take(reply.text.len() / 2).collect(),
            stop: Stop::MaxTokens,
            ..reply
        }),
        _ => Ok(reply),
    }
}

/// Replays the money of a journal, entry by entry. Returns the highest sum of reserved and settled
/// money.
fn peak(entries: &[Entry]) -> Usd {
    let mut open = std::collections::BTreeMap::new();
    let (mut settled, mut peak) = (Usd::ZERO, Usd::ZERO);
    for entry in entries {
        match &entry.event {
            Event::CallSent(e) => {
                open.insert(
                    e.call.clone(),
                    e.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount),
                );
            }
            Event::CallSettled(e) => {
                open.remove(&e.call);
                settled += e.cost;
            }
            _ => {}
        }
        peak = peak.max(settled + open.values().copied().sum());
    }
    peak
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// With any fault and in every mode, reserved and settled money together stay within the cap,
    /// and the run ends.
    #[test]
    fn money_never_passes_the_cap(seed in any::<u64>(), mode in 0u8..3, cap_cents in 1u64..30) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let count = AtomicU64::new(seed);
            let twist: Twist = Arc::new(move |_, request, reply| {
                let next = count.fetch_add(1, Ordering::Relaxed);
                let mixed = (next ^ (next >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                trouble(mixed >> 32, request.max_tokens, reply)
            });
            let cap = format!("{}", cap_cents as f64 / 100.0);
            let setup = Setup::default()
                .env("NORMAL_MAX_USD", cap.clone())
                .env("DEEP_MAX_USD", cap)
                .set("/policy/retry", serde_json::json!({ "attempts": 3, "baseMs": 0, "maxMs": 1 }));
            let mode = [Mode::Ask, Mode::Audit, Mode::Deep][usize::from(mode)];
            let scenario = Scenario::converging();
            let message = scenario.message.clone();
            let stage = Stage::set(scenario, twist, &setup).await;
            let run = stage.ask(mode, &message).await;
            let entries = stage.app.entries(run).await.unwrap();
            let row = stage.app.run(run).await.unwrap().unwrap();
            assert!(peak(&entries) <= row.cap, "{} of {}", peak(&entries), row.cap);
            assert!(row.spent <= row.cap);
            let defect = matches!(
                Transcript::of_entries(&entries).finished.map(|f| &f.ending),
                Some(Ending::Failed { cause: conclave::journal::Cause::Internal, .. }) | None
            );
            assert!(!defect, "{:?}", Transcript::of_entries(&entries).finished);
            let mended = |entry: &Entry| matches!(&entry.event, Event::Synthesized(s) if !s.broken_rules.is_empty());
            assert!(!entries.iter().any(mended), "a rule would have been broken");
        });
    }
}
