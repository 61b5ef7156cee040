//! The rounds: agents answer concurrently, their claims are cross-checked and judged, and contested
//! claims are settled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::committee::deps::StageEnd;
use crate::committee::failure::Failure;
use crate::committee::money::trim;
use crate::committee::request_context::Stage;
use crate::committee::stages::deliberation::Deliberation;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::judge::{judge, read_beside};
use crate::committee::stages::reuse::{self, ReuseDecision};
use crate::committee::stages::round_context::{RoundContext, RoundInput};
use crate::committee::stages::turn::finished;
use crate::committee::stages::{cross_check, escalation, open_claims};
use crate::domain::{Agent, Judgement, Plan};
use crate::journal::step;
use crate::journal::{AgentFinished, AgentOutcome, RunContext, Transcript, Trimmed};

/// Runs the rounds of the plan.
///
/// # Errors
/// If no core agent gave any output, if not even one agent fits under the cap, or if the database
/// fails.
pub async fn rounds(stage: Stage<'_>, plan: &Plan) -> Result<Deliberation, Failure> {
    let run = stage.run;
    let reuse = reuse::decide(stage.request, &plan.agents_to_run);
    let trimmed = trim::panel(stage, &reuse.asked, &reuse.reused)?;
    let mut context = RoundContext::new(stage, plan, trimmed);
    if let Some(latest) = escalation::solver_alone(&context, &reuse).await? {
        let judgement = checked(&context, &latest).await?;
        return Ok(deliberation(run, context.trimmed, latest, judgement));
    }
    // A solver that was asked first may have cost more than one call.
    if run.recorded(&step::solver()).is_some() {
        context.trimmed = trim::panel(stage, &reuse.asked, &reuse.reused)?;
    }
    let mut latest = context.first_round(&reuse).await?;
    loop {
        let first_end = stage.deps.stage_end(run, StageEnd::FirstRound);
        let has_time = Instant::now() + longest_report(run) < first_end;
        let added = if has_time { &reuse.asked[..] } else { &[] };
        let Some(more) = trim::more(stage, added, &context.trimmed)? else {
            break;
        };
        context.trimmed = more;
        latest = context.first_round(&reuse).await?;
    }
    let mut outcomes = latest.iter();
    if !outcomes.any(|(agent, outcome)| agent.is_core() && outcome.is_answered()) {
        return Err(Failure::no_core_output(&latest));
    }
    let mut judgement = checked(&context, &latest).await?;
    for round in 2..=plan.rounds {
        let panel = &context.trimmed.agents;
        let find = || {
            let evidence = Evidence::of(&Transcript::of(&run.events()));
            open_claims::open(&judgement, &latest, panel, &evidence.cross_checks)
        };
        let (claims, open) = run.compute(find).await?;
        let input = RoundInput {
            latest: &latest,
            claims: &claims,
        };
        let Some(held) = context.begin(round, open, &input, &judgement)? else {
            break;
        };
        for (agent, outcome) in context.later_round(&held, &input).await? {
            // A failure in a later round does not replace the earlier report.
            let earlier = latest.get(&agent).is_some_and(AgentOutcome::is_answered);
            if outcome.is_answered() || !earlier {
                latest.insert(agent, outcome);
            }
        }
        judgement = judge(&context, round, None).await?;
    }
    Ok(deliberation(run, context.trimmed, latest, judgement))
}

/// Cross-checks the reports of round 1 and judges them. They are read while the cross-check is under
/// way.
async fn checked(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
) -> Result<Arc<Judgement>, Failure> {
    let (checked, read) = read_beside(context, cross_check::make(context, latest)).await?;
    checked?;
    judge(context, 1, read).await
}

/// Returns the time of the slowest call of round 1 so far. Another agent may need as long.
fn longest_report(run: &RunContext) -> Duration {
    let events = run.events();
    let calls = Transcript::of(&events).calls;
    let reports = calls.iter().filter(|call| call.sent.is_of_round(1));
    let times = reports.filter_map(|call| Some(call.settled?.latency_ms));
    Duration::from_millis(times.max().unwrap_or(0))
}

fn deliberation(
    run: &RunContext,
    trimmed: Trimmed,
    mut latest: BTreeMap<Agent, AgentOutcome>,
    judgement: Arc<Judgement>,
) -> Deliberation {
    let events = run.events();
    let transcript = Transcript::of(&events);
    Deliberation {
        panel: trimmed
            .agents
            .iter()
            .filter_map(|agent| latest.remove_entry(agent))
            .collect(),
        judgement,
        evidence: Evidence::of(&transcript),
        trimmed,
    }
}

impl RoundContext<'_> {
    /// Runs all agents at once, independently. Reports of an earlier run that the user's answer
    /// does not affect are reused.
    async fn first_round(
        &self,
        reuse: &ReuseDecision,
    ) -> Result<BTreeMap<Agent, AgentOutcome>, Failure> {
        let mut asked = reuse.asked.clone();
        asked.retain(|agent| self.trimmed.agents.contains(agent));
        let why = if reuse.reused.is_empty() {
            "every agent answers independently".to_owned()
        } else {
            let mut names: Vec<&str> = asked.iter().map(Agent::into_str).collect();
            if names.is_empty() {
                names.push("none");
            }
            let names = names.join(", ");
            format!("the user's answer touches {names}; the rest is reused")
        };
        self.start(1, asked.clone(), why)?;
        let mut latest: BTreeMap<Agent, AgentOutcome> = BTreeMap::new();
        if let Some(parent) = &self.request.parent {
            for (agent, inherited) in &reuse.reused {
                let done = AgentFinished {
                    round: 1,
                    agent: *agent,
                    outcome: inherited.clone(),
                    reused_from: Some(parent.run),
                    resolved: None,
                };
                latest.insert(*agent, finished(self.run, done)?);
            }
        }
        let until = self.first_end();
        let turns = asked.iter().map(|agent| self.first_turn(*agent, until));
        // Results are in the order of the agents, not in the order of finishing.
        for (agent, outcome) in asked.iter().zip(join_all(turns).await) {
            latest.extend(outcome?.map(|outcome| (*agent, outcome)));
        }
        if asked.contains(&Agent::Solver) && !latest.contains_key(&Agent::Solver) {
            latest.insert(Agent::Solver, self.last_resort(&latest, until).await?);
        }
        Ok(latest)
    }
}
