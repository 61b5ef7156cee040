//! The solver first, and the rest of the committee only if the solver's report is not clearly VALID.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::strategy::{DecisionContext, DecisionResult, DecisionStrategy, How, Llm, ask};
use crate::committee::Failure;
use crate::domain::{AskedFirst, DecisionPath};

pub struct Escalate {
    /// The most that the predicted success of a model's answer can be, 0 to 1.
    pub llm_confidence_ceiling: f64,
}

#[async_trait]
impl DecisionStrategy for Escalate {
    async fn decide(
        &self,
        context: &DecisionContext,
        llm: Option<&dyn Llm>,
    ) -> Result<DecisionResult, Failure> {
        let Some(llm) = llm else {
            let none = DecisionResult::none(DecisionPath::Rejected, "llm_unavailable");
            return Ok(none);
        };
        let (first, why) = if context.is_grave() {
            (AskedFirst::Panel, "the request is grave")
        } else {
            (AskedFirst::Solver, "the solver is asked first")
        };
        let how = How {
            shown: vec![],
            first,
            why,
        };
        ask(context, llm, how, self.llm_confidence_ceiling).await
    }

    fn config(&self) -> Value {
        json!({ "strategy": "escalate", "llm_confidence_ceiling": self.llm_confidence_ceiling })
    }
}
