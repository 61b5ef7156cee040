//! The rounds: agents answer concurrently, are judged, and settle what is contested.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use super::budget::{self, InputBound, ModelText};
use super::call::{Ask, Typed, Unbought, buy_json, buy_text};
use super::case::{Case, Inherited};
use super::contested::{self, Claim};
use super::hedge::{Hedge, Missing};
use super::prompts::{Rendered, set, unquoted};
use super::revise::{self, Revision};
use super::table::Table;
use super::{Committee, Failure, reuse, review, score, trim};
use crate::config::{OutputForm, RoleModel};
use crate::domain::{Agent, AgentReport, Disagreement, Judgement, Obtained, Plan, Position, Review, Role, Status, Usd};
use crate::journal::{
    AgentFinished, AgentOutcome, CallResult, Event, Revised, RoundSkipped, RoundStarted, RunContext, Scored, Trimmed,
    agent_key, scored_key,
};
use crate::llm::Image;

/// Shares of its first tokens that an agent may write in a later round, the largest that can be paid for all.
const SHARES: [f64; 5] = [1.0, 0.85, 0.7, 0.6, LEAST_SHARE];
const LEAST_SHARE: f64 = 0.5;

/// Entries of each list of a report; no sound report has so many. Some comparisons are of each with each.
const MAX_ENTRIES: usize = 100;

/// What the rounds left.
pub struct Deliberation {
    /// Each agent of the panel with its last outcome, in the panel's order.
    pub panel: Vec<(Agent, AgentOutcome)>,
    pub judgement: Judgement,
    pub trimmed: Trimmed,
    /// What later rounds should have given and did not, a line each.
    pub missed: Vec<String>,
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
    let trimmed = trim::panel(run, house, case, plan).await?;
    let until = house.stage_end(run, 0.75);
    let first = reuse::split(case, &trimmed.agents);
    let why = if first.reused.is_empty() {
        "every agent answers independently".to_owned()
    } else {
        let names = first.asked.iter().map(|a| a.as_str()).collect::<Vec<_>>().join(", ");
        format!("the user's answer touches {}; the rest is reused", if names.is_empty() { "none" } else { &names })
    };
    let started = RoundStarted { round: 1, agents: first.asked.clone(), why };
    run.record(Event::RoundStarted(started)).await?;
    let mut latest: BTreeMap<Agent, AgentOutcome> = BTreeMap::new();
    if let Some(parent) = &case.parent {
        for (agent, inherited) in &first.reused {
            latest.insert(*agent, take_over(run, *agent, inherited, parent.run).await?);
        }
    }
    let table = Table { run, house, case, plan, trimmed: &trimmed, until };
    for (agent, outcome) in table.round(1, &first.asked, None).await? {
        latest.insert(agent, outcome);
    }
    if !latest.iter().any(|(agent, outcome)| agent.is_core() && matches!(outcome, AgentOutcome::Answered { .. })) {
        return Err(Failure::no_core_output(&latest));
    }
    let first = latest.clone();
    let mut judgement =
        judge(run, house, case, plan, &trimmed.agents, &Answers { first: None, latest: &latest }, 1).await?;
    for round in 2..=plan.rounds {
        let find = || {
            let open = contested::contested(&judgement, &latest, &trimmed.agents);
            (open, contested::claims(&judgement, &latest))
        };
        let (open, claims) = run.compute("finding what is contested", find).await?;
        let before = review::standing(run.events().iter());
        let mut heard =
            Heard { latest: &latest, judgement: &judgement, claims: &claims, reviews: &before, share: LEAST_SHARE };
        // What was decided before a crash stands: time and money look different now.
        let why = match (run.recall(&format!("r{round}/skipped")), run.recall(&format!("r{round}/started"))) {
            (Some(_), _) => break,
            (None, Some(_)) => None,
            (None, None) => match skip_reason(&open, &judgement, until) {
                Some(why) => Some(why),
                None => run.compute("pricing a round", || table.unaffordable(round, &open, &heard)).await??,
            },
        };
        if let Some(why) = why {
            for skipped in round..=plan.rounds {
                run.record(Event::RoundSkipped(RoundSkipped { round: skipped, why: why.clone() })).await?;
            }
            break;
        }
        let topics: Vec<&str> = claims.iter().map(|claim| claim.topic.as_str()).collect();
        let why = if topics.is_empty() {
            "some core outputs are not VALID".into()
        } else {
            format!("contested: {}", topics.join(", "))
        };
        run.record(Event::RoundStarted(RoundStarted { round, agents: open.clone(), why })).await?;
        let price = || table.worst_revisions(round, &open, &heard, LEAST_SHARE);
        let revisions = run.compute("pricing revisions", price).await??;
        review::hold(&table, round, &claims, &judgement, &latest, revisions).await?;
        let reviews = review::standing(run.events().iter());
        heard.reviews = &reviews;
        heard.share = run.compute("sharing the money of a round", || table.share(round, &open, &heard)).await??;
        for (agent, outcome) in table.round(round, &open, Some(&heard)).await? {
            // A later round only replaces what it improves on: a failure leaves the earlier report standing.
            let answered = matches!(outcome, AgentOutcome::Answered { .. });
            if answered || !matches!(latest.get(&agent), Some(AgentOutcome::Answered { .. })) {
                latest.insert(agent, outcome);
            }
        }
        let answers = Answers { first: Some(&first), latest: &latest };
        judgement = judge(run, house, case, plan, &trimmed.agents, &answers, round).await?;
    }
    let panel = trimmed.agents.iter().filter_map(|a| latest.get(a).map(|o| (*a, o.clone()))).collect();
    Ok(Deliberation { panel, judgement, trimmed, missed: missed(&run.events()) })
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
    finished(run, AgentFinished { round: 1, agent, outcome, reused_from: Some(parent), revision: None }).await
}

