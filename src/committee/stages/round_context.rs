//! The shared context of a run's rounds.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::prompts::{Rendered, set};
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::open_claims::Claim;
use crate::config::RoleModel;
use crate::domain::{Agent, AgentReport, Plan, Role};
use crate::journal::{AgentOutcome, RunContext, Trimmed};
use crate::llm::Image;

/// The output tokens that the keys, tags and punctuation of a report take beside its words.
const REPORT_KEYS_TOKENS: u32 = 250;

/// The context that all agents of a run share.
pub struct RoundContext<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
    pub plan: &'a Plan,
    pub trimmed: Trimmed,
    pub until: Instant,
}

/// The agents' outcomes and the contested claims before a later round.
pub(super) struct RoundInput<'a> {
    pub latest: &'a BTreeMap<Agent, AgentOutcome>,
    pub claims: &'a [Claim],
}

impl<'a> RoundInput<'a> {
    pub(super) fn report(&self, agent: Agent) -> Option<&'a AgentReport> {
        self.latest.get(&agent)?.report()
    }
}

impl RoundContext<'_> {
    /// Renders the prompt for an agent's report, which has this output limit in tokens.
    pub(super) fn prompt(
        &self,
        agent: Agent,
        model: &RoleModel,
        limit: u32,
    ) -> Result<Rendered, Failure> {
        let mut values = self
            .request
            .values(Some(self.plan.task_type.into_str()), &[]);
        set(
            &mut values,
            "max_words",
            json!(model.words_in(limit, REPORT_KEYS_TOKENS)),
        );
        set(&mut values, "images", json!(self.images(agent).len()));
        Ok(self
            .deps
            .prompts
            .render(model.prompts, agent.into_str(), values)?)
    }

    pub(super) fn images(&self, agent: Agent) -> &[Image] {
        if agent == Agent::Visual {
            &self.request.images
        } else {
            &[]
        }
    }

    /// Returns an agent's output tokens in a round in which it may use this share of its first
    /// limit.
    pub(super) fn may_write(&self, agent: Agent, share: f64) -> u32 {
        let role = Role::Agent(agent);
        let given = budget::given(&self.trimmed.max_tokens, role);
        let Some(model) = self.deps.role(role) else {
            return 0;
        };
        let given = given.unwrap_or(model.limit_in(self.request.question.mode));
        ((f64::from(given) * share) as u32).max(model.least_tokens().min(given))
    }
}
