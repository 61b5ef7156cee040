//! The committee: turns a question into a reply with a measured confidence.
//!
//! [`convene`] is a function over the run's journal. It calls its stages in the order of the files
//! named here. It may be called again with the same journal at any time: a settled call is recalled
//! from the journal, not made again.

mod request_context;
mod stages;
mod call;
mod money;
mod reply;

mod replayed;
mod track_record;
pub mod routines;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::ChaCha12Rng;
use rand::{RngExt as _, SeedableRng as _};
use secrecy::SecretString;

use crate::attachments::Fetcher;
use crate::config::{OutputForm, Policy, RoleModel};
use crate::domain::{Agent, Confidence, Gate, Reply, Role, Usd};
use crate::journal::step::{GateStep, HintsStep};
use crate::journal::{AgentOutcome, Cause, Event, Gated, RunContext, Stop};
use crate::llm::Registry;
use reply::render;
use request_context::RequestContext;
use stages::synthesis_input::SynthesisInput;
use stages::{confidence, finish, hints, plan, question, rounds, synthesize};

pub use call::prompts::{Error as PromptError, Prompts};
pub use call::single_call::{Consultation, consult};
pub use money::budget::text_bound;
pub use money::price::{Quote, context_needed, quote};
pub use replayed::{Replayed, Verdict, replay};
pub use reply::audit::view as audit_view;
pub use reply::audit_text::markdown as audit_markdown;
pub use reply::invariants;
pub use stages::plan::OrchestrationPlan;
pub use stages::resolve::Decisions;
pub use stages::synthesize::FinalSynthesis;
pub use stages::verdicts::CrossCheckReply;
pub use track_record::{Bin, Member, TrackRecord};

/// The dependencies of a committee: models, prompts, policy. The question is not among them.
pub struct Deps {
    pub policy: Policy,
    pub roles: BTreeMap<Role, RoleModel>,
    pub models: Registry,
    pub prompts: Prompts,
    pub attachments: Fetcher,
    /// Secrets that must never appear in a reply.
    pub secrets: Vec<SecretString>,
}

/// The reason why a run has no reply.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run cannot continue in this process. Its journal has no final event.
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error("{detail}")]
    Failed { cause: Cause, detail: String },
}

/// Answers the run's question.
///
/// # Errors
/// [`Failure`]. A failed agent is no error as long as one core agent has answered.
pub async fn convene(run: &RunContext, deps: &Deps) -> Result<Reply, Failure> {
    let request = request_context::open(run, deps).await?;
    let hints = hint(run, &request).await?;
    let planned = plan::make(run, deps, &request, &hints).await?;
    if let Some(question) = &planned.plan.clarification_question {
        run.record(Event::Synthesized(Box::new(question::of_plan(question))))
            .await?;
        let gated = gate(
            run,
            &request,
            Confidence::none(deps.policy.ask_user_threshold),
            Gate::Ask,
        )
        .await?;
        return finish::reply(run, deps, &request, None, &gated).await;
    }
    let deliberation = rounds::rounds(run, deps, &request, &planned.plan).await?;
    let input = SynthesisInput {
        run,
        deps,
        request: &request,
        plan: &planned.plan,
        deliberation: &deliberation,
    };
    let synthesized = if confidence::out_of_reach(&deps.policy, &deliberation.judgement) {
        question::ask_only(&input).await?
    } else {
        synthesize::write(&input).await?
    };
    let confidence = confidence::settle(
        &deps.policy,
        &deliberation.judgement,
        synthesized.draft.as_ref(),
    );
    let decision = confidence.gate();
    let gated = gate(run, &request, confidence, decision).await?;
    finish::reply(run, deps, &request, Some(&deliberation), &gated).await
}

async fn hint(
    run: &RunContext,
    request: &RequestContext,
) -> Result<crate::journal::Hinted, Failure> {
    let hints = crate::journal::Hinted {
        unseen: request.unseen.clone(),
        ..hints::hints_of(&request.question)
    };
    Ok(run.record_output(HintsStep, hints).await?)
}

async fn gate(
    run: &RunContext,
    request: &RequestContext,
    confidence: Confidence,
    gate: Gate,
) -> Result<Gated, Failure> {
    let gated = Gated {
        gate,
        confidence,
        mode: request.question.mode,
    };
    Ok(run.record_output(GateStep, gated).await?)
}

