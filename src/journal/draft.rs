//! The synthesis and the parts of an answer, as the journal has them.

use serde::{Deserialize, Serialize};

use super::source::SynthesisSource;
use crate::domain::{Agent, Assumption, Clarification, Estimate, TaskType};

/// The synthesis, as checked and completed by the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Synthesized {
    /// `None` if only the question was asked for.
    pub draft: Option<Draft>,
    /// The question to ask if the gate asks.
    pub question: Clarification,
    pub obtained: SynthesisSource,
    pub corrections: Vec<String>,
    /// Rules of SPEC 14 that the master's text would have broken. If there are any, the fallback
    /// answer is used instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_rules: Vec<String>,
}

impl Synthesized {
    /// Returns a synthesis that breaks no rule.
    pub fn new(
        draft: Option<Draft>,
        question: Clarification,
        obtained: SynthesisSource,
        corrections: Vec<String>,
    ) -> Self {
        Self {
            draft,
            question,
            obtained,
            corrections,
            broken_rules: vec![],
        }
    }
}

/// The parts of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    pub task_type: TaskType,
    pub tldr: Vec<String>,
    pub main: String,
    pub acceptance_tests: Vec<String>,
    pub assumptions: Vec<Assumption>,
    /// How many stated assumptions the ledger does not list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub assumptions_left_out: usize,
    pub estimate: Option<Estimate>,
    /// Set if the output limit cut the main answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// The units that the answer relies on, as "agent:unit id".
    pub units_used: Vec<String>,
    pub disagreements: Vec<DisagreementNote>,
    pub quarantine_justifications: Vec<Justification>,
    /// The master's own estimates of the two terms. `None` if it gave none.
    pub conflict_penalty: Option<f64>,
    pub coverage_bonus: Option<f64>,
    /// The bare answer that the reply gives. Empty if the master says that there is none; `None` if
    /// it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_answer: Option<String>,
    /// True if the request is open and no report supports `final_answer`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer_unsupported: bool,
    /// Why the reply gives another answer than the leading one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_justification: Option<String>,
}

impl Draft {
    /// Returns a draft that has only its main answer.
    pub fn new(task_type: TaskType, main: String) -> Self {
        Self {
            task_type,
            main,
            ..Self::default()
        }
    }

    /// Returns a draft of one sentence.
    pub fn of_sentence(task_type: TaskType, sentence: &str) -> Self {
        Self {
            tldr: vec![sentence.to_owned()],
            ..Self::new(task_type, sentence.to_owned())
        }
    }
}

/// What became of a main answer that the output limit cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// A second call wrote the rest.
    Continued,
    EndMissing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisagreementNote {
    pub topic: String,
    pub summary: String,
}

/// Why the master used an output with status QUARANTINE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Justification {
    pub agent: Agent,
    pub why: String,
}

pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}
