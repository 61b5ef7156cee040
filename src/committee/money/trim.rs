//! Selects the agents that fit under the cap, and how much each may write. This is done before
//! round 1, and again after a crash in it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::committee::call_names::is_report;
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{
    self, Fitted, InputBound, ModelText, PLAN_TOKENS, SCAFFOLDING_TOKENS, Wanted, WantedCheck,
};
use crate::committee::money::check_cost;
use crate::committee::output_shapes::OrchestrationPlan;
use crate::committee::request_context::{RequestContext, for_planning};
use crate::committee::schemas::schema_of;
use crate::domain::{Agent, CORE_AGENTS, Earmark, Mode, Role, Usd};
use crate::journal::step::{CrossCheckStep, ScoreStep, TrimStep};
use crate::journal::{
    AgentOutcome, CallResult, CallSettled, CheckScope, CheckSize, Event, LeftOut, RunContext,
    Transcript, Trimmed,
};

/// The most tokens of scores, disagreements and missing agents that the master is shown.
const FINDINGS_TOKENS: u64 = 2000;

/// Returns a role with the least input of its call: its own prompt and the question, of at most
/// `read` tokens. Only the visual agent is shown the images.
pub fn wanted(deps: &Deps, role: Role, mode: Mode, read: u64, images: usize) -> Option<Wanted<'_>> {
    let (findings, images) = match role {
        Role::Master => (FINDINGS_TOKENS, 0),
        Role::Agent(Agent::Visual) => (0, images),
        Role::Agent(_) | Role::Proposer => (0, 0),
    };
    let read = read + SCAFFOLDING_TOKENS + findings;
    let model = deps.role(role)?;
    Some(Wanted {
        role,
        model,
        limit: model.limit_in(mode),
        input: InputBound::new(deps.prompt_bytes(role), read, &[], images),
    })
}

/// Returns the most tokens of the user's texts, and for the master of the learned answers that it
/// sees.
fn read_bound(request: &RequestContext, role: Role) -> u64 {
    let bound = budget::text_bound;
    let learned = request.learned.iter().filter(|_| role == Role::Master);
    let shown = learned.map(|it| bound(&it.condition) + bound(&it.action));
    bound(&request.full_text()) + shown.sum::<u64>()
}

/// Like [`wanted`], for a run.
fn wanted_by<'a>(deps: &'a Deps, request: &RequestContext, role: Role) -> Option<Wanted<'a>> {
    let read = read_bound(request, role);
    wanted(
        deps,
        role,
        request.question.mode,
        read,
        request.images.len(),
    )
}

/// Checks, before any call, that the cap has room for the solver and the synthesis. Earmarks the
/// money for the synthesis, and at least what both need at their least lengths. A plan that does
/// not fit beside that is not requested.
///
/// # Errors
/// [`Failure`] if the cap has no room.
pub fn check_room(run: &RunContext, deps: &Deps, request: &RequestContext) -> Result<(), Failure> {
    let (Some(solver), Some(master)) = (
        wanted_by(deps, request, Role::Agent(Agent::Solver)),
        wanted_by(deps, request, Role::Master),
    ) else {
        return Err(Failure::internal(
            "the solver or the master is not configured",
        ));
    };
    match budget::fit(
        std::slice::from_ref(&solver),
        &master,
        &WantedCheck::none(),
        run.ledger().left(),
    ) {
        Some(fitted) => run.earmark(
            Earmark::Synthesis,
            fitted.held.max(budget::least(&solver, &master)),
        ),
        None => {
            let needed = budget::least(&solver, &master);
            return Err(Failure::no_room(run.ledger().left(), needed));
        }
    }
    Ok(())
}

/// What is fitted: the agents to call, the synthesis, and the tokens of the reports that exist.
struct Fitting<'a> {
    deps: &'a Deps,
    mode: Mode,
    /// The most tokens of the request.
    read: u64,
    agents: Vec<Wanted<'a>>,
    synthesis: Wanted<'a>,
    written: Vec<u64>,
}

