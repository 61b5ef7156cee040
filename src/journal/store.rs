//! Where journals are kept: the seam between the house and its database.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Archive, Event};
use crate::domain::{Mode, RunId, RunKind, Scope, Source, Usd};

/// A line of a run's journal as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// From 1, without gaps.
    pub seq: i64,
    /// Millisecond precision.
    pub at: Timestamp,
    pub key: String,
    /// The event as JSON text; exactly these bytes are in the hash.
    pub body: String,
    pub prev: String,
    pub hash: String,
    pub event: Event,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Queued,
    Running,
    Answered,
    Clarification,
    Failed,
    Cancelled,
}

impl RunState {
    pub const ALL: [RunState; 6] = [
        RunState::Queued,
        RunState::Running,
        RunState::Answered,
        RunState::Clarification,
        RunState::Failed,
        RunState::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Queued => "queued",
            RunState::Running => "running",
            RunState::Answered => "answered",
            RunState::Clarification => "clarification",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        }
    }

    pub fn is_terminal(self) -> bool {
        !matches!(self, RunState::Queued | RunState::Running)
    }
}

/// The projection of a run's journal that lists and look-ups need.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub id: RunId,
    pub kind: RunKind,
    pub state: RunState,
    /// Says nothing of an action.
    pub mode: Mode,
    pub source: Source,
    pub user_id: String,
    pub message: String,
    pub parent: Option<RunId>,
    /// Why it failed.
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

/// A run to be taken on.
#[derive(Debug, Clone)]
pub struct NewRun {
    pub id: RunId,
    pub at: Timestamp,
    /// Always [`Event::Accepted`].
    pub accepted: super::Accepted,
    /// Equal keys join; scoped by the caller.
    pub idempotency_key: Option<String>,
    /// Fingerprint of the request's meaning, to tell a repetition from a misuse of the key.
    pub body_hash: String,
    /// The run is taken on only if its whole cap fits into each of them.
    pub limits: Vec<SpendingLimit>,
}

/// Whose spending a limit binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendingScope {
    /// The user with this id, whatever door he comes in by.
    User(String),
    Guild(String),
    Everyone,
}

impl SpendingScope {
    /// The user and the guild whose runs alone count.
    pub(super) fn ids(&self) -> (Option<&str>, Option<&str>) {
        match self {
            SpendingScope::User(id) => (Some(id), None),
            SpendingScope::Guild(id) => (None, Some(id)),
            SpendingScope::Everyone => (None, None),
        }
    }
}

/// How much may be spent by the runs of a scope that were accepted since a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingLimit {
    pub scope: SpendingScope,
    pub since: Timestamp,
    pub most: Usd,
}

/// What became of a run that was handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    New,
    /// A run with the same key and body exists, or one in flight that continues the same run in the same way.
    Joined(RunId),
    /// The key was used with another body.
    KeyReused(RunId),
    /// The cap does not fit into what a limit has left. What runs in flight may still spend counts as spent.
    OverLimit {
        scope: SpendingScope,
        left: Usd,
    },
}

/// Which run to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The oldest that nobody works on.
    Oldest,
    Run(RunId),
}

/// The right to work on a run, as long as it is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub run: RunId,
    pub owner: String,
    pub epoch: i64,
}

/// What a renewal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    Yes,
    /// The user wants the run to stop.
    CancelRequested,
    /// Another process has it, or it is finished.
    Lost,
}

/// What a cancellation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    Requested,
    AlreadyFinished(RunState),
    Unknown,
}

/// Who asks where: the scope of a pending question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    pub source: Source,
    pub user_id: String,
    pub guild_id: Option<String>,
    pub channel_id: Option<String>,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// `None`: chats and actions.
    pub kind: Option<RunKind>,
    pub mode: Option<Mode>,
    pub user_id: Option<String>,
    pub state: Option<RunState>,
    /// Accepted at or after.
    pub since: Option<Timestamp>,
    /// Only runs older than this one.
    pub before: Option<RunId>,
    /// At most this many.
    pub limit: u32,
}

