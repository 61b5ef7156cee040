//! The shapes that models are asked to write: plan, cross-check, decisions, synthesis, estimate. The
//! reports of the agents are in `domain`, because the journal has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::{
    AssumptionKind, Basis, ConductKind, Decision, Demand, Holds, Mode, TaskType, TimeUnit,
};

/// The plan as the master writes it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OrchestrationPlan {
    /// The kind of work that the question asks for.
    pub task_type: TaskType,
    /// The agents to run, by name. solver, critic and verifier always run.
    pub agents_to_run: Vec<String>,
    /// Rounds of deliberation, 1 to 3. A value out of bounds is clamped, not refused.
    pub rounds: i64,
    /// True only if no useful answer is possible under any stated assumption.
    pub needs_clarification: bool,
    /// The question to ask if needsClarification is true, else null.
    #[serde(default)]
    pub clarification_question: Option<QuestionOut>,
    /// ask, audit or deep: the form of the reply.
    pub output_shape: Mode,
    /// What the request itself demands of its answer in numbers or as a form; empty if nothing.
    #[serde(default)]
    pub demands: Vec<Demand>,
    /// How the user's message continues an earlier reply; null if none is given.
    #[serde(default)]
    pub continuation: Option<ContinuationOut>,
    /// The code (ISO 639-1) of the user's language; null if unclear.
    #[serde(default)]
    pub language: Option<String>,
}

/// How a message continues an earlier reply, as the master reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContinuationOut {
    /// False if the message asks something new instead.
    pub continues: bool,
    /// What holds instead of the corrected assumption, in one sentence.
    pub correction: String,
    /// The agents whose reports use the corrected assumption.
    pub affected: Vec<String>,
}

/// A question with three options as the master writes it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionOut {
    /// One question.
    pub question: String,
    /// Three options that lead to materially different answers, beginning with "A ", "B ", "C ",
    /// each saying what it would change.
    pub options: Vec<String>,
}

/// The question that is asked if confidence is too low, as the master writes it when it has read the
/// reports.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FallbackQuestionOut {
    /// One question.
    pub question: String,
    /// Three options that lead to materially different answers, beginning with "A ", "B ", "C ",
    /// each saying what it would change.
    pub options: Vec<String>,
    /// For each option, the agents whose report would stay as it is if the user chose it.
    #[serde(default)]
    pub agreeing: Vec<Vec<String>>,
}

/// The final synthesis as the master writes it: exactly these three keys.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinalSynthesis {
    /// The main answer in Markdown, and nothing that the service adds itself.
    pub reply_markdown: String,
    pub meta: SynthesisMeta,
    pub audit: SynthesisAudit,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SynthesisMeta {
    pub task_type: TaskType,
    /// One to three lines.
    pub tldr: Vec<String>,
    /// The bare answer of the reply, if the question has one short correct answer; else empty.
    pub final_answer: String,
    pub assumptions: Vec<AssumptionOut>,
    /// How one would see that the result works, if the task is buildable; else empty.
    pub acceptance_tests: Vec<String>,
    /// One unit for the whole estimate.
    pub plan_unit: TimeUnit,
    /// One entry per step of the plan in the answer, in order; empty if it has none.
    pub plan_steps: Vec<PlanStepOut>,
    pub plan_assumptions: Vec<String>,
    /// What would push the work towards the pessimistic figures.
    pub plan_risks: Vec<String>,
    /// Confidence in the estimate, 0 to 1.
    pub plan_confidence: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssumptionOut {
    pub text: String,
    pub kind: AssumptionKind,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SynthesisAudit {
    /// The ids of the units relied on, such as "solver:u1".
    pub units_used: Vec<String>,
    pub disagreements: Vec<DisagreementOut>,
    /// If finalAnswer differs from that of most reports: what shows theirs to be wrong; else empty.
    pub answer_justification: String,
    /// 0 to 0.60: how much unresolved conflict lowers confidence.
    pub conflict_penalty: f64,
    /// 0 to 0.10: how completely the answer covers the question.
    pub coverage_bonus: f64,
    pub quarantine_justifications: Vec<JustificationOut>,
    /// The question to ask if confidence turns out too low.
    pub fallback_question: FallbackQuestionOut,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DisagreementOut {
    pub topic: String,
    pub summary: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JustificationOut {
    pub agent: String,
    pub why: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStepOut {
    pub step: String,
    /// Optimistic.
    pub o: f64,
    /// Most likely.
    pub m: f64,
    /// Pessimistic.
    pub p: f64,
}

/// Three-point figures as the master writes them when it is asked for these alone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EstimateOut {
    pub plan_unit: TimeUnit,
    /// One entry per step, in order.
    pub plan_steps: Vec<PlanStepOut>,
    pub plan_assumptions: Vec<String>,
    pub plan_risks: Vec<String>,
    pub plan_confidence: f64,
}

/// The result of the cross-check.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CrossCheckReply {
    /// One for each claim that was given.
    pub claims: Vec<VerdictOut>,
    /// Groups of reports whose final answers mean the same.
    pub same_answers: Vec<Vec<String>>,
    /// What the question asks for, part by part.
    pub parts: Vec<PartOut>,
    /// Only reports that do not count as an answer.
    pub reports: Vec<ConductOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerdictOut {
    /// The claim's id, such as "R1.2".
    pub claim: String,
    /// Other reports, or their claims, that say the same.
    pub supported_by: Vec<String>,
    /// Other reports, or their claims, that cannot be true beside it.
    pub contradicted_by: Vec<String>,
    pub holds: Holds,
    pub by: Basis,
    /// What decides it, in at most 25 words; empty if nothing does.
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PartOut {
    pub part: String,
    /// Reports that answer it.
    pub answered_by: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConductOut {
    /// The report's label, such as "R1".
    pub report: String,
    pub kind: ConductKind,
    pub why: String,
}

/// The agent's decisions on its contested claims.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decisions {
    /// One for each contested claim.
    pub decisions: Vec<DecisionOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionOut {
    /// The id of the claim, such as "C1".
    pub claim: String,
    pub decision: Decision,
    /// The letter of the position that is right, if you concede; else empty.
    pub to: String,
    pub by: Ground,
    /// What decides it, in one or two sentences.
    pub evidence: String,
}

/// What a decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ground {
    Calculation,
    Test,
    Source,
    /// The wording of the question.
    Given,
}

impl From<Ground> for Basis {
    fn from(ground: Ground) -> Self {
        match ground {
            Ground::Calculation => Basis::Calculation,
            Ground::Test => Basis::Test,
            Ground::Source => Basis::Source,
            Ground::Given => Basis::Given,
        }
    }
}
