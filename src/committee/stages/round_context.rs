//! The shared context of a run's rounds.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::prompts::Rendered;
use crate::committee::deps::{Deps, StageEnd};
use crate::committee::failure::Failure;
use crate::committee::money::{budget, check_cost};
use crate::committee::request_context::{RequestContext, Stage};
use crate::committee::stages::open_claims::ContestedClaim;
use crate::config::RoleModel;
use crate::domain::{Agent, Plan, Role};
use crate::journal::{AgentOutcome, Event, RoundStarted, RunContext, Trimmed};
use crate::llm::Image;

/// The output tokens that the keys, tags and punctuation of a report take beside its words.
const REPORT_KEYS_TOKENS: u32 = 250;

/// The context that all agents of a run share.
pub struct RoundContext<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
    pub plan: &'a Plan,
    /// The plan as far as the cap pays for it.
    pub trimmed: Trimmed,
    /// The end of the last round.
    pub until: Instant,
}

/// The agents' outcomes and the contested claims before a later round.
pub(super) struct RoundInput<'a> {
    /// The outcome of each agent's last round.
    pub latest: &'a BTreeMap<Agent, AgentOutcome>,
    pub claims: &'a [ContestedClaim],
}

impl<'a> RoundContext<'a> {
    pub(super) fn new(stage: Stage<'a>, plan: &'a Plan, trimmed: Trimmed) -> Self {
        let Stage { run, deps, request } = stage;
        Self {
            run,
            deps,
            request,
            plan,
            trimmed,
            until: deps.stage_end(run, StageEnd::Rounds),
        }
    }

    pub(super) fn stage(&self) -> Stage<'a> {
        Stage::new(self.run, self.deps, self.request)
    }

    /// Records that a round begins with these agents.
    pub(super) fn start(&self, round: u8, agents: Vec<Agent>, why: String) -> Result<(), Failure> {
        let started = RoundStarted {
            round,
            agents,
            why,
            ahead: false,
        };
        self.run.record(Event::RoundStarted(started))?;
        Ok(())
    }

    /// Returns when the first round must be over. A cross-check that does not fit under the
    /// cap yet may follow: calls may cost less than they were reserved for.
    pub(super) fn first_end(&self) -> Instant {
        let mode = self.request.question.mode;
        if check_cost::sizes(self.deps, mode).is_empty() {
            self.until
        } else {
            self.deps.stage_end(self.run, StageEnd::FirstRound)
        }
    }

    /// Renders the prompt for an agent's report, which has this output limit in tokens.
    pub(super) fn prompt(
        &self,
        agent: Agent,
        model: &RoleModel,
        limit: u32,
    ) -> Result<Rendered, Failure> {
        let max_words = model.words_in(limit, REPORT_KEYS_TOKENS);
        let own = json!({ "max_words": max_words, "images": self.images(agent).len() });
        let values = self.request.values(own);
        let prompts = &self.deps.prompts;
        Ok(prompts.render(model.prompts, agent.into_str(), values)?)
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
