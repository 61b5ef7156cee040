//! The shared context of a run's rounds.

use tokio::time::Instant;

use crate::committee::Deps;
use crate::committee::request_context::RequestContext;
use crate::domain::Plan;
use crate::journal::{RunContext, Trimmed};

/// The most tokens in the user part of a prompt beside the question: labels, fences, hints,
/// instructions.
pub const SCAFFOLDING_TOKENS: u64 = 700;

/// The context that all agents of a run share.
#[derive(Clone, Copy)]
pub struct RoundContext<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
    pub plan: &'a Plan,
    pub trimmed: &'a Trimmed,
    pub until: Instant,
}
