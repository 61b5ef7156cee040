//! `conclave report`: the track record of models and of c_final, from the journals.

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::exit::{Done, Exit, fail, failing};
use super::export::moment;
use super::local::open;
use super::terminal::{say, say_json};
use crate::clock::Clock;
use crate::committee::{MemberKey, TrackRecord};
use crate::config::Env;
use crate::domain::{RunKind, counted};
use crate::journal::{Error, RunFilter, RunReader, RunRow, Transcript};
use crate::strategies::report::{Estimated, StrategyReport};

/// The number of runs that are read at a time.
const PAGE: u32 = 200;

/// Days before now from which runs are read without `--since`.
const DAYS: i64 = 30;

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    #[command(subcommand)]
    command: Option<ReportCommand>,
    /// Only runs accepted on or after this day (UTC) or time: 2026-11-01, 2026-11-01T12:00:00Z.
    /// Without it, the runs of the last 30 days.
    #[arg(long, global = true, value_name = "DAY|TIME", value_parser = moment)]
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
    let store = open(env).await?;
    let month = SignedDuration::from_hours(24 * DAYS);
    let since = arguments
        .since
        .unwrap_or_else(|| Clock::System.now() - month);
    let mut figures = match arguments.command {
        Some(ReportCommand::Strategies) => Figures::Strategies(StrategyReport::default()),
        None => Figures::Record(Box::default()),
    };
    let read = read(&*store, since, &mut figures).await;
    read.map_err(failing(Exit::Unexpected))?;
    match (figures, arguments.json) {
        (Figures::Strategies(report), true) => print_strategies_json(&report, since),
        (Figures::Strategies(report), false) => print_strategies(&report),
        (Figures::Record(record), true) => say_json(&json!(record).to_string()),
        (Figures::Record(record), false) => print(&record, since),
    }
    Ok(())
}

/// What is collected from the journals.
enum Figures {
    Record(Box<TrackRecord>),
    Strategies(StrategyReport),
}

async fn read(store: &dyn RunReader, since: Timestamp, figures: &mut Figures) -> Result<(), Error> {
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
                    let why = format!("is left out: {error} (conclave verify {})", row.id);
                    fail(Exit::Altered, format!("run {} {why}", row.id));
                }
                added => added?,
            }
            runs += 1;
        }
        progress.set_message(format!("{} read", counted(runs, "run", "runs")));
        progress.tick();
    }
}

impl Figures {
    async fn add(&mut self, store: &dyn RunReader, row: &RunRow) -> Result<(), Error> {
        let entries = store.entries(row.id, 0).await?;
        let run = Transcript::of_entries(&entries);
        match self {
            Figures::Strategies(report) => {
                let ended = row.finished_at.unwrap_or(row.accepted_at);
                report.add(&run, ended.duration_since(row.accepted_at));
            }
            Figures::Record(record) => record.add(&run),
        }
        Ok(())
    }
}

fn print_strategies_json(report: &StrategyReport, since: Timestamp) {
    let arms = report.arms.iter().map(|(name, arm)| {
        json!({ "arm": name, "runs": arm.runs, "failed": arm.failed, "fromMemory": arm.from_memory,
                "costUsd": arm.cost(), "seconds": arm.seconds(), "positive": arm.positive,
                "negative": arm.negative, "approval": arm.approval() })
    });
    let arms: Vec<Value> = arms.collect();
    say_json(&json!({ "since": since.to_string(), "arms": arms }).to_string());
}

fn print_strategies(report: &StrategyReport) {
    let row = |name: &str, counts: [&str; 3], [cost, seconds, approval]: [&str; 3]| {
        let [runs, failed, from_memory] = counts;
        say(format_args!(
            "{name:<16} {runs:>6} {failed:>6} {from_memory:>11} {cost:>24} {seconds:>18} {approval:>22}"
        ));
    };
    let estimated = ["cost USD (95 %)", "seconds (95 %)", "approval (95 %)"];
    row("strategy", ["runs", "failed", "from memory"], estimated);
    let shown = |figure: Option<Estimated>, digits: usize| {
        figure.map_or("none".to_owned(), |it| {
            let value = it.value;
            match it.low.zip(it.high) {
                Some((low, high)) => {
                    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
                }
                None => format!("{value:.digits$} (one run)"),
            }
        })
    };
    for (name, arm) in &report.arms {
        let counts = [arm.runs, arm.failed, arm.from_memory].map(|count| count.to_string());
        let (cost, seconds) = (shown(arm.cost(), 4), shown(arm.seconds(), 1));
        let estimated = [&cost, &seconds, &shown(arm.approval(), 2)];
        row(
            name,
            counts.each_ref().map(String::as_str),
            estimated.map(String::as_str),
        );
    }
}

fn print(record: &TrackRecord, since: Timestamp) {
    let outcomes = record.outcomes.iter();
    let outcomes: Vec<String> = outcomes
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let (runs, outcomes) = (counted(record.runs, "run", "runs"), outcomes.join(", "));
    say(format_args!("{runs} since {since:.0}: {outcomes}\n"));
    if record.runs > 0 {
        print_members(record);
        print_reliability(record);
    }
}

fn print_members(record: &TrackRecord) {
    say(format_args!(
        "{:<12} {:<34} {:>6} {:>7} {:>6} {:>5}/{:<5}/{:<5} {:>10} {:>8} {:>8}",
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
        "p95 s"
    ));
    let percent = |share: Option<f64>| {
        share.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share))
    };
    let seconds =
        |ms: Option<u64>| ms.map_or("-".to_owned(), |ms| format!("{:.1}", ms as f64 / 1000.0));
    for (
        MemberKey {
            role,
            provider,
            model,
        },
        member,
    ) in &record.members
    {
        let name: String = format!("{provider}/{model}").chars().take(34).collect();
        say(format_args!(
            "{role:<12} {name:<34} {:>6} {:>7} {:>6} {:>5}/{:<5}/{:<5} {:>10.4} {:>8} {:>8}",
            member.calls,
            member.failed_calls,
            percent(member.valid_json()),
            member.valid,
            member.quarantined,
            member.discarded,
            member.cost.dollars(),
            seconds(member.latency_ms(0.5)),
            seconds(member.latency_ms(0.95)),
        ));
    }
    say(format_args!(
        "\nJSON: outputs that were valid JSON, at once or after repair."
    ));
}

/// Prints how often readers approved of replies, by c_final.
fn print_reliability(record: &TrackRecord) {
    let Some(ece) = record.ece() else {
        let ways = "conclave feedback RUN --positive, or POST /api/runs/RUN/feedback";
        say(format_args!("\nno feedback yet: {ways}"));
        return;
    };
    let headings = "c_final      replies  mean c_final  approved   (feedback; ECE";
    say(format_args!("\n{headings} {ece:.3})"));
    let bins = record.reliability.iter().enumerate();
    for (at, bin) in bins.filter(|(_, bin)| bin.replies > 0) {
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
