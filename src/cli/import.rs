//! `conclave import`: adds the runs that `conclave export` wrote to this database.

use std::path::PathBuf;

use super::exit::{Done, Exit, fail};
use super::input::json_lines;
use super::local::open;
use super::printable::without_controls;
use crate::config::Env;
use crate::domain::counted;
use crate::journal::{Archive, Error, Restored};

pub(super) async fn run(env: &Env, path: PathBuf) -> Done {
    let lines = json_lines(&path)?;
    let store = open(env).await?;
    let (mut new, mut known, mut refused) = (0_u64, 0_u64, 0_u64);
    for line in lines {
        let (number, line) = line?;
        let archive = line.and_then(|line| {
            let archive = serde_json::from_str::<Archive>(&line);
            archive.map_err(|error| format!("is not an exported run: {error}"))
        });
        let why = match archive {
            Err(why) => why,
            Ok(archive) => match store.restore(&archive).await {
                Ok(Restored::New) => {
                    new += 1;
                    continue;
                }
                Ok(Restored::Known) => {
                    known += 1;
                    continue;
                }
                Err(error @ Error::InvalidArchive { .. }) => error.to_string(),
                Err(error) => {
                    let before = counted(new, "run was", "runs were");
                    let why = format!("line {number}: {error}; {before} taken in before it");
                    return Err(fail(Exit::Unexpected, why));
                }
            },
        };
        refused += 1;
        tell!("line {number}: {}", without_controls(&why));
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
