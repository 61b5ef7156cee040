//! `conclave report`: the track record of models and of c_final, from the journals.

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::exit::{Done, Exit, fail, failing};
use super::show::open;
use super::terminal::{say, say_json};
use crate::clock::Clock;
use crate::committee::TrackRecord;
use crate::config::{self, Env, Policy};
use crate::domain::{RunKind, counted};
use crate::journal::{Error, RunFilter, RunReader, RunRow, Transcript, ancestors};
use crate::strategies::report::{Estimated, StrategyReport};

/// The number of runs that are read at a time.
const PAGE: u32 = 200;

/// Days before now from which runs are read without `--since`.
const DAYS: i64 = 30;

/// Only so many of the newest replies are judged again without each agent, because that takes most
/// of the time.
const MAX_JUDGED: u64 = 1000;

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    #[command(subcommand)]
    command: Option<ReportCommand>,
    /// Only runs accepted at or after this time, such as 2026-11-01T00:00:00Z. Without it, the runs
    /// of the last 30 days.
    #[arg(long, global = true)]
    since: Option<Timestamp>,
    /// Print it as JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ReportCommand {
    /// Compare decision strategies: cost, time and feedback, with intervals of 95 %.
    Strategies,
}

pub(super) async fn run(env: &Env, arguments: ReportArguments) -> Done {
    let policy = config::policy(env).map_err(failing(Exit::Configuration))?;
    let store = open(env).await?;
    let month = SignedDuration::from_hours(24 * DAYS);
    let since = arguments
        .since
        .unwrap_or_else(|| Clock::System.now() - month);
    if let Some(ReportCommand::Strategies) = arguments.command {
        let mut report = StrategyReport::default();
        read(&*store, since, &mut Figures::Strategies(&mut report))
            .await
            .map_err(failing(Exit::Unexpected))?;
        print_strategies(&report, since, arguments.json);
        return Ok(());
    }
    let mut record = TrackRecord::default();
    read(&*store, since, &mut Figures::Record(&mut record, &policy))
        .await
        .map_err(failing(Exit::Unexpected))?;
    if arguments.json {
        say_json(&serde_json::to_string(&record).unwrap_or_default());
    } else {
        print(&record, since);
    }
    Ok(())
}

/// What is collected from the journals.
enum Figures<'a> {
    Record(&'a mut TrackRecord, &'a Policy),
    Strategies(&'a mut StrategyReport),
}

async fn read(
    store: &dyn RunReader,
    since: Timestamp,
    figures: &mut Figures<'_>,
) -> Result<(), Error> {
    // Hidden if standard error is no terminal.
    let progress = ProgressBar::new_spinner();
    let mut filter = RunFilter {
        kind: Some(RunKind::Chat),
        since: Some(since),
        limit: PAGE,
        ..RunFilter::default()
    };
    let mut runs = 0;
    loop {
        let page = store.runs(&filter).await?;
        let Some(last) = page.last() else {
            progress.finish_and_clear();
            return Ok(());
        };
        filter.before = Some(last.id);
        for row in page.iter().filter(|row| row.state.is_terminal()) {
            match figures.add(store, row).await {
                // A run that was altered, or that another release wrote, must not hide all others.
                Err(error @ Error::Corrupt { .. }) => {
                    fail(
                        Exit::Altered,
                        format!("run {} is left out: {error} (conclave verify {0})", row.id),
                    );
                }
                added => added?,
            }
            runs += 1;
        }
        progress.set_message(format!("{} read", counted(runs, "run", "runs")));
        progress.tick();
    }
}

impl Figures<'_> {
    async fn add(&mut self, store: &dyn RunReader, row: &RunRow) -> Result<(), Error> {
        let entries = store.entries(row.id, 0).await?;
        let run = Transcript::of_entries(&entries);
        match self {
            Figures::Strategies(report) => {
                let ended = row.finished_at.unwrap_or(row.accepted_at);
                report.add(&run, ended.duration_since(row.accepted_at));
            }
            Figures::Record(record, policy) => {
                let ancestors = match run.accepted {
                    Some(accepted) if record.judged < MAX_JUDGED => {
                        Some(ancestors(store, accepted).await?)
                    }
                    _ => None,
                };
                record.add(&run);
                if let Some(ancestors) = ancestors {
                    record.judge(&run, &ancestors, policy);
                }
            }
        }
        Ok(())
    }
}

fn print_strategies(report: &StrategyReport, since: Timestamp, as_json: bool) {
    if as_json {
        let arms: Vec<Value> = report
            .arms
            .iter()
            .map(|(name, arm)| {
                json!({ "arm": name, "runs": arm.runs, "failed": arm.failed, "fromMemory": arm.from_memory,
                        "costUsd": arm.cost(), "seconds": arm.seconds(), "positive": arm.positive,
                        "negative": arm.negative, "approval": arm.approval() })
            })
            .collect();
        say_json(&json!({ "since": since.to_string(), "arms": arms }).to_string());
        return;
    }
    say(format_args!(
        "{:<16} {:>6} {:>6} {:>11} {:>24} {:>18} {:>22}",
        "strategy",
        "runs",
        "failed",
        "from memory",
        "cost USD (95 %)",
        "seconds (95 %)",
        "approval (95 %)"
    ));
    let shown = |figure: Option<Estimated>, digits: usize| {
        figure.map_or("none".to_owned(), |it| {
            let (value, low, high) = (it.value, it.low, it.high);
            format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
        })
    };
    for (name, arm) in &report.arms {
        say(format_args!(
            "{name:<16} {:>6} {:>6} {:>11} {:>24} {:>18} {:>22}",
            arm.runs,
            arm.failed,
            arm.from_memory,
            shown(arm.cost(), 4),
            shown(arm.seconds(), 1),
            shown(arm.approval(), 2)
        ));
    }
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
