//! `conclave export`: writes finished runs as JSON Lines, one run a line, each with its whole
//! journal and hash chain.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::backup::private_file;
use super::exit::{Done, Exit, fail};
use super::local::open;
use super::printable::escaped_json;
use crate::config::Env;
use crate::domain::{RunId, counted};
use crate::journal::{Archive, ChainFault, Error, RunFilter, RunRow, Store, read_proven};

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
pub(super) fn moment(given: &str) -> Result<Timestamp, String> {
    let moment = given.parse().or_else(|_| format!("{given}T00:00Z").parse());
    let hint = "a day such as 2026-11-01 or a time such as 2026-11-01T12:00:00Z";
    moment.map_err(|_| hint.to_owned())
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
        Ok(written) => {
            tell!("exported {}", counted(written.runs, "run", "runs"));
            if written.unfinished > 0 {
                let (one, several) = ("run in flight was", "runs in flight were");
                let left = counted(written.unfinished, one, several);
                tell!("{left} left out: export again when the rest has ended");
            }
            if written.faults.is_empty() {
                return Ok(());
            }
            Err(fail(Exit::Altered, written.faults.join("\n")))
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
    /// What is wrong with runs that were altered, or cannot be read.
    faults: Vec<String>,
}

impl Written {
    /// Notes what is damaged, and is left out.
    ///
    /// # Errors
    /// Any other error.
    fn note(&mut self, error: Error, what: &str) -> Result<(), Failed> {
        if !matches!(error, Error::Corrupt { .. }) && !error.is_damaged() {
            return Err(Failed::Store(error));
        }
        self.faults
            .push(format!("{what}: {error}: it is not exported"));
        Ok(())
    }
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
    // A damaged index can hide runs.
    match store.damage().await {
        Ok(None) => {}
        Ok(Some(found)) => written.faults.push(format!(
            "the database is damaged, so runs may be missing: {found}"
        )),
        Err(error) => written.note(error, "the database")?,
    }
    loop {
        let page = match store.listed(&filter).await {
            Ok(page) => page,
            Err(error) => {
                written.note(error, "the list of older runs")?;
                break;
            }
        };
        let last = page.iter().rev().find_map(|(id, _)| id.parse().ok());
        // An altered id must not turn the list back.
        let is_older = |last: &RunId| filter.before.is_none_or(|before| *last < before);
        let Some(last) = last.filter(is_older) else {
            break;
        };
        filter.before = Some(last);
        for (id, row) in page {
            match read(store, row).await {
                Ok(Run::Ended(archive, fault)) => {
                    let why = "an import refuses it if an entry was altered";
                    let fault = fault.map(|fault| format!("run {id}: {fault}; {why}"));
                    written.faults.extend(fault);
                    let line = serde_json::to_string(&archive);
                    let line = line.map_err(|error| Failed::Output(error.into()))?;
                    writeln!(output, "{}", escaped_json(&line)).map_err(Failed::Output)?;
                    written.runs += 1;
                }
                Ok(Run::InFlight) => written.unfinished += 1,
                Ok(Run::Deleted) => {}
                Ok(Run::Empty) => {
                    let why = "its entries are missing: it is not exported";
                    written.faults.push(format!("run {id}: {why}"));
                }
                Err(error) => written.note(error, &format!("run {id}"))?,
            }
        }
    }
    output.flush().map_err(Failed::Output)?;
    Ok(written)
}

/// A run of a list.
enum Run {
    /// Its archive, with what is wrong with it.
    Ended(Archive, Option<ChainFault>),
    InFlight,
    Empty,
    /// It was deleted after the list was read.
    Deleted,
}

async fn read(store: &dyn Store, row: Result<RunRow, Error>) -> Result<Run, Error> {
    let row = row?;
    if !row.state.is_terminal() {
        return Ok(Run::InFlight);
    }
    let Some(proven) = read_proven(store, row.id).await? else {
        return Ok(Run::Deleted);
    };
    Ok(match store.archive(row.id).await? {
        Some(archive) => Run::Ended(archive, proven.fault),
        None if store.run(row.id).await?.is_none() => Run::Deleted,
        None => Run::Empty,
    })
}
