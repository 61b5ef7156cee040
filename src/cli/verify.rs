//! `conclave verify`: proves that a journal was not altered.

use clap::Args;

use super::exit::{Exit, fail};
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

pub(super) async fn run(env: &Env, arguments: VerifyArguments) -> Exit {
    let store = match open(env).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let id = arguments.run;
    let row = match store.run(id).await {
        Ok(Some(row)) => row,
        Ok(None) => return fail(Exit::Refused, format!("there is no run {id}")),
        Err(error) => return fail(Exit::Unexpected, error),
    };
    let mut entries = match store.entries(id, 0).await {
        Ok(entries) => entries,
        // An entry that cannot be parsed was altered.
        Err(error @ crate::journal::Error::Corrupt { .. }) => return fail(Exit::Altered, error),
        Err(error) => return fail(Exit::Unexpected, error),
    };
    if !row.state.is_terminal() {
        entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
    }
    match prove(&row, &entries) {
        Ok(()) => {
            say(format_args!(
                "run {id}: {} entries, the chain holds, head {}",
                entries.len(),
                row.head_hash
            ));
            Exit::Done
        }
        Err(broken) => fail(Exit::Altered, format!("run {id}: {broken}")),
    }
}
