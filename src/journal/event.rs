//! The events of a journal: tagged, versioned, append-only.

pub use super::accepted_event::*;
pub use super::action_event::*;
pub use super::draft::*;
use super::learned_event::{Decided, Learned};
use super::reasons::{LeftOut, SkipReason};
use super::tool_event::{
    Explained, StepFinished, StepStarted, ToolPlanned, step_finished_key, step_started_key,
};
pub use crate::domain::{CallStop, Retryable};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::EnumDiscriminants;

use super::evidence::{CheckSize, CrossChecked, Resolved};
use super::source::PlanSource;
use crate::domain::{
    Agent, AgentReport, BilledTokens, Confidence, Effort, FailureCause, Gate, Judgement, Mode,
    Obtained, Plan, Reply, Reservation, Role, RunId, TaskType, UnseenImage, Usd,
};

/// Version of the event format. Readers accept every version up to this one.
pub const VERSION: u32 = 1;

/// One event of a run. Its key ([`Event::key`]) occurs at most once in the run. Its stored body is
/// an object with `kind`, `data` and the format version.
#[derive(Debug, Clone, PartialEq, Serialize, EnumDiscriminants)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
#[strum_discriminants(
    name(EventKind),
    vis(pub(super)),
    derive(Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Event {
    Accepted(Box<Accepted>),
    Claimed(Claimed),
    ComputeStarted(ComputeStarted),
    Hinted(Hinted),
    Planned(Planned),
    Trimmed(Trimmed),
    RoundStarted(RoundStarted),
    SolverJudged(Arc<SolverJudged>),
    RoundSkipped(RoundSkipped),
    CallSent(CallSent),
    CallSettled(CallSettled),
    /// Found only in journals of earlier versions: reviews of contested claims.
    Reviewed(Value),
    CrossChecked(Arc<CrossChecked>),
    AgentFinished(Arc<AgentFinished>),
    Scored(Arc<Scored>),
    Synthesized(Arc<Synthesized>),
    Gated(Gated),
    Finished(Box<Finished>),
    Feedback(Feedback),
    Parsed(Parsed),
    Proposed(Box<Proposed>),
    GateChecked(GateChecked),
    Executed(Box<Executed>),
    ToolPlanned(Box<ToolPlanned>),
    StepStarted(StepStarted),
    StepFinished(Box<StepFinished>),
    Explained(Explained),
    Decided(Box<Decided>),
    /// Found only in journals of earlier versions: the similarity to a learned answer.
    Converged(Value),
    Learned(Box<Learned>),
}

impl Event {
    /// Returns the event's key, which is unique in its run. Two events with one key are the same
    /// event.
    pub fn key(&self) -> String {
        match self {
            Event::Accepted(_) => "accepted".into(),
            Event::Claimed(e) => format!("claimed/{}", e.epoch),
            Event::ComputeStarted(e) => format!("compute/{}/{}", e.epoch, e.number),
            Event::Hinted(_) => "hints".into(),
            Event::Planned(_) => "plan".into(),
            Event::Trimmed(e) => trimmed_key(e.epoch, e.refit),
            Event::RoundStarted(e) => format!("r{}/started", e.round),
            Event::SolverJudged(_) => SOLVER_JUDGED.into(),
            Event::RoundSkipped(e) => format!("r{}/skipped", e.round),
            Event::CallSent(e) => sent_key(&e.call),
            Event::CallSettled(e) => settled_key(&e.call),
            Event::Reviewed(e) => format!("r{}/reviewed", e["round"]),
            Event::CrossChecked(_) => CROSS_CHECKED.into(),
            Event::AgentFinished(e) => agent_key(e.round, e.agent),
            Event::Scored(e) => scored_key(e.round),
            Event::Synthesized(_) => "synthesis".into(),
            Event::Gated(_) => "gate".into(),
            Event::Finished(_) => "finished".into(),
            Event::Feedback(e) => format!("feedback/{}", e.number),
            Event::Parsed(_) => "parsed".into(),
            Event::Proposed(_) => "proposed".into(),
            Event::GateChecked(e) => format!("gate/{}", e.gate.into_str()),
            Event::Executed(_) => "executed".into(),
            Event::ToolPlanned(_) => "tool-plan".into(),
            Event::StepStarted(e) => step_started_key(&e.step_id),
            Event::StepFinished(e) => step_finished_key(&e.step_id),
            Event::Explained(_) => "explanation".into(),
            Event::Decided(_) => DECIDED.into(),
            Event::Converged(_) => "convergence".into(),
            Event::Learned(e) => format!("learned/{}", e.number),
        }
    }

    /// True if an effect follows the event's write, or is a part of it. It may not be written while
    /// its run is being cancelled.
    pub fn is_intent(&self) -> bool {
        matches!(self, Event::CallSent(_) | Event::Executed(_))
    }

    /// True if the event brings the run forward. False for the events that every process repeats
    /// when it fails at the same point: claims, starts of pieces, intents of calls, calls in doubt,
    /// a repeated fit of the panel.
    pub fn is_progress(&self) -> bool {
        !matches!(
            self,
            Event::Claimed(_)
                | Event::ComputeStarted(_)
                | Event::CallSent(_)
                | Event::CallSettled(CallSettled {
                    result: CallResult::InDoubt,
                    ..
                })
                | Event::Trimmed(Trimmed { epoch: Some(_), .. })
        )
    }
}

pub(super) fn sent_key(call: &str) -> String {
    ["sent:", call].concat()
}

pub(super) fn settled_key(call: &str) -> String {
    ["settled:", call].concat()
}

pub fn agent_key(round: u8, agent: Agent) -> String {
    format!("r{round}/{agent}/finished")
}

/// The key of [`Event::CrossChecked`].
pub const CROSS_CHECKED: &str = "cross-checked";

pub const SOLVER_JUDGED: &str = "r1/solver/judged";

/// The key of the one decision of a run.
pub(super) const DECIDED: &str = "decision";

pub fn scored_key(round: u8) -> String {
    format!("r{round}/scored")
}

/// A process claimed the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    pub epoch: i64,
    pub owner: String,
}

