//! The rounds: agents answer concurrently, their claims are cross-checked and judged, and contested
//! claims are settled.

use crate::committee::stages::deliberation::Deliberation;
use crate::committee::stages::judge::{Answers, judge};
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::CallFailure;
use crate::committee::call::prompts::{Rendered, set};
use crate::committee::money::budget::{self, InputBound};
use crate::committee::money::trim;
use crate::committee::request_context::{RequestContext, ReusedOutputs};
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::open_claims::{self, Claim, Open};
use crate::committee::stages::resolve::{self, Decisions};
use crate::committee::stages::round_context::RoundContext;
use crate::committee::stages::{cross_check, reuse};
use crate::committee::{Deps, Failure};
use crate::config::RoleModel;
use crate::domain::{Agent, AgentReport, Judgement, Plan, Role, Usd};
use crate::journal::step::{AgentStep, RoundStep, SkipStep};
use crate::journal::{AgentFinished, AgentOutcome, Event, RoundSkipped, RoundStarted, RunContext};
use crate::llm::Image;

/// The shares of its first output limit that an agent may use when it reports again.
pub(super) const SHARES: [f64; 2] = [1.0, 0.5];

/// The ends of the first round, if a cross-check follows it, and of all rounds, as shares of the
/// deadline.
const FIRST_END: f64 = 0.65;
const ROUNDS_END: f64 = 0.75;

/// Runs the rounds of the plan.
///
/// # Errors
/// If no core agent gave any output, if the cap has no room for even one agent, or if the database
/// fails.
pub async fn rounds(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    plan: &Plan,
) -> Result<Deliberation, Failure> {
    let trim::Room { trimmed, check } = trim::panel(run, deps, request, plan).await?;
    let until = deps.stage_end(run, ROUNDS_END);
    let context = RoundContext {
        run,
        deps,
        request,
        plan,
        trimmed: &trimmed,
        until,
    };
    let mut latest = context.first_round().await?;
    if !latest
        .iter()
        .any(|(agent, outcome)| agent.is_core() && matches!(outcome, AgentOutcome::Answered { .. }))
    {
        return Err(Failure::no_core_output(&latest));
    }
    cross_check::make(&context, &latest, check).await?;
    let first = latest.clone();
    let mut judgement = judge(
        &context,
        &Answers {
            first: None,
            latest: &latest,
        },
        1,
    )
    .await?;
    for round in 2..=plan.rounds {
        let find = || {
            (
                open_claims::claims(&judgement, &latest),
                open_claims::open(&judgement, &latest, &trimmed.agents),
            )
        };
        let (claims, open) = run.compute("finding what is contested", find).await?;
        let heard = RoundInput {
            latest: &latest,
            claims: &claims,
        };
        let Some(open) = context.begin(round, open, &heard, &judgement).await? else {
            break;
        };
        for (agent, outcome) in context.later_round(round, &open, &heard).await? {
            // A failure in a later round does not replace the earlier report.
            let answered = matches!(outcome, AgentOutcome::Answered { .. });
            if answered || !matches!(latest.get(&agent), Some(AgentOutcome::Answered { .. })) {
                latest.insert(agent, outcome);
            }
        }
        judgement = judge(
            &context,
            &Answers {
                first: Some(&first),
                latest: &latest,
            },
            round,
        )
        .await?;
    }
    let panel = trimmed
        .agents
        .iter()
        .filter_map(|a| latest.get(a).map(|o| (*a, o.clone())))
        .collect();
    let events = run.events();
    Ok(Deliberation {
        panel,
        judgement,
        missed: missed(&events),
        evidence: Evidence::of(events.iter()),
        trimmed,
    })
}

async fn take_over(
    run: &RunContext,
    agent: Agent,
    inherited: &ReusedOutputs,
    parent: crate::domain::RunId,
) -> Result<AgentOutcome, Failure> {
    let outcome = AgentOutcome::Answered {
        report: inherited.report.clone(),
        obtained: inherited.obtained,
        truncated: inherited.truncated,
        notes: vec![],
        tokens: inherited.tokens,
    };
    finished(
        run,
        AgentFinished {
            round: 1,
            agent,
            outcome,
            reused_from: Some(parent),
            resolved: None,
        },
    )
    .await
}

pub(super) async fn finished(
    run: &RunContext,
    finished: AgentFinished,
) -> Result<AgentOutcome, Failure> {
    let step = AgentStep {
        round: finished.round,
        agent: finished.agent,
    };
    Ok(run.record_output(step, Box::new(finished)).await?.outcome)
}

/// Reasons for skipping a round that are not a fault.
const SETTLED: &str =
    "nothing is left to settle: no contested claim, and every core output is VALID";
const KEPT: &str = "every contested claim was kept in the round before";

