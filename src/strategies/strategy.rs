//! The interface of a decision strategy.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value;

use crate::committee::Failure;
use crate::domain::{AskedFirst, DecisionPath, Reply, RunId, Salience, ShownAnswer};
use crate::journal::Draft;

/// The least gravity of a grave request.
const GRAVE: f64 = 0.5;

/// A learned answer that resembles a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The whole question that it answers.
    pub condition: String,
    /// What models are shown, shortened.
    pub shown: ShownAnswer,
    pub answer: Draft,
    /// How much its question resembles the request, 0 to 1.
    pub similarity: f64,
    /// True if the two questions are equal, with their spaces.
    pub is_same: bool,
    /// 0 to 1. A gate only, and not shown to models.
    pub confidence: f64,
}

/// What a strategy decides on.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionContext {
    pub text: String,
    pub salience: Salience,
    /// The most similar first. It may be empty.
    pub candidates: Vec<Candidate>,
    /// True if the request has to be answered now.
    pub is_immediate: bool,
    /// Shifts by name; `confidence_threshold` shifts the threshold.
    pub personality_biases: BTreeMap<String, f64>,
}

impl DecisionContext {
    /// True if a wrong answer does so much harm that the whole committee has to answer.
    pub fn is_grave(&self) -> bool {
        self.salience.gravity >= GRAVE
    }
}

/// The outcome of a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionResult {
    pub path: DecisionPath,
    /// The learned answer that replied, or the one that resembles the request most.
    pub matched: Option<RunId>,
    /// The probability that the response serves its reader, 0 to 1.
    pub predicted_success: f64,
    /// Why there is no response.
    pub reason: Option<&'static str>,
    /// The reply of the committee, with its path alone.
    pub reply: Option<Box<Reply>>,
}

impl DecisionResult {
    /// Returns the result of a path without a response.
    pub fn none(path: DecisionPath, reason: &'static str) -> Self {
        Self {
            path,
            matched: None,
            predicted_success: 0.0,
            reason: Some(reason),
            reply: None,
        }
    }
}

/// How models are to answer.
#[derive(Debug, Clone, Default)]
pub struct How {
    /// Learned answers for context.
    pub shown: Vec<ShownAnswer>,
    pub first: AskedFirst,
    /// Why models answer, in words.
    pub why: &'static str,
}

/// The models behind a strategy. For a run it is the committee.
#[async_trait]
pub trait Llm: Send + Sync {
    /// Answers the request. Returns `None` without an answer.
    ///
    /// # Errors
    /// [`Failure`] if the run must stop.
    async fn respond(&self, how: &How) -> Result<Option<Reply>, Failure>;

    /// Says whether the answer of a candidate answers the request; `None` if that is not known.
    ///
    /// # Errors
    /// [`Failure`] if the run must stop.
    async fn answers(&self, candidate: &Candidate) -> Result<Option<bool>, Failure>;
}

/// Decides how a request is answered.
#[async_trait]
pub trait DecisionStrategy: Send + Sync {
    /// Decides, and on the path of the models also answers.
    ///
    /// # Errors
    /// [`Failure`] if the run must stop, or the models fail.
    async fn decide(
        &self,
        context: &DecisionContext,
        llm: Option<&dyn Llm>,
    ) -> Result<DecisionResult, Failure>;

    /// Returns the confidence that a learned answer needs to reply to this request, 0 to 1; `None`
    /// if it cannot reply.
    fn threshold(&self, _context: &DecisionContext) -> Option<f64> {
        None
    }

    /// Returns the settings, which the journal keeps.
    fn config(&self) -> Value;
}

/// Asks the models. The predicted success is at most `ceiling`.
///
/// # Errors
/// As [`DecisionStrategy::decide`].
pub async fn ask(
    context: &DecisionContext,
    llm: &dyn Llm,
    how: How,
    ceiling: f64,
) -> Result<DecisionResult, Failure> {
    let Some(reply) = llm.respond(&how).await? else {
        let none = DecisionResult::none(DecisionPath::Fallback, "llm_no_response");
        return Ok(none);
    };
    Ok(DecisionResult {
        path: DecisionPath::Llm,
        matched: context.candidates.first().map(|best| best.shown.id),
        predicted_success: reply.meta.c_final.min(ceiling),
        reason: None,
        reply: Some(Box::new(reply)),
    })
}
