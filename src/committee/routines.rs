//! The routines of the committee that read text of models or users, for the benchmark of their cost
//! per byte (`make bench`, table `cost`) and for the fuzzer. `fuzz/committee.rs` calls them.

pub use crate::committee::call::clean::clean;
pub use crate::committee::call::prompts::unquoted;
pub use crate::committee::reply::assumptions::ledger;
pub use crate::committee::reply::plan_steps::{label, plan_steps};
pub use crate::committee::reply::redaction::Redactor;
pub use crate::committee::reply::render::answer;
pub use crate::committee::reply::sections::{
    first_sentence, main_answer, plain_line, to_last_paragraph,
};
pub use crate::committee::request_context::RequestContext;
pub use crate::committee::rule_texts::RuleTexts;
pub use crate::committee::schemas::schema_of;
pub use crate::committee::stages::hints::hints_of;
pub use crate::committee::stages::open_claims::claims;
pub use crate::committee::stages::resolve::{held, settle, shown as claims_shown};
pub use crate::committee::stages::verdicts::{
    AnsweredReport, problems, read, shown as reports_shown,
};

/// A routine's name, and the function that runs it on a text.
pub type Routine = (&'static str, fn(&str));
