//! What can be written into a journal: tagged, versioned, append-only.

pub use super::action_event::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evidence::{CheckSize, CrossChecked, Resolved};
use crate::domain::{
    Agent, AgentReport, Assumption, BilledTokens, Clarification, Confidence, Effort, Estimate,
    Gate, Judgement, Mode, Obtained, Plan, Question, Reply, Reservation, Role, RunId, RunKind,
    TaskType, Usd,
};

/// The version of the event format. Readers take every version up to this one.
pub const VERSION: u32 = 1;

/// One thing that happened in a run. Each has a key under which it happens at most once ([`Event::key`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Event {
    Accepted(Box<Accepted>),
    Claimed(Claimed),
    ComputeStarted(ComputeStarted),
    Hinted(Hinted),
    Planned(Planned),
    Trimmed(Trimmed),
    RoundStarted(RoundStarted),
    RoundSkipped(RoundSkipped),
    CallSent(CallSent),
    CallSettled(CallSettled),
    Reviewed(Reviewed),
    CrossChecked(Box<CrossChecked>),
    AgentFinished(Box<AgentFinished>),
    Scored(Box<Scored>),
    Synthesized(Box<Synthesized>),
    Gated(Gated),
    Finished(Box<Finished>),
    Feedback(Feedback),
    Parsed(Parsed),
    Proposed(Box<Proposed>),
    GateChecked(GateChecked),
    Executed(Box<Executed>),
}

impl Event {
    /// The event's place in its run: two events with one key are the same event.
    pub fn key(&self) -> String {
        match self {
            Event::Accepted(_) => "accepted".into(),
            Event::Claimed(e) => format!("claimed/{}", e.epoch),
            Event::ComputeStarted(e) => format!("compute/{}/{}", e.epoch, e.number),
            Event::Hinted(_) => "hints".into(),
            Event::Planned(_) => "plan".into(),
            Event::Trimmed(Trimmed { epoch: None, .. }) => "trimmed".into(),
            Event::Trimmed(Trimmed {
                epoch: Some(epoch), ..
            }) => format!("trimmed/{epoch}"),
            Event::RoundStarted(e) => format!("r{}/started", e.round),
            Event::RoundSkipped(e) => format!("r{}/skipped", e.round),
            Event::CallSent(e) => sent_key(&e.call),
            Event::CallSettled(e) => settled_key(&e.call),
            Event::Reviewed(e) => format!("r{}/reviewed", e.round),
            Event::CrossChecked(_) => CROSS_CHECKED.into(),
            Event::AgentFinished(e) => agent_key(e.round, e.agent),
            Event::Scored(e) => scored_key(e.round),
            Event::Synthesized(_) => "synthesis".into(),
            Event::Gated(_) => "gate".into(),
            Event::Finished(_) => "finished".into(),
            Event::Feedback(e) => format!("feedback/{}", e.number),
            Event::Parsed(_) => "parsed".into(),
            Event::Proposed(_) => "proposed".into(),
            Event::GateChecked(e) => format!("gate/{}", e.gate.as_str()),
            Event::Executed(_) => "executed".into(),
        }
    }
}

impl Event {
    /// Whether a run is further than before with this event. Repeated by every process that fails at the same point:
    /// claims, starts of pieces, intents of calls, calls in doubt, the panel fitted again.
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

pub fn sent_key(call: &str) -> String {
    format!("sent:{call}")
}

pub fn settled_key(call: &str) -> String {
    format!("settled:{call}")
}

pub fn agent_key(round: u8, agent: Agent) -> String {
    format!("r{round}/{agent}/finished")
}

/// The key of [`Event::CrossChecked`].
pub const CROSS_CHECKED: &str = "cross-checked";

pub fn scored_key(round: u8) -> String {
    format!("r{round}/scored")
}

/// The run was taken on. Written before anything else happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub question: Question,
    /// Of an action: what it is. Its question is the text to be understood, and the question's mode says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionIntake>,
    /// What this run continues, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// The client's own id of the request, if it sent a well-formed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    pub cap: Usd,
    /// Seeds every random choice of the run.
    pub seed: u64,
    pub config_hash: String,
    pub prompts_hash: String,
    pub version: String,
}

impl Accepted {
    pub fn kind(&self) -> RunKind {
        if self.action.is_some() {
            RunKind::Action
        } else {
            RunKind::Chat
        }
    }

    /// The run that this one goes on from.
    pub fn parent(&self) -> Option<RunId> {
        let confirmed = self.action.as_ref().and_then(|action| action.confirms);
        self.continues
            .as_ref()
            .map(|continues| continues.parent)
            .or(confirmed)
    }
}

/// How an action came in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionIntake {
    /// The action whose proposal is confirmed by this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirms: Option<RunId>,
}

/// A run that goes on from an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Continues {
    #[schemars(with = "String")]
    pub parent: RunId,
    pub by: Continuation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Continuation {
    /// The user answered the parent's question.
    Answer {
        question: String,
        answer: String,
        option: Option<char>,
    },
    /// The user corrected a numbered assumption of the parent.
    Correction {
        handle: String,
        wrong: String,
        correction: String,
    },
}

/// A process took the run's lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    pub epoch: i64,
    pub owner: String,
}

/// A resumed run is about to start a CPU-heavy piece of work. If this is the last that its process wrote, the process ended
/// in the piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeStarted {
    pub epoch: i64,
    /// From 1 in each epoch.
    pub number: u32,
    pub piece: String,
}