impl<'a> Fitting<'a> {
    fn new(
        deps: &'a Deps,
        request: &RequestContext,
        asked: &[Agent],
        written: Vec<u64>,
    ) -> Result<Self, Failure> {
        let wanted = |role: Role| wanted_by(deps, request, role);
        let Some(mut synthesis) = wanted(Role::Master) else {
            return Err(Failure::internal("no master is configured"));
        };
        let texts: Vec<ModelText> = written.iter().copied().map(ModelText::planned).collect();
        synthesis.input.volatile += InputBound::new(0, 0, &texts, 0).volatile;
        Ok(Self {
            deps,
            mode: request.question.mode,
            read: budget::text_bound(&request.full_text()),
            agents: asked
                .iter()
                .filter_map(|agent| wanted(Role::Agent(*agent)))
                .collect(),
            synthesis,
            written,
        })
    }

    /// Returns the worst-case cost of a cross-check of the existing reports and of those to come.
    fn check_cost(&self, max_tokens: &[(Role, u32)], size: CheckSize) -> Usd {
        let reports: Vec<u64> = check_cost::report_tokens(max_tokens)
            .chain(self.written.iter().copied())
            .collect();
        check_cost::worst_case(self.deps, self.read, &reports, size)
    }

    /// Fits all into `left`, with a cross-check of at most so many passes.
    fn fit(&self, passes: u8, left: Usd) -> Option<Fitted> {
        let cost = |max_tokens: &[(Role, u32)], size: CheckSize| self.check_cost(max_tokens, size);
        let mut check = check_cost::wanted(self.deps, self.mode, &cost);
        check.sizes.retain(|size| size.passes <= passes);
        budget::fit(&self.agents, &self.synthesis, &check, left)
    }
}

/// Fits the agents to call under the cap, beside those whose output is reused. Earmarks the money
/// for the cross-check and the synthesis.
pub async fn panel(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    asked: &[Agent],
    reused: &BTreeMap<Agent, AgentOutcome>,
) -> Result<Trimmed, Failure> {
    run.release(Earmark::Synthesis);
    let events = run.events();
    let transcript = Transcript::of(&events);
    let answered = answered_first(&transcript, reused);
    let open: Vec<Agent> = asked
        .iter()
        .copied()
        .filter(|agent| !answered.contains_key(agent))
        .collect();
    let written = answered.values().copied().collect();
    let mut fitting = Fitting::new(deps, request, &open, written)?;
    if let Some(recorded) = transcript.trimmed {
        let is_on =
            |wanted: &Wanted<'_>| agent_of(wanted).is_some_and(|a| recorded.agents.contains(&a));
        fitting.agents.retain(is_on);
        return fit_again(run, recorded.clone(), fitting).await;
    }
    let Some(mut fitted) = fitting.fit(u8::MAX, run.ledger().left()) else {
        let solver = fitting.agents.first().unwrap_or(&fitting.synthesis);
        let needed = budget::least(solver, &fitting.synthesis);
        return Err(Failure::no_room(run.ledger().left(), needed));
    };
    run.earmark(Earmark::Synthesis, fitted.held);
    run.earmark(Earmark::CrossCheck, fitted.check);
    fitted.trimmed.agents.extend(reused.keys());
    fitted.trimmed.agents.sort();
    record_trimmed(run, fitted.trimmed).await
}

/// Fits the core under the cap beside the call of the plan, which is made at the same time. Earmarks
/// the money for the plan, the cross-check and the synthesis. `None` if the core does not fit whole:
/// nothing is earmarked then.
pub async fn core_beside_plan(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
) -> Result<Option<Trimmed>, Failure> {
    let fitting = Fitting::new(deps, request, &CORE_AGENTS, vec![])?;
    let (left, plan) = (run.ledger().left(), plan_cost(deps, request));
    let fitted = (plan <= left).then(|| fitting.fit(u8::MAX, left - plan));
    let is_whole = |fitted: &Fitted| budget::left_out(&fitted.trimmed).next().is_none();
    let Some(fitted) = fitted.flatten().filter(is_whole) else {
        return Ok(None);
    };
    run.earmark(Earmark::Plan, plan);
    run.earmark(Earmark::Synthesis, fitted.held);
    run.earmark(Earmark::CrossCheck, fitted.check);
    record_trimmed(run, fitted.trimmed).await.map(Some)
}

