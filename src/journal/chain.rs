//! The hash chain over a run's entries.

use super::Entry;
use crate::domain::{RunId, fingerprint};

/// The `prev` hash of a run's first entry.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The place of an entry in its chain, and the time of its write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub seq: i64,
    pub at_ms: i64,
}

/// Returns the hash of an entry: SHA-256 over the previous hash, the run id and all fields of the
/// entry.
pub(super) fn link(run: RunId, position: Position, key: &str, body: &str, prev: &str) -> String {
    fingerprint(&[
        prev.as_bytes(),
        run.to_string().as_bytes(),
        &position.seq.to_be_bytes(),
        &position.at_ms.to_be_bytes(),
        key.as_bytes(),
        body.as_bytes(),
    ])
}

/// The first fault found in a chain, or in the run's row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    #[error("entry {seq} is missing")]
    Missing { seq: i64 },
    #[error("entry {seq} ({key}) was altered")]
    Altered { seq: i64, key: String },
    #[error("entries were cut off after {seq}: the run's record of its last hash does not match")]
    Cut { seq: i64 },
    #[error("the run's row was altered: its {column} is not what the entries say")]
    Row { column: &'static str },
    #[error(
        "the answer that was learned from the run was altered or deleted: it is not what the entries say"
    )]
    Learned,
}

/// Recomputes the chain of a run's entries, given in order from the first. Compares its last hash
/// with `head`, the hash in the run's row.
///
/// # Errors
/// [`ChainFault`]: the first entry at which the chain is broken.
pub fn verify(run: RunId, entries: &[Entry], head: &str) -> Result<(), ChainFault> {
    let mut prev = GENESIS.to_owned();
    let mut seq = 0;
    for entry in entries {
        seq += 1;
        if entry.seq != seq {
            return Err(ChainFault::Missing { seq });
        }
        let at_ms = entry.at.as_millisecond();
        let position = Position { seq, at_ms };
        let hash = link(run, position, &entry.key, &entry.body, &prev);
        if entry.prev != prev || entry.hash != hash {
            return Err(ChainFault::Altered {
                seq,
                key: entry.key.clone(),
            });
        }
        prev = hash;
    }
    if prev == head {
        Ok(())
    } else {
        Err(ChainFault::Cut { seq })
    }
}
