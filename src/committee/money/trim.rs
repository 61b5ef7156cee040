//! Selects the agents that fit under the cap, and how much each may write. This is done before
//! round 1, and again after a crash in it, after a solver that is asked first, and after cheap calls.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{self, Fitted, PLAN_TOKENS, Wanted};
use crate::committee::money::fitting::{Bounds, Fitting, plan_input};
use crate::committee::request_context::{Stage, for_planning};
use crate::domain::{Agent, CORE_AGENTS, CallStep, Earmark, Role, Usd};
use crate::journal::step;
use crate::journal::{
    AgentOutcome, CallResult, CallSettled, CheckScope, CheckSize, Event, LeftOut, RunContext,
    Transcript, Trimmed,
};

fn fitting<'a>(
    stage: Stage<'a>,
    asked: &[Agent],
    written: Vec<u64>,
) -> Result<Fitting<'a>, Failure> {
    let fitting = Fitting::new(Bounds::of(stage), asked, written);
    fitting.ok_or_else(|| Failure::internal("no master is configured"))
}

fn earmark(run: &RunContext, synthesis: Usd, check: Usd) {
    run.earmark(Earmark::Synthesis, synthesis);
    run.earmark(Earmark::CrossCheck, check);
}

/// Checks, before any call, that the solver and the synthesis fit under the cap. Earmarks the
/// money for the synthesis, and at least what both need at their least lengths. A plan that does
/// not fit beside that is not requested.
///
/// # Errors
/// [`Failure`] if they do not.
pub fn check_room(stage: Stage<'_>) -> Result<(), Failure> {
    let solver = fitting(stage, &[Agent::Solver], vec![])?;
    let left = stage.run.ledger().left();
    let Some(reserve) = solver.synthesis_reserve(left) else {
        return Err(Failure::over_cap(left, solver.least()));
    };
    stage.run.earmark(Earmark::Synthesis, reserve);
    Ok(())
}

/// Fits the agents to call under the cap, beside those whose output is reused. Earmarks the money
/// for the cross-check and the synthesis. A recorded panel is fitted again, if the money left does not
/// suffice for it.
pub fn panel(
    stage: Stage<'_>,
    asked: &[Agent],
    reused: &BTreeMap<Agent, AgentOutcome>,
) -> Result<Trimmed, Failure> {
    let run = stage.run;
    run.release(Earmark::Synthesis);
    run.release(Earmark::CrossCheck);
    let events = run.events();
    let transcript = Transcript::of(&events);
    let answered = answered_first(&transcript, reused, stage.deps);
    let is_open = |agent: &&Agent| !answered.contains_key(agent);
    let open: Vec<Agent> = asked.iter().filter(is_open).copied().collect();
    let mut fitting = fitting(stage, &open, answered.values().copied().collect())?;
    if let Some(recorded) = transcript.trimmed {
        let is_on = |agent: Agent| recorded.agents.contains(&agent);
        fitting
            .agents
            .retain(|it| it.role.agent().is_some_and(is_on));
        let mut answered = answered.iter();
        let has_core = answered.any(|(agent, tokens)| agent.is_core() && *tokens > 0);
        let Some(mut trimmed) = fit_again(run, recorded, &fitting, has_core) else {
            return Ok(recorded.clone());
        };
        // A resumed run has a key for its first fit.
        let epoch = run.epoch();
        let is_first = epoch > 1 && run.recorded(&step::trim(Some(epoch), None)).is_none();
        trimmed.epoch = is_first.then_some(epoch);
        trimmed.refit = if is_first { None } else { fits(run) };
        return record_trimmed(run, trimmed);
    }
    let left = run.ledger().left();
    let Some(mut fitted) = fitting.fit(u8::MAX, left) else {
        return Err(Failure::over_cap(left, fitting.least()));
    };
    earmark(run, fitted.held, fitted.check);
    fitted.trimmed.agents.extend(reused.keys());
    fitted.trimmed.agents.sort();
    record_trimmed(run, fitted.trimmed)
}

