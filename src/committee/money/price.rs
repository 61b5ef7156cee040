//! Quotes a question before any call, with the same bounds that reserve the calls.

use serde::Serialize;

use crate::committee::deps::Deps;
use crate::committee::money::budget::{
    self, InputBound, ModelText, PLAN_TOKENS, SCAFFOLDING_TOKENS,
};
use crate::committee::money::check_cost;
use crate::committee::money::fitting::{Bounds, Fitting, plan_input};
use crate::committee::request_context::PLANNED_CHARS;
use crate::config::RoleModel;
use crate::domain::{Agent, CORE_AGENTS, Question, Role, Usd};
use crate::journal::CheckSize;

/// The average output of a call, as a share of its limit.
const USUAL_SHARE: f64 = 0.19;

/// The average price of a cross-check as a share of its upper bound.
const USUAL_CHECK: f64 = 0.27;

/// The average input of a request as a share of its upper bound: for the service's own prompts, and
/// for what users and models write.
const USUAL_INPUT: f64 = 0.3;
const USUAL_READ: f64 = 0.21;

/// The step between the lengths at which questions are priced.
const STEP_CHARS: usize = 1000;

/// The price of a request. If it does not fit under the cap, such a run is refused: `calls` is 0, and
/// both prices are what it needs at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quote {
    pub cap: Usd,
    /// The expected calls at usual lengths; at most the caps of the runs. Of a question these are
    /// plan, core agents in one round, cross-check, and synthesis.
    pub expected: Usd,
    /// All calls that may be made, at full length; at most the caps of the runs.
    pub worst: Usd,
    /// The number of calls of the expected run.
    pub calls: usize,
}

impl Quote {
    /// Returns why the request would be refused; `None` if it would not.
    pub fn refusal(&self) -> Option<String> {
        let (cap, needed) = (self.cap, self.expected);
        (self.calls == 0)
            .then(|| format!("the cap of {cap} is too low: at least {needed} is needed"))
    }
}

/// Average bytes per token of the service's own prompts.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens of a usual question.
const USUAL_QUESTION: u64 = 2000;

/// Returns the context tokens of the largest call of a usual run: the synthesis, which reads what
/// all agents wrote.
pub fn context_needed(deps: &Deps) -> u64 {
    let limit = |role| {
        deps.role(role)
            .map_or(0, |model| u64::from(model.max_tokens))
    };
    let read: u64 = Agent::ALL.iter().map(|it| limit(Role::Agent(*it))).sum();
    let prompt = (deps.prompt_bytes(Role::Master) / BYTES_PER_TOKEN) as u64;
    prompt + USUAL_QUESTION + read + limit(Role::Master)
}

/// Quotes a question.
pub fn quote(deps: &Deps, question: &Question) -> Quote {
    let cap = deps.policy.cap(question.mode);
    let bounds = Bounds {
        deps,
        mode: question.mode,
        read: budget::text_bound(&question.message),
        learned: 0,
        images: 0,
    };
    let prices = Prices { bounds, question };
    let Some(made) = prices.calls(cap) else {
        let alone = Fitting::new(bounds, &[Agent::Solver], vec![]);
        let needed = alone.map_or(Usd::ZERO, |alone| alone.least());
        return Quote {
            cap,
            expected: needed,
            worst: needed,
            calls: 0,
        };
    };
    Quote {
        cap,
        expected: prices.expected(cap, &made).min(cap),
        worst: prices.worst().min(cap),
        calls: made.number(),
    }
}

/// How long the input and the output of a call are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The shortest output that a call is made for.
    Least,
    /// The average.
    Usual,
    /// The upper bounds.
    Full,
}

/// The calls of an expected run.
struct Calls {
    is_planned: bool,
    agents: Vec<Agent>,
    check: Option<CheckSize>,
}

impl Calls {
    fn number(&self) -> usize {
        let checks = self.check.map_or(0, |size| usize::from(size.passes));
        usize::from(self.is_planned) + self.agents.len() + checks + 1
    }
}

/// The prices of the calls that a question can need.
struct Prices<'a> {
    bounds: Bounds<'a>,
    question: &'a Question,
}

