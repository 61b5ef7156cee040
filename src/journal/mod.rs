//! The journal: everything a run does, appended to one hash-chained record. The reply, the audit, the progress stream
//! and crash recovery are views of it.
//!
//! In reading order: [`Event`] is what can be written; [`Store`] keeps it; [`RunContext`] is the one door through
//! which a run has its effects; `chain` proves that nothing was altered.

mod action_event;
mod archive;
mod chain;
mod context;
mod event;
mod evidence;
mod lineage;
mod observe;
mod postgres;
mod proof;
mod resumed;
mod rows;
mod sqlite;
mod statements;
mod store;
mod unavailable;
pub mod views;
mod wake;

pub use archive::{Archive, ArchivedEntry};
pub use chain::{ChainFault, verify};
pub use context::{Call, RunContext, Stop};
pub use event::*;
pub use evidence::{CheckPass, CheckScope, CheckSize, CrossChecked, Resolved};
pub use lineage::ancestors;
pub use postgres::PostgresStore;
pub use proof::prove;
pub use resumed::Deaths;
pub use sqlite::{Existing, Restoration, RestoreError, SqliteBounds, SqliteStore, restore};
pub use store::{
    Acceptance, ActionStart, AfterAction, Annotated, CancelOutcome, Claim, Entry, Error, Lease,
    LeaseState, MemoryRow, NewRun, Owner, Requester, Restored, RunFilter, RunRow, RunState,
    SceneLine, SheetRow, SpendingLimit, SpendingScope, Store, TokenRow,
};
pub use wake::{Listener, Wake};
