//! The rounds: agents answer concurrently, their claims are cross-checked and judged, and what is contested is settled.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use super::budget::{self, InputBound};
use super::call::{Ask, Typed, Unbought, buy_json, buy_text};
use super::case::{Case, Inherited};
use super::clean::clean;
use super::contested::{self, Claim, Open};
use super::evidence::Evidence;
use super::hedge::{Hedge, Missing};
use super::prompts::{Rendered, set, unquoted};
use super::resolve::{self, Decisions, Held};
use super::table::Table;
use super::{Committee, Failure, cross_check, reuse, trim};
use crate::config::{OutputForm, RoleModel};
use crate::domain::{
    Agent, AgentReport, Disagreement, Judgement, Obtained, Plan, Position, Resolution, Role, Status, Usd,
};
use crate::journal::{
    AgentFinished, AgentOutcome, CallResult, Event, Resolved, RoundSkipped, RoundStarted, RunContext, Scored, Trimmed,
    agent_key, scored_key,
};
use crate::llm::Image;
use crate::scoring;

/// Shares of its first tokens that an agent may write when it reports anew.
const SHARES: [f64; 2] = [1.0, 0.5];

/// When the first round must be over if a cross-check follows it, and when all rounds must be, as shares of the deadline.
const FIRST_END: f64 = 0.65;
const ROUNDS_END: f64 = 0.75;

/// What the rounds left.
pub struct Deliberation {
    /// Each agent of the panel with its last outcome, in the panel's order.
    pub panel: Vec<(Agent, AgentOutcome)>,
    pub judgement: Judgement,
    pub trimmed: Trimmed,
    /// What later rounds should have given and did not, a line each.
    pub missed: Vec<String>,
    pub evidence: Evidence,
}

impl Deliberation {
    /// The agents that answered, with report and score, in the panel's order.
    pub fn answered(&self) -> impl Iterator<Item = (Agent, &AgentReport, &crate::domain::Score, u64)> {
        self.panel.iter().filter_map(|(agent, outcome)| {
            let AgentOutcome::Answered { report, tokens, .. } = outcome else { return None };
            let score = self.judgement.scores.iter().find(|s| s.agent == agent.as_str())?;
            Some((*agent, report, score, *tokens))
        })
    }

    pub fn with_status(&self, status: Status) -> Vec<Agent> {
        self.answered().filter(|(_, _, score, _)| score.status == status).map(|(agent, ..)| agent).collect()
    }

    /// The disagreements in which two positions or more are held by outputs that are not discarded, with these positions
    /// as those outputs state them: nothing of a discarded output is in them.
    pub fn visible_disagreements(&self) -> Vec<(&Disagreement, Vec<Position>)> {
        let reports: Vec<(&str, &AgentReport)> = self
            .answered()
            .filter(|(_, _, score, _)| score.status != Status::Discard)
            .map(|(agent, report, ..)| (agent.as_str(), report))
            .collect();
        contested::visible(&self.judgement.disagreements, &reports)
    }

    pub fn failed(&self) -> impl Iterator<Item = (Agent, &str, &str)> {
        self.panel.iter().filter_map(|(agent, outcome)| match outcome {
            AgentOutcome::Failed { cause, detail, .. } => Some((*agent, cause.as_str(), detail.as_str())),
            AgentOutcome::Answered { .. } => None,
        })
    }
}

