//! `conclave report`: the track record of models and of c_final, from the journals.

use clap::Args;
use indicatif::ProgressBar;
use jiff::{SignedDuration, Timestamp};

use super::exit::{Done, Exit, fail, failing};
use super::show::open;
use super::terminal::{say, say_json};
use crate::clock::Clock;
use crate::committee::TrackRecord;
use crate::config::{self, Env, Policy};
use crate::domain::{RunId, RunKind, counted};
use crate::journal::{Error, RunFilter, RunReader, Transcript, ancestors};

/// The number of runs that are read at a time.
const PAGE: u32 = 200;

/// Days before now from which runs are read without `--since`.
const DAYS: i64 = 30;

/// Only so many of the newest replies are judged again without each agent, because that takes most
/// of the time.
const MAX_JUDGED: u64 = 1000;

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Only runs accepted at or after this time, such as 2026-11-01T00:00:00Z. Without it, the runs
    /// of the last 30 days.
    #[arg(long)]
    since: Option<Timestamp>,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(env: &Env, arguments: ReportArguments) -> Done {
    let policy = config::policy(env).map_err(failing(Exit::Configuration))?;
    let store = open(env).await?;
    let month = SignedDuration::from_hours(24 * DAYS);
    let since = arguments
        .since
        .unwrap_or_else(|| Clock::System.now() - month);
    let record = read(&*store, since, &policy)
        .await
        .map_err(failing(Exit::Unexpected))?;
    if arguments.json {
        say_json(&serde_json::to_string(&record).unwrap_or_default());
    } else {
        print(&record, since);
    }
    Ok(())
}

async fn read(
    store: &dyn RunReader,
    since: Timestamp,
    policy: &Policy,
) -> Result<TrackRecord, Error> {
    let mut record = TrackRecord::default();
    // Hidden if standard error is no terminal.
    let progress = ProgressBar::new_spinner();
    let mut filter = RunFilter {
        kind: Some(RunKind::Chat),
        since: Some(since),
        limit: PAGE,
        ..RunFilter::default()
    };
    loop {
        let page = store.runs(&filter).await?;
        let Some(last) = page.last() else {
            progress.finish_and_clear();
            return Ok(record);
        };
        filter.before = Some(last.id);
        for row in page.iter().filter(|row| row.state.is_terminal()) {
            match add(store, row.id, &mut record, policy).await {
                // A run that was altered, or that another release wrote, must not hide all others.
                Err(error @ Error::Corrupt { .. }) => {
                    fail(
                        Exit::Altered,
                        format!("run {} is left out: {error} (conclave verify {0})", row.id),
                    );
                }
                added => added?,
            }
        }
        progress.set_message(format!("{} read", counted(record.runs, "run", "runs")));
        progress.tick();
    }
}

async fn add(
    store: &dyn RunReader,
    run: RunId,
    record: &mut TrackRecord,
    policy: &Policy,
) -> Result<(), Error> {
    let entries = store.entries(run, 0).await?;
    let run = Transcript::of_entries(&entries);
    let ancestors = match run.accepted {
        Some(accepted) if record.judged < MAX_JUDGED => Some(ancestors(store, accepted).await?),
        _ => None,
    };
    record.add(&run);
    if let Some(ancestors) = ancestors {
        record.judge(&run, &ancestors, policy);
    }
    Ok(())
}

fn print(record: &TrackRecord, since: Timestamp) {
    let outcomes: Vec<String> = record
        .outcomes
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    say(format_args!(
        "{} since {since:.0}: {}\n",
        counted(record.runs, "run", "runs"),
        outcomes.join(", ")
    ));
    if record.runs > 0 {
        print_members(record);
        print_reliability(record);
    }
}

fn print_members(record: &TrackRecord) {
    say(format_args!(
        "{:<12} {:<34} {:>6} {:>7} {:>6} {:>5}/{:<5}/{:<5} {:>10} {:>8} {:>8} {:>8}",
        "role",
        "model",
        "calls",
        "failed",
        "JSON",
        "valid",
        "quar.",
        "disc.",
        "cost USD",
        "p50 s",
        "p95 s",
        "needless"
    ));
    let percent = |share: Option<f64>| {
        share.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share))
    };
    let seconds =
        |ms: Option<u64>| ms.map_or("-".to_owned(), |ms| format!("{:.1}", ms as f64 / 1000.0));
    for ((role, provider, model), member) in &record.members {
        let name: String = format!("{provider}/{model}").chars().take(34).collect();
        say(format_args!(
            "{role:<12} {name:<34} {:>6} {:>7} {:>6} {:>5}/{:<5}/{:<5} {:>10.4} {:>8} {:>8} {:>8}",
            member.calls,
            member.failed_calls,
            percent(member.valid_json()),
            member.valid,
            member.quarantined,
            member.discarded,
            member.cost.dollars(),
            seconds(member.latency_ms(0.5)),
            seconds(member.latency_ms(0.95)),
            percent(member.dispensable_share()),
        ));
    }
    say(format_args!(
        "\nJSON: outputs that were valid JSON, at once or after repair.\n\
         needless: replies that would have been the same without the agent (same decision, same leading\n\
         answer, nothing of it used), of the newest {}.",
        counted(record.judged, "reply", "replies")
    ));
}

/// Prints how often readers approved of replies, by c_final.
fn print_reliability(record: &TrackRecord) {
    let Some(ece) = record.ece() else {
        say(format_args!(
            "\nno feedback yet: conclave feedback RUN --positive, or POST /api/runs/RUN/feedback"
        ));
        return;
    };
    say(format_args!(
        "\nc_final      replies  mean c_final  approved   (feedback; ECE {ece:.3})"
    ));
    for (at, bin) in record
        .reliability
        .iter()
        .enumerate()
        .filter(|(_, bin)| bin.replies > 0)
    {
        let replies = bin.replies as f64;
        let (mean, approved) = (bin.c_final_sum / replies, bin.positive as f64 / replies);
        let bar = "#".repeat((approved * 20.0).round() as usize);
        let from = at as f64 / 10.0;
        say(format_args!(
            "{from:.1} to {:.1}   {:>7}  {mean:>12.2}  {approved:>8.2}   {bar}",
            from + 0.1,
            bin.replies
        ));
    }
}
