//! `conclave export`: writes finished runs as JSON Lines, one run a line, each with its whole
//! journal and hash chain.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::backup::private_file;
use super::exit::{Done, Exit, fail};
use super::local::open;
use super::printable::escaped_json;
use crate::config::Env;
use crate::domain::{RunId, counted};
use crate::journal::{Archive, Entry, Error, RunFilter, RunRow, Store, prove};

/// The number of runs that are read at a time.
const PAGE: u32 = 200;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Write to this new file, readable by you only, and not to standard output.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Only runs accepted on or after this day (UTC) or time: 2026-11-01, 2026-11-01T12:00:00Z.
    #[arg(long, value_name = "DAY|TIME", value_parser = moment)]
    since: Option<Timestamp>,
    /// Only runs of this user.
    #[arg(long)]
    user: Option<String>,
}

/// Reads a time, or a day as its midnight in UTC.
fn moment(given: &str) -> Result<Timestamp, String> {
    // With a time but without its offset, the moment is not known.
    let has_time = given.len() > "2026-11-01".len();
    let midnight = || {
        let day = given.parse::<Date>().ok().filter(|_| !has_time)?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    let moment = given.parse().ok().or_else(midnight);
    moment
        .ok_or_else(|| "a day such as 2026-11-01 or a time such as 2026-11-01T12:00:00Z".to_owned())
}

pub(super) async fn run(env: &Env, arguments: ExportArguments) -> Done {
    let store = open(env).await?;
    let filter = RunFilter {
        since: arguments.since,
        user_id: arguments.user,
        limit: PAGE,
        ..RunFilter::default()
    };
    let file = arguments.output;
    let output: Box<dyn Write> = match &file {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => Box::new(private_file(path)?),
    };
    let result = write(&*store, filter, &mut BufWriter::new(output)).await;
    if let (Err(_), Some(path)) = (&result, &file) {
        // A part of an export is of no use, and it would block the next attempt.
        let _ = std::fs::remove_file(path);
    }
    match result {
        Ok(Written {
            runs,
            unfinished,
            altered,
            damaged,
        }) => {
            tell!("exported {}", counted(runs, "run", "runs"));
            if unfinished > 0 {
                let left = counted(unfinished, "run in flight was", "runs in flight were");
                tell!("{left} left out: export again when the rest has ended");
            }
            if altered.is_empty() && damaged.is_empty() {
                return Ok(());
            }
            let mut lines = altered;
            if !lines.is_empty() {
                let why =
                    "exported as they are; an import refuses those whose entries were altered";
                lines.push(why.to_owned());
            }
            lines.extend(damaged);
            Err(fail(Exit::Altered, lines.join("\n")))
        }
        Err(Failed::Store(error)) => Err(fail(Exit::Unexpected, error)),
        Err(Failed::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(Failed::Output(error)) => {
            let why = format!("the export cannot be written: {error}");
            Err(fail(Exit::Unexpected, why))
        }
    }
}

#[derive(Default)]
struct Written {
    runs: u64,
    unfinished: u64,
    /// What is wrong with runs whose journal was altered.
    altered: Vec<String>,
    /// Why runs cannot be read.
    damaged: Vec<String>,
}

enum Failed {
    Store(Error),
    Output(std::io::Error),
}

/// Writes the runs, newest first. It reads a page at a time, so that memory does not grow with the
/// database.
async fn write(
    store: &dyn Store,
    mut filter: RunFilter,
    output: &mut impl Write,
) -> Result<Written, Failed> {
    let mut written = Written::default();
    loop {
        let page = store.listed(&filter).await.map_err(Failed::Store)?;
        let last = page.iter().rev().find_map(|(id, _)| id.parse().ok());
        // An altered id must not turn the list back.
        let is_older = |last: &RunId| filter.before.is_none_or(|before| *last < before);
        let Some(last) = last.filter(is_older) else {
            break;
        };
        filter.before = Some(last);
        for (id, row) in page {
            let (row, archive, entries) = match read(store, row).await {
                Ok((row, Some(archive), entries)) => (row, archive, entries),
                Ok((row, None, _)) if row.state.is_terminal() => {
                    let why = "its entries are missing: it is not exported";
                    // A run that was pruned meanwhile is not damaged.
                    if store.run(row.id).await.map_err(Failed::Store)?.is_some() {
                        written.damaged.push(format!("run {id}: {why}"));
                    }
                    continue;
                }
                Ok((_, None, _)) => {
                    written.unfinished += 1;
                    continue;
                }
                Err(error @ Error::Corrupt { .. }) => {
                    let why = format!("run {id}: {error}: it is not exported");
                    written.damaged.push(why);
                    continue;
                }
                Err(error) => return Err(Failed::Store(error)),
            };
            if let Err(fault) = archive.verify(&row.head_hash) {
                written.altered.push(fault.to_string());
            } else if let Err(fault) = prove(&row, &entries) {
                written.altered.push(format!("run {id}: {fault}"));
            }
            let line = serde_json::to_string(&archive);
            let line = line.map_err(|error| Failed::Output(error.into()))?;
            writeln!(output, "{}", escaped_json(&line)).map_err(Failed::Output)?;
            written.runs += 1;
        }
    }
    output.flush().map_err(Failed::Output)?;
    Ok(written)
}

/// Reads a run of a list, with its archive if it has ended.
async fn read(
    store: &dyn Store,
    row: Result<RunRow, Error>,
) -> Result<(RunRow, Option<Archive>, Vec<Entry>), Error> {
    let row = row?;
    // A run that ends meanwhile does not fit its row.
    if !row.state.is_terminal() {
        return Ok((row, None, vec![]));
    }
    let archive = store.archive(row.id).await?;
    let entries = store.entries(row.id, 0).await?;
    Ok((row, archive, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let read = |given: &str| moment(given).map(|at| at.to_string());
        assert_eq!(read("2026-11-01"), Ok("2026-11-01T00:00:00Z".into()));
        assert_eq!(
            read("2026-11-01T12:00:00+02:00"),
            Ok("2026-11-01T10:00:00Z".into())
        );
        assert!(read("November").unwrap_err().contains("2026-11-01"));
    }
}