impl Prices<'_> {
    /// Returns the calls of the expected run; `None` if none fits under the cap. If the plan does
    /// not fit, the hints decide. Agents that do not fit at first are called after the others,
    /// which then cost as much as usual.
    fn calls(&self, cap: Usd) -> Option<Calls> {
        let room = Fitting::new(self.bounds, &[Agent::Solver], vec![])?.synthesis_reserve(cap)?;
        let is_planned = self.plan(Length::Least) + room <= cap;
        let mut made = Calls {
            is_planned,
            agents: vec![],
            check: None,
        };
        let mut open = CORE_AGENTS.to_vec();
        open.retain(|agent| self.limit(*agent).is_some());
        loop {
            let left = cap - self.planned(&made) - self.reports(&made.agents, Length::Usual);
            let usual = |limit: u32| (f64::from(limit) * USUAL_SHARE) as u64;
            let limits = made.agents.iter().filter_map(|agent| self.limit(*agent));
            let fitting = Fitting::new(self.bounds, &open, limits.map(usual).collect())?;
            let Some(fitted) = fitting.fit(u8::MAX, left) else {
                return (!made.agents.is_empty()).then_some(made);
            };
            let agents = fitted.trimmed.agents;
            open.retain(|agent| !agents.contains(agent));
            made.agents.extend(&agents);
            if agents.is_empty() || open.is_empty() {
                made.check = fitted.trimmed.cross_check;
                return Some(made);
            }
        }
    }

    /// Prices the expected run. A longer question may save calls, for example that of the plan. So
    /// that it never seems cheaper, each question is quoted at the lowest price of the lengths above
    /// it, in steps of [`STEP_CHARS`].
    fn expected(&self, cap: Usd, made: &Calls) -> Usd {
        let step = (STEP_CHARS * self.bytes_per_char()) as u64;
        let last = (self.bounds.deps.policy.limits.message_chars / STEP_CHARS) as u64;
        let longer = (self.bounds.read.div_ceil(step)..=last).map(|steps| Prices {
            bounds: Bounds {
                read: steps * step,
                ..self.bounds
            },
            ..*self
        });
        let prices = longer.map_while(|at| at.calls(cap).map(|calls| at.price(&calls)));
        prices.min().unwrap_or_else(|| self.price(made))
    }

    /// Prices these calls at usual lengths.
    fn price(&self, calls: &Calls) -> Usd {
        let check = calls.check.map(|size| self.check(&calls.agents, size));
        let check = check.unwrap_or(Usd::ZERO).nanos() as f64;
        self.planned(calls)
            + self.reports(&calls.agents, Length::Usual)
            + Usd::from_nanos((check * USUAL_CHECK) as u64)
            + self.synthesis(&calls.agents, Length::Usual)
    }

    /// Prices a run of every agent that may run. In a later round an agent decides on its claims or
    /// reports again. A new report costs more.
    fn worst(&self) -> Usd {
        let deps = self.bounds.deps;
        let mut agents = Agent::ALL.to_vec();
        agents.retain(|agent| {
            !deps.policy.disabled_agents.contains(agent)
                && (*agent != Agent::Visual || self.question.has_image())
        });
        let sizes = check_cost::sizes(deps, self.question.mode);
        let check = sizes.first().map(|size| self.check(&agents, *size));
        let round = self.reports(&agents, Length::Full);
        let rounds = (0..self.question.mode.max_rounds().max(1)).map(|_| round);
        self.plan(Length::Full)
            + rounds.sum::<Usd>()
            + check.unwrap_or(Usd::ZERO)
            + self.synthesis(&agents, Length::Full)
    }

    /// Returns the bytes of a character of the question, rounded up.
    fn bytes_per_char(&self) -> usize {
        let message = &self.question.message;
        message.len().div_ceil(message.chars().count().max(1))
    }

    /// Prices the plan, which reads a part of a long question.
    fn plan(&self, length: Length) -> Usd {
        let Some(model) = self.bounds.deps.role(Role::Master) else {
            return Usd::ZERO;
        };
        let most = (PLANNED_CHARS * self.bytes_per_char()) as u64;
        let input = plan_input(self.bounds.deps, model, self.bounds.read.min(most));
        priced(model, input, model.limit_for(PLAN_TOKENS), length)
    }

    /// Prices the plan at its usual length, if these calls have one.
    fn planned(&self, calls: &Calls) -> Usd {
        if calls.is_planned {
            self.plan(Length::Usual)
        } else {
            Usd::ZERO
        }
    }

    fn reports(&self, agents: &[Agent], length: Length) -> Usd {
        let report = |agent: &Agent| self.call(Role::Agent(*agent), 0, length);
        agents.iter().map(report).sum()
    }

    fn synthesis(&self, agents: &[Agent], length: Length) -> Usd {
        self.call(Role::Master, self.limits(agents).iter().sum(), length)
    }

    fn check(&self, agents: &[Agent], size: CheckSize) -> Usd {
        self.bounds.check_cost(&self.limits(agents), size)
    }

    /// Returns the output limit of an agent in the mode of the question.
    fn limit(&self, agent: Agent) -> Option<u32> {
        let model = self.bounds.deps.role(Role::Agent(agent))?;
        Some(model.limit_in(self.question.mode))
    }

    fn limits(&self, agents: &[Agent]) -> Vec<u64> {
        let limit = |agent: &Agent| {
            let model = self.bounds.deps.role(Role::Agent(*agent))?;
            Some(model.report_tokens(self.limit(*agent)?))
        };
        agents.iter().filter_map(limit).collect()
    }

    /// Prices one call that reads `written` tokens of other models.
    fn call(&self, role: Role, written: u64, length: Length) -> Usd {
        let Bounds { deps, read, .. } = self.bounds;
        let Some(model) = deps.role(role) else {
            return Usd::ZERO;
        };
        let images = if role == Role::Agent(Agent::Visual) {
            self.question.attachments.len()
        } else {
            0
        };
        let texts = [ModelText::planned(written)];
        let trusted = deps.prompt_bytes(role);
        let input = InputBound::new(trusted, read + SCAFFOLDING_TOKENS, &texts, images);
        priced(model, input, model.limit_in(self.question.mode), length)
    }
}

/// Returns the price of a call with these bounds.
pub(in crate::committee) fn priced(
    model: &RoleModel,
    mut input: InputBound,
    limit: u32,
    length: Length,
) -> Usd {
    let output = match length {
        Length::Least => limit.min(model.least_tokens()),
        Length::Usual => {
            input.stable = (input.stable as f64 * USUAL_INPUT) as u64;
            input.volatile = (input.volatile as f64 * USUAL_READ) as u64;
            (f64::from(limit.min(model.max_tokens)) * USUAL_SHARE) as u32
        }
        Length::Full => limit,
    };
    budget::worst_cost(model, input, output)
}