/// Returns what later rounds failed to give, one line each.
fn missed(events: &[Event]) -> Vec<String> {
    let (mut missed, mut answered) = (vec![], BTreeSet::new());
    for event in events {
        match event {
            Event::RoundSkipped(skipped) if skipped.why != SETTLED && skipped.why != KEPT => {
                missed.push(format!(
                    "round {} was left out: {}",
                    skipped.round, skipped.why
                ));
            }
            Event::AgentFinished(finished) => match &finished.outcome {
                AgentOutcome::Answered { .. } => {
                    answered.insert(finished.agent);
                }
                AgentOutcome::Failed { cause, .. } if answered.contains(&finished.agent) => missed
                    .push(format!(
                        "{} gave nothing in round {} ({cause}): its earlier report stands",
                        finished.agent, finished.round
                    )),
                AgentOutcome::Failed { .. } => {}
            },
            _ => {}
        }
    }
    missed
}

/// True if a call asks an agent for its report: `r1/solver`, `r1/solver#2`, `r2/solver/repair`.
pub fn is_report(call: &str, agent: Agent) -> bool {
    let step = call.split_once('/').map_or("", |(_, step)| step);
    step.strip_prefix(agent.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['#', '/']))
}

/// The agents' outcomes and the contested claims before a later round.
pub(super) struct RoundInput<'a> {
    pub latest: &'a BTreeMap<Agent, AgentOutcome>,
    pub claims: &'a [Claim],
}

impl<'a> RoundInput<'a> {
    pub(super) fn report(&self, agent: Agent) -> Option<&'a AgentReport> {
        match self.latest.get(&agent)? {
            AgentOutcome::Answered { report, .. } => Some(report),
            AgentOutcome::Failed { .. } => None,
        }
    }
}

