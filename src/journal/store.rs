//! The storage traits of the journal, by concern.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;
use serde_json::Value;

use super::records::*;
use super::{Archive, Error, Event, LearnedRow};
use crate::domain::{EvidenceFocus, RunId, Usd};

/// The database behind the journal. A consumer that needs only one of its concerns takes that trait.
///
/// `now` and `at` are the times that are recorded. Whether a lease has expired is judged by one
/// clock that all processes on the database share. For a SQLite file it is the machine's clock, so
/// `now` and `at` are used. For a database server it is the server's clock, because the clocks of
/// replicas may differ.
pub trait Store:
    RunReader + JournalStore + LearnedStore + ActionStore + TokenStore + AdminStore + BackendStore
{
}

impl<
    S: RunReader + JournalStore + LearnedStore + ActionStore + TokenStore + AdminStore + BackendStore,
> Store for S
{
}

/// Runs and their journals, as they are read.
#[async_trait]
pub trait RunReader: Send + Sync {
    async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error>;

    /// Returns the runs whose rows can be read. One altered row hides no other.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
        let unread = |error: &Error| tracing::error!(%error, "a run is left out of the list");
        let listed = self.listed(filter).await?.into_iter();
        let read = listed.filter_map(|(_, row)| row.inspect_err(unread).ok());
        Ok(read.collect())
    }

    /// Returns the runs of a list by id, with [`Error::Corrupt`] for a row that cannot be read.
    async fn listed(&self, filter: &RunFilter) -> Result<Vec<Listed>, Error>;

    /// Returns the run's entries after sequence number `after` (0 for all), in order.
    async fn entries(&self, run: RunId, after: i64) -> Result<Vec<Entry>, Error>;

    /// Returns the run with an idempotency key, and the fingerprint of its request.
    async fn by_key(&self, key: &str) -> Result<Option<(RunId, String)>, Error>;

    /// Returns the asker's run that replied last, if it finished at or after `since`. Skips runs
    /// that failed or were cancelled: the question that they tried to answer is still pending.
    async fn last_reply(
        &self,
        asker: &Requester,
        since: Timestamp,
    ) -> Result<Option<RunRow>, Error>;

    /// Returns the executions of a tool plan, oldest first.
    async fn executions(&self, plan: RunId) -> Result<Vec<RunRow>, Error>;

    /// Returns the summaries of the evidence queries `Q1` to `Q8` over all recorded tool steps, by
    /// name: a list of objects for each.
    async fn tool_evidence(&self, focus: &EvidenceFocus) -> Result<Value, Error>;

    /// Returns how many runs are queued or running.
    async fn in_flight(&self) -> Result<u64, Error>;

    /// Returns what the runs of the limit's scope have spent since its moment. A run in flight
    /// counts with its whole cap.
    async fn exposure(&self, limit: &SpendingLimit) -> Result<Usd, Error>;
}

/// Accepts runs and actions, leases them and appends to their journals.
#[async_trait]
pub trait JournalStore: Send + Sync {
    /// Writes the run's row and its first entry in one transaction.
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error>;

    /// Accepts a run, and finishes or claims it in the same transaction. The commit of an action that
    /// finishes at once survives the end of the process, but need not wait for the disk. For a run that
    /// is claimed, [`AckTiming`] decides that.
    async fn begin(&self, run: NewRun, then: AcceptThen) -> Result<StartOutcome, Error>;

    /// Claims a run that is queued, or whose lease has expired. Raises its epoch.
    async fn claim(
        &self,
        which: Claim,
        owner: &str,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error>;

    /// Extends a lease.
    async fn renew(
        &self,
        lease: &Lease,
        duration: Duration,
        now: Timestamp,
    ) -> Result<LeaseState, Error>;

    /// Appends events in one transaction with the fence: the lease must still be valid. Skips an
    /// event whose key the run already has. Refuses `CallSent` and `Executed` events while the run
    /// is being cancelled.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] and [`Error::CancelRequested`], besides errors of the database.
    async fn append(&self, lease: &Lease, at: Timestamp, events: &[&Event]) -> Result<(), Error> {
        self.append_if(None, lease, at, events).await.map(drop)
    }

    /// As [`JournalStore::append`], if the user's sheets and memories still have this stamp. Returns
    /// false if not; then nothing was written.
    async fn append_if(
        &self,
        stamp: Option<&DataStamp>,
        lease: &Lease,
        at: Timestamp,
        events: &[&Event],
    ) -> Result<bool, Error>;

    /// Appends to the journals of finished runs: all notes or none. Needs no lease.
    async fn annotate(&self, at: Timestamp, notes: Vec<Note>) -> Result<Annotated, Error>;

    async fn cancel(&self, id: RunId) -> Result<CancelOutcome, Error>;
}

/// Learned answers.
#[async_trait]
pub trait LearnedStore: Send + Sync {
    /// Returns at most `most` learned answers of a scope, without revoked ones, whose questions share
    /// a term, those with the same `words` first ([`search_words`](crate::domain::search_words)), then
    /// the best match. Terms consist of letters and digits.
    async fn learned_like(
        &self,
        scope: &Owner,
        words: &str,
        terms: &[String],
        most: u32,
    ) -> Result<Vec<LearnedRow>, Error>;

