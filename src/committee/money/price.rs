//! Quotes a question before any call, with the same bounds that reserve the calls.

use serde::Serialize;

use crate::committee::deps::Deps;
use crate::committee::money::budget::{
    self, Fitted, InputBound, ModelText, PLAN_TOKENS, SCAFFOLDING_TOKENS, Wanted, WantedCheck,
};
use crate::committee::money::check_cost;
use crate::committee::money::trim::wanted;
use crate::domain::{Agent, CORE_AGENTS, Question, Role, Usd};
use crate::journal::CheckSize;

/// The average output of a call, as a share of its limit.
const USUAL_SHARE: f64 = 0.19;

/// The average price of a cross-check as a share of its upper bound.
const USUAL_CHECK: f64 = 0.27;

/// The average input of a request as a share of its upper bound: for the service's own prompts, and
/// for what users and models write.
const USUAL_INPUT: f64 = 0.3;
const USUAL_READ: f64 = 0.23;

/// The price of a question. If the cap has no room for it, such a run is refused: `calls` is 0, and
/// both prices are what one agent and the synthesis need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quote {
    pub cap: Usd,
    /// Plan, core agents in one round, cross-check, and synthesis, at usual lengths; at most the
    /// cap.
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
    let prices = Prices {
        deps,
        question,
        read: budget::text_bound(&question.message),
    };
    let Some((fitted, plans)) = prices.fitted(cap) else {
        let needed = prices.least();
        return Quote {
            cap,
            expected: needed,
            worst: needed,
            calls: 0,
        };
    };
    let check = fitted.trimmed.cross_check;
    let checks = check.map_or(0, |size| usize::from(size.passes));
    Quote {
        cap,
        expected: prices.expected().min(cap),
        worst: prices.worst().min(cap),
        calls: plans + fitted.trimmed.agents.len() + checks + 1,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Usual,
    Full,
}

/// The prices of the calls that a question can need.
struct Prices<'a> {
    deps: &'a Deps,
    question: &'a Question,
    /// The most tokens of the question.
    read: u64,
}

