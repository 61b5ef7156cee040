//! Asks the core agents while the master makes the plan (`policy.speculate`).
//!
//! The core answers in every plan, and what it is asked does not depend on the plan. So its reports
//! are used unless the master asks the user first: then they were paid for in vain. Their calls have
//! the same names as without this stage, so a resumed run buys none of them again.

use futures_util::future::{join, join_all};

use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::trim;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::plan;
use crate::committee::stages::round_context::RoundContext;
use crate::config::ProviderKind;
use crate::domain::{Agent, AskedFirst, CORE_AGENTS, Earmark, Role};
use crate::journal::step::PlanStep;
use crate::journal::{
    DECIDED, Event, Hinted, Planned, RoundStarted, RunContext, Transcript, Trimmed,
};

/// Returns the plan of this run. The core agents answer in the meantime, if the policy and the cap
/// permit it.
///
/// # Errors
/// Those of [`plan::make`], after the calls in flight have ended; and those of the agents' turns.
pub async fn plan(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    hints: &Hinted,
) -> Result<Planned, Failure> {
    let Some(trimmed) = core(run, deps, request).await? else {
        return plan::make(run, deps, request, hints).await;
    };
    let started = RoundStarted {
        round: 1,
        agents: CORE_AGENTS.to_vec(),
        why: "the core answers while the plan is made".to_owned(),
        ahead: true,
    };
    run.record(Event::RoundStarted(started)).await?;
    let provisional = plan::provisional(deps, request, hints);
    let context = RoundContext::new(run, deps, request, &provisional, trimmed);
    if run.epoch() > 1 {
        // One after the other, so that a stage that ends its process is found: see `RunContext::deaths`.
        turns(&context, &context.trimmed.agents).await?;
    }
    let planned = async {
        run.release(Earmark::Plan);
        let planned = plan::make(run, deps, request, hints).await?;
        if !planned.asks_user() {
            let added = added(&context, &planned).await?;
            turns(&added, &added.trimmed.agents).await?;
        }
        Ok(planned)
    };
    let (planned, answered) = join(planned, turns(&context, &context.trimmed.agents)).await;
    answered?;
    planned
}

/// Returns the panel of the core, if its agents are to be asked now.
async fn core(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
) -> Result<Option<Trimmed>, Failure> {
    if run.recorded(&PlanStep).is_some() {
        return Ok(None);
    }
    let has_begun = Transcript::of(&run.events()).trimmed.is_some();
    if has_begun {
        let none = Default::default();
        return trim::panel(run, deps, request, &CORE_AGENTS, &none)
            .await
            .map(Some);
    }
    if is_wanted(run, deps, request) {
        trim::core_beside_plan(run, deps, request).await
    } else {
        Ok(None)
    }
}

/// True if the policy permits it, and nothing but the plan stands before round 1. The in-process
/// model answers one call after the other, so it would gain nothing.
fn is_wanted(run: &RunContext, deps: &Deps, request: &RequestContext) -> bool {
    let is_panel_asked = match run.recall(DECIDED) {
        Some(Event::Decided(decided)) => decided.first == AskedFirst::Panel,
        _ => true,
    };
    let roles = CORE_AGENTS
        .map(Role::Agent)
        .into_iter()
        .chain([Role::Master]);
    let mut models = roles.map(|role| deps.role(role));
    let is_remote = models.all(|model| model.is_some_and(|it| it.kind != ProviderKind::Local));
    let is_covered = deps.policy.speculate.contains(&request.question.mode);
    is_covered && is_panel_asked && is_remote && request.parent.is_none()
}

/// Returns the context of the agents that the plan adds to the core, as far as they fit under the
/// cap beside the calls in flight.
async fn added<'a>(
    context: &RoundContext<'a>,
    planned: &Planned,
) -> Result<RoundContext<'a>, Failure> {
    let RoundContext {
        run,
        deps,
        request,
        plan,
        ..
    } = *context;
    let wanted = &planned.plan.agents_to_run;
    let more = trim::more(run, deps, request, wanted, &context.trimmed).await?;
    let mut trimmed = more.unwrap_or_else(|| context.trimmed.clone());
    trimmed
        .agents
        .retain(|agent| !context.trimmed.agents.contains(agent));
    Ok(RoundContext::new(run, deps, request, plan, trimmed))
}

/// Runs these agents at once. Their outcomes are in the journal.
async fn turns(context: &RoundContext<'_>, agents: &[Agent]) -> Result<(), Failure> {
    let until = context.first_end();
    let turns = agents.iter().map(|agent| context.first_turn(*agent, until));
    for outcome in join_all(turns).await {
        outcome?;
    }
    Ok(())
}
