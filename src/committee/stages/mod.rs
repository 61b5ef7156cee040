//! The stages of a run, in the order in which `convene` reaches them: from hints to the reply.
//! A stage decides what is asked and what is recorded; it makes no attempt at a call, computes no
//! price and renders no text itself.

pub(super) mod hints;
pub(super) mod plan;

pub(super) mod rounds;
pub(super) mod round_context;
pub(super) mod reuse;
pub(super) mod cross_check;
pub(super) mod verdicts;
pub(super) mod evidence;
pub(super) mod judge;
pub(super) mod later_rounds;
pub(super) mod open_claims;
pub(super) mod resolve;
pub(super) mod deliberation;

pub(super) mod synthesis_input;
pub(super) mod synthesize;
pub(super) mod synthesis_checks;
pub(super) mod fallback_answer;
pub(super) mod question;
pub(super) mod confidence;
pub(super) mod finish;
