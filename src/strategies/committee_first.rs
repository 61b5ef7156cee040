//! The strategies that always ask models: the whole committee, or the solver first and the rest only
//! if the solver's report is not clearly VALID.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::strategy::{DecisionContext, DecisionResult, DecisionStrategy, How, Llm, ask};
use crate::committee::Failure;
use crate::domain::{AskedFirst, DecisionPath};

pub struct CommitteeFirst {
    /// Whom the strategy asks first. A grave request always goes to the whole panel.
    pub first: AskedFirst,
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
        let Some(llm) = llm else {
            let none = DecisionResult::none(DecisionPath::Rejected, "llm_unavailable");
            return Ok(none);
        };
        let (first, why) = match self.first {
            AskedFirst::Panel => (self.first, "the strategy always asks the committee"),
            AskedFirst::Solver if context.is_grave() => (AskedFirst::Panel, "the request is grave"),
            AskedFirst::Solver => (self.first, "the solver is asked first"),
        };
        let how = How {
            shown: vec![],
            first,
            why,
        };
        ask(context, llm, how, self.llm_confidence_ceiling).await
    }

    fn config(&self) -> Value {
        let name = match self.first {
            AskedFirst::Panel => "committee_first",
            AskedFirst::Solver => "escalate",
        };
        json!({ "strategy": name, "llm_confidence_ceiling": self.llm_confidence_ceiling })
    }
}