/// Returns the worst-case cost of the plan.
fn plan_cost(deps: &Deps, request: &RequestContext) -> Usd {
    let Some(master) = deps.role(Role::Master) else {
        return Usd::ZERO;
    };
    let whole = budget::text_bound(&request.full_text());
    let question = budget::text_bound(&for_planning(&request.question.message));
    let read = read_bound(request, Role::Master) - whole + question;
    let trusted = deps.prompts.system_bytes(master.prompts, "plan")
        + schema_of::<OrchestrationPlan>().bytes();
    let input = InputBound::new(trusted, read + SCAFFOLDING_TOKENS, &[], 0);
    budget::worst_cost(master, input, master.limit_for(PLAN_TOKENS))
}

/// Fits again what was left out or shortened, after calls of round 1 cost less than they were
/// reserved for: those of `asked` that are missing, the cross-check, the length of the synthesis. An
/// upper bound of tokens can be five times the real number, so a question that leaves room for one
/// agent at first often carries all of them one after the other.
///
/// Returns `None` if nothing more fits, or nothing is missing.
pub async fn more(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    asked: &[Agent],
    recorded: &Trimmed,
) -> Result<Option<Trimmed>, Failure> {
    let is_over =
        run.recorded(&CrossCheckStep).is_some() || run.recorded(&ScoreStep { round: 1 }).is_some();
    if is_over {
        return Ok(None);
    }
    let events = run.events();
    let transcript = Transcript::of(&events);
    let mut written = answered_first(&transcript, &BTreeMap::new());
    let between = in_flight(&transcript, deps, request, recorded, &mut written);
    let missing: Vec<Agent> = asked
        .iter()
        .copied()
        .filter(|agent| !recorded.agents.contains(agent))
        .collect();
    let fitting = Fitting::new(deps, request, &missing, written.into_values().collect())?;
    let earmarks = [Earmark::Synthesis, Earmark::CrossCheck];
    let earmarked = earmarks.map(|stage| run.ledger().earmarked(stage));
    earmarks.into_iter().for_each(|stage| run.release(stage));
    let left = run.ledger().left();
    let fitted = (between <= left).then(|| fitting.fit(u8::MAX, left - between));
    let Some(fitted) = fitted.flatten() else {
        for (stage, amount) in earmarks.into_iter().zip(earmarked) {
            run.earmark(stage, amount);
        }
        return Ok(None);
    };
    run.earmark(Earmark::Synthesis, fitted.held);
    run.earmark(Earmark::CrossCheck, fitted.check);
    let mut trimmed = recorded.clone();
    trimmed.agents.extend(&fitted.trimmed.agents);
    trimmed.agents.sort();
    trimmed.cross_check = fitted.trimmed.cross_check;
    // The agents that were not fitted again stay left out.
    let others = budget::left_out(recorded).filter(|agent| !missing.contains(agent));
    let others: Vec<LeftOut> = others.map(LeftOut::Agent).collect();
    trimmed.left_out.retain(|line| others.contains(line));
    trimmed.left_out.extend(fitted.trimmed.left_out);
    for (role, tokens) in fitted.trimmed.max_tokens {
        match trimmed
            .max_tokens
            .iter_mut()
            .find(|(known, _)| *known == role)
        {
            Some((_, known)) => *known = tokens,
            None => trimmed.max_tokens.push((role, tokens)),
        }
    }
    if trimmed == *recorded {
        return Ok(None);
    }
    let wave = events
        .iter()
        .filter(|event| matches!(event, Event::Trimmed(_)));
    trimmed.wave = u32::try_from(wave.count()).ok();
    record_trimmed(run, trimmed).await.map(Some)
}

