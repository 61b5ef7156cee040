//! Quotes a question before any call, with the same bounds that reserve the calls.

use serde::Serialize;

use crate::committee::deps::Deps;
use crate::committee::money::budget::{
    self, Fitted, InputBound, ModelText, PLAN_TOKENS, SCAFFOLDING_TOKENS, Wanted, WantedCheck,
};
use crate::committee::money::check_cost;
use crate::committee::money::trim::wanted;
use crate::committee::output_shapes::OrchestrationPlan;
use crate::committee::request_context::PLANNED_CHARS;
use crate::committee::schemas::schema_of;
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

/// The price of a request. If the cap has no room for it, such a run is refused: `calls` is 0, and
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
    pub fn no_room(&self) -> Option<String> {
        let (cap, needed) = (self.cap, self.expected);
        (self.calls == 0).then(|| {
            format!("the cap of {cap} has no room for this, which needs {needed} at least: it would be refused")
        })
    }
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
    let Some(made) = prices.calls(cap) else {
        let needed = prices.least();
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
    deps: &'a Deps,
    question: &'a Question,
    /// The most tokens of the question.
    read: u64,
}

impl Prices<'_> {
    /// Returns the calls of the expected run; `None` if the cap has no room for one. Without room
    /// for a plan, the hints decide. Agents that do not fit at first are called after the others,
    /// which then cost as much as usual.
    fn calls(&self, cap: Usd) -> Option<Calls> {
        let is_planned = self.is_planned(cap)?;
        let plan = if is_planned {
            self.plan(Length::Usual)
        } else {
            Usd::ZERO
        };
        let mut open: Vec<Wanted<'_>> = CORE_AGENTS
            .iter()
            .filter_map(|agent| self.wanted(Role::Agent(*agent)))
            .collect();
        let mut called: Vec<Agent> = vec![];
        loop {
            let left = cap - plan - self.reports(&called, Length::Usual);
            let fitted = self.fit(&open, &called, left);
            let Some(Fitted { trimmed, .. }) = fitted else {
                return (!called.is_empty()).then_some(Calls {
                    is_planned,
                    agents: called,
                    check: None,
                });
            };
            called.extend(&trimmed.agents);
            open.retain(|wanted| {
                !trimmed
                    .agents
                    .iter()
                    .any(|a| wanted.role == Role::Agent(*a))
            });
            if trimmed.agents.is_empty() || open.is_empty() {
                return Some(Calls {
                    is_planned,
                    agents: called,
                    check: trimmed.cross_check,
                });
            }
        }
    }

    /// True if a plan fits beside what one agent and the synthesis need. `None` if those do not
    /// fit.
    fn is_planned(&self, cap: Usd) -> Option<bool> {
        let (solver, master) = (
            self.wanted(Role::Agent(Agent::Solver))?,
            self.wanted(Role::Master)?,
        );
        let alone = budget::fit(
            std::slice::from_ref(&solver),
            &master,
            &WantedCheck::none(),
            cap,
        )?;
        let kept = alone.held.max(budget::least(&solver, &master));
        Some(self.plan(Length::Least) + kept <= cap)
    }

    fn wanted(&self, role: Role) -> Option<Wanted<'_>> {
        wanted(self.deps, role, self.question.mode, self.read, 0)
    }

    /// Fits agents beside those that have answered.
    fn fit(&self, open: &[Wanted<'_>], called: &[Agent], left: Usd) -> Option<Fitted> {
        let mut master = wanted(self.deps, Role::Master, self.question.mode, self.read, 0)?;
        let usual = |agent: &Agent| {
            let limit = self.limit(Role::Agent(*agent)).unwrap_or_default();
            (f64::from(limit) * USUAL_SHARE) as u64
        };
        let written: Vec<u64> = called.iter().map(usual).collect();
        let texts: Vec<ModelText> = written.iter().copied().map(ModelText::planned).collect();
        master.input.volatile += InputBound::new(0, 0, &texts, 0).volatile;
        let cost = |max_tokens: &[(Role, u32)], size: CheckSize| {
            let reports = check_cost::report_tokens(max_tokens).chain(written.iter().copied());
            let reports: Vec<u64> = reports.collect();
            check_cost::worst_case(self.deps, self.read, &reports, size)
        };
        let check = check_cost::wanted(self.deps, self.question.mode, &cost);
        budget::fit(open, &master, &check, left)
    }

    /// Returns what one agent and the synthesis need at least.
    fn least(&self) -> Usd {
        match (
            self.wanted(Role::Agent(Agent::Solver)),
            self.wanted(Role::Master),
        ) {
            (Some(solver), Some(master)) => budget::least(&solver, &master),
            _ => Usd::ZERO,
        }
    }

    /// Prices the expected run. A longer question may save calls, for example that of the plan. So
    /// that it never seems cheaper, each question is quoted at the lowest price of the lengths above
    /// it, in steps of [`STEP_CHARS`].
    fn expected(&self, cap: Usd, made: &Calls) -> Usd {
        let step = (STEP_CHARS * self.bytes_per_char()) as u64;
        let last = (self.deps.policy.limits.message_chars / STEP_CHARS) as u64;
        let longer = (self.read.div_ceil(step)..=last).map(|steps| Prices {
            read: steps * step,
            ..*self
        });
        let prices = longer.map_while(|at| at.calls(cap).map(|calls| at.price(&calls)));
        prices.min().unwrap_or_else(|| self.price(made))
    }

    /// Prices these calls at usual lengths.
    fn price(&self, calls: &Calls) -> Usd {
        let max_tokens: Vec<(Role, u32)> = calls
            .agents
            .iter()
            .filter_map(|agent| Some((Role::Agent(*agent), self.limit(Role::Agent(*agent))?)))
            .collect();
        let check = calls.check.map(|size| self.check(&max_tokens, size));
        let check = check.unwrap_or(Usd::ZERO).nanos() as f64;
        let plan = if calls.is_planned {
            self.plan(Length::Usual)
        } else {
            Usd::ZERO
        };
        plan + self.reports(&calls.agents, Length::Usual)
            + Usd::from_nanos((check * USUAL_CHECK) as u64)
            + self.synthesis(&calls.agents, Length::Usual)
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

    /// Returns the bytes of a character of the question, rounded up.
    fn bytes_per_char(&self) -> usize {
        let message = &self.question.message;
        message.len().div_ceil(message.chars().count().max(1))
    }

    /// Prices the plan, which reads a part of a long question.
    fn plan(&self, length: Length) -> Usd {
        let Some(model) = self.deps.role(Role::Master) else {
            return Usd::ZERO;
        };
        let read = self
            .read
            .min((PLANNED_CHARS * self.bytes_per_char()) as u64);
        let trusted = self.deps.prompts.system_bytes(model.prompts, "plan")
            + schema_of::<OrchestrationPlan>().bytes();
        let input = InputBound::new(trusted, read + SCAFFOLDING_TOKENS, &[], 0);
        priced(model, input, model.limit_for(PLAN_TOKENS), length)
    }

    fn reports(&self, agents: &[Agent], length: Length) -> Usd {
        let report = |agent: &Agent| self.call(Role::Agent(*agent), 0, length);
        agents.iter().map(report).sum()
    }

    fn synthesis(&self, agents: &[Agent], length: Length) -> Usd {
        let limits = agents
            .iter()
            .filter_map(|agent| self.limit(Role::Agent(*agent)));
        let written = limits.map(u64::from).sum();
        self.call(Role::Master, written, length)
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

    /// Prices one call that reads `written` tokens of other models.
    fn call(&self, role: Role, written: u64, length: Length) -> Usd {
        let Some(model) = self.deps.role(role) else {
            return Usd::ZERO;
        };
        let images = if role == Role::Agent(Agent::Visual) {
            self.question.attachments.len()
        } else {
            0
        };
        let input = InputBound::new(
            self.deps.prompt_bytes(role),
            self.read + SCAFFOLDING_TOKENS,
            &[ModelText::planned(written)],
            images,
        );
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