/// Fits the core under the cap beside the call of the plan, which is made at the same time. Earmarks
/// the money for the plan, the cross-check and the synthesis. `None` if the core does not fit whole:
/// nothing is earmarked then.
pub fn core_beside_plan(stage: Stage<'_>) -> Result<Option<Trimmed>, Failure> {
    let (run, request, master) = (stage.run, stage.request, stage.master()?);
    let fitting = fitting(stage, &CORE_AGENTS, vec![])?;
    let question = budget::text_bound(&for_planning(&request.question.message));
    let input = plan_input(stage.deps, master, Bounds::of(stage).learned + question);
    let plan = budget::worst_cost(master, input, master.limit_for(PLAN_TOKENS));
    let left = run.ledger().left();
    let fitted = (plan <= left).then(|| fitting.fit(u8::MAX, left - plan));
    let is_whole = |fitted: &Fitted| budget::left_out(&fitted.trimmed).next().is_none();
    let Some(fitted) = fitted.flatten().filter(is_whole) else {
        return Ok(None);
    };
    run.earmark(Earmark::Plan, plan);
    earmark(run, fitted.held, fitted.check);
    record_trimmed(run, fitted.trimmed).map(Some)
}

/// Fits again what was left out or shortened, after calls of round 1 cost less than they were
/// reserved for: those of `asked` that are missing, the cross-check, the length of the synthesis.
/// Token bounds are up to five times too high. So agents that do not fit together often fit one after
/// the other.
///
/// Returns `None` if nothing more fits, or nothing is missing.
pub fn more(
    stage: Stage<'_>,
    asked: &[Agent],
    recorded: &Trimmed,
) -> Result<Option<Trimmed>, Failure> {
    let run = stage.run;
    let is_scored = run.recorded(&step::score(1)).is_some();
    if is_scored || run.recorded(&step::cross_check()).is_some() {
        return Ok(None);
    }
    let events = run.events();
    let transcript = Transcript::of(&events);
    let mut written = answered_first(&transcript, &BTreeMap::new(), stage.deps);
    let between = in_flight(&transcript, stage, recorded, &mut written);
    let is_missing = |agent: &&Agent| !recorded.agents.contains(agent);
    let missing: Vec<Agent> = asked.iter().filter(is_missing).copied().collect();
    let fitting = fitting(stage, &missing, written.into_values().collect())?;
    let earmarks = [Earmark::Synthesis, Earmark::CrossCheck];
    let [synthesis, check] = earmarks.map(|it| run.ledger().earmarked(it));
    earmarks.into_iter().for_each(|it| run.release(it));
    let left = run.ledger().left();
    let fitted = (between <= left).then(|| fitting.fit(u8::MAX, left - between));
    let Some(fitted) = fitted.flatten() else {
        earmark(run, synthesis, check);
        return Ok(None);
    };
    earmark(run, fitted.held, fitted.check);
    let mut trimmed = merged(recorded, fitted.trimmed, &missing);
    if trimmed == *recorded {
        return Ok(None);
    }
    trimmed.refit = fits(run);
    record_trimmed(run, trimmed).map(Some)
}

/// Returns how often the panel was fitted so far.
fn fits(run: &RunContext) -> Option<u32> {
    let events = run.events();
    let is_fit = |event: &&Event| matches!(event, Event::Trimmed(_));
    u32::try_from(events.iter().filter(is_fit).count()).ok()
}

