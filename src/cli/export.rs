//! `conclave export`: writes finished runs as JSON Lines, one run a line, each with its whole
//! journal and hash chain.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::exit::{Done, Exit, fail};
use super::local::open;
use super::new_file::NewFile;
use super::printable::escaped_json;
use crate::config::Env;
use crate::domain::{RunId, counted};
use crate::journal::{Error, RunFilter, RunRow, Store, read_proven};

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
    let file = arguments.output.as_deref().map(NewFile::create);
    let file = file.transpose()?;
    let output: Box<dyn Write> = match &file {
        None => Box::new(std::io::stdout().lock()),
        Some(file) => Box::new(file.writer()?),
    };
    let result = write(&*store, filter, &mut BufWriter::new(output)).await;
    match result {
        Ok(written) => {
            file.map_or(Ok(()), |file| file.finish(env))?;
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
        Err(Failed::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(fail(Exit::Unexpected, error)),
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

    /// Writes a run of a list, unless it is in flight, or was deleted after the list was read.
    async fn add(
        &mut self,
        store: &dyn Store,
        row: Result<RunRow, Error>,
        output: &mut impl Write,
    ) -> Result<(), Failed> {
        let RunRow { id, state, .. } = row?;
        if !state.is_terminal() {
            self.unfinished += 1;
            return Ok(());
        }
        let Some(proven) = read_proven(store, id).await? else {
            return Ok(());
        };
        let Some(archive) = store.archive(id).await? else {
            if store.run(id).await?.is_some() {
                let why = "its entries are missing: it is not exported";
                self.faults.push(format!("run {id}: {why}"));
            }
            return Ok(());
        };
        let why = "an import refuses it if an entry was altered";
        let fault = proven
            .fault
            .map(|fault| format!("run {id}: {fault}; {why}"));
        self.faults.extend(fault);
        let line = serde_json::to_string(&archive).map_err(std::io::Error::from)?;
        writeln!(output, "{}", escaped_json(&line))?;
        self.runs += 1;
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the export cannot be written: {0}")]
    Output(#[from] std::io::Error),
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
            match written.add(store, row, output).await {
                Err(Failed::Store(error)) => written.note(error, &format!("run {id}"))?,
                added => added?,
            }
        }
    }
    output.flush()?;
    Ok(written)
}
