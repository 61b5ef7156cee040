//! What the calls of a request may cost before any of them, and the panel that fits under the cap.
//! A run and a quote use the same bounds.

use crate::committee::deps::Deps;
use crate::committee::money::budget::{
    self, Fitted, InputBound, ModelText, SCAFFOLDING_TOKENS, Wanted,
};
use crate::committee::money::check_cost;
use crate::committee::output_shapes::OrchestrationPlan;
use crate::committee::request_context::Stage;
use crate::committee::schemas::schema_of;
use crate::config::RoleModel;
use crate::domain::{Agent, Mode, Role, Usd};
use crate::journal::CheckSize;

/// The most tokens of scores, disagreements and missing agents that the master is shown.
const FINDINGS_TOKENS: u64 = 2000;

/// What bounds the input of a request's calls.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    pub deps: &'a Deps,
    pub mode: Mode,
    /// The most tokens of the user's texts.
    pub read: u64,
    /// The most tokens of the learned answers, which only the master reads.
    pub learned: u64,
    /// Only the visual agent is shown the images.
    pub images: usize,
}

impl<'a> Bounds<'a> {
    pub fn of(stage: Stage<'a>) -> Self {
        let bound = budget::text_bound;
        let learned = stage.request.learned.iter();
        let learned = learned.map(|it| bound(&it.condition) + bound(&it.action));
        Self {
            deps: stage.deps,
            mode: stage.request.question.mode,
            read: bound(&stage.request.full_text()),
            learned: learned.sum(),
            images: stage.request.images.len(),
        }
    }

    /// Returns a role with the least input of its call: its own prompt and the question.
    pub fn wanted(&self, role: Role) -> Option<Wanted<'a>> {
        let (findings, images) = match role {
            Role::Master => (FINDINGS_TOKENS + self.learned, 0),
            Role::Agent(Agent::Visual) => (0, self.images),
            Role::Agent(_) | Role::Proposer => (0, 0),
        };
        let read = self.read + SCAFFOLDING_TOKENS + findings;
        let model = self.deps.role(role)?;
        Some(Wanted {
            role,
            model,
            limit: model.limit_in(self.mode),
            input: InputBound::new(self.deps.prompt_bytes(role), read, &[], images),
        })
    }

    /// Returns the worst-case cost of a cross-check of reports of so many tokens.
    pub fn check_cost(&self, reports: &[u64], size: CheckSize) -> Usd {
        check_cost::worst_case(self.deps, self.read, reports, size)
    }
}

/// Returns the bound of the plan's input if it reads `read` tokens of the user's texts.
pub fn plan_input(deps: &Deps, master: &RoleModel, read: u64) -> InputBound {
    let schema = schema_of::<OrchestrationPlan>().bytes();
    let trusted = deps.prompts.system_bytes(master.prompts, "plan") + schema;
    InputBound::new(trusted, read + SCAFFOLDING_TOKENS, &[], 0)
}

/// What is fitted: the agents to call, the synthesis, and the tokens of the reports that exist.
pub struct Fitting<'a> {
    bounds: Bounds<'a>,
    pub agents: Vec<Wanted<'a>>,
    pub synthesis: Wanted<'a>,
    written: Vec<u64>,
}

impl<'a> Fitting<'a> {
    /// `None` if no master is configured.
    pub fn new(bounds: Bounds<'a>, asked: &[Agent], written: Vec<u64>) -> Option<Self> {
        let mut synthesis = bounds.wanted(Role::Master)?;
        let texts: Vec<ModelText> = written.iter().copied().map(ModelText::planned).collect();
        synthesis.input.volatile += InputBound::new(0, 0, &texts, 0).volatile;
        let agents = asked.iter().map(|agent| Role::Agent(*agent));
        let agents: Vec<Wanted<'_>> = agents.filter_map(|role| bounds.wanted(role)).collect();
        let added = agents.iter().map(|wanted| wanted.model.report_tokens(0));
        let added: Vec<ModelText> = added.map(ModelText::planned).collect();
        synthesis.input.volatile += InputBound::new(0, 0, &added, 0).volatile;
        Some(Self {
            bounds,
            agents,
            synthesis,
            written,
        })
    }

    /// Returns the worst-case cost of a cross-check of the existing reports and of those to come.
    pub fn check_cost(&self, max_tokens: &[(Role, u32)], size: CheckSize) -> Usd {
        let to_come = max_tokens.iter().filter(|(role, _)| *role != Role::Master);
        let mut reports: Vec<u64> = to_come.map(|(_, tokens)| u64::from(*tokens)).collect();
        reports.extend(&self.written);
        self.bounds.check_cost(&reports, size)
    }

    /// Fits all into `left`, with a cross-check of at most so many passes.
    pub fn fit(&self, passes: u8, left: Usd) -> Option<Fitted> {
        let mut sizes = check_cost::sizes(self.bounds.deps, self.bounds.mode);
        sizes.retain(|size| size.passes <= passes);
        let cost = |max_tokens: &[(Role, u32)], size: CheckSize| self.check_cost(max_tokens, size);
        budget::fit(&self.agents, &self.synthesis, (&sizes, &cost), left)
    }

    /// Returns what the first agent and the synthesis need at least.
    pub fn least(&self) -> Usd {
        let first = self.agents.first().unwrap_or(&self.synthesis);
        budget::least(first, &self.synthesis)
    }

    /// Returns the money to keep free for the synthesis before the plan is made, and at least what
    /// the first agent and the synthesis need. `None` if they do not fit into `left`.
    pub fn synthesis_reserve(&self, left: Usd) -> Option<Usd> {
        let fitted = self.fit(0, left)?;
        Some(fitted.held.max(self.least()))
    }
}