/// Adds the agents without an outcome to those that have `written`, with the most that they may
/// write. Returns the worst-case cost of those that are between two calls, because nothing is
/// reserved for them.
fn in_flight(
    run: &Transcript<'_>,
    deps: &Deps,
    request: &RequestContext,
    trimmed: &Trimmed,
    written: &mut BTreeMap<Agent, u64>,
) -> Usd {
    let is_called = |agent: Agent| {
        let mut open = run.calls.iter().filter(|call| call.settled.is_none());
        open.any(|call| is_report(&call.sent.call, agent))
    };
    let mut between = vec![];
    for agent in &trimmed.agents {
        let tokens = budget::given(&trimmed.max_tokens, Role::Agent(*agent));
        if let (Entry::Vacant(entry), Some(tokens)) = (written.entry(*agent), tokens) {
            entry.insert(u64::from(tokens));
            let wanted = wanted_by(deps, request, Role::Agent(*agent));
            between.extend(wanted.filter(|_| !is_called(*agent)));
        }
    }
    budget::panel_cost(&between, &trimmed.max_tokens)
}

/// True if the money left suffices for a cross-check of the solver's report alone, of so many
/// tokens, and then still for the other agents that were fitted.
pub fn has_room_to_check(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    trimmed: &Trimmed,
    tokens: u64,
) -> bool {
    let others = trimmed.agents.iter().filter(|it| **it != Agent::Solver);
    let others: Vec<Wanted<'_>> = others
        .filter_map(|agent| wanted_by(deps, request, Role::Agent(*agent)))
        .collect();
    let size = CheckSize {
        passes: 1,
        scope: CheckScope::Key,
    };
    let read = budget::text_bound(&request.full_text());
    let check = check_cost::worst_case(deps, read, &[tokens], size);
    check + budget::panel_cost(&others, &trimmed.max_tokens) <= run.ledger().left()
}

/// Returns the worst-case cost of the synthesis of reports with so many tokens.
///
/// # Errors
/// If no master is configured.
pub fn synthesis_cost(
    deps: &Deps,
    request: &RequestContext,
    trimmed: &Trimmed,
    written: Vec<u64>,
) -> Result<Usd, Failure> {
    let fitting = Fitting::new(deps, request, &[], written)?;
    let given = budget::given(&trimmed.max_tokens, Role::Master);
    let tokens = given.unwrap_or(fitting.synthesis.limit);
    let master = [(Role::Master, tokens)];
    Ok(budget::synthesis_hold(&master, &fitting.synthesis))
}

async fn record_trimmed(run: &RunContext, trimmed: Trimmed) -> Result<Trimmed, Failure> {
    let Trimmed { epoch, wave, .. } = trimmed;
    Ok(run.record_output(TrimStep { epoch, wave }, trimmed).await?)
}

/// Returns the panel of a resumed run: the recorded one, if the money left suffices for it. Calls
/// in doubt count at their reservations. If too little is left after them, the agents that have not
/// answered yet are fitted again; existing answers stay. If not even the solver and the synthesis
/// fit, only the solver is called, and its report is the answer.
async fn fit_again(
    run: &RunContext,
    recorded: Trimmed,
    fitting: Fitting<'_>,
) -> Result<Trimmed, Failure> {
    let open = &fitting.agents;
    let is_to_come = |(role, _): &&(Role, u32)| {
        *role == Role::Master || open.iter().any(|wanted| wanted.role == *role)
    };
    let max_tokens: Vec<(Role, u32)> = recorded
        .max_tokens
        .iter()
        .filter(is_to_come)
        .copied()
        .collect();
    let hold = budget::synthesis_hold(&max_tokens, &fitting.synthesis);
    let size = recorded
        .cross_check
        .filter(|_| run.recorded(&CrossCheckStep).is_none());
    let checked = size.map_or(Usd::ZERO, |size| fitting.check_cost(&max_tokens, size));
    let left = run.ledger().left();
    run.earmark(Earmark::Synthesis, hold);
    run.earmark(Earmark::CrossCheck, checked);
    let carried = budget::panel_cost(open, &max_tokens) + hold + checked <= left;
    if carried || open.is_empty() || run.recorded(&ScoreStep { round: 1 }).is_some() {
        return Ok(recorded);
    }
    let passes = recorded.cross_check.map_or(0, |size| size.passes);
    let (fitted, held, checked) = match fitting.fit(passes, left) {
        Some(fitted) => (fitted.trimmed, fitted.held, fitted.check),
        None => (solver_alone(open, &recorded), Usd::ZERO, Usd::ZERO),
    };
    run.earmark(Earmark::Synthesis, held);
    run.earmark(Earmark::CrossCheck, checked);
    record_trimmed(run, refitted(recorded, open, fitted, run.epoch())).await
}