/// Adds a fit of the missing agents to the recorded panel. Agents that were not fitted again stay
/// left out.
fn merged(recorded: &Trimmed, fitted: Trimmed, missing: &[Agent]) -> Trimmed {
    let mut merged = recorded.clone();
    merged.agents.extend(&fitted.agents);
    merged.agents.sort();
    merged.cross_check = fitted.cross_check;
    let stays = |line: &LeftOut| matches!(line, LeftOut::Agent(it) if !missing.contains(it));
    merged.left_out.retain(stays);
    merged.left_out.extend(fitted.left_out);
    for (role, tokens) in fitted.max_tokens {
        let mut known = merged.max_tokens.iter_mut();
        match known.find(|(known, _)| *known == role) {
            Some((_, known)) => *known = tokens,
            None => merged.max_tokens.push((role, tokens)),
        }
    }
    merged
}

/// Adds the agents without an outcome to those that have `written`, with the most that they may
/// write. Returns the worst-case cost of those that are between two calls, because nothing is
/// reserved for them.
fn in_flight(
    run: &Transcript<'_>,
    stage: Stage<'_>,
    trimmed: &Trimmed,
    written: &mut BTreeMap<Agent, u64>,
) -> Usd {
    let is_called = |agent: Agent| {
        let mut open = run.calls.iter().filter(|call| call.settled.is_none());
        open.any(|call| call.sent.is_report_of(agent))
    };
    let bounds = Bounds::of(stage);
    let mut between = vec![];
    for agent in &trimmed.agents {
        let role = Role::Agent(*agent);
        let tokens = budget::given(&trimmed.max_tokens, role);
        if let (Entry::Vacant(entry), Some(tokens)) = (written.entry(*agent), tokens) {
            let model = stage.deps.role(role);
            let most = model.map_or(0, |model| model.report_tokens(tokens));
            entry.insert(most);
            between.extend(bounds.wanted(role).filter(|_| !is_called(*agent)));
        }
    }
    budget::panel_cost(&between, &trimmed.max_tokens)
}

/// True if the money left suffices for a cross-check of the solver's report, which has so many
/// tokens. The other agents that were fitted must still fit after it.
pub fn affords_solver_check(stage: Stage<'_>, trimmed: &Trimmed, tokens: u64) -> bool {
    let bounds = Bounds::of(stage);
    let others = trimmed.agents.iter().filter(|it| **it != Agent::Solver);
    let others = others.filter_map(|agent| bounds.wanted(Role::Agent(*agent)));
    let others: Vec<Wanted<'_>> = others.collect();
    let size = CheckSize {
        passes: 1,
        scope: CheckScope::Key,
    };
    let check = bounds.check_cost(&[tokens], size);
    check + budget::panel_cost(&others, &trimmed.max_tokens) <= stage.run.ledger().left()
}

/// Returns the worst-case cost of the synthesis of reports with so many tokens.
///
/// # Errors
/// If no master is configured.
pub fn synthesis_cost(
    stage: Stage<'_>,
    trimmed: &Trimmed,
    written: Vec<u64>,
) -> Result<Usd, Failure> {
    let synthesis = fitting(stage, &[], written)?.synthesis;
    let given = budget::given(&trimmed.max_tokens, Role::Master);
    let master = [(Role::Master, given.unwrap_or(synthesis.limit))];
    Ok(budget::synthesis_hold(&master, &synthesis))
}

fn record_trimmed(run: &RunContext, trimmed: Trimmed) -> Result<Trimmed, Failure> {
    let Trimmed { epoch, refit, .. } = trimmed;
    Ok(run.record_output(&step::trim(epoch, refit), trimmed)?)
}