async fn finished(run: &RunContext, finished: AgentFinished) -> Result<AgentOutcome, Failure> {
    match run.record(Event::AgentFinished(Box::new(finished))).await? {
        Event::AgentFinished(finished) => Ok(finished.outcome),
        _ => Err(Failure::internal("the journal has something else in the place of an agent's outcome")),
    }
}

const SETTLED: &str = "nothing is left to settle: no disagreement, and every core output is VALID";

/// What later rounds should have given and did not.
fn missed(events: &[Event]) -> Vec<String> {
    let (mut missed, mut answered) = (vec![], BTreeSet::new());
    for event in events {
        match event {
            Event::RoundSkipped(skipped) if skipped.why != SETTLED => {
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

fn skip_reason(open: &[Agent], judgement: &Judgement, until: Instant) -> Option<String> {
    if open.is_empty() && judgement.disagreements.iter().any(|d| !d.settled) {
        return Some(
            "what is contested was said in plain text, and who writes that cannot name what he revises".into(),
        );
    }
    if open.is_empty() {
        return Some(SETTLED.into());
    }
    if until.saturating_duration_since(Instant::now()).is_zero() {
        return Some("no time is left for it".into());
    }
    None
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
) -> Vec<score::Output<'a>> {
    let read = |agent: &Agent| output(*agent, outcomes.get(agent)?, families.get(agent).map(String::as_str));
    panel.iter().filter_map(read).collect()
}

/// The family of the model that wrote each agent's latest report of a run: of the call that was answered, be it the role's own
/// model or a fallback. Reviews are no reports.
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
                    families.insert(*agent, score::family(model));
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

async fn judge(
    run: &RunContext,
    house: &Committee,
    case: &Case,
    plan: &Plan,
    panel: &[Agent],
    answers: &Answers<'_>,
    round: u8,
) -> Result<Judgement, Failure> {
    if let Some(Event::Scored(scored)) = run.recall(&scored_key(round)) {
        return Ok(scored.judgement);
    }
    let score = || judgement(run, house, case, plan, panel, answers);
    let judgement = run.compute(&format!("scoring round {round}"), score).await?;
    match run.record(Event::Scored(Box::new(Scored { round, judgement }))).await? {
        Event::Scored(scored) => Ok(scored.judgement),
        _ => Err(Failure::internal("the journal has something else in the place of the scores")),
    }
}

fn judgement(
    run: &RunContext,
    house: &Committee,
    case: &Case,
    plan: &Plan,
    panel: &[Agent],
    answers: &Answers<'_>,
) -> Judgement {
    // A report that was taken over is as good as one of the model that has the role now.
    let mut families: BTreeMap<Agent, String> = panel
        .iter()
        .filter_map(|agent| Some((*agent, score::family(&house.role(Role::Agent(*agent))?.shown()))))
        .collect();
    families.extend(families_of(run.events().iter()));
    let message = case.full_text();
    let reviews = review::standing(run.events().iter());
    let panel = score::Panel {
        message: &message,
        task_type: Some(plan.task_type),
        outputs: outputs(panel, answers.latest, &families),
        first_round: answers.first.map(|first| outputs(panel, first, &families)).unwrap_or_default(),
        reviews: reviews.iter().collect(),
    };
    score::judge(&panel, &score::Policy::from(&house.policy))
}

/// `None` for an agent that failed.
fn output<'a>(agent: Agent, outcome: &'a AgentOutcome, family: Option<&'a str>) -> Option<score::Output<'a>> {
    let AgentOutcome::Answered { report, obtained, truncated, .. } = outcome else { return None };
    Some(score::Output {
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
    judgement: &'a Judgement,
    claims: &'a [Claim],
    reviews: &'a [Review],
    /// Of the tokens that an agent was given for its report, how much it may write now.
    share: f64,
}

/// An agent's output of a round, before it is held against its earlier one.
struct Handed {
    report: AgentReport,
    revises: Vec<revise::Change>,
    obtained: Obtained,
    truncated: bool,
    notes: Vec<String>,
    tokens: u64,
}

impl Table<'_> {
    /// What an agent reads in a round, with what models wrote of it.
    fn prompt(
        &self,
        round: u8,
        agent: Agent,
        model: &RoleModel,
        heard: Option<&Heard<'_>>,
    ) -> Result<(Rendered, Vec<ModelText>), Failure> {
        let mut values = self.case.values(Some(self.plan.task_type.as_str()), &[]);
        let mut texts = vec![];
        set(&mut values, "round", json!(round));
        if let Some(heard) = heard {
            let view = contested::peers(self.case, round, agent, heard.latest, heard.judgement);
            set(&mut values, "peers", view.peers);
            set(&mut values, "contested", contested::shown(self.case, round, agent, heard.claims, heard.reviews));
            set(&mut values, "own_report", view.own);
            texts = view.texts;
        }
        set(&mut values, "images", json!(self.images(agent).len()));
        Ok((self.house.prompts.render(model.prompts, agent.as_str(), values)?, texts))
    }

    fn images(&self, agent: Agent) -> &[Image] {
        if agent == Agent::Visual { &self.case.images } else { &[] }
    }

    /// What a further round of these agents costs at worst when each may write this share of what it was given.
    fn worst_revisions(&self, round: u8, agents: &[Agent], heard: &Heard<'_>, share: f64) -> Result<Usd, Failure> {
        let schema = schemars::schema_for!(Revision).to_value().to_string().len();
        let mut worst = Usd::ZERO;
        for agent in agents {
            let Some(model) = self.house.role(Role::Agent(*agent)) else { continue };
            let (prompt, texts) = self.prompt(round, *agent, model, Some(heard))?;
            let read = budget::text_bound(&prompt.user) + contested::tokens_of_reasons(heard.claims);
            let input = InputBound::new(prompt.system.len() + schema, read, &texts, self.images(*agent).len());
            let reservation = budget::worst_case(model, input, self.may_write(*agent, share));
            worst += reservation.map_or(Usd::ZERO, |reservation| reservation.amount);
        }
        Ok(worst)
    }

    /// Output tokens of an agent in a round in which it may write this share.
    fn may_write(&self, agent: Agent, share: f64) -> u32 {
        let role = Role::Agent(agent);
        let given = self.trimmed.max_tokens.iter().find(|(r, _)| *r == role).map(|(_, tokens)| *tokens);
        let Some(model) = self.house.role(role) else { return 0 };
        let given = given.unwrap_or(model.max_tokens);
        ((f64::from(given) * share) as u32).max(model.least_tokens().min(given))
    }

    /// Why a further round of these agents cannot be paid, if it cannot: the money for the synthesis is set aside.
    fn unaffordable(&self, round: u8, agents: &[Agent], heard: &Heard<'_>) -> Result<Option<String>, Failure> {
        let (worst, left) = (self.worst_revisions(round, agents, heard, LEAST_SHARE)?, self.run.ledger().left());
        let why = || format!("the cap cannot carry it: it may cost {worst}, and {left} is left");
        Ok((worst > left).then(why))
    }

    /// The largest share of its tokens that each agent may write so that all of them can be paid.
    fn share(&self, round: u8, agents: &[Agent], heard: &Heard<'_>) -> Result<f64, Failure> {
        let left = self.run.ledger().left();
        for share in SHARES {
            if self.worst_revisions(round, agents, heard, share)? <= left {
                return Ok(share);
            }
        }
        Ok(LEAST_SHARE)
    }

    /// One round: all agents at once; outcomes in the order of the agents, whoever finishes first.
    async fn round(
        &self,
        round: u8,
        agents: &[Agent],
        heard: Option<&Heard<'_>>,
    ) -> Result<Vec<(Agent, AgentOutcome)>, Failure> {
        let missing = Missing::new(agents.len());
        let turns = agents.iter().map(|agent| async {
            let outcome = self.turn(round, *agent, heard, &missing).await;
            missing.one_less();
            outcome
        });
        let outcomes: Vec<Result<AgentOutcome, Failure>> = join_all(turns).await;
        agents.iter().zip(outcomes).map(|(agent, outcome)| Ok((*agent, outcome?))).collect()
    }

    async fn turn(
        &self,
        round: u8,
        agent: Agent,
        heard: Option<&Heard<'_>>,
        missing: &Missing,
    ) -> Result<AgentOutcome, Failure> {
        if let Some(Event::AgentFinished(finished)) = self.run.recall(&agent_key(round, agent)) {
            return Ok(finished.outcome);
        }
        let (outcome, revision) = match self.ask(round, agent, heard, missing).await? {
            Ok(handed) => {
                let settle = || self.held_against_earlier(agent, handed, heard);
                self.run.compute(&format!("settling r{round}/{agent}"), settle).await?
            }
            Err(Unbought { cause, detail, by_deadline, .. }) => {
                (AgentOutcome::Failed { cause, detail, by_deadline }, None)
            }
        };
        finished(self.run, AgentFinished { round, agent, outcome, reused_from: None, revision }).await
    }

    async fn ask(
        &self,
        round: u8,
        agent: Agent,
        heard: Option<&Heard<'_>>,
        missing: &Missing,
    ) -> Result<Result<Handed, Unbought>, Failure> {
        let role = Role::Agent(agent);
        let Some(model) = self.house.role(role) else {
            return Err(Failure::internal("an agent without a model is on the panel"));
        };
        let render = || self.prompt(round, agent, model, heard);
        let (prompt, texts) = self.run.compute(&format!("asking r{round}/{agent}"), render).await??;
        let ask = Ask {
            step: format!("r{round}/{agent}"),
            role,
            prompt,
            images: self.images(agent),
            model_texts: texts,
            max_tokens: self.may_write(agent, heard.map_or(1.0, |heard| heard.share)),
            answer_tokens: None,
            until: self.until,
            hedge: Hedge::WhenLast(missing),
        };
        let handed = |typed: Typed<(AgentReport, Vec<revise::Change>)>| Handed {
            report: clean(typed.value.0, self.house.policy.llm_confidence_ceiling),
            revises: typed.value.1,
            obtained: typed.obtained,
            truncated: typed.truncated,
            notes: typed.notes,
            tokens: typed.tokens,
        };
        Ok(match (model.output, heard) {
            (OutputForm::Json, None) => buy_json::<AgentReport>(self.run, self.house, ask)
                .await?
                .map(|typed| handed(typed.map(|report| (report, vec![])))),
            (OutputForm::Json, Some(_)) => buy_json::<Revision>(self.run, self.house, ask)
                .await?
                .map(|typed| handed(typed.map(|revision| (revision.report, revision.revises)))),
            (OutputForm::Text, _) => match buy_text(self.run, self.house, ask).await? {
                Ok(typed) => {
                    let read = || score::report_from_text(agent.as_str(), &unquoted(&typed.value));
                    let report = self.run.compute(&format!("reading r{round}/{agent}"), read).await?;
                    Ok(handed(Typed { obtained: Obtained::Text, ..typed.map(|_| (report, vec![])) }))
                }
                Err(unbought) => Err(unbought),
            },
        })
    }

    /// What counts of an agent after its turn. One that holds no contested claim, or had no report yet, hands in a new one;
    /// any other keeps its earlier report but for what it revises with a reason.
    fn held_against_earlier(
        &self,
        agent: Agent,
        handed: Handed,
        heard: Option<&Heard<'_>>,
    ) -> (AgentOutcome, Option<Revised>) {
        let holds = |claim: &Claim| claim.positions.iter().any(|p| p.agents.iter().any(|a| a == agent.as_str()));
        let earlier = heard.filter(|heard| heard.claims.iter().any(holds)).and_then(|heard| {
            let outcome = heard.latest.get(&agent)?;
            let AgentOutcome::Answered { report, .. } = outcome else { return None };
            Some((outcome, report, heard.claims))
        });
        let Handed { report, revises, obtained, truncated, notes, tokens } = handed;
        let Some((outcome, before, claims)) = earlier else {
            return (AgentOutcome::Answered { report, obtained, truncated, notes, tokens }, None);
        };
        let revision = Revision { revises, report };
        let message = self.case.full_text();
        let before = revise::Before { agent: agent.as_str(), message: &message, report: before, claims };
        match revise::settle(&before, revision, obtained) {
            (Some(report), revised) => {
                (AgentOutcome::Answered { report, obtained, truncated, notes, tokens }, Some(revised))
            }
            (None, revised) => (outcome.clone(), Some(revised)),
        }
    }
}

/// A report in the service's terms: lists and confidence capped, unit ids short, unique and without the signs that qualify
/// them.
pub(super) fn clean(mut report: AgentReport, ceiling: f64) -> AgentReport {
    for list in [
        &mut report.answer_summary,
        &mut report.assumptions,
        &mut report.steps_or_deliverables,
        &mut report.failure_modes,
    ] {
        list.truncate(MAX_ENTRIES);
    }
    report.units.truncate(MAX_ENTRIES);
    report.self_confidence =
        if report.self_confidence.is_finite() { report.self_confidence.clamp(0.0, ceiling) } else { 0.0 };
    let mut seen = std::collections::BTreeSet::new();
    for (i, unit) in report.units.iter_mut().enumerate() {
        let bare = unit.id.rsplit(':').next().unwrap_or("");
        let id: String = bare.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(16).collect();
        unit.id = if id.is_empty() || seen.contains(&id) { format!("u{}", i + 1) } else { id };
        while !seen.insert(unit.id.clone()) {
            unit.id.push('x');
        }
    }
    report
}