/// Runs the rounds of the plan.
///
/// # Errors
/// When no core agent gave any output, when the cap has no room for even one agent, or when the database refuses.
pub async fn rounds(run: &RunContext, house: &Committee, case: &Case, plan: &Plan) -> Result<Deliberation, Failure> {
    let trim::Room { trimmed, check } = trim::panel(run, house, case, plan).await?;
    let until = house.stage_end(run, ROUNDS_END);
    let table = Table { run, house, case, plan, trimmed: &trimmed, until };
    let mut latest = table.first_round().await?;
    if !latest.iter().any(|(agent, outcome)| agent.is_core() && matches!(outcome, AgentOutcome::Answered { .. })) {
        return Err(Failure::no_core_output(&latest));
    }
    cross_check::make(&table, &latest, check).await?;
    let first = latest.clone();
    let mut judgement = judge(&table, &Answers { first: None, latest: &latest }, 1).await?;
    for round in 2..=plan.rounds {
        let find = || (contested::claims(&judgement, &latest), contested::open(&judgement, &latest, &trimmed.agents));
        let (claims, open) = run.compute("finding what is contested", find).await?;
        let heard = Heard { latest: &latest, claims: &claims };
        let Some(open) = table.begin(round, open, &heard, &judgement).await? else { break };
        for (agent, outcome) in table.later_round(round, &open, &heard).await? {
            // A later round only replaces what it improves on: a failure leaves the earlier report standing.
            let answered = matches!(outcome, AgentOutcome::Answered { .. });
            if answered || !matches!(latest.get(&agent), Some(AgentOutcome::Answered { .. })) {
                latest.insert(agent, outcome);
            }
        }
        judgement = judge(&table, &Answers { first: Some(&first), latest: &latest }, round).await?;
    }
    let panel = trimmed.agents.iter().filter_map(|a| latest.get(a).map(|o| (*a, o.clone()))).collect();
    let events = run.events();
    Ok(Deliberation { panel, judgement, missed: missed(&events), evidence: Evidence::of(events.iter()), trimmed })
}

async fn take_over(
    run: &RunContext,
    agent: Agent,
    inherited: &Inherited,
    parent: crate::domain::RunId,
) -> Result<AgentOutcome, Failure> {
    let outcome = AgentOutcome::Answered {
        report: inherited.report.clone(),
        obtained: inherited.obtained,
        truncated: inherited.truncated,
        notes: vec![],
        tokens: inherited.tokens,
    };
    finished(run, AgentFinished { round: 1, agent, outcome, reused_from: Some(parent), resolved: None }).await
}

async fn finished(run: &RunContext, finished: AgentFinished) -> Result<AgentOutcome, Failure> {
    match run.record(Event::AgentFinished(Box::new(finished))).await? {
        Event::AgentFinished(finished) => Ok(finished.outcome),
        _ => Err(Failure::internal("the journal has something else in the place of an agent's outcome")),
    }
}

/// Why a further round is not held: nothing is wrong with that.
const SETTLED: &str = "nothing is left to settle: no contested claim, and every core output is VALID";
const KEPT: &str = "every contested claim was kept in the round before";

/// What later rounds should have given and did not.
fn missed(events: &[Event]) -> Vec<String> {
    let (mut missed, mut answered) = (vec![], BTreeSet::new());
    for event in events {
        match event {
            Event::RoundSkipped(skipped) if skipped.why != SETTLED && skipped.why != KEPT => {
                missed.push(format!("round {} was left out: {}", skipped.round, skipped.why));
            }
            Event::AgentFinished(finished) => match &finished.outcome {
                AgentOutcome::Answered { .. } => {
                    answered.insert(finished.agent);
                }
                AgentOutcome::Failed { cause, .. } if answered.contains(&finished.agent) => missed.push(format!(
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

/// What the agents said: on their own, and last. `first` is `None` while these are the same.
struct Answers<'a> {
    first: Option<&'a BTreeMap<Agent, AgentOutcome>>,
    latest: &'a BTreeMap<Agent, AgentOutcome>,
}

/// The panel's answers as the engine reads them.
pub fn outputs<'a>(
    panel: &[Agent],
    outcomes: &'a BTreeMap<Agent, AgentOutcome>,
    families: &'a BTreeMap<Agent, String>,
) -> Vec<scoring::Output<'a>> {
    let read = |agent: &Agent| output(*agent, outcomes.get(agent)?, families.get(agent).map(String::as_str));
    panel.iter().filter_map(read).collect()
}

/// The family of the model that wrote each agent's latest report of a run: of the call that was answered, be it the role's own
/// model or a fallback. Decisions on contested claims are no reports.
pub fn families_of<'a>(events: impl Iterator<Item = &'a Event>) -> BTreeMap<Agent, String> {
    let (mut sent, mut families) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::CallSent(call) => {
                if let Role::Agent(agent) = call.role
                    && is_report(&call.call, agent)
                {
                    sent.insert(call.call.as_str(), (agent, call.model.as_str()));
                }
            }
            Event::CallSettled(settled) if matches!(settled.result, CallResult::Answered { .. }) => {
                if let Some((agent, model)) = sent.get(settled.call.as_str()) {
                    families.insert(*agent, scoring::family(model));
                }
            }
            _ => {}
        }
    }
    families
}