/// A resumed run is about to start a CPU-heavy piece of work. If this is the last entry of a
/// process, the process ended in that piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeStarted {
    pub epoch: i64,
    /// Counts from 1 in each epoch.
    pub number: u32,
    pub piece: String,
}

/// What fixed rules guess about the question. Not binding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hinted {
    pub task_types: Vec<TaskType>,
    pub signals: Vec<String>,
    /// Attached images that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<UnseenImage>,
    /// The number of images that could be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub images: usize,
}

/// The master's plan, as bounded by the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub plan: Plan,
    pub obtained: PlanSource,
    /// Changes by the service, one sentence each.
    pub corrections: Vec<String>,
    /// The rounds that the master wanted, if the mode allows fewer. A run that continues this one may
    /// have another mode.
    #[serde(
        rename = "wantedRounds",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub wanted_rounds: Option<u8>,
    /// How the master reads the message of a run that continues another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
}

impl Planned {
    /// True if the master asks the user before any answer.
    pub fn asks_user(&self) -> bool {
        self.plan.clarification_question.is_some()
    }

    /// True if the run's message turned out to ask something new.
    pub fn is_new_request(&self) -> bool {
        self.reading
            .as_ref()
            .is_some_and(|reading| !reading.continues)
    }
}

/// How the master reads a message that continues an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub continues: bool,
    /// What holds instead of the corrected assumption; empty if none is corrected.
    pub correction: String,
    /// The agents whose reports no longer hold.
    pub affected: Vec<Agent>,
}

pub(super) fn trimmed_key(epoch: Option<i64>, refit: Option<u32>) -> String {
    match (epoch, refit) {
        (_, Some(refit)) => format!("trimmed/wave/{refit}"),
        (Some(epoch), None) => format!("trimmed/{epoch}"),
        (None, None) => "trimmed".into(),
    }
}

/// The panel and token limits that fit under the cap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trimmed {
    pub agents: Vec<Agent>,
    /// Output tokens that each agent and the synthesis may use.
    pub max_tokens: Vec<(Role, u32)>,
    /// What was left out or shortened, one sentence each. Empty if everything fits.
    pub left_out: Vec<LeftOut>,
    /// The size of the cross-check for which the cap has room. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_check: Option<CheckSize>,
    /// The epoch in which a resumed run fitted its panel again. Absent in the first fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// The number of fits before this one, if it was made because settled calls of round 1 cost
    /// less than they were reserved for.
    #[serde(rename = "wave", default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundStarted {
    pub round: u8,
    pub agents: Vec<Agent>,
    pub why: String,
    /// True if the round began before there was a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
}

