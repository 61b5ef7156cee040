//! The stages of a run, in the order in which `convene` reaches them: from hints to the reply.
//! A stage decides what is asked and what is recorded. How a call is made, what it may cost and how
//! a reply is written is in `call`, `money` and `reply`.

pub(super) mod hints;
pub(super) mod plan;
pub(super) mod ahead;

pub(super) mod rounds;
mod escalation;
mod reuse;
mod round_context;
mod turn;
pub(super) mod cross_check;
pub(super) mod verdicts;
pub(super) mod evidence;
pub(super) mod judge;
pub(super) mod open_claims;
mod later_rounds;
pub(super) mod resolve;
mod deliberation;

pub(super) mod synthesis_input;
pub(super) mod synthesize;
mod synthesis_checks;
mod cut_answer;
mod figures;
mod fallback_answer;
pub(super) mod question;
mod option_parts;
mod question_rules;
pub(super) mod confidence;
mod notes;
pub(super) mod finish;
pub(super) mod recalled;