/// Fits the open agents of a recorded panel again; `None` if the money left suffices for it. Calls in
/// doubt count at their reservations. Existing answers stay. If neither a core agent with the synthesis
/// fits nor a core agent has answered, only one is called, and its report is the answer.
fn fit_again(
    run: &RunContext,
    recorded: &Trimmed,
    fitting: &Fitting<'_>,
    has_core: bool,
) -> Option<Trimmed> {
    let open: Vec<Role> = fitting.agents.iter().map(|wanted| wanted.role).collect();
    let mut max_tokens = recorded.max_tokens.clone();
    max_tokens.retain(|(role, _)| *role == Role::Master || open.contains(role));
    let hold = budget::synthesis_hold(&max_tokens, &fitting.synthesis);
    let is_checked = run.recorded(&step::cross_check()).is_some();
    let size = recorded.cross_check.filter(|_| !is_checked);
    let check = size.map_or(Usd::ZERO, |size| fitting.check_cost(&max_tokens, size));
    let left = run.ledger().left();
    earmark(run, hold, check);
    let carried = budget::panel_cost(&fitting.agents, &max_tokens) + hold + check <= left;
    if carried || open.is_empty() || run.recorded(&step::score(1)).is_some() {
        return None;
    }
    let passes = recorded.cross_check.map_or(0, |size| size.passes);
    let fitted = fitting.fit(passes, left);
    let is_enough = |it: &Fitted| has_core || it.trimmed.agents.iter().any(|it| it.is_core());
    let fitted = match fitted.filter(is_enough) {
        Some(fitted) => {
            earmark(run, fitted.held, fitted.check);
            fitted.trimmed
        }
        None => {
            earmark(run, Usd::ZERO, Usd::ZERO);
            one_core_agent(&open, recorded)
        }
    };
    Some(refitted(recorded.clone(), &open, fitted))
}

/// Returns the recorded panel without the open agents that were not fitted again.
fn refitted(recorded: Trimmed, open: &[Role], fitted: Trimmed) -> Trimmed {
    let is_dropped =
        |agent: &Agent| open.contains(&Role::Agent(*agent)) && !fitted.agents.contains(agent);
    let mut trimmed = Trimmed {
        cross_check: fitted.cross_check,
        ..recorded
    };
    trimmed.agents.retain(|agent| !is_dropped(agent));
    for (role, tokens) in &mut trimmed.max_tokens {
        *tokens = budget::given(&fitted.max_tokens, *role).unwrap_or(*tokens);
    }
    trimmed.left_out.extend(fitted.left_out);
    trimmed
}

/// Returns a panel of the most important open core agent, for when the money left does not suffice for
/// a synthesis. The call itself is shrunk to what fits.
fn one_core_agent(open: &[Role], recorded: &Trimmed) -> Trimmed {
    let mut core = [Agent::Solver, Agent::Verifier, Agent::Critic].into_iter();
    let kept = core.find(|agent| open.contains(&Role::Agent(*agent)));
    let open = open.iter().filter_map(|role| role.agent());
    let dropped = open.filter(|agent| Some(*agent) != kept);
    Trimmed {
        agents: Vec::from_iter(kept),
        left_out: dropped.map(LeftOut::Agent).collect(),
        cross_check: None,
        ..recorded.clone()
    }
}

/// Returns the agents that have an outcome in round 1, or an answer that was paid for, with the
/// tokens that they wrote. So do the reused ones.
fn answered_first(
    run: &Transcript<'_>,
    reused: &BTreeMap<Agent, AgentOutcome>,
    deps: &Deps,
) -> BTreeMap<Agent, u64> {
    let tokens = |(agent, outcome): (&Agent, &AgentOutcome)| (*agent, outcome.tokens());
    let mut answered: BTreeMap<Agent, u64> = reused.iter().map(tokens).collect();
    for call in &run.calls {
        if let Some(CallSettled {
            result: CallResult::Answered { text, .. },
            usage,
            ..
        }) = call.settled
            && let Some(agent) = call.sent.role.agent()
            && call.sent.step() == Some(CallStep::Report { round: 1, agent })
        {
            let written = usage.map_or(text.len() as u64, |usage| usage.output);
            let model = deps.role(call.sent.role);
            let bound = model.map_or(0, |model| model.report_tokens(0));
            answered.insert(agent, written.saturating_add(bound));
        }
    }
    for finished in run.outcomes.iter().filter(|finished| finished.round == 1) {
        answered.insert(finished.agent, finished.outcome.tokens());
    }
    answered
}