/// What cheap deterministic rules guess of the question. Not binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hinted {
    pub task_types: Vec<TaskType>,
    pub signals: Vec<String>,
    /// Attachments that could not be seen, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// The master's plan after the service has bounded it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub plan: Plan,
    /// How the plan was got: the way of its JSON, or "reused", or "by hints" when the master's could not be read.
    pub obtained: String,
    /// What the service changed, one sentence each.
    pub corrections: Vec<String>,
}

/// What the cap left out, or made smaller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trimmed {
    pub agents: Vec<Agent>,
    /// Output tokens that each agent and the synthesis may use.
    pub max_tokens: Vec<(Role, u32)>,
    /// One sentence each; empty when everything fits.
    pub left_out: Vec<String>,
    /// How large a cross-check the cap has room for; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_check: Option<CheckSize>,
    /// The claim under which a resumed run fitted its panel again; absent from the first fitting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundStarted {
    pub round: u8,
    pub agents: Vec<Agent>,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundSkipped {
    pub round: u8,
    pub why: String,
}

/// The intent to make a call, with what is set aside for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSent {
    /// The step, such as "r1/solver" or "synthesis/repair#2".
    pub call: String,
    pub role: Role,
    pub provider: String,
    pub model: String,
    /// `None` for the in-process model, which costs nothing.
    pub reserved: Option<Reservation>,
    pub max_tokens: u32,
    /// How much the model may think; absent where no such setting is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    pub prompt_hash: String,
}

/// A call's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSettled {
    pub call: String,
    pub result: CallResult,
    /// What it is taken to have cost.
    pub cost: Usd,
    pub latency_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<BilledTokens>,
    /// The model id that the provider says it used.
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
        cause: String,
        /// In our own words: clients may read it.
        detail: String,
        /// What the provider said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        retry: Retryable,
    },
    /// The process died while the call was under way: it may have been billed.
    InDoubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStop {
    End,
    MaxTokens,
    Refusal,
    Other,
}

/// Whether another attempt makes sense, and after how long at the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retryable {
    No,
    AfterMs(u64),
}

/// What agents found of each other's contested claims, in journals of earlier versions. Nothing reads it any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    pub round: u8,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

/// An agent's part in a round, done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentFinished {
    pub round: u8,
    pub agent: Agent,
    pub outcome: AgentOutcome,
    /// The run whose stored output this is, when nothing was bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<RunId>,
    /// Of a later round: what the agent decided on its contested claims. `None` if it reported anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
}

/// A failed agent is data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentOutcome {
    Answered {
        report: AgentReport,
        obtained: Obtained,
        /// The output was cut at its token limit.
        truncated: bool,
        /// What extraction had to change.
        notes: Vec<String>,
        /// Output tokens of the call that gave the report.
        tokens: u64,
    },
    Failed {
        /// Short and bounded: "timed out", "malformed output", "refused", ...
        cause: String,
        detail: String,
        /// It was the run's own time that was over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_deadline: bool,
    },
}

/// The panel, judged after a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    pub round: u8,
    pub judgement: Judgement,
}

/// What the master wrote, after the service has checked and completed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Synthesized {
    /// `None` when only the question was bought.
    pub draft: Option<Draft>,
    /// The question to ask if the gate asks.
    pub question: Clarification,
    pub obtained: String,
    pub corrections: Vec<String>,
    /// The rules of SPEC 14 that the reply would have broken with what the master wrote: then this is what stands in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_rules: Vec<String>,
}

/// The parts of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    pub task_type: TaskType,
    pub tldr: Vec<String>,
    pub main: String,
    pub acceptance_tests: Vec<String>,
    pub assumptions: Vec<Assumption>,
    /// How many more were stated than the ledger lists.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub assumptions_left_out: usize,
    pub estimate: Option<Estimate>,
    /// The units relied on, as "agent:unit id".
    pub units_used: Vec<String>,
    pub disagreements: Vec<DisagreementNote>,
    pub quarantine_justifications: Vec<Justification>,
    /// The master's own estimates of the two terms; `None` where it gave none.
    pub conflict_penalty: Option<f64>,
    pub coverage_bonus: Option<f64>,
    /// The bare answer that the reply gives; empty if the master says that there is none, `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_answer: Option<String>,
    /// Why the reply gives another answer than the leading one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_justification: Option<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisagreementNote {
    pub topic: String,
    pub summary: String,
}

/// Why quarantined material was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Justification {
    pub agent: Agent,
    pub why: String,
}

/// The gate's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gated {
    pub confidence: Confidence,
    pub gate: Gate,
    pub mode: Mode,
}

/// The run's terminal state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub ending: Ending,
    /// Everything settled.
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
    /// Of an action: what became of it, and what the client was told.
    Acted {
        outcome: ActionOutcome,
        response: Value,
    },
}

/// Why a run failed: what the client is told by a status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Every core agent failed, or the master did.
    Provider,
    /// The run's own deadline passed.
    Deadline,
    /// The cap has no room for even one agent and the synthesis.
    Budget,
    /// The service broke its own rules; a defect.
    Internal,
}

impl Cause {
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Provider => "provider",
            Cause::Deadline => "deadline",
            Cause::Budget => "budget",
            Cause::Internal => "internal",
        }
    }
}

/// What a reader thought of the reply. The only thing that is written after a run's end; the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// From 1, in the order in which they came.
    pub number: u32,
    pub positive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}
