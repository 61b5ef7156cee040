//! Quotes a question before any call, with the same bounds that reserve the calls.

use serde::Serialize;

use crate::committee::deps::Deps;
use crate::committee::money::budget::{
    self, InputBound, ModelText, PLAN_TOKENS, SCAFFOLDING_TOKENS, Wanted,
};
use crate::committee::money::check_cost;
use crate::committee::money::trim::FINDINGS_TOKENS;
use crate::domain::{Agent, CORE_AGENTS, Question, Role, Usd};
use crate::journal::CheckSize;

/// The average output of a call, as a share of its limit.
const USUAL_SHARE: f64 = 0.45;

/// The average input of a request as a share of its upper bound: for the service's own prompts, and
/// for what users and models write.
const USUAL_INPUT: f64 = 0.6;
const USUAL_READ: f64 = 0.35;

/// The price of a question. If the cap has no room for it, everything but the cap is 0, because
/// such a run is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quote {
    pub cap: Usd,
    /// Plan, core agents in one round, cross-check, and synthesis, at usual lengths.
    pub expected: Usd,
    /// Every agent that may run, in every round that the mode allows, at full length; at most the
    /// cap.
    pub worst: Usd,
    /// The number of calls of the expected run.
    pub calls: usize,
}

/// Average bytes per token of the service's own prompts.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens of a usual question.
const USUAL_QUESTION: u64 = 2000;

/// Returns the context tokens of the largest call of a usual run: the synthesis, which reads what
/// all agents wrote.
pub fn context_needed(deps: &Deps) -> u64 {
    let agents = Agent::ALL
        .into_iter()
        .filter_map(|agent| deps.role(Role::Agent(agent)));
    let read: u64 = agents.map(|model| u64::from(model.max_tokens)).sum();
    let prompt = (deps.prompt_bytes(Role::Master) / BYTES_PER_TOKEN) as u64;
    let written = deps
        .role(Role::Master)
        .map_or(0, |model| u64::from(model.max_tokens));
    prompt + USUAL_QUESTION + read + written
}

/// Quotes a question.
pub fn quote(deps: &Deps, question: &Question) -> Quote {
    let cap = deps.policy.cap(question.mode);
    let read = budget::text_bound(&question.message) + SCAFFOLDING_TOKENS;
    let agents: Vec<Agent> = Agent::ALL
        .into_iter()
        .filter(|agent| {
            deps.role(Role::Agent(*agent)).is_some() && !deps.policy.disabled_agents.contains(agent)
        })
        .filter(|agent| *agent != Agent::Visual || question.has_image())
        .collect();
    let call = |role: Role, written: u64, most: Option<u32>, usual: bool| -> Usd {
        let Some(model) = deps.role(role) else {
            return Usd::ZERO;
        };
        let images = if role == Role::Agent(Agent::Visual) {
            question.attachments.len()
        } else {
            0
        };
        let mut input = InputBound::new(
            deps.prompt_bytes(role),
            read,
            &[ModelText::planned(written)],
            images,
        );
        let mut output = most.map_or(model.max_tokens, |visible| model.limit_for(visible));
        if usual {
            input.stable = (input.stable as f64 * USUAL_INPUT) as u64;
            input.volatile = (input.volatile as f64 * USUAL_READ) as u64;
            output = (f64::from(output) * USUAL_SHARE) as u32;
        }
        budget::worst_case(model, input, output).map_or(Usd::ZERO, |reservation| reservation.amount)
    };
    let written = |agents: &[Agent]| -> u64 {
        agents
            .iter()
            .filter_map(|a| deps.role(Role::Agent(*a)))
            .map(|model| u64::from(model.max_tokens))
            .sum()
    };
    // The core agents that fit under the cap, computed as a run does.
    let wanted = |role: Role| {
        let findings = if role == Role::Master {
            FINDINGS_TOKENS
        } else {
            0
        };
        let model = deps.role(role)?;
        Some(Wanted {
            role,
            model,
            input: InputBound::new(deps.prompt_bytes(role), read + findings, &[], 0),
        })
    };
    let core: Vec<Wanted<'_>> = CORE_AGENTS
        .iter()
        .filter_map(|agent| wanted(Role::Agent(*agent)))
        .collect();
    let left = cap - call(Role::Master, 0, Some(PLAN_TOKENS), false);
    let cost = |max_tokens: &[(Role, u32)], size: CheckSize| {
        let written = max_tokens.iter().filter(|(role, _)| *role != Role::Master);
        let reports: Vec<u64> = written.map(|(_, tokens)| u64::from(*tokens)).collect();
        check_cost::worst_case(deps, budget::text_bound(&question.message), &reports, size)
    };
    let check = check_cost::wanted(deps, question.mode, &cost);
    let fit = |left: Usd| budget::fit(&core, &wanted(Role::Master)?, &check, left);
    // Without room for a plan, the hints decide.
    let (fitted, plans) = match fit(left) {
        Some(fitted) => (Some(fitted), 1),
        None => (fit(cap), 0),
    };
    let Some(fitted) = fitted else {
        // Such a run is refused and costs nothing.
        return Quote {
            cap,
            expected: Usd::ZERO,
            worst: Usd::ZERO,
            calls: 0,
        };
    };
    let panel = fitted.trimmed.agents;
    let checks = fitted
        .trimmed
        .cross_check
        .map_or(0, |size| usize::from(size.passes));
    let expected: Usd = call(Role::Master, 0, Some(PLAN_TOKENS), true)
        + panel
            .iter()
            .map(|agent| call(Role::Agent(*agent), 0, None, true))
            .sum()
        + Usd::from_nanos((fitted.check.nanos() as f64 * USUAL_SHARE) as u64)
        + call(Role::Master, written(&panel), None, true);
    let rounds = u64::from(question.mode.max_rounds());
    let everybody = written(&agents);
    let first: Usd = agents
        .iter()
        .map(|agent| call(Role::Agent(*agent), 0, None, false))
        .sum();
    let all: Vec<(Role, u32)> = agents
        .iter()
        .filter_map(|agent| {
            Some((
                Role::Agent(*agent),
                deps.role(Role::Agent(*agent))?.max_tokens,
            ))
        })
        .collect();
    let checked = check_cost::sizes(deps, question.mode)
        .first()
        .map_or(Usd::ZERO, |size| cost(&all, *size));
    // In a later round an agent decides on its claims or reports again. A new report costs more.
    let mut worst = call(Role::Master, 0, Some(PLAN_TOKENS), false) + first + checked;
    worst += call(Role::Master, everybody, None, false);
    worst += (1..rounds).map(|_| first).sum::<Usd>();
    Quote {
        cap,
        expected: expected.min(cap),
        worst: worst.min(cap),
        calls: plans + panel.len() + checks + 1,
    }
}
