//! Asks the core agents while the master makes the plan (`policy.speculate`).
//!
//! The core answers in every plan, and what it is asked does not depend on the plan. So its reports
//! are used unless the master asks the user first: then they stay unused. Their calls have the
//! same names as without this stage, so a resumed run makes none of them again.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use tokio::time::timeout;

use crate::committee::failure::Failure;
use crate::committee::money::trim;
use crate::committee::request_context::Stage;
use crate::committee::stages::plan;
use crate::committee::stages::round_context::RoundContext;
use crate::domain::{Agent, AskedFirst, CORE_AGENTS, Earmark, ProviderKind, Role};
use crate::journal::step;
use crate::journal::{Event, Hinted, Planned, RoundStarted, Transcript, Trimmed};

/// How long the master's question waits for reports in flight, as a share of the deadline, and the most.
const WAIT_SHARE: f64 = 0.1;
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Returns the plan of this run. The core agents answer in the meantime, if the policy and the cap
/// permit it.
///
/// # Errors
/// Those of [`plan::make`], after the calls in flight have ended; and those of the agents' turns.
pub async fn plan(stage: Stage<'_>, hints: &Hinted) -> Result<Planned, Failure> {
    let run = stage.run;
    let Some(trimmed) = core(stage)? else {
        return plan::make(stage, hints).await;
    };
    let started = RoundStarted {
        round: 1,
        agents: CORE_AGENTS.to_vec(),
        why: "the core answers while the plan is made".to_owned(),
        ahead: true,
    };
    run.record(Event::RoundStarted(started))?;
    let provisional = plan::provisional(stage, hints);
    let context = RoundContext::new(stage, &provisional, trimmed);
    let planned = async {
        run.release(Earmark::Plan);
        let planned = plan::make(stage, hints).await?;
        if !planned.asks_user() {
            turns(&added(&context, &planned)?).await?;
        }
        Ok(planned)
    };
    let turns = pin!(turns(&context));
    match select(pin!(planned), turns).await {
        Either::Left((planned, turns)) => {
            match &planned {
                Ok(planned) if planned.asks_user() => wait_briefly(stage, turns).await?,
                _ => turns.await?,
            }
            planned
        }
        Either::Right((answered, planned)) => {
            let planned = planned.await;
            answered?;
            planned
        }
    }
}

/// Waits for the reports that are no longer needed, so that their calls are settled at what they cost.
/// Calls that take longer are given up, and settled at their reserved maximum.
async fn wait_briefly(
    stage: Stage<'_>,
    turns: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let deadline = stage.deps.policy.deadline(stage.request.question.mode);
    let wait = deadline.mul_f64(WAIT_SHARE).min(MAX_WAIT);
    match timeout(wait, turns).await {
        Ok(ended) => ended,
        Err(_) => Ok(stage.run.give_up_calls().await?),
    }
}

/// Returns the panel of the core, if its agents are to be asked now.
fn core(stage: Stage<'_>) -> Result<Option<Trimmed>, Failure> {
    let run = stage.run;
    if run.recorded(&step::plan()).is_some() {
        Ok(None)
    } else if Transcript::of(&run.events()).trimmed.is_some() {
        let none = Default::default();
        trim::panel(stage, &CORE_AGENTS, &none).map(Some)
    } else if is_wanted(stage) {
        trim::core_beside_plan(stage)
    } else {
        Ok(None)
    }
}

/// True if the policy permits it, and nothing but the plan stands before round 1. The in-process
/// model answers one call after the other, so it would gain nothing.
fn is_wanted(stage: Stage<'_>) -> bool {
    let Stage { deps, request, .. } = stage;
    let is_panel_asked = request.asked_first == AskedFirst::Panel;
    let roles = CORE_AGENTS.map(Role::Agent).into_iter();
    let mut models = roles.chain([Role::Master]).map(|role| deps.role(role));
    let is_remote = models.all(|model| model.is_some_and(|it| it.kind != ProviderKind::Local));
    let is_covered = deps.policy.speculate.contains(&request.question.mode);
    is_covered && is_panel_asked && is_remote && request.parent.is_none()
}

/// Returns the context of the agents that the plan adds to the core, as far as they fit under the
/// cap beside the calls in flight.
fn added<'a>(context: &RoundContext<'a>, planned: &Planned) -> Result<RoundContext<'a>, Failure> {
    let stage = context.stage();
    let known = &context.trimmed;
    let more = trim::more(stage, &planned.plan.agents_to_run, known)?;
    let mut trimmed = more.unwrap_or_else(|| known.clone());
    trimmed.agents.retain(|agent| !known.agents.contains(agent));
    Ok(RoundContext::new(stage, context.plan, trimmed))
}

/// Runs all agents of the context at once. Their outcomes are in the journal.
async fn turns(context: &RoundContext<'_>) -> Result<(), Failure> {
    let until = context.first_end();
    let agents: &[Agent] = &context.trimmed.agents;
    let turns = agents.iter().map(|agent| context.first_turn(*agent, until));
    for outcome in join_all(turns).await {
        outcome?;
    }
    Ok(())
}
