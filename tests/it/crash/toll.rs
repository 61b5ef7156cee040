//! Counts the damage by kills.

use conclave::domain::RunId;
use conclave::journal::{self, RunState};

use crate::support::process::Home;
use crate::support::{MockProvider, until};

/// The damage by kills. Only `accepted` should be above zero.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Toll {
    pub accepted: usize,
    pub lost: Vec<RunId>,
    pub without_reply: Vec<(RunId, RunState)>,
    /// Idempotency keys under which the provider was called more than once.
    pub bought_twice: Vec<String>,
    pub broken_chains: Vec<RunId>,
    pub overspent: Vec<RunId>,
}

impl Toll {
    pub fn none(accepted: usize) -> Self {
        Self {
            accepted,
            ..Self::default()
        }
    }

    /// Prints a row of the crash table of `make bench`.
    pub fn print(&self, what: &str, kills: usize) {
        println!(
            "| {what} | {kills} | {} | {} | {} | {} | {} | {} |",
            self.accepted,
            self.lost.len(),
            self.bought_twice.len(),
            self.without_reply.len(),
            self.broken_chains.len(),
            self.overspent.len()
        );
    }
}

/// Waits for every run, and counts the damage.
pub async fn toll(home: &Home, runs: &[RunId], provider: &MockProvider) -> Toll {
    let store = home.store().await;
    let mut toll = Toll::none(runs.len());
    for run in runs {
        let is_open = async || {
            let row = store.run(*run).await.unwrap();
            row.is_some_and(|row| !row.state.is_terminal())
        };
        until(async || !is_open().await).await;
        let Some(row) = store.run(*run).await.unwrap() else {
            toll.lost.push(*run);
            continue;
        };
        if !matches!(row.state, RunState::Answered | RunState::Clarification) {
            toll.without_reply.push((*run, row.state));
        }
        let entries = store.entries(*run, 0).await.unwrap();
        if journal::verify(*run, &entries, &row.head_hash) != Ok(()) {
            toll.broken_chains.push(*run);
        }
        if row.spent > row.cap {
            toll.overspent.push(*run);
        }
    }
    toll.bought_twice = provider.repeated_keys();
    toll
}
