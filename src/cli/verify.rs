//! `conclave verify`: proves that a journal was not altered.

use clap::Args;

use super::exit::{Done, Exit, fail};
use super::show::open;
use super::terminal::say;
use crate::config::Env;
use crate::domain::RunId;
use crate::journal::prove;

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The run's id.
    run: RunId,
}

pub(super) async fn run(env: &Env, arguments: VerifyArguments) -> Done {
    let store = open(env).await?;
    let id = arguments.run;
    let row = match store.run(id).await {
        Ok(Some(row)) => row,
        Ok(None) => return Err(fail(Exit::Refused, format!("there is no run {id}"))),
        Err(error) => return Err(fail(Exit::Unexpected, error)),
    };
    let mut entries = match store.entries(id, 0).await {
        Ok(entries) => entries,
        // An entry that cannot be parsed was altered.
        Err(error @ crate::journal::Error::Corrupt { .. }) => {
            return Err(fail(Exit::Altered, error));
        }
        Err(error) => return Err(fail(Exit::Unexpected, error)),
    };
    if !row.state.is_terminal() {
        entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
    }
    prove(&row, &entries).map_err(|broken| fail(Exit::Altered, format!("run {id}: {broken}")))?;
    let (count, head) = (entries.len(), row.head_hash);
    say(format_args!(
        "run {id}: {count} entries, the chain holds, head {head}"
    ));
    Ok(())
}
