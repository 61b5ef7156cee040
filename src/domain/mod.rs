//! The domain types: pure types and rules, no async, no I/O. Any module may use them; they use no
//! other module.

mod budget;
mod calibration;
mod call_name;
mod clarification;
mod command;
mod confidence;
mod direction;
mod plural;
mod decision;
mod demand;
mod estimate;
mod evidence;
mod failure_cause;
mod ids;
mod model;
mod money;
mod number_word;
mod panel;
mod plan;
mod provider;
mod question;
mod reply;
mod report;
mod scope;
mod score;
mod scoring_policy;
mod search_index;
mod token;
mod tool_plan;
mod unseen_image;

pub use budget::{Earmark, Ledger, Refused, Reservation};
pub use calibration::Calibration;
pub use call_name::{CallName, CallStep, UnknownCall};
pub use clarification::{Choice, Clarification, OPTION_LETTERS, is_question_mark};
pub use command::{ActionGate, ActionMode, CommandName, RunKind};
pub use confidence::{Confidence, ConfidenceLimit, Gate, Terms, shown_bound, shown_c_final};
pub use decision::{AskedFirst, DecisionPath, ShownAnswer};
pub use demand::{Counted, Demand, MAX_DEMANDS};
pub use direction::{changes_direction, is_blank, is_invisible, without_controls};
pub use estimate::{Estimate, EstimateStep, Pert, Unit as TimeUnit};
pub use evidence::{
    Basis, ClaimVerdict, Conduct, ConductKind, CrossCheck, Decision, Holds, PartAnswered,
    ReportRef, Resolution, Tag, UnitRef,
};
pub use failure_cause::FailureCause;
pub use ids::{Fingerprint, RunId, fingerprint, hex};
pub use model::{
    BilledTokens, CallStop, Effort, LongContext, Price, Rate, Retryable, Settings,
    StructuredOutput, Takes, Traits, is_same_model, undated,
};
pub use money::Usd;
pub use number_word::{in_digits, number_named};
pub use panel::{Agent, AgentName, CORE_AGENTS, Role};
pub use plan::{Plan, TaskType};
pub use plural::counted;
pub use provider::{Provider, ProviderKind};
pub use question::{
    Attachment, Context, ImageClaim, Mode, Question, Salience, Source, User, or_default,
};
pub use reply::{BudgetMeta, Invalidation, Meta, Outcome, Reply};
pub use report::{AgentReport, Assumption, AssumptionKind, Obtained, Unit};
pub use scope::Scope;
pub use score::{
    AnswerGroup, Axes, Axis, AxisScore, Disagreement, Feature, Judgement, Position, Score, Status,
    Thresholds,
};
pub use scoring_policy::ScoringPolicy;
pub use search_index::{is_unspaced, search_terms, search_words, words_as_written};
pub use token::{BearerToken, same_secret};
pub use tool_plan::{EvidenceFocus, PlanIntent, PlanStep, ToolPlan};
pub use unseen_image::{UnseenCause, UnseenImage};
