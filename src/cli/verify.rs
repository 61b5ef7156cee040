//! `conclave verify`: proves that a journal was not altered.

use super::exit::{Done, Exit, fail};
use super::recorded::{Journals, RunArgument};
use super::terminal::say;
use crate::config::Env;
use crate::domain::counted;

pub(super) async fn run(env: &Env, run: RunArgument) -> Done {
    let (run, journals) = run.read(env, None).await?;
    let id = run.id;
    if let Some(broken) = run.broken {
        return Err(fail(Exit::Altered, format!("run {id}: {broken}")));
    }
    let count = counted(run.entries.len() as u64, "entry", "entries");
    let by = match journals {
        Journals::Here(_) => String::new(),
        Journals::There { server, .. } => format!(", as verified by {server}"),
    };
    let head = run.head;
    say(format_args!(
        "run {id}: {count}, the chain holds, head {head}{by}"
    ));
    Ok(())
}
