//! What lies on the table of a run's rounds.

use tokio::time::Instant;

use super::Deps;
use super::request_context::RequestContext;
use crate::domain::Plan;
use crate::journal::{RunContext, Trimmed};

/// What the user part of a prompt holds beside the question, at most: labels, fences, hints, instructions.
pub const SCAFFOLDING_TOKENS: u64 = 700;

/// What every agent of a run has in front of it.
#[derive(Clone, Copy)]
pub struct RoundContext<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
    pub plan: &'a Plan,
    pub trimmed: &'a Trimmed,
    pub until: Instant,
}
