//! The storage traits of the journal, by concern, with the types of its parameters and results.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Archive, Error, Event, LearnedRow};
use crate::domain::{EvidenceFocus, Mode, Question, RunId, RunKind, Scope, Source, Usd};

/// A journal entry as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Counts from 1, without gaps.
    pub seq: i64,
    /// Millisecond precision.
    pub at: Timestamp,
    pub key: String,
    /// The event as JSON text. The hash covers exactly these bytes.
    pub body: String,
    pub prev: String,
    pub hash: String,
    pub event: Event,
}

impl Entry {
    /// True for the last entry of a run's work. Feedback may follow it.
    pub fn is_end(&self) -> bool {
        matches!(self.event, Event::Finished(_))
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum RunState {
    Queued,
    Running,
    Answered,
    Clarification,
    /// A learned answer replied.
    Heuristic,
    Failed,
    Cancelled,
}

impl RunState {
    /// The names of all states.
    pub const NAMES: &[&str] = <RunState as strum::VariantNames>::VARIANTS;

    /// Returns the state as the API names it: a run that a learned answer replied to is answered.
    pub fn shown(self) -> Self {
        if self == RunState::Heuristic {
            RunState::Answered
        } else {
            self
        }
    }

    pub fn is_terminal(self) -> bool {
        !matches!(self, RunState::Queued | RunState::Running)
    }
}

/// A run's row: the projection of its journal that lists and look-ups need.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub id: RunId,
    pub kind: RunKind,
    pub state: RunState,
    /// Has no meaning for an action.
    pub mode: Mode,
    pub source: Source,
    pub user_id: String,
    /// Empty outside of a guild, as `channel_id` is outside of a channel.
    pub guild_id: String,
    pub channel_id: String,
    pub message: String,
    pub parent: Option<RunId>,
    /// Why the run failed.
    pub cause: Option<String>,
    pub c_final: Option<f64>,
    pub cap: Usd,
    pub spent: Usd,
    pub accepted_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub cancel_requested: bool,
    pub head_seq: i64,
    pub head_hash: String,
}

/// A run to be accepted.
#[derive(Debug, Clone)]
pub struct NewRun {
    pub id: RunId,
    pub at: Timestamp,
    /// The data of the run's [`Event::Accepted`].
    pub accepted: super::Accepted,
    /// A request with a known key joins the existing run. The caller scopes the key.
    pub idempotency_key: Option<String>,
    /// Fingerprint of the request's meaning. It tells a repetition from a wrong reuse of the key.
    pub body_hash: String,
    /// The run is accepted only if its whole cap fits into each limit.
    pub limits: Vec<SpendingLimit>,
}

/// The runs that a spending limit covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendingScope {
    /// The user with this id, from any source.
    User(String),
    Guild(String),
    Everyone,
}

/// The maximum amount that the runs of a scope accepted since a moment may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingLimit {
    pub scope: SpendingScope,
    pub since: Timestamp,
    pub most: Usd,
}

/// The result of submitting a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    New,
    /// A run with the same key and body exists, or a run in flight continues the same run in the
    /// same way.
    Joined(RunId),
    /// The key was used with another body.
    KeyReused(RunId),
    /// The cap exceeds the rest of a limit. For a run in flight, its whole cap counts as spent.
    OverLimit {
        scope: SpendingScope,
        left: Usd,
    },
}

/// Which run to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The oldest run without an owner.
    Oldest,
    Run(RunId),
}

/// The right to write to a run, until it expires. The owner must renew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub run: RunId,
    pub owner: String,
    pub epoch: i64,
}

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    Yes,
    /// A user asked to cancel the run.
    CancelRequested,
    /// Another process has the lease, or the run is finished.
    Lost,
}

/// The result of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    Requested,
    AlreadyFinished(RunState),
    Unknown,
}

/// A user in a place. A pending question belongs to one requester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    pub source: Source,
    pub user_id: String,
    pub guild_id: Option<String>,
    pub channel_id: Option<String>,
}

impl Requester {
    pub fn of(question: &Question) -> Self {
        Self {
            source: question.source,
            user_id: question.user.id.clone(),
            guild_id: question.context.guild_id.clone(),
            channel_id: question.context.channel_id.clone(),
        }
    }
}

/// Selects the runs of a list, newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// `None` for all kinds.
    pub kind: Option<RunKind>,
    pub mode: Option<Mode>,
    pub user_id: Option<String>,
    pub state: Option<RunState>,
    /// Only runs accepted at or after this time.
    pub since: Option<Timestamp>,
    /// Only runs older than this one.
    pub before: Option<RunId>,
    /// The maximum number of rows.
    pub limit: u32,
}

/// What follows the acceptance of a run, in the same transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum AcceptThen {
    /// The run is an action that is over.
    Finish {
        /// All its further events, including the last.
        events: Vec<Event>,
        /// Write only if the user's sheets and memories still have this stamp.
        if_stamp: Option<DataStamp>,
    },
    /// This process claims the run and works on it.
    Claim {
        owner: String,
        lease: Duration,
        ack: AckTiming,
    },
}

/// When a client learns that its run was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckTiming {
    /// Before the run works. So the acceptance must survive a crash of the machine.
    Immediate,
    /// With the reply. The acceptance survives the end of the process. The commit that waits for the
    /// disk before the first call also has the acceptance.
    WithReply,
}

/// The result of accepting a run that ends or is claimed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The journal has the run with its end.
    Finished,
    /// The journal has the run, and this process has its lease.
    Leased(Lease),
    /// Another action of the user came between, and nothing was written.
    Conflict,
    /// The run was not accepted. The value is never [`Acceptance::New`].
    Refused(Acceptance),
}

/// The owner of sheets and memories: one user in one guild, or outside of guilds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub source: Source,
    pub user_id: String,
    pub guild_id: Option<String>,
}

impl Owner {
    pub fn of(question: &Question) -> Self {
        Self {
            source: question.source,
            user_id: question.user.id.clone(),
            guild_id: question.context.guild_id.clone(),
        }
    }
}

/// The state of a user's sheets and memories, in all guilds, when a command read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataStamp {
    pub(super) source: Source,
    pub(super) user_id: String,
    /// Changes whenever a sheet or a memory of the user changes.
    pub(super) text: String,
}

/// The current version of a character sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct SheetRow {
    pub name: String,
    pub sheet: Value,
    pub updated_at: Timestamp,
}

/// A text that a user asked to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// The action that wrote it.
    pub run: RunId,
    pub content: String,
    pub at: Timestamp,
}

/// A bearer token as it is stored, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// The public part, used to find and revoke the token.
    pub id: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    /// SHA-256 of the secret part, as 64 lower-case hex digits.
    pub hash: String,
    pub created_at: Timestamp,
    /// The token is invalid from this time on.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The result of restoring an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    New,
    /// The run exists already and was not changed.
    Known,
}

/// What is appended to a finished run.
#[derive(Debug, Clone)]
pub struct Note {
    pub run: RunId,
    /// The run's last sequence number, as read: the events rest on the entries up to it.
    pub head_seq: i64,
    pub events: Vec<Event>,
}

/// The result of an append to finished runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotated {
    Written,
    /// A run has other entries by now. Nothing was written.
    Changed,
    /// A run is in progress, so only its owner may write.
    Unfinished,
    Unknown,
}

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

/// A run of a list: its id as stored, and its row.
pub type Listed = (String, Result<RunRow, Error>);

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
    /// a term, the best match first. Terms consist of letters and digits.
    async fn learned_like(
        &self,
        scope: &Owner,
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
