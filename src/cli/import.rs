//! `conclave import`: adds the runs that `conclave export` wrote to this database.

use std::path::PathBuf;

use super::exit::{Done, Exit, fail};
use super::input::json_lines;
use super::local::open;
use super::printable::without_controls;
use crate::config::Env;
use crate::domain::counted;
use crate::journal::{AdminStore, Archive, Error, Restored};

pub(super) async fn run(env: &Env, path: PathBuf) -> Done {
    let lines = json_lines(&path)?;
    let store = open(env).await?;
    let (mut new, mut known, mut refused) = (0_u64, 0_u64, 0_u64);
    for line in lines {
        let (number, line) = line?;
        let taken = match line {
            Ok(line) => take_in(&*store, &line).await,
            Err(why) => Err(NotTaken::Line(why)),
        };
        match taken {
            Ok(Restored::New) => new += 1,
            Ok(Restored::Known) => known += 1,
            Err(NotTaken::Line(why)) => {
                refused += 1;
                tell!("line {number}: {}", without_controls(&why));
            }
            Err(NotTaken::Store(error)) => {
                let before = counted(new, "run was", "runs were");
                let why = format!("line {number}: {error}; {before} taken in before it");
                return Err(fail(Exit::Unexpected, why));
            }
        }
    }
    tell!(
        "imported {}; {} here already; {} refused",
        counted(new, "run", "runs"),
        counted(known, "was", "were"),
        counted(refused, "line was", "lines were")
    );
    if refused == 0 {
        Ok(())
    } else {
        Err(Exit::Refused)
    }
}

enum NotTaken {
    /// The line is invalid; others may be valid.
    Line(String),
    Store(Error),
}

async fn take_in(store: &dyn AdminStore, line: &str) -> Result<Restored, NotTaken> {
    let archive = serde_json::from_str::<Archive>(line);
    let archive =
        archive.map_err(|error| NotTaken::Line(format!("is not an exported run: {error}")))?;
    store.restore(&archive).await.map_err(|error| match error {
        Error::Unsound { .. } => NotTaken::Line(error.to_string()),
        other => NotTaken::Store(other),
    })
}
