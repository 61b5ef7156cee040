//! `conclave prune`: retention by age.

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::exit::{Done, Exit, failing};
use super::local::open;
use super::terminal::say;
use crate::clock::Clock;
use crate::config::Env;
use crate::domain::counted;
use crate::journal::AdminStore;

/// The number of runs per transaction, so that a service on the same database never waits long.
const BATCH: u32 = 500;

#[derive(Debug, Args)]
pub(super) struct PruneArguments {
    /// Remove runs that ended longer ago than this: 90d, 12 weeks, 6 months. At least a day.
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Span,
    /// Print how many runs it would be, and remove nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(env: &Env, arguments: PruneArguments) -> Done {
    let now = Clock::System.now();
    let before = moment(now, arguments.older_than).map_err(failing(Exit::Usage))?;
    let store = open(env).await?;
    if arguments.dry_run {
        let count = store.prunable(before).await;
        let runs = counted(count.map_err(failing(Exit::Unexpected))?, "run", "runs");
        say(format_args!(
            "{runs} ended before {before}: nothing was removed"
        ));
        return Ok(());
    }
    let gone = prune(&*store, before).await;
    let runs = counted(gone.map_err(failing(Exit::Unexpected))?, "run", "runs");
    say(format_args!("removed {runs} that ended before {before}"));
    Ok(())
}

async fn prune(store: &dyn AdminStore, before: Timestamp) -> Result<u64, crate::journal::Error> {
    let mut gone = 0;
    loop {
        let batch = store.prune(before, BATCH).await?;
        gone += batch;
        if batch < u64::from(BATCH) {
            return Ok(gone);
        }
    }
}

fn age(given: &str) -> Result<Span, String> {
    let age = given.parse();
    age.map_err(|_| "not an age such as 90d, 12 weeks or 6 months".to_owned())
}

/// Returns the moment `age` before now. Runs younger than a day are refused. They may belong to an
/// open conversation, and they count for the day's spending limits.
fn moment(now: Timestamp, age: Span) -> Result<Timestamp, String> {
    let before = now.to_zoned_datetime(TimeZone::UTC).checked_sub(age);
    let before = before.map_err(|_| "that is longer ago than time goes back")?;
    if now.duration_since(before.timestamp()) < SignedDuration::from_hours(24) {
        let why = "runs of the last day are kept: they may be in a conversation that goes on";
        return Err(why.to_owned());
    }
    Ok(before.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_at_least_a_day() {
        let now: Timestamp = "2026-03-31T12:00:00Z".parse().unwrap();
        let before = |given: &str| moment(now, age(given).unwrap()).map(|at| at.to_string());
        assert_eq!(before("90d"), Ok("2025-12-31T12:00:00Z".into()));
        assert_eq!(before("1 month"), Ok("2026-02-28T12:00:00Z".into()));
        assert_eq!(before("24h"), Ok("2026-03-30T12:00:00Z".into()));
        for young in ["23h", "0d", "-5d"] {
            assert!(before(young).is_err(), "{young}");
        }
        assert!(age("90").unwrap_err().contains("90d"));
    }
}
