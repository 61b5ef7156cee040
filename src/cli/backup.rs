//! `conclave backup`: a consistent copy of the database while the service runs.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use clap::Args;

use super::exit::{Exit, fail};
use super::show::open;
use super::terminal::say;
use crate::config::Env;
use crate::journal::Error;

#[derive(Debug, Args)]
pub(super) struct BackupArguments {
    /// The new file. It is readable by you only, and never overwrites another.
    file: PathBuf,
}

pub(super) async fn run(env: &Env, arguments: BackupArguments) -> Exit {
    let file = arguments.file;
    let store = match open(env).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    // Made before it is filled, so that nobody else can read it at any moment.
    if let Err(error) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file) {
        return fail(Exit::Refused, format!("{}: {error}", file.display()));
    }
    match store.backup(&file).await {
        Ok(()) => {
            let bytes = std::fs::metadata(&file).map_or(0, |meta| meta.len());
            say(format_args!("{}: {bytes} bytes", file.display()));
            Exit::Done
        }
        Err(error) => {
            // It holds nothing of use, and would stand in the way of the next attempt.
            let _ = std::fs::remove_file(&file);
            fail(if matches!(error, Error::Unsupported(_)) { Exit::Refused } else { Exit::Unexpected }, error)
        }
    }
}