/// How an action goes on once it is taken on.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterAction {
    /// It is over: everything that happened, the end included.
    End(Vec<Event>),
    /// This process works on it.
    Hold { owner: String, lease: Duration },
}

/// What became of an action that was handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionStart {
    /// It is in the journal, with its end.
    Ended,
    /// It is in the journal, and this process has its lease.
    Held(Lease),
    /// As of [`Acceptance`], anything but new.
    Not(Acceptance),
}

/// Whose sheets and memories: one user's, in one guild or in none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub source: Source,
    pub user_id: String,
    pub guild_id: Option<String>,
}

/// A character sheet as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SheetRow {
    pub name: String,
    pub sheet: Value,
    pub updated_at: Timestamp,
}

/// Something that was to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// The action that wrote it.
    pub run: RunId,
    pub content: String,
    pub at: Timestamp,
}

/// A line that somebody wrote in a scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneLine {
    pub run: RunId,
    pub user_id: String,
    pub message: String,
}

/// A bearer token as it is stored: never the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// The public part, by which it is found and revoked.
    pub id: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    /// SHA-256 of the secret part as 64 lower-case hex digits.
    pub hash: String,
    pub created_at: Timestamp,
    /// From then on it opens nothing.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// What became of an archive that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    New,
    /// The run is there already and was left as it is.
    Known,
}

/// What became of something that was written after a run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotated {
    Written,
    /// The run has an event with this key.
    Taken,
    /// Nobody can add anything to a run under way but its owner.
    Unfinished,
    Unknown,
}

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be reached, is locked, or its disk is full. Says nothing of its address and its statements.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// A row that cannot be.
    #[error("corrupt data in {table}.{column} of {id}")]
    Corrupt {
        table: &'static str,
        column: &'static str,
        id: String,
    },
    /// An event that could not be read back.
    #[error("an event cannot be written down: {0}")]
    Unwritable(String),
    #[error("the run was taken over by another process")]
    LeaseLost,
    #[error("the run is being cancelled")]
    CancelRequested,
    #[error("{0}")]
    Migration(String),
    /// An archive that is not a whole, unaltered, finished run.
    #[error("the archive of run {run} cannot be taken in: {why}")]
    Unsound { run: RunId, why: String },
    /// This kind of database has its own tool for it.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// The database behind the journal: one of the three dyn seams of the house.
///
/// The times that callers give are what is written down. Whether a lease has run out is judged by one clock that all who
/// share the database have in common. For a SQLite file that is the machine's, so `now` and `at` count. For a database
/// server it is the server's: the clocks of replicas differ, and theirs do not count.
#[async_trait]
pub trait Store: Send + Sync {
    /// Writes the run's row and its first entry in one transaction, before anything else of the run happens.
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error>;

    /// Takes an action on and, if it is over, ends it, all in one transaction: what the events change included. An action
    /// that ends at once costs nothing, and its commit survives the process but need not wait for the disk.
    async fn begin(&self, run: NewRun, then: AfterAction) -> Result<ActionStart, Error>;

    /// The owner's sheets, the one that was changed last first.
    async fn sheets(&self, owner: &Owner) -> Result<Vec<SheetRow>, Error>;