fn agent_of(wanted: &Wanted<'_>) -> Option<Agent> {
    match wanted.role {
        Role::Agent(agent) => Some(agent),
        Role::Master | Role::Proposer => None,
    }
}

/// Returns the recorded panel without the open agents that were not fitted again.
fn refitted(recorded: Trimmed, open: &[Wanted<'_>], fitted: Trimmed, epoch: i64) -> Trimmed {
    let is_dropped = |agent: &Agent| {
        open.iter().any(|wanted| wanted.role == Role::Agent(*agent))
            && !fitted.agents.contains(agent)
    };
    let mut trimmed = Trimmed {
        epoch: Some(epoch),
        wave: None,
        cross_check: fitted.cross_check,
        ..recorded
    };
    trimmed.agents.retain(|agent| !is_dropped(agent));
    for (role, tokens) in &mut trimmed.max_tokens {
        let fewer = fitted.max_tokens.iter().find(|(fitted, _)| fitted == role);
        *tokens = fewer.map_or(*tokens, |(_, fewer)| *fewer);
    }
    trimmed.left_out.extend(fitted.left_out);
    trimmed
}

/// Returns a panel of the solver alone, for when the money left does not suffice for a synthesis.
/// The call itself is shrunk to what fits.
fn solver_alone(open: &[Wanted<'_>], recorded: &Trimmed) -> Trimmed {
    let dropped = open
        .iter()
        .filter(|wanted| wanted.role != Role::Agent(Agent::Solver));
    Trimmed {
        agents: vec![Agent::Solver],
        max_tokens: recorded.max_tokens.clone(),
        left_out: dropped.filter_map(agent_of).map(LeftOut::Agent).collect(),
        cross_check: None,
        epoch: None,
        wave: None,
    }
}

/// Returns the agents that have an outcome in round 1, or an answer that was paid for, with the
/// tokens that they wrote. So do the reused ones.
fn answered_first(
    run: &Transcript<'_>,
    reused: &BTreeMap<Agent, AgentOutcome>,
) -> BTreeMap<Agent, u64> {
    let tokens = |(agent, outcome): (&Agent, &AgentOutcome)| (*agent, outcome.tokens());
    let mut answered: BTreeMap<Agent, u64> = reused.iter().map(tokens).collect();
    for call in &run.calls {
        let Some(CallSettled {
            result: CallResult::Answered { text, .. },
            usage,
            ..
        }) = call.settled
        else {
            continue;
        };
        let name = &call.sent.call;
        let agent = Agent::ALL
            .into_iter()
            .find(|agent| name.starts_with("r1/") && is_report(name, *agent));
        let tokens = usage
            .as_ref()
            .map_or(text.len() as u64, |usage| usage.output);
        answered.extend(agent.map(|agent| (agent, tokens)));
    }
    for finished in run.outcomes.iter().filter(|finished| finished.round == 1) {
        answered.insert(finished.agent, finished.outcome.tokens());
    }
    answered
}
