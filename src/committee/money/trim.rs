//! Selects the agents that fit under the cap, and how much each may write. This is done before
//! round 1, and again after a crash in it.

use std::collections::BTreeMap;

use crate::committee::call_names::is_report;
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{
    self, InputBound, ModelText, SCAFFOLDING_TOKENS, Wanted, WantedCheck,
};
use crate::committee::money::check_cost;
use crate::committee::request_context::RequestContext;
use crate::domain::{Agent, Earmark, Mode, Role, Usd};
use crate::journal::step::{CrossCheckStep, ScoreStep, TrimStep};
use crate::journal::{
    AgentOutcome, CallResult, CallSettled, CheckSize, RunContext, Transcript, Trimmed,
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

/// Like [`wanted`], for a run.
fn wanted_by<'a>(deps: &'a Deps, request: &RequestContext, role: Role) -> Option<Wanted<'a>> {
    let read = budget::text_bound(&request.full_text());
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
    let wanted = |role: Role| wanted_by(deps, request, role);
    let agents: Vec<Wanted<'_>> = asked
        .iter()
        .filter_map(|a| wanted(Role::Agent(*a)))
        .collect();
    let Some(mut synthesis) = wanted(Role::Master) else {
        return Err(Failure::internal("no master is configured"));
    };
    let stored: Vec<ModelText> = reused
        .values()
        .map(|outcome| ModelText::planned(outcome.tokens()))
        .collect();
    synthesis.input.volatile += InputBound::new(0, 0, &stored, 0).volatile;
    let read = budget::text_bound(&request.full_text());
    let cost = |max_tokens: &[(Role, u32)], size: CheckSize| {
        let reports: Vec<u64> = check_cost::report_tokens(max_tokens)
            .chain(reused.values().map(AgentOutcome::tokens))
            .collect();
        check_cost::worst_case(deps, read, &reports, size)
    };
    let check = check_cost::wanted(deps, request.question.mode, &cost);
    let events = run.events();
    if let Some(recorded) = Transcript::of(&events).trimmed {
        return fit_again(run, recorded.clone(), agents, synthesis, check).await;
    }
    let Some(mut fitted) = budget::fit(&agents, &synthesis, &check, run.ledger().left()) else {
        let solver = agents.first().unwrap_or(&synthesis);
        let needed = budget::least(solver, &synthesis);
        return Err(Failure::no_room(run.ledger().left(), needed));
    };
    run.earmark(Earmark::Synthesis, fitted.held);
    run.earmark(Earmark::CrossCheck, fitted.check);
    fitted.trimmed.agents.extend(reused.keys());
    fitted.trimmed.agents.sort();
    record_trimmed(run, fitted.trimmed).await
}

async fn record_trimmed(run: &RunContext, trimmed: Trimmed) -> Result<Trimmed, Failure> {
    let epoch = trimmed.epoch;
    Ok(run.record_output(TrimStep { epoch }, trimmed).await?)
}

/// Returns the panel of a resumed run: the recorded one, if the money left suffices for it. Calls
/// in doubt count at their reservations. If too little is left after them, the agents that have not
/// answered yet are fitted again; existing answers stay. If not even the solver and the synthesis
/// fit, only the solver is called, and its report is the answer.
async fn fit_again(
    run: &RunContext,
    recorded: Trimmed,
    asked: Vec<Wanted<'_>>,
    mut synthesis: Wanted<'_>,
    mut check: WantedCheck<'_>,
) -> Result<Trimmed, Failure> {
    let hold = budget::synthesis_hold(&recorded.max_tokens, &synthesis);
    let size = recorded
        .cross_check
        .filter(|_| run.recorded(&CrossCheckStep).is_none());
    let checked = size.map_or(Usd::ZERO, |size| (check.cost)(&recorded.max_tokens, size));
    let left = run.ledger().left();
    run.earmark(Earmark::Synthesis, hold);
    run.earmark(Earmark::CrossCheck, checked);
    let answered = answered_first(&Transcript::of(&run.events()));
    let is_open = |wanted: &Wanted<'_>| {
        let is = |agent: &Agent| wanted.role == Role::Agent(*agent);
        recorded.agents.iter().any(is) && !answered.keys().any(is)
    };
    let open: Vec<Wanted<'_>> = asked.into_iter().filter(is_open).collect();
    let carried = budget::panel_cost(&open, &recorded.max_tokens) + hold + checked <= left;
    if carried || open.is_empty() || run.recorded(&ScoreStep { round: 1 }).is_some() {
        return Ok(recorded);
    }
    check.sizes.retain(|size| {
        recorded
            .cross_check
            .is_some_and(|recorded| size.passes <= recorded.passes)
    });
    let written: Vec<ModelText> = answered
        .values()
        .map(|tokens| ModelText::planned(*tokens))
        .collect();
    synthesis.input.volatile += InputBound::new(0, 0, &written, 0).volatile;
    let (fitted, held, checked) = match budget::fit(&open, &synthesis, &check, left) {
        Some(fitted) => (fitted.trimmed, fitted.held, fitted.check),
        None => (solver_alone(&open, &recorded), Usd::ZERO, Usd::ZERO),
    };
    run.earmark(Earmark::Synthesis, held);
    run.earmark(Earmark::CrossCheck, checked);
    record_trimmed(run, refitted(recorded, &open, fitted, run.epoch())).await
}

/// Returns the recorded panel without the open agents that were not fitted again.
fn refitted(recorded: Trimmed, open: &[Wanted<'_>], fitted: Trimmed, epoch: i64) -> Trimmed {
    let is_dropped = |agent: &Agent| {
        open.iter().any(|wanted| wanted.role == Role::Agent(*agent))
            && !fitted.agents.contains(agent)
    };
    let mut trimmed = Trimmed {
        epoch: Some(epoch),
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
        left_out: dropped
            .map(|wanted| budget::did_not_run(wanted.role))
            .collect(),
        cross_check: None,
        epoch: None,
    }
}

/// Returns the agents that have an outcome in round 1, or an answer that was paid for, with the
/// tokens that they wrote.
fn answered_first(run: &Transcript<'_>) -> BTreeMap<Agent, u64> {
    let mut answered = BTreeMap::new();
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