/// Whether a call asks an agent for its report: `r1/solver`, `r1/solver#2`, `r2/solver/repair`.
pub fn is_report(call: &str, agent: Agent) -> bool {
    let step = call.split_once('/').map_or("", |(_, step)| step);
    step.strip_prefix(agent.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['#', '/']))
}

async fn judge(table: &Table<'_>, answers: &Answers<'_>, round: u8) -> Result<Judgement, Failure> {
    if let Some(Event::Scored(scored)) = table.run.recall(&scored_key(round)) {
        return Ok(scored.judgement);
    }
    let score = || judgement(table, answers);
    let judgement = table.run.compute(&format!("scoring round {round}"), score).await?;
    match table.run.record(Event::Scored(Box::new(Scored { round, judgement }))).await? {
        Event::Scored(scored) => Ok(scored.judgement),
        _ => Err(Failure::internal("the journal has something else in the place of the scores")),
    }
}

fn judgement(table: &Table<'_>, answers: &Answers<'_>) -> Judgement {
    let Table { run, house, case, plan, trimmed, .. } = *table;
    let panel = &trimmed.agents;
    // A report that was taken over is as good as one of the model that has the role now.
    let mut families: BTreeMap<Agent, String> = panel
        .iter()
        .filter_map(|agent| Some((*agent, scoring::family(&house.role(Role::Agent(*agent))?.shown()))))
        .collect();
    families.extend(families_of(run.events().iter()));
    let message = case.full_text();
    let evidence = Evidence::of(run.events().iter());
    let panel = scoring::Panel {
        message: &message,
        task_type: Some(plan.task_type),
        demands: &plan.demands,
        outputs: outputs(panel, answers.latest, &families),
        first_round: answers.first.map(|first| outputs(panel, first, &families)).unwrap_or_default(),
        cross_checks: &evidence.cross_checks,
        resolutions: &evidence.resolutions,
    };
    scoring::judge(&panel, &scoring::Policy::from(&house.policy))
}

/// `None` for an agent that failed.
fn output<'a>(agent: Agent, outcome: &'a AgentOutcome, family: Option<&'a str>) -> Option<scoring::Output<'a>> {
    let AgentOutcome::Answered { report, obtained, truncated, .. } = outcome else { return None };
    Some(scoring::Output {
        agent: agent.as_str(),
        report,
        obtained: *obtained,
        truncated: *truncated,
        role_matches: report.agent == agent.as_str(),
        family,
    })
}

/// What was said before a later round.
struct Heard<'a> {
    latest: &'a BTreeMap<Agent, AgentOutcome>,
    claims: &'a [Claim],
}

impl<'a> Heard<'a> {
    fn report(&self, agent: Agent) -> Option<&'a AgentReport> {
        match self.latest.get(&agent)? {
            AgentOutcome::Answered { report, .. } => Some(report),
            AgentOutcome::Failed { .. } => None,
        }
    }
}