    /// The owner's memories in which any of the terms occurs in any of its forms, the best match first, at most `most`.
    /// Terms are words of letters and digits.
    async fn memories(
        &self,
        owner: &Owner,
        terms: &[String],
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error>;

    /// How many memories the owner has.
    async fn memory_count(&self, owner: &Owner) -> Result<u64, Error>;

    /// The last lines that were written in a guild's channel, or by a user outside of guilds, the oldest first: the texts
    /// of actions, stored when they are taken on.
    async fn recent_lines(&self, scene: &Requester, most: u32) -> Result<Vec<SceneLine>, Error>;

    /// The run that has an idempotency key, with the fingerprint of its request.
    async fn by_key(&self, key: &str) -> Result<Option<(RunId, String)>, Error>;

    /// Takes the lease of a run that is queued, or whose owner has let its lease run out; raises its epoch.
    async fn claim(
        &self,
        which: Claim,
        owner: &str,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, Error>;

    /// Prolongs a lease.
    async fn renew(
        &self,
        lease: &Lease,
        duration: Duration,
        now: Timestamp,
    ) -> Result<LeaseState, Error>;

    /// Appends events in one transaction with the fence: the lease must still be held. An event whose key the run
    /// already has is left out. An intent to call is refused when the run is being cancelled. Returns the last seq.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] and [`Error::CancelRequested`], beside the database's own.
    async fn append(&self, lease: &Lease, at: Timestamp, events: &[Event]) -> Result<i64, Error>;

    /// Appends an event to the journal of a finished run, which needs no lease.
    async fn annotate(&self, run: RunId, at: Timestamp, event: &Event) -> Result<Annotated, Error>;

    /// The entries of a run after `after` (0: all), in order.
    async fn entries(&self, run: RunId, after: i64) -> Result<Vec<Entry>, Error>;

    async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error>;

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Error>;

    /// How many runs are queued or running.
    async fn in_flight(&self) -> Result<u64, Error>;

    async fn cancel(&self, id: RunId) -> Result<CancelOutcome, Error>;

    /// The asker's run that replied last, if that was at or after `since`. Runs that failed or were cancelled do not
    /// count: what they tried to continue is still pending.
    async fn last_reply(
        &self,
        asker: &Requester,
        since: Timestamp,
    ) -> Result<Option<RunRow>, Error>;

    /// Lets go of what dead processes on this machine still hold, where that can be known before their leases run out.
    /// Called at start and from time to time.
    async fn release_dead(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Tells the other processes on the database that runs have news. A hint: whoever waits for a run looks again from
    /// time to time in any case.
    async fn announce(&self, _runs: &[RunId]) -> Result<(), Error> {
        Ok(())
    }

    /// The runs of which other processes say that they have news, until the connection is lost.
    async fn news(&self) -> Result<BoxStream<'static, RunId>, Error> {
        Ok(Box::pin(stream::pending()))
    }

    /// Whether the database answers and its schema is the current one.
    async fn ready(&self) -> Result<(), Error>;

    /// What the runs of a limit's scope have spent since its moment, or may still spend: the cap of a run in flight.
    async fn exposure(&self, limit: &SpendingLimit) -> Result<Usd, Error>;

    async fn add_token(&self, token: &TokenRow) -> Result<(), Error>;

    async fn token(&self, id: &str) -> Result<Option<TokenRow>, Error>;

    /// Every token that was ever made, oldest first.
    async fn tokens(&self) -> Result<Vec<TokenRow>, Error>;

    /// Whether there was a token of that id that still worked.
    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, Error>;

    /// Everything that is stored of a run, if it is there and finished.
    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error>;

    /// Takes in a run from another database, after its chain was verified.
    ///
    /// # Errors
    /// [`Error::Unsound`] for an archive with a broken chain, of an unfinished run, or with an event that cannot be read.
    async fn restore(&self, archive: &Archive) -> Result<Restored, Error>;

    /// How many finished runs ended before a moment.
    async fn prunable(&self, before: Timestamp) -> Result<u64, Error>;

    /// Removes at most `most` of those, with their journals; the oldest first. Returns how many went.
    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error>;

    /// Housekeeping that writers need not wait for; called about once a second.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; nothing is lost by it.
    async fn vacuum(&self) -> Result<(), Error>;

    /// Writes a consistent copy of the whole database to a file that is new or empty while the service runs.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a database server, which has its own tools for this.
    async fn backup(&self, to: &Path) -> Result<(), Error>;
}