impl Deps {
    pub fn role(&self, role: Role) -> Option<&RoleModel> {
        self.roles.get(&role)
    }

    /// Returns when a stage must be over: at a share of the run's deadline, counted from the run's
    /// start in this process.
    fn stage_end(&self, run: &RunContext, share: f64) -> tokio::time::Instant {
        run.started()
            + self
                .policy
                .deadline(run.accepted().question.mode)
                .mul_f64(share)
    }

    /// Returns the bytes of a role's stable prompt, its schema included.
    fn prompt_bytes(&self, role: Role) -> usize {
        let name = match role {
            Role::Master => "synthesis",
            Role::Agent(agent) => agent.as_str(),
            Role::Proposer => "propose",
        };
        let Some(model) = self.role(role) else {
            return 0;
        };
        let schema = match (model.output, role) {
            (OutputForm::Text, _) | (_, Role::Proposer) => 0,
            (OutputForm::Json, Role::Master) => schemars::schema_for!(FinalSynthesis)
                .to_value()
                .to_string()
                .len(),
            (OutputForm::Json, Role::Agent(_)) => schemars::schema_for!(crate::domain::AgentReport)
                .to_value()
                .to_string()
                .len(),
        };
        self.prompts.system_bytes(model.prompts, name) + schema
    }

    /// Returns the pause before attempt `tries + 1`: exponential with jitter, and at least as long
    /// as the provider asked for.
    fn backoff(&self, tries: u32, least_ms: u64, seed: u64) -> Duration {
        let factor = 1u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let pause = self
            .policy
            .retry_base
            .saturating_mul(factor)
            .min(self.policy.retry_max);
        // Half is fixed, and half is jitter from the run's own seed, so that runs do not retry in
        // step.
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(u64::from(tries));
        pause
            .mul_f64(random.random_range(0.5..1.0))
            .max(Duration::from_millis(least_ms))
    }
}

impl Failure {
    fn internal(detail: &str) -> Self {
        Self::Failed {
            cause: Cause::Internal,
            detail: detail.to_owned(),
        }
    }

    fn master(stage: &str, unbought: &call::CallFailure) -> Self {
        let mut failure = Self::master_detail(stage, &unbought.cause, &unbought.detail);
        if let (Self::Failed { cause, .. }, true) = (&mut failure, unbought.by_deadline) {
            *cause = Cause::Deadline;
        }
        failure
    }

    fn master_detail(stage: &str, cause: &str, detail: &str) -> Self {
        let kind = if cause == "out of budget" {
            Cause::Budget
        } else {
            Cause::Provider
        };
        Self::Failed {
            cause: kind,
            detail: format!("the master gave no {stage}: {cause} ({detail})"),
        }
    }

    fn no_core_output(panel: &BTreeMap<Agent, AgentOutcome>) -> Self {
        let failed: Vec<(Agent, &str, bool)> = panel
            .iter()
            .filter_map(|(agent, outcome)| match outcome {
                AgentOutcome::Failed {
                    cause, by_deadline, ..
                } => Some((*agent, cause.as_str(), *by_deadline)),
                AgentOutcome::Answered { .. } => None,
            })
            .collect();
        let causes = panel.iter().filter_map(|(agent, outcome)| match outcome {
            AgentOutcome::Failed { cause, detail, .. } => {
                Some(format!("{agent}: {}", render::why(cause, detail)))
            }
            AgentOutcome::Answered { .. } => None,
        });
        let causes: Vec<String> = causes.collect();
        let detail = format!("no core agent gave any output ({})", causes.join(", "));
        let all =
            |is: &dyn Fn(&(Agent, &str, bool)) -> bool| !failed.is_empty() && failed.iter().all(is);
        let cause = if all(&|(_, cause, _)| *cause == call::OUT_OF_BUDGET) {
            Cause::Budget
        } else if all(&|(_, _, by_deadline)| *by_deadline) {
            Cause::Deadline
        } else {
            Cause::Provider
        };
        Self::Failed { cause, detail }
    }

    fn no_room(left: Usd) -> Self {
        let detail = format!("the cap has no room for one agent and the synthesis: {left} is left");
        Self::Failed {
            cause: Cause::Budget,
            detail,
        }
    }
}

impl From<PromptError> for Failure {
    fn from(error: PromptError) -> Self {
        Self::internal(&error.to_string())
    }
}
