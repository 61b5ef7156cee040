//! The journal: the append-only, hash-chained record of all events of a run. The reply, the audit,
//! the event stream and crash recovery are views of it.
//!
//! In reading order: [`Event`] is what can be recorded; [`Store`] is the database; [`RunContext`]
//! records a run's events and performs its calls, each exactly once; `chain` detects alterations.

mod accepted_event;
mod action_event;
mod admin;
mod ancestry;
mod archive;
mod chain;
mod context;
mod database;
mod draft;
mod effects;
mod encoded_event;
mod error;
mod event;
mod evidence;
mod learned_event;
mod observe;
mod packed;
mod postgres;
mod proof;
mod reads;
mod reasons;
mod records;
mod rows;
mod source;
mod sqlite;
pub mod step;
mod store;
mod stored_event;
mod tokens;
mod tool_event;
mod tool_evidence;
mod transcript;
pub mod views;
mod wake;
mod writes;

pub use ancestry::ancestors;
pub use archive::{Archive, ArchivedEntry};
pub use chain::{ChainFault, verify};
pub use context::{Call, Process, RunContext, Stop, Uncalled};
pub use error::{Error, Unavailable};
pub use event::*;
pub use evidence::{CheckPass, CheckScope, CheckSize, CrossChecked, Resolved};
pub use learned_event::{
    Decided, Learned, LearnedChange, LearnedRow, Matched, Taught, learned_scope,
};
pub use postgres::PostgresStore;
pub use proof::{Proven, is_unaltered, prove, read_proven};
pub use reasons::{LeftOut, SkipReason};
pub use records::{
    AcceptThen, Acceptance, AckTiming, Annotated, CancelOutcome, Claim, DataStamp, Entry, Lease,
    LeaseState, Listed, MemoryRow, NewRun, Note, Owner, Requester, Restored, RunFilter, RunRow,
    RunState, SheetRow, SpendingLimit, SpendingScope, StartOutcome, TokenRow,
};
pub use source::{PlanSource, SynthesisSource};
pub use sqlite::{
    Existing, RestoreError, SqliteBounds, SqliteStore, folder_of, leave_to_folder_owner, restore,
};
pub use store::{
    ActionStore, AdminStore, BackendStore, JournalStore, LearnedStore, RunReader, Store, TokenStore,
};
pub use tool_event::{
    AuthorizationMode, Authorized, Explained, ExplanationSource, FileBefore, FileChange, Rejection,
    RejectionKind, Restore, StepChanges, StepFinished, StepStarted, ToolPlanned, ToolSubmission,
};
pub use transcript::{Round, Transcript};
pub use views::CallView;
pub use wake::{Listener, Wake};
