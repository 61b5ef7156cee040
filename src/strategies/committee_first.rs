//! The default strategy: always the committee.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::strategy::{DecisionContext, DecisionResult, DecisionStrategy, How, Llm, ask};
use crate::committee::Failure;
use crate::domain::DecisionPath;

pub struct CommitteeFirst {
    /// The most that the predicted success of a model's answer can be, 0 to 1.
    pub llm_confidence_ceiling: f64,
}

#[async_trait]
impl DecisionStrategy for CommitteeFirst {
    async fn decide(
        &self,
        context: &DecisionContext,
        llm: Option<&dyn Llm>,
    ) -> Result<DecisionResult, Failure> {
        match llm {
            Some(llm) => {
                let how = How {
                    why: "the strategy always asks the committee",
                    ..How::default()
                };
                ask(context, llm, how, self.llm_confidence_ceiling).await
            }
            None => Ok(DecisionResult::none(
                DecisionPath::Rejected,
                "llm_unavailable",
            )),
        }
    }

    fn config(&self) -> Value {
        json!({ "strategy": "committee_first", "llm_confidence_ceiling": self.llm_confidence_ceiling })
    }
}
