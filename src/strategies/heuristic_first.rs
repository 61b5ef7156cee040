//! A learned answer if one fits and is trusted, else the committee.

use std::sync::LazyLock;

use async_trait::async_trait;
use rand::SeedableRng as _;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom as _;
use regex::Regex;
use serde_json::{Value, json};

use super::learning;
use super::strategy::{
    Candidate, DecisionContext, DecisionResult, DecisionStrategy, How, Llm, ask,
};
use crate::committee::Failure;
use crate::domain::{AskedFirst, DecisionPath, ShownAnswer};
use crate::text::{self, Word, pattern};

/// The longest request in bytes to which candidates are shown. They would take the money that a
/// longer one needs.
const MAX_REQUEST_BYTES: usize = 4000;

/// The bounds of the shifted threshold.
const THRESHOLD: (f64, f64) = (0.3, 0.95);

/// How much full urgency lowers the threshold.
const URGENT: f64 = 0.2;

pub struct HeuristicFirst {
    /// The least confidence of a learned answer that replies, 0 to 1.
    pub confidence_threshold: f64,
    /// The most candidates that a model is shown.
    pub max_candidates: usize,
    pub llm_confidence_ceiling: f64,
    /// Decides the order in which candidates are shown.
    pub seed: u64,
}

impl HeuristicFirst {
    /// Returns what a model is shown: the best candidates without their order, and without those
    /// whose confidence has fallen below that of a new answer.
    fn shown(&self, context: &DecisionContext) -> Vec<ShownAnswer> {
        if context.text.len() > MAX_REQUEST_BYTES {
            return vec![];
        }
        let best = context.candidates.iter();
        let best = best.filter(|candidate| candidate.confidence >= learning::START);
        let best = best.take(self.max_candidates);
        let mut shown: Vec<ShownAnswer> = best.map(|candidate| candidate.shown.clone()).collect();
        shown.shuffle(&mut ChaCha12Rng::seed_from_u64(self.seed));
        shown
    }
}

/// True if two questions have the same words with digits in the same order, such as figures and
/// versions. Minus and percent signs count. Where the words differ, so do the answers.
pub fn has_same_figures(known: &str, asked: &str) -> bool {
    static MINUS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(^|[^\w)\]])[-−–]([$€£¥]?)(\d)"));
    static PERCENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d)\s*[%％]"));
    let figures = |text: &str| -> Vec<Word> {
        let text = MINUS.replace_all(text, "${1}${2}m$3");
        let text = PERCENT.replace_all(&text, "${1}p");
        let words = text::words(&text).into_iter();
        words
            .filter(|word| word.contains(|c: char| c.is_numeric()))
            .collect()
    };
    figures(known) == figures(asked)
}

/// Says whether a candidate answers the request. Questions that are equal, with their spaces, need no
/// model. Of others a model judges, because similar questions can have opposite answers.
async fn fits(
    candidate: &Candidate,
    context: &DecisionContext,
    llm: Option<&dyn Llm>,
) -> Result<bool, Failure> {
    if candidate.is_same {
        return Ok(true);
    }
    if !has_same_figures(&candidate.condition, &context.text) {
        return Ok(false);
    }
    match llm {
        Some(llm) => Ok(llm.answers(candidate).await? == Some(true)),
        None => Ok(false),
    }
}

#[async_trait]
impl DecisionStrategy for HeuristicFirst {
    async fn decide(
        &self,
        context: &DecisionContext,
        llm: Option<&dyn Llm>,
    ) -> Result<DecisionResult, Failure> {
        let threshold = self.threshold(context);
        if let Some(best) = context.candidates.first()
            && threshold.is_some_and(|least| best.confidence >= least)
            && fits(best, context, llm).await?
        {
            return Ok(DecisionResult {
                path: DecisionPath::Heuristic,
                matched: Some(best.shown.id),
                predicted_success: best.confidence.min(self.llm_confidence_ceiling),
                reason: None,
                reply: None,
            });
        }
        let rejected = |reason| Ok(DecisionResult::none(DecisionPath::Rejected, reason));
        match llm {
            Some(llm) if context.is_immediate => {
                let how = How {
                    shown: self.shown(context),
                    first: AskedFirst::Panel,
                    why: match context.candidates.is_empty() {
                        _ if context.is_grave() => "the request is grave",
                        true => "no learned answer resembles the request",
                        false => "no learned answer fits and is trusted",
                    },
                };
                ask(context, llm, how, self.llm_confidence_ceiling).await
            }
            Some(_) => rejected("not_immediate"),
            None => rejected("llm_unavailable"),
        }
    }

    /// The configured confidence, shifted by the biases, lowered by urgency, clamped.
    fn threshold(&self, context: &DecisionContext) -> Option<f64> {
        let bias = context.personality_biases.get("confidence_threshold");
        let bias = bias.copied().unwrap_or(0.0);
        let urgency = context.salience.urgency.clamp(0.0, 1.0);
        let shifted = self.confidence_threshold + bias - urgency * URGENT;
        // 0.8 - 0.1 is 0.7, and not a little more.
        let shifted = (shifted * 1e9).round() / 1e9;
        (!context.is_grave()).then(|| shifted.clamp(THRESHOLD.0, THRESHOLD.1))
    }

    fn config(&self) -> Value {
        json!({
            "strategy": "heuristic_first",
            "confidence_threshold": self.confidence_threshold,
            "max_candidates": self.max_candidates,
            "llm_confidence_ceiling": self.llm_confidence_ceiling,
        })
    }
}
