//! The text of a reply and its audit: sections, assumptions, plan steps, estimate, redaction, and
//! the invariants. It reads what the stages recorded, makes no call and changes no decision.

pub(super) mod headings;
pub(super) mod closing;
pub(super) mod sections;
pub(super) mod redaction;
pub(super) mod plan_steps;
pub(super) mod estimate;
pub(super) mod assumptions;
pub(super) mod render;
pub(super) mod rounding;
pub(super) mod audit;
pub(super) mod audit_text;
pub mod invariants;