/// Whether the report of a solver that was asked first is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolverJudged {
    /// The agents that are asked too. Empty if the report is enough.
    pub others: Vec<Agent>,
    pub why: String,
    /// The cross-check of this report alone. Without passes if there was none.
    pub check: CrossChecked,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundSkipped {
    pub round: u8,
    pub why: SkipReason,
}

/// The intent to make a call, with its reservation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSent {
    /// The step and attempt, such as "r1/solver" or "synthesis/repair#2".
    pub call: String,
    pub role: Role,
    pub provider: String,
    pub model: String,
    /// `None` for the in-process model, which is free.
    pub reserved: Option<Reservation>,
    pub max_tokens: u32,
    /// The requested thinking effort. Absent if the setting is not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    pub prompt_hash: String,
}

impl CallSent {
    /// Returns the reserved amount; nothing for the in-process model.
    pub fn reserved_amount(&self) -> Usd {
        self.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount)
    }
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSettled {
    pub call: String,
    pub result: CallResult,
    /// The cost that is charged to the ledger.
    pub cost: Usd,
    pub latency_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<BilledTokens>,
    /// The model id that the provider reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CallResult {
    Answered {
        text: String,
        stop: CallStop,
    },
    Failed {
        cause: FailureCause,
        /// The service's own words. Clients may read them.
        detail: String,
        /// The provider's error text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        retry: Retryable,
    },
    /// The process died during the call, which may have been billed.
    InDoubt,
}

/// An agent finished its part of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentFinished {
    pub round: u8,
    pub agent: Agent,
    pub outcome: AgentOutcome,
    /// The run whose stored report is reused, if no call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<RunId>,
    /// In a later round: what the agent decided about its contested claims. `None` if it reported
    /// anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
}

/// The result of an agent in a round. A failure is data and not an error of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentOutcome {
    Answered {
        report: Arc<AgentReport>,
        obtained: Obtained,
        /// True if the output was cut at its token limit.
        truncated: bool,
        /// Changes that the extraction made.
        notes: Vec<String>,
        /// Output tokens of the call that gave the report.
        tokens: u64,
    },
    Failed {
        cause: FailureCause,
        detail: String,
        /// True if the agent ran out of the run's own time.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_deadline: bool,
    },
}

impl AgentOutcome {
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::Answered { .. })
    }

    pub fn report(&self) -> Option<&AgentReport> {
        match self {
            Self::Answered { report, .. } => Some(report),
            Self::Failed { .. } => None,
        }
    }

    /// Returns the most tokens of the report as a model is shown it; 0 without one.
    pub fn tokens(&self) -> u64 {
        let obtained = self.obtained();
        match self {
            Self::Answered { tokens, .. } => obtained.map_or(0, |it| it.shown_tokens(*tokens)),
            Self::Failed { .. } => 0,
        }
    }

    /// Returns how the report was obtained.
    pub fn obtained(&self) -> Option<Obtained> {
        match self {
            Self::Answered { obtained, .. } => Some(*obtained),
            Self::Failed { .. } => None,
        }
    }
}

/// The judgement of the panel after a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    pub round: u8,
    pub judgement: Arc<Judgement>,
}

/// The gate's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gated {
    pub confidence: Confidence,
    pub gate: Gate,
    pub mode: Mode,
    /// True if an earlier question of the conversation was answered, so that none may be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}

/// The run's terminal state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub ending: Ending,
    /// The sum of all settlements.
    pub spent: Usd,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ending {
    Replied {
        reply: Box<Reply>,
    },
    Failed {
        cause: Cause,
        detail: String,
    },
    Cancelled,
    /// The end of an action: its outcome, and the response to the client.
    Acted {
        outcome: ActionOutcome,
        response: Value,
    },
}

impl Ending {
    /// Returns what metrics and reports call this ending: the outcome, or the cause of a failure.
    pub fn label(&self) -> &'static str {
        match self {
            Ending::Replied { reply } => reply.outcome.into_str(),
            Ending::Failed { cause, .. } => cause.into_str(),
            Ending::Cancelled => "cancelled",
            Ending::Acted { outcome, .. } => outcome.into_str(),
        }
    }
}

/// Why a run failed. Mapped to an HTTP status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Cause {
    /// Every core agent failed, or the master failed.
    Provider,
    /// The run's own deadline passed.
    Deadline,
    /// The cap has no room for even one agent and the synthesis.
    Budget,
    /// The service broke one of its own rules, which is a defect.
    Internal,
}

/// A reader's opinion of the reply, written after the run's end. The last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Counts from 1, in order of arrival.
    pub number: u32,
    pub positive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}
