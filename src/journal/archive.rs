//! The exchange format for a finished run, with the check that a copy is complete and unaltered.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::chain::{ChainFault, GENESIS, Position, link};
use super::{Error, Event, NewRun};
use crate::domain::RunId;

/// All stored data of a finished run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Archive {
    /// Version of this format: [`Archive::VERSION`].
    pub version: u32,
    pub run: RunId,
    pub idempotency_key: Option<String>,
    pub body_hash: String,
    pub entries: Vec<ArchivedEntry>,
}

/// One journal entry in an [`Archive`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedEntry {
    pub seq: i64,
    pub at_ms: i64,
    pub key: String,
    /// The event as JSON text. The hash covers exactly these bytes.
    pub body: String,
    pub prev: String,
    pub hash: String,
}

/// The content of an archive that passed its check, ready for a store to write.
pub(super) struct VerifiedArchive {
    pub run: NewRun,
    /// One event per entry, in order.
    pub events: Vec<(Timestamp, Event)>,
    /// Hash of the last entry.
    pub head: String,
}

impl Archive {
    pub const VERSION: u32 = 1;

    /// Recomputes the chain and parses every event.
    ///
    /// # Errors
    /// [`Error::InvalidArchive`] for an unknown format version, a broken chain, an event that cannot be
    /// parsed or has the wrong key, or a run without a terminal event.
    pub(super) fn check(&self) -> Result<VerifiedArchive, Error> {
        if self.version != Self::VERSION {
            return Err(self.invalid(format!(
                "its form has version {}, not {}",
                self.version,
                Self::VERSION
            )));
        }
        let mut head = GENESIS.to_owned();
        let mut events = Vec::with_capacity(self.entries.len());
        for (seq, entry) in (1..).zip(&self.entries) {
            if entry.seq != seq {
                return Err(self.invalid(ChainFault::Missing { seq }.to_string()));
            }
            let at_ms = entry.at_ms;
            let position = Position { seq, at_ms };
            let hash = link(self.run, position, &entry.key, &entry.body, &head);
            if entry.prev != head || entry.hash != hash {
                let key = entry.key.clone();
                return Err(self.invalid(ChainFault::Altered { seq, key }.to_string()));
            }
            head = hash;
            let event = entry
                .body
                .parse::<Event>()
                .map_err(|_| self.invalid(format!("entry {seq} ({}) cannot be read", entry.key)))?;
            if event.key() != entry.key {
                return Err(self.invalid(format!("entry {seq} stands under the key {}", entry.key)));
            }
            let at = Timestamp::from_millisecond(entry.at_ms)
                .map_err(|_| self.invalid(format!("entry {seq} has no possible time")))?;
            events.push((at, event));
        }
        let Some((at, Event::Accepted(accepted))) = events.first() else {
            return Err(self.invalid("its first entry is not the acceptance".into()));
        };
        let is_end = |(_, event): &(Timestamp, Event)| matches!(event, Event::Finished(_));
        if !events.iter().any(is_end) {
            return Err(self.invalid("it has no end".into()));
        }
        let run = NewRun {
            id: self.run,
            at: *at,
            accepted: (**accepted).clone(),
            idempotency_key: self.idempotency_key.clone(),
            body_hash: self.body_hash.clone(),
            limits: vec![],
        };
        Ok(VerifiedArchive { run, events, head })
    }

    fn invalid(&self, why: String) -> Error {
        Error::InvalidArchive { run: self.run, why }
    }
}
