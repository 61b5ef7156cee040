//! What the store takes and returns: entries, runs, leases, filters, and rows of other data.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Error, Event};
use crate::domain::{Mode, Question, RunId, RunKind, Scope, Source, Usd};

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
#[derive(Debug, Clone, PartialEq)]
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
        /// The run that narrates the action: accepted with it, or else nothing is written.
        narrator: Option<Box<NewRun>>,
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

/// A run of a list: its id as stored, and its row.
pub type Listed = (String, Result<RunRow, Error>);