impl Table<'_> {
    /// All agents at once, each on its own; reports of an earlier run are taken over where the user's answer leaves them.
    async fn first_round(&self) -> Result<BTreeMap<Agent, AgentOutcome>, Failure> {
        let first = reuse::split(self.case, &self.trimmed.agents);
        let why = if first.reused.is_empty() {
            "every agent answers independently".to_owned()
        } else {
            let names = first.asked.iter().map(|a| a.as_str()).collect::<Vec<_>>().join(", ");
            format!("the user's answer touches {}; the rest is reused", if names.is_empty() { "none" } else { &names })
        };
        let started = RoundStarted { round: 1, agents: first.asked.clone(), why };
        self.run.record(Event::RoundStarted(started)).await?;
        let mut latest: BTreeMap<Agent, AgentOutcome> = BTreeMap::new();
        if let Some(parent) = &self.case.parent {
            for (agent, inherited) in &first.reused {
                latest.insert(*agent, take_over(self.run, *agent, inherited, parent.run).await?);
            }
        }
        let checked = self.trimmed.cross_check.is_some();
        let until = if checked { self.house.stage_end(self.run, FIRST_END) } else { self.until };
        let missing = Missing::new(first.asked.len());
        let turns = first.asked.iter().map(|agent| async {
            let outcome = self.turn(1, *agent, 1.0, until, Hedge::WhenLast(&missing)).await;
            missing.one_less();
            outcome
        });
        // In the order of the agents, whichever finishes first.
        for (agent, outcome) in first.asked.iter().zip(join_all(turns).await) {
            latest.insert(*agent, outcome?);
        }
        Ok(latest)
    }

    /// Records that a later round begins, or why it is skipped; what was decided before a crash stands, because time and
    /// money look different afterwards. `None`: it is skipped, and so are those after it.
    async fn begin(
        &self,
        round: u8,
        open: Open,
        heard: &Heard<'_>,
        judgement: &Judgement,
    ) -> Result<Option<Open>, Failure> {
        if self.run.recall(&format!("r{round}/skipped")).is_some() {
            return Ok(None);
        }
        if let Some(Event::RoundStarted(started)) = self.run.recall(&format!("r{round}/started")) {
            let asked = |agents: Vec<Agent>| agents.into_iter().filter(|a| started.agents.contains(a)).collect();
            return Ok(Some(Open { holders: asked(open.holders), anew: asked(open.anew) }));
        }
        let open = match self.affordable(round, open, heard, judgement)? {
            Ok(open) => open,
            Err(why) => {
                for skipped in round..=self.plan.rounds {
                    self.run.record(Event::RoundSkipped(RoundSkipped { round: skipped, why: why.clone() })).await?;
                }
                return Ok(None);
            }
        };
        let topics: Vec<&str> = heard.claims.iter().map(|claim| claim.topic.as_str()).collect();
        let why = if open.holders.is_empty() {
            "some core outputs are not VALID".to_owned()
        } else {
            format!("contested: {}", topics.join(", "))
        };
        self.run.record(Event::RoundStarted(RoundStarted { round, agents: open.agents(), why })).await?;
        Ok(Some(open))
    }

    /// What of a further round there is reason, time and money for; the inner error says why there is none.
    fn affordable(
        &self,
        round: u8,
        open: Open,
        heard: &Heard<'_>,
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
        if self.until.saturating_duration_since(Instant::now()).is_zero() {
            return Ok(Err("no time is left for it".to_owned()));
        }
        let left = self.run.ledger().left();
        let decisions = self.worst_decisions(round, &open.holders, heard)?;
        let least = SHARES.last().copied().unwrap_or(1.0);
        if decisions + self.worst_reports(&open.anew, least)? <= left {
            return Ok(Ok(open));
        }
        if decisions <= left && !open.holders.is_empty() {
            return Ok(Ok(Open { anew: vec![], ..open }));
        }
        Ok(Err(format!("the cap cannot carry it: it may cost {decisions}, and {left} is left")))
    }

    /// Whether a round changed any report.
    fn moved(&self, round: u8) -> bool {
        self.run.events().iter().any(|event| match event {
            Event::AgentFinished(finished) if finished.round == round => {
                match (&finished.outcome, &finished.resolved) {
                    (AgentOutcome::Answered { .. }, Some(resolved)) => {
                        resolved.resolutions.iter().any(Resolution::concedes)
                    }
                    (AgentOutcome::Answered { .. }, None) => true,
                    (AgentOutcome::Failed { .. }, _) => false,
                }
            }
            _ => false,
        })
    }

    /// What the decisions of these agents cost at worst.
    fn worst_decisions(&self, round: u8, agents: &[Agent], heard: &Heard<'_>) -> Result<Usd, Failure> {
        let schema = schemars::schema_for!(Decisions).to_value().to_string().len();
        let mut worst = Usd::ZERO;
        for agent in agents {
            let Some(model) = self.house.role(Role::Agent(*agent)) else { continue };
            let held = resolve::held(self.case, round, *agent, heard.claims);
            let prompt = self.resolve_prompt(model, &held)?;
            let input = InputBound::new(prompt.system.len() + schema, budget::text_bound(&prompt.user), &[], 0);
            let output = model.limit_for(resolve::max_tokens(&held));
            worst += budget::worst_case(model, input, output).map_or(Usd::ZERO, |reservation| reservation.amount);
        }
        Ok(worst)
    }

    /// What new reports of these agents cost at worst when each may write this share of what it was given.
    fn worst_reports(&self, agents: &[Agent], share: f64) -> Result<Usd, Failure> {
        let schema = schemars::schema_for!(AgentReport).to_value().to_string().len();
        let mut worst = Usd::ZERO;
        for agent in agents {
            let Some(model) = self.house.role(Role::Agent(*agent)) else { continue };
            let prompt = self.prompt(*agent, model)?;
            let (read, images) = (budget::text_bound(&prompt.user), self.images(*agent).len());
            let input = InputBound::new(prompt.system.len() + schema, read, &[], images);
            let reservation = budget::worst_case(model, input, self.may_write(*agent, share));
            worst += reservation.map_or(Usd::ZERO, |reservation| reservation.amount);
        }
        Ok(worst)
    }

    /// One later round: all agents at once; outcomes in the order of the agents, whichever finishes first.
    async fn later_round(
        &self,
        round: u8,
        open: &Open,
        heard: &Heard<'_>,
    ) -> Result<Vec<(Agent, AgentOutcome)>, Failure> {
        let decisions = self.worst_decisions(round, &open.holders, heard)?;
        let left = self.run.ledger().left() - decisions;
        let mut share = SHARES.last().copied().unwrap_or(1.0);
        for wanted in SHARES.iter().rev() {
            if self.worst_reports(&open.anew, *wanted)? <= left {
                share = *wanted;
            }
        }
        let turns = open.agents().into_iter().map(|agent| async move {
            let outcome = match heard.report(agent).filter(|_| open.holders.contains(&agent)) {
                Some(report) => self.decide(round, agent, report, heard).await?,
                None => self.turn(round, agent, share, self.until, Hedge::Never).await?,
            };
            Ok((agent, outcome))
        });
        join_all(turns).await.into_iter().collect()
    }

    /// An agent's part in a round in which it reports, recalled or bought.
    async fn turn(
        &self,
        round: u8,
        agent: Agent,
        share: f64,
        until: Instant,
        hedge: Hedge<'_>,
    ) -> Result<AgentOutcome, Failure> {
        if let Some(Event::AgentFinished(finished)) = self.run.recall(&agent_key(round, agent)) {
            return Ok(finished.outcome);
        }
        let role = Role::Agent(agent);
        let Some(model) = self.house.role(role) else {
            return Err(Failure::internal("an agent without a model is on the panel"));
        };
        let render = || self.prompt(agent, model);
        let prompt = self.run.compute(&format!("asking r{round}/{agent}"), render).await??;
        let ask = Ask {
            step: format!("r{round}/{agent}"),
            role,
            prompt,
            images: self.images(agent),
            model_texts: vec![],
            max_tokens: self.may_write(agent, share),
            answer_tokens: None,
            until,
            hedge,
        };
        let bought = match model.output {
            OutputForm::Json => buy_json::<AgentReport>(self.run, self.house, ask).await?,
            OutputForm::Text => match buy_text(self.run, self.house, ask).await? {
                Ok(typed) => {
                    let message = self.case.full_text();
                    let read = || scoring::report_from_text(agent.as_str(), &message, &unquoted(&typed.value));
                    let report = self.run.compute(&format!("reading r{round}/{agent}"), read).await?;
                    Ok(Typed { obtained: Obtained::Text, ..typed.map(|_| report) })
                }
                Err(unbought) => Err(unbought),
            },
        };
        let outcome = match bought {
            Ok(Typed { value, obtained, truncated, notes, tokens }) => {
                let report = clean(value, self.house.policy.llm_confidence_ceiling);
                AgentOutcome::Answered { report, obtained, truncated, notes, tokens }
            }
            Err(unbought) => failed(unbought),
        };
        finished(self.run, AgentFinished { round, agent, outcome, reused_from: None, resolved: None }).await
    }

    /// An agent's part in a round in which it keeps or concedes its contested claims, recalled or bought.
    async fn decide(
        &self,
        round: u8,
        agent: Agent,
        report: &AgentReport,
        heard: &Heard<'_>,
    ) -> Result<AgentOutcome, Failure> {
        if let Some(Event::AgentFinished(finished)) = self.run.recall(&agent_key(round, agent)) {
            return Ok(finished.outcome);
        }
        let role = Role::Agent(agent);
        let Some(model) = self.house.role(role) else {
            return Err(Failure::internal("an agent without a model is on the panel"));
        };
        let held = resolve::held(self.case, round, agent, heard.claims);
        let ask = Ask {
            step: format!("r{round}/resolve/{agent}"),
            role,
            prompt: self.run.compute("rendering contested claims", || self.resolve_prompt(model, &held)).await??,
            images: &[],
            model_texts: vec![],
            max_tokens: model.max_tokens,
            answer_tokens: Some(resolve::max_tokens(&held)),
            until: self.until,
            hedge: Hedge::Never,
        };
        let (outcome, resolved) = match buy_json::<Decisions>(self.run, self.house, ask).await? {
            Ok(typed) => {
                let settle = || self.resolved(agent, report, heard, &held, &typed);
                self.run.compute(&format!("settling r{round}/{agent}"), settle).await?
            }
            Err(unbought) => (failed(unbought), None),
        };
        finished(self.run, AgentFinished { round, agent, outcome, reused_from: None, resolved }).await
    }

    /// The earlier outcome with what the agent concedes.
    fn resolved(
        &self,
        agent: Agent,
        report: &AgentReport,
        heard: &Heard<'_>,
        held: &[Held<'_>],
        typed: &Typed<Decisions>,
    ) -> (AgentOutcome, Option<Resolved>) {
        let (report, resolved) = resolve::settle(report, agent.as_str(), held, &typed.value, typed.obtained);
        let outcome = match heard.latest.get(&agent) {
            Some(AgentOutcome::Answered { obtained, truncated, notes, tokens, .. }) => AgentOutcome::Answered {
                report,
                obtained: *obtained,
                truncated: *truncated,
                notes: notes.clone(),
                tokens: *tokens,
            },
            _ => failed(Unbought::unusable("there is no earlier report")),
        };
        (outcome, Some(resolved))
    }

    /// What an agent reads when it reports.
    fn prompt(&self, agent: Agent, model: &RoleModel) -> Result<Rendered, Failure> {
        let mut values = self.case.values(Some(self.plan.task_type.as_str()), &[]);
        set(&mut values, "images", json!(self.images(agent).len()));
        Ok(self.house.prompts.render(model.prompts, agent.as_str(), values)?)
    }

    fn resolve_prompt(&self, model: &RoleModel, held: &[Held<'_>]) -> Result<Rendered, Failure> {
        let mut values = self.case.values(Some(self.plan.task_type.as_str()), &[]);
        set(&mut values, "images", json!(0));
        set(&mut values, "claims", resolve::shown(held));
        Ok(self.house.prompts.render(model.prompts, "resolve", values)?)
    }

    fn images(&self, agent: Agent) -> &[Image] {
        if agent == Agent::Visual { &self.case.images } else { &[] }
    }

    /// Output tokens of an agent in a round in which it may write this share of what it was given.
    fn may_write(&self, agent: Agent, share: f64) -> u32 {
        let role = Role::Agent(agent);
        let given = self.trimmed.max_tokens.iter().find(|(r, _)| *r == role).map(|(_, tokens)| *tokens);
        let Some(model) = self.house.role(role) else { return 0 };
        let given = given.unwrap_or(model.max_tokens);
        ((f64::from(given) * share) as u32).max(model.least_tokens().min(given))
    }
}

fn failed(unbought: Unbought) -> AgentOutcome {
    let Unbought { cause, detail, by_deadline, .. } = unbought;
    AgentOutcome::Failed { cause, detail, by_deadline }
}