impl Prices<'_> {
    /// Returns the core agents that fit under the cap, computed as a run does, and the number of
    /// plans. Without room for a plan, the hints decide.
    fn fitted(&self, cap: Usd) -> Option<(Fitted, usize)> {
        let wanted = |role: Role| wanted(self.deps, role, self.question.mode, self.read, 0);
        let core: Vec<Wanted<'_>> = CORE_AGENTS
            .iter()
            .filter_map(|agent| wanted(Role::Agent(*agent)))
            .collect();
        let master = wanted(Role::Master)?;
        let cost = |max_tokens: &[(Role, u32)], size: CheckSize| self.check(max_tokens, size);
        let check = check_cost::wanted(self.deps, self.question.mode, &cost);
        let fit = |left: Usd| budget::fit(&core, &master, &check, left);
        // A plan is made if it fits beside what one agent and the synthesis need.
        let solver = wanted(Role::Agent(Agent::Solver))?;
        let alone = budget::fit(
            std::slice::from_ref(&solver),
            &master,
            &WantedCheck::none(),
            cap,
        )?;
        let kept = alone.held.max(budget::least(&solver, &master));
        let planned = self.plan(Length::Full) + kept <= cap;
        let planned = planned.then(|| fit(cap - self.plan(Length::Usual)));
        let planned = planned.flatten().map(|fitted| (fitted, 1));
        planned.or_else(|| Some((fit(cap)?, 0)))
    }

    /// Returns what one agent and the synthesis need at least.
    fn least(&self) -> Usd {
        let wanted = |role: Role| wanted(self.deps, role, self.question.mode, self.read, 0);
        match (wanted(Role::Agent(Agent::Solver)), wanted(Role::Master)) {
            (Some(solver), Some(master)) => budget::least(&solver, &master),
            _ => Usd::ZERO,
        }
    }

    /// Prices the core panel, also where the cap allows less, so that a longer question never
    /// seems cheaper.
    fn expected(&self) -> Usd {
        let max_tokens: Vec<(Role, u32)> = CORE_AGENTS
            .iter()
            .filter_map(|agent| Some((Role::Agent(*agent), self.limit(Role::Agent(*agent))?)))
            .collect();
        let size = check_cost::sizes(self.deps, self.question.mode);
        let check = size.first().map(|size| self.check(&max_tokens, *size));
        let check = check.unwrap_or(Usd::ZERO).nanos() as f64;
        self.plan(Length::Usual)
            + self.reports(&CORE_AGENTS, Length::Usual)
            + Usd::from_nanos((check * USUAL_CHECK) as u64)
            + self.synthesis(&CORE_AGENTS, Length::Usual)
    }

    /// Prices a run of every agent that may run. In a later round an agent decides on its claims or
    /// reports again. A new report costs more.
    fn worst(&self) -> Usd {
        let agents: Vec<Agent> = Agent::ALL
            .into_iter()
            .filter(|agent| !self.deps.policy.disabled_agents.contains(agent))
            .filter(|agent| *agent != Agent::Visual || self.question.has_image())
            .collect();
        let max_tokens: Vec<(Role, u32)> = agents
            .iter()
            .map(|agent| Role::Agent(*agent))
            .filter_map(|role| Some((role, self.limit(role)?)))
            .collect();
        let sizes = check_cost::sizes(self.deps, self.question.mode);
        let check = sizes.first().map(|size| self.check(&max_tokens, *size));
        let round = self.reports(&agents, Length::Full);
        let rounds = (0..self.question.mode.max_rounds().max(1)).map(|_| round);
        self.plan(Length::Full)
            + rounds.sum::<Usd>()
            + check.unwrap_or(Usd::ZERO)
            + self.synthesis(&agents, Length::Full)
    }

    fn plan(&self, length: Length) -> Usd {
        self.call(Role::Master, 0, Some(PLAN_TOKENS), length)
    }

    fn reports(&self, agents: &[Agent], length: Length) -> Usd {
        let report = |agent: &Agent| self.call(Role::Agent(*agent), 0, None, length);
        agents.iter().map(report).sum()
    }

    fn synthesis(&self, agents: &[Agent], length: Length) -> Usd {
        let limits = agents
            .iter()
            .filter_map(|agent| self.limit(Role::Agent(*agent)));
        let written = limits.map(u64::from).sum();
        self.call(Role::Master, written, None, length)
    }

    fn check(&self, max_tokens: &[(Role, u32)], size: CheckSize) -> Usd {
        let reports: Vec<u64> = check_cost::report_tokens(max_tokens).collect();
        check_cost::worst_case(self.deps, self.read, &reports, size)
    }

    /// Returns the output limit of a role in the mode of the question.
    fn limit(&self, role: Role) -> Option<u32> {
        let model = self.deps.role(role)?;
        Some(model.limit_in(self.question.mode))
    }

    /// Prices one call that reads `written` tokens of other models. `most` bounds its output.
    fn call(&self, role: Role, written: u64, most: Option<u32>, length: Length) -> Usd {
        let Some(model) = self.deps.role(role) else {
            return Usd::ZERO;
        };
        let images = if role == Role::Agent(Agent::Visual) {
            self.question.attachments.len()
        } else {
            0
        };
        let mut input = InputBound::new(
            self.deps.prompt_bytes(role),
            self.read + SCAFFOLDING_TOKENS,
            &[ModelText::planned(written)],
            images,
        );
        let mut output = most.map_or(model.limit_in(self.question.mode), |visible| {
            model.limit_for(visible)
        });
        if length == Length::Usual {
            output = output.min(model.max_tokens);
            input.stable = (input.stable as f64 * USUAL_INPUT) as u64;
            input.volatile = (input.volatile as f64 * USUAL_READ) as u64;
            output = (f64::from(output) * USUAL_SHARE) as u32;
        }
        budget::worst_cost(model, input, output)
    }
}