impl RoundContext<'_> {
    /// Runs all agents at once, independently. Reports of an earlier run that the user's answer
    /// does not affect are reused.
    async fn first_round(&self) -> Result<BTreeMap<Agent, AgentOutcome>, Failure> {
        let first = reuse::split(self.request, &self.trimmed.agents);
        let why = if first.reused.is_empty() {
            "every agent answers independently".to_owned()
        } else {
            let names = first
                .asked
                .iter()
                .map(|a| a.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            format!(
                "the user's answer touches {}; the rest is reused",
                if names.is_empty() { "none" } else { &names }
            )
        };
        let started = RoundStarted {
            round: 1,
            agents: first.asked.clone(),
            why,
        };
        self.run.record(Event::RoundStarted(started)).await?;
        let mut latest: BTreeMap<Agent, AgentOutcome> = BTreeMap::new();
        if let Some(parent) = &self.request.parent {
            for (agent, inherited) in &first.reused {
                latest.insert(
                    *agent,
                    take_over(self.run, *agent, inherited, parent.run).await?,
                );
            }
        }
        let checked = self.trimmed.cross_check.is_some();
        let until = if checked {
            self.deps.stage_end(self.run, FIRST_END)
        } else {
            self.until
        };
        let turns = first
            .asked
            .iter()
            .map(|agent| self.turn(1, *agent, 1.0, until));
        // Results are in the order of the agents, not in the order of finishing.
        for (agent, outcome) in first.asked.iter().zip(join_all(turns).await) {
            latest.insert(*agent, outcome?);
        }
        Ok(latest)
    }

    /// Records that a later round begins, or why it is skipped. A decision made before a crash
    /// stands, because time and money look different afterwards. `None`: this round and all later
    /// ones are skipped.
    async fn begin(
        &self,
        round: u8,
        open: Open,
        heard: &RoundInput<'_>,
        judgement: &Judgement,
    ) -> Result<Option<Open>, Failure> {
        if self.run.recorded(&SkipStep { round }).is_some() {
            return Ok(None);
        }
        if let Some(started) = self.run.recorded(&RoundStep { round }) {
            let asked = |agents: Vec<Agent>| {
                agents
                    .into_iter()
                    .filter(|a| started.agents.contains(a))
                    .collect()
            };
            return Ok(Some(Open {
                holders: asked(open.holders),
                anew: asked(open.anew),
            }));
        }
        let open = match self.affordable(round, open, heard, judgement)? {
            Ok(open) => open,
            Err(why) => {
                for skipped in round..=self.plan.rounds {
                    self.run
                        .record(Event::RoundSkipped(RoundSkipped {
                            round: skipped,
                            why: why.clone(),
                        }))
                        .await?;
                }
                return Ok(None);
            }
        };
        let topics: Vec<&str> = heard
            .claims
            .iter()
            .map(|claim| claim.topic.as_str())
            .collect();
        let why = if open.holders.is_empty() {
            "some core outputs are not VALID".to_owned()
        } else {
            format!("contested: {}", topics.join(", "))
        };
        self.run
            .record(Event::RoundStarted(RoundStarted {
                round,
                agents: open.agents(),
                why,
            }))
            .await?;
        Ok(Some(open))
    }

    /// Returns the part of a further round that is needed and fits the time and money left. The
    /// inner error says why there is none.
    fn affordable(
        &self,
        round: u8,
        open: Open,
        heard: &RoundInput<'_>,
        judgement: &Judgement,
    ) -> Result<Result<Open, String>, Failure> {
        if open.agents().is_empty() {
            let prose = "what is contested was said in plain text, which has no claims to concede";
            let contested = judgement.disagreements.iter().any(|d| !d.settled);
            return Ok(Err(if contested { prose } else { SETTLED }.to_owned()));
        }
        if round > 2 && open.anew.is_empty() && !self.moved(round - 1) {
            return Ok(Err(KEPT.to_owned()));
        }
        if self
            .until
            .saturating_duration_since(Instant::now())
            .is_zero()
        {
            return Ok(Err("no time is left for it".to_owned()));
        }
        let left = self.run.ledger().left();
        let decisions = self.worst_decisions(round, &open.holders, heard)?;
        let least = SHARES.last().copied().unwrap_or(1.0);
        if decisions + self.worst_reports(&open.anew, least)? <= left {
            return Ok(Ok(open));
        }
        if decisions <= left && !open.holders.is_empty() {
            return Ok(Ok(Open {
                anew: vec![],
                ..open
            }));
        }
        Ok(Err(format!(
            "the cap cannot carry it: it may cost {decisions}, and {left} is left"
        )))
    }

    /// Returns the worst-case cost of the decisions of these agents.
    pub(super) fn worst_decisions(
        &self,
        round: u8,
        agents: &[Agent],
        heard: &RoundInput<'_>,
    ) -> Result<Usd, Failure> {
        let schema = schemars::schema_for!(Decisions)
            .to_value()
            .to_string()
            .len();
        let mut worst = Usd::ZERO;
        for agent in agents {
            let Some(model) = self.deps.role(Role::Agent(*agent)) else {
                continue;
            };
            let held = resolve::held(self.request, round, *agent, heard.claims);
            let prompt = self.resolve_prompt(model, &held)?;
            let input = InputBound::new(
                prompt.system.len() + schema,
                budget::text_bound(&prompt.user),
                &[],
                0,
            );
            let output = model.limit_for(resolve::max_tokens(&held));
            worst += budget::worst_case(model, input, output)
                .map_or(Usd::ZERO, |reservation| reservation.amount);
        }
        Ok(worst)
    }

    /// Returns the worst-case cost of new reports of these agents, each at this share of its first
    /// output limit.
    pub(super) fn worst_reports(&self, agents: &[Agent], share: f64) -> Result<Usd, Failure> {
        let schema = schemars::schema_for!(AgentReport)
            .to_value()
            .to_string()
            .len();
        let mut worst = Usd::ZERO;
        for agent in agents {
            let Some(model) = self.deps.role(Role::Agent(*agent)) else {
                continue;
            };
            let prompt = self.prompt(*agent, model)?;
            let (read, images) = (budget::text_bound(&prompt.user), self.images(*agent).len());
            let input = InputBound::new(prompt.system.len() + schema, read, &[], images);
            let reservation = budget::worst_case(model, input, self.may_write(*agent, share));
            worst += reservation.map_or(Usd::ZERO, |reservation| reservation.amount);
        }
        Ok(worst)
    }

    /// Renders the prompt for an agent's report.
    pub(super) fn prompt(&self, agent: Agent, model: &RoleModel) -> Result<Rendered, Failure> {
        let mut values = self.request.values(Some(self.plan.task_type.as_str()), &[]);
        set(&mut values, "images", json!(self.images(agent).len()));
        Ok(self
            .deps
            .prompts
            .render(model.prompts, agent.as_str(), values)?)
    }

    pub(super) fn images(&self, agent: Agent) -> &[Image] {
        if agent == Agent::Visual {
            &self.request.images
        } else {
            &[]
        }
    }

    /// Returns an agent's output tokens in a round in which it may use this share of its first
    /// limit.
    pub(super) fn may_write(&self, agent: Agent, share: f64) -> u32 {
        let role = Role::Agent(agent);
        let given = self
            .trimmed
            .max_tokens
            .iter()
            .find(|(r, _)| *r == role)
            .map(|(_, tokens)| *tokens);
        let Some(model) = self.deps.role(role) else {
            return 0;
        };
        let given = given.unwrap_or(model.max_tokens);
        ((f64::from(given) * share) as u32).max(model.least_tokens().min(given))
    }
}

pub(super) fn failed(unbought: CallFailure) -> AgentOutcome {
    let CallFailure {
        cause,
        detail,
        by_deadline,
        ..
    } = unbought;
    AgentOutcome::Failed {
        cause,
        detail,
        by_deadline,
    }
}