    /// Returns the answer that was learned from a run.
    async fn learned_from(&self, run: RunId) -> Result<Option<LearnedRow>, Error>;

    /// Returns at most `most` learned answers, the last changed one first, revoked ones included. One that
    /// cannot be read is an error in its place.
    async fn learned(&self, most: u32) -> Result<Vec<Result<LearnedRow, Error>>, Error>;
}

/// What actions read: sheets, memories and the lines of a scene.
#[async_trait]
pub trait ActionStore: Send + Sync {
    /// Returns the owner's sheets, the last changed one first.
    async fn sheets(&self, owner: &Owner) -> Result<Vec<SheetRow>, Error>;

    /// Returns at most `most` memories of the owner that contain, of each word, one of its terms in
    /// any inflected form, the best match first. Terms consist of letters, marks and digits.
    async fn memories(
        &self,
        owner: &Owner,
        words: &[Vec<String>],
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error>;

    /// Returns the number of the owner's memories.
    async fn memory_count(&self, owner: &Owner) -> Result<u64, Error>;

    /// Returns at most `most` memories of the owner, the newest first, without the first `skip`.
    async fn memory_page(
        &self,
        owner: &Owner,
        skip: usize,
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error>;

    /// Returns the owner's memory that an action has added.
    async fn memory(&self, owner: &Owner, run: RunId) -> Result<Option<MemoryRow>, Error>;

    /// Returns the stamp of the user's data, in all guilds.
    async fn stamp(&self, owner: &Owner) -> Result<DataStamp, Error>;

    /// Returns the bytes of the user's sheets and memories in all guilds.
    async fn stored_bytes(&self, owner: &Owner) -> Result<u64, Error>;

    /// Returns the last `most` texts of actions in a guild's channel, or of a user outside of
    /// guilds, oldest first. An action's text is stored when the action is accepted.
    async fn recent_lines(&self, scene: &Requester, most: u32) -> Result<Vec<String>, Error>;
}

/// Bearer tokens.
#[async_trait]
pub trait TokenStore: Send + Sync {
    async fn add_token(&self, token: &TokenRow) -> Result<(), Error>;

    async fn token(&self, id: &str) -> Result<Option<TokenRow>, Error>;

    /// Returns all tokens, including revoked ones, oldest first.
    async fn tokens(&self) -> Result<Vec<TokenRow>, Error>;

    /// Revokes a token. True if a token with this id was not yet revoked.
    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, Error>;
}

/// Archives and deletion of finished runs.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Returns all stored data of a run, if it exists and is finished.
    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error>;

    /// Stores a run from another database, after verifying its chain.
    ///
    /// # Errors
    /// [`Error::InvalidArchive`] for a broken chain, an unfinished run, or an event that cannot be parsed.
    async fn restore(&self, archive: &Archive) -> Result<Restored, Error>;

    /// Returns how many runs may be deleted: they finished before a moment, and so did all executions
    /// of the same tool plan.
    async fn prunable(&self, before: Timestamp) -> Result<u64, Error>;

    /// Deletes at most `most` of these runs with their journals, oldest first. Returns how many
    /// were deleted.
    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error>;
}

/// What depends on the kind of database.
#[async_trait]
pub trait BackendStore: Send + Sync {
    /// Checks that the database answers and its schema is the current one.
    async fn ready(&self) -> Result<(), Error>;

    /// Releases the leases of dead processes on this machine before they expire, if the database
    /// can detect them. Called at start and then regularly.
    async fn release_dead(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Notifies the other processes on the database that runs have new entries. Only a hint, since
    /// readers also poll.
    async fn announce(&self, _runs: &[RunId]) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the runs that other processes announce, until the connection is lost.
    async fn notifications(&self) -> Result<BoxStream<'static, RunId>, Error> {
        Ok(Box::pin(stream::pending()))
    }

    /// Does housekeeping for which writers need not wait. Called about once a second.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; no data is lost.
    async fn vacuum(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Writes a consistent copy of the whole database to a new or empty file, while the service
    /// runs.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a database server, which has its own tools for this.
    async fn backup(&self, to: &Path) -> Result<(), Error>;

    /// Reads the whole database, and returns what is damaged in it. A database server checks itself.
    async fn damage(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }
}
