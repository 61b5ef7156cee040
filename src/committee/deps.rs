//! What a committee needs besides the question, and what follows from its policy alone.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::ChaCha12Rng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use secrecy::{ExposeSecret, SecretString};

use crate::attachments::Fetcher;
use crate::committee::call::prompts::Prompts;
use crate::committee::output_shapes::FinalSynthesis;
use crate::committee::schemas::schema_of;
use crate::config::{OutputForm, Policy, RoleModel};
use crate::domain::{AgentReport, CORE_AGENTS, Role};
use crate::journal::{RunContext, Stop};
use crate::llm::{Registry, RunSlots};

/// When a stage must be over, in percent of the run's deadline. Each stage leaves the later ones time
/// for a reply.
#[derive(Debug, Clone, Copy)]
pub(super) enum StageEnd {
    /// The call of a solver that is asked first.
    Solver = 35,
    Plan = 45,
    /// The cross-check of a solver that is asked first.
    SolverCheck = 50,
    /// Round 1, if a cross-check follows it.
    FirstRound = 65,
    /// All rounds, with the cross-check.
    Rounds = 75,
    Synthesis = 93,
    /// The call for the figures of an estimate, which follows the synthesis.
    Figures = 98,
}

/// The dependencies of a committee: models, prompts, policy. The question is not among them.
pub struct Deps {
    pub policy: Policy,
    pub roles: BTreeMap<Role, RoleModel>,
    /// The roles whose models may cross-check, in the order of the passes.
    pub checkers: Vec<Role>,
    pub models: Registry,
    pub prompts: Prompts,
    pub attachments: Fetcher,
    /// Secrets that must never appear in a reply.
    pub secrets: Vec<SecretString>,
}

impl Deps {
    pub fn role(&self, role: Role) -> Option<&RoleModel> {
        self.roles.get(&role)
    }

    pub(super) fn exposed_secrets(&self) -> Vec<&str> {
        let secrets = self.secrets.iter();
        secrets.map(ExposeSecret::expose_secret).collect()
    }

    /// Returns the run slots, which depend on the models that every run calls.
    pub fn run_slots(&self) -> RunSlots {
        let master = self.role(Role::Master).into_iter();
        let master = master.flat_map(RoleModel::with_fallbacks);
        let core = CORE_AGENTS.into_iter().map(Role::Agent);
        let core = core.filter_map(|role| self.role(role));
        self.models.run_slots(
            master.map(RoleModel::provider_and_model),
            core.map(RoleModel::provider_and_model),
        )
    }

    /// Returns when a stage must be over. The run's deadline counts from the run's start in this
    /// process.
    pub(super) fn stage_end(&self, run: &RunContext, end: StageEnd) -> tokio::time::Instant {
        let deadline = self.policy.deadline(run.accepted().question.mode);
        run.started() + deadline * end as u32 / 100
    }

    /// Renders a prompt off the async workers, unless it is short. The time of a prompt file of the
    /// operator is unknown.
    ///
    /// # Errors
    /// As [`RunContext::compute`].
    pub(super) async fn rendered<T>(
        &self,
        run: &RunContext,
        render: impl FnOnce() -> T + Send,
    ) -> Result<T, Stop> {
        if self.prompts.are_built_in {
            run.compute_text(render).await
        } else {
            run.compute(render).await
        }
    }

    /// Returns the bytes of a role's stable prompt, its schema included.
    pub(super) fn prompt_bytes(&self, role: Role) -> usize {
        let name = match role {
            Role::Master => "synthesis",
            Role::Agent(agent) => agent.into_str(),
            Role::Proposer => "propose",
        };
        let Some(model) = self.role(role) else {
            return 0;
        };
        let schema = match (model.output, role) {
            (OutputForm::Text, _) | (_, Role::Proposer) => 0,
            (OutputForm::Json, Role::Master) => schema_of::<FinalSynthesis>().bytes(),
            (OutputForm::Json, Role::Agent(_)) => schema_of::<AgentReport>().bytes(),
        };
        self.prompts.system_bytes(model.prompts, name) + schema
    }

    /// Returns the pause before attempt `tries + 1`: what the provider asked for, and an exponential
    /// backoff with jitter.
    pub(super) fn backoff(&self, tries: u32, least_ms: u64, seed: u64) -> Duration {
        let factor = 2u32.saturating_pow(tries.saturating_sub(1));
        let pause = self.policy.retry_base.saturating_mul(factor);
        let pause = pause.min(self.policy.retry_max);
        // Half is fixed, and half is jitter from the run's own seed, so that runs do not retry in
        // step.
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(u64::from(tries));
        // What the provider asks for comes on top, or all that it refused would return at once.
        Duration::from_millis(least_ms) + pause.mul_f64(random.random_range(0.5..1.0))
    }
}

/// Returns a random tag that occurs in none of the texts that it will fence.
pub(super) fn fence(seed: u64, texts: &[&str]) -> String {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    loop {
        let tag = format!("{:016x}", random.next_u64());
        if !texts.iter().any(|text| text.contains(&tag)) {
            return tag;
        }
    }
}
