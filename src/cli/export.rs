//! `conclave export`: writes finished runs as JSON Lines, one run a line, each with its whole
//! journal and hash chain.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::exit::{Done, Exit, fail};
use super::printable::escaped_json;
use super::show::open;
use crate::config::Env;
use crate::domain::counted;
use crate::journal::{Error, RunFilter, Store};

/// The number of runs that are read at a time.
const PAGE: u32 = 200;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Write to this new file, readable by you only, and not to standard output.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Only runs accepted at or after this time, such as 2026-11-01T00:00:00Z.
    #[arg(long)]
    since: Option<Timestamp>,
    /// Only runs of this user.
    #[arg(long)]
    user: Option<String>,
}

pub(super) async fn run(env: &Env, arguments: ExportArguments) -> Done {
    let store = open(env).await?;
    let filter = RunFilter {
        since: arguments.since,
        user_id: arguments.user,
        limit: PAGE,
        ..RunFilter::default()
    };
    let written = match arguments.output {
        None => {
            write(
                &*store,
                filter,
                &mut BufWriter::new(std::io::stdout().lock()),
            )
            .await
        }
        Some(path) => match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(file) => write(&*store, filter, &mut BufWriter::new(file)).await,
            Err(error) => return Err(fail(Exit::Refused, format!("{}: {error}", path.display()))),
        },
    };
    match written {
        Ok(Written { runs, unfinished }) => {
            eprintln!("exported {}", counted(runs, "run", "runs"));
            if unfinished > 0 {
                eprintln!(
                    "{} left out: export again when the rest has ended",
                    counted(unfinished, "run in flight was", "runs in flight were")
                );
            }
            Ok(())
        }
        Err(Failed::Store(error)) => Err(fail(Exit::Unexpected, error)),
        Err(Failed::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(Failed::Output(error)) => Err(fail(
            Exit::Unexpected,
            format!("the export cannot be written: {error}"),
        )),
    }
}

struct Written {
    runs: u64,
    unfinished: u64,
}

enum Failed {
    Store(Error),
    Output(std::io::Error),
}

/// Writes the runs, newest first. It reads a page at a time, so that memory does not grow with the
/// database.
async fn write(
    store: &dyn Store,
    filter: RunFilter,
    output: &mut impl Write,
) -> Result<Written, Failed> {
    let mut written = Written {
        runs: 0,
        unfinished: 0,
    };
    let mut before = None;
    loop {
        let page = store
            .runs(&RunFilter {
                before,
                ..filter.clone()
            })
            .await
            .map_err(Failed::Store)?;
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        for row in page {
            let Some(archive) = store.archive(row.id).await.map_err(Failed::Store)? else {
                written.unfinished += 1;
                continue;
            };
            let line =
                serde_json::to_string(&archive).map_err(|error| Failed::Output(error.into()))?;
            writeln!(output, "{}", escaped_json(&line)).map_err(Failed::Output)?;
            written.runs += 1;
        }
    }
    output.flush().map_err(Failed::Output)?;
    Ok(written)
}
