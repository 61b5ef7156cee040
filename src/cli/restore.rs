//! `conclave restore`: puts a backup back in place of the database.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;

use super::backup::sqlite_file;
use super::exit::{Done, Exit, fail};
use super::terminal::say;
use crate::clock::Clock;
use crate::config::Env;
use crate::domain::counted;
use crate::journal::{Existing, RestoreError, restore};

#[derive(Debug, Args)]
pub(super) struct RestoreArguments {
    /// The file that `conclave backup` wrote. It stays as it is.
    file: PathBuf,
    /// Restore over a database that has data. That one is kept beside it, under a name with the
    /// date.
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(env: &Env, arguments: RestoreArguments) -> Done {
    let database = sqlite_file(env)?;
    let existing = if arguments.force {
        Existing::Keep(Clock::System.now())
    } else {
        Existing::Refuse
    };
    let restored = restore(&arguments.file, &database, existing);
    let done = restored.map_err(|error| {
        let exit = match &error {
            RestoreError::Damaged(_) => Exit::Altered,
            RestoreError::InUse
            | RestoreError::NotEmpty
            | RestoreError::LogAlone
            | RestoreError::Same
            | RestoreError::NotABackup(_)
            | RestoreError::Newer { .. } => Exit::Refused,
            RestoreError::File { error, .. } if error.kind() == ErrorKind::NotFound => {
                Exit::Refused
            }
            RestoreError::File { .. } | RestoreError::Journal(_) => Exit::Unexpected,
        };
        let file = arguments.file.display();
        fail(exit, format!("{file}: nothing was restored: {error}"))
    })?;
    let (database, runs) = (database.display(), done.runs);
    let verified = if done.damaged.is_empty() {
        ", all chains verified"
    } else {
        ""
    };
    let runs = counted(runs, "run", "runs");
    say(format_args!("restored {database}: {runs}{verified}"));
    if let Some(former) = done.former {
        say(format_args!("the former database is {}", former.display()));
    }
    if let Some(log) = done.former_log {
        say(format_args!(
            "the log of the former database is {}",
            log.display()
        ));
    }
    if done.damaged.is_empty() {
        return Ok(());
    }
    let lines = done.damaged.join("\n");
    Err(fail(
        Exit::Altered,
        format!("restored as they are:\n{lines}"),
    ))
}
