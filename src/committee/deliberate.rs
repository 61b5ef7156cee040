//! The rounds: agents answer concurrently, are judged, and settle what is contested.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use rand::seq::SliceRandom;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::budget::{self, InputBound, ModelText, Wanted};
use super::call::{Ask, Typed, Unbought, buy_json, buy_text};
use super::case::{Case, Inherited};
use super::hedge::{Hedge, Missing};
use super::prompts::unquoted;
use super::{Committee, Failure, reuse, score};
use crate::config::OutputForm;
use crate::domain::{Agent, AgentReport, Disagreement, Judgement, Obtained, Plan, Position, Role, Status, Usd};
use crate::journal::{
    AgentFinished, AgentOutcome, Event, RoundSkipped, RoundStarted, RunContext, Scored, Trimmed, agent_key, scored_key,
};

/// What the user part of a prompt holds beside the question, at most: labels, fences, hints, instructions.
const SCAFFOLDING_TOKENS: u64 = 700;

/// What the master is shown of scores, disagreements and missing agents, at most.
pub const FINDINGS_TOKENS: u64 = 2000;

/// What the rounds left.
pub struct Deliberation {
    /// Each agent of the panel with its last outcome, in the panel's order.
    pub panel: Vec<(Agent, AgentOutcome)>,
    pub judgement: Judgement,
    pub trimmed: Trimmed,
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
        visible(&self.judgement.disagreements, &reports)
    }

    pub fn failed(&self) -> impl Iterator<Item = (Agent, &str, &str)> {
        self.panel.iter().filter_map(|(agent, outcome)| match outcome {
            AgentOutcome::Failed { cause, detail } => Some((*agent, cause.as_str(), detail.as_str())),
            AgentOutcome::Answered { .. } => None,
        })
    }
}

/// Runs the rounds of the plan.
///
/// # Errors
/// When no core agent gave any output, when the cap has no room for even one agent, or when the database refuses.
pub async fn rounds(run: &RunContext, house: &Committee, case: &Case, plan: &Plan) -> Result<Deliberation, Failure> {
    let trimmed = trim(run, house, case, plan).await?;
    let until = house.stage_end(run, 0.65);
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
    for (agent, outcome) in table.round(1, &first.asked, &BTreeMap::new(), None).await? {
        latest.insert(agent, outcome);
    }
    if !latest.iter().any(|(agent, outcome)| agent.is_core() && matches!(outcome, AgentOutcome::Answered { .. })) {
        return Err(Failure::no_core_output(&latest));
    }
    let first = latest.clone();
    let mut judgement =
        judge(run, house, case, plan, &trimmed.agents, &Answers { first: None, latest: &latest }, 1).await?;
    for round in 2..=plan.rounds {
        let open = contested(&judgement, &latest, &trimmed.agents);
        // What was decided before a crash stands: time and money look different now.
        let why = match (run.recall(&format!("r{round}/skipped")), run.recall(&format!("r{round}/started"))) {
            (Some(_), _) => break,
            (None, Some(_)) => None,
            (None, None) => skip_reason(&open, until).or_else(|| table.unaffordable(&open)),
        };
        if let Some(why) = why {
            for skipped in round..=plan.rounds {
                run.record(Event::RoundSkipped(RoundSkipped { round: skipped, why: why.clone() })).await?;
            }
            break;
        }
        let topics = judgement
            .disagreements
            .iter()
            .filter(|d| !d.settled)
            .map(|d| d.topic.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let why =
            if topics.is_empty() { "some core outputs are not VALID".into() } else { format!("contested: {topics}") };
        run.record(Event::RoundStarted(RoundStarted { round, agents: open.clone(), why })).await?;
        for (agent, outcome) in table.round(round, &open, &latest, Some(&judgement)).await? {
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
    Ok(Deliberation { panel, judgement, trimmed })
}

/// A role with what its call reads at least: its own prompt and the question.
fn wanted<'a>(house: &'a Committee, case: &Case, role: Role) -> Option<Wanted<'a>> {
    let model = house.role(role)?;
    let images = if role == Role::Agent(Agent::Visual) { case.images.len() } else { 0 };
    let findings = if role == Role::Master { FINDINGS_TOKENS } else { 0 };
    let read = budget::text_bound(&case.full_text()) + SCAFFOLDING_TOKENS + findings;
    Some(Wanted { role, model, input: InputBound::new(house.prompt_bytes(role), read, &[], images) })
}

/// Before anything is bought: whether the cap has room for the solver and the synthesis. Sets the money for the
/// synthesis aside.
///
/// # Errors
/// [`Failure`], when it has none.
pub fn check_room(run: &RunContext, house: &Committee, case: &Case) -> Result<(), Failure> {
    let (Some(solver), Some(master)) =
        (wanted(house, case, Role::Agent(Agent::Solver)), wanted(house, case, Role::Master))
    else {
        return Err(Failure::internal("the solver or the master is not configured"));
    };
    match budget::fit(&[solver], &master, run.ledger().left()) {
        Some(fitted) => run.hold(fitted.synthesis),
        None => return Err(Failure::no_room(run.ledger().left())),
    }
    Ok(())
}

/// Fits the plan under the cap and sets the money for the synthesis aside.
async fn trim(run: &RunContext, house: &Committee, case: &Case, plan: &Plan) -> Result<Trimmed, Failure> {
    run.hold(Usd::ZERO);
    let wanted = |role: Role| wanted(house, case, role);
    let split = reuse::split(case, &plan.agents_to_run);
    let agents: Vec<Wanted<'_>> = split.asked.iter().filter_map(|a| wanted(Role::Agent(*a))).collect();
    let Some(mut synthesis) = wanted(Role::Master) else { return Err(Failure::internal("no master is configured")) };
    let reused = split.reused;
    let stored: Vec<ModelText> = reused.values().map(|i| ModelText::planned(i.tokens)).collect();
    synthesis.input.volatile += InputBound::new(0, 0, &stored, 0).volatile;
    if let Some(Event::Trimmed(trimmed)) = run.recall("trimmed") {
        // A resumed run: what was decided stands.
        run.hold(budget::synthesis_hold(&trimmed.max_tokens, &synthesis));
        return Ok(trimmed);
    }
    let Some(mut fitted) = budget::fit(&agents, &synthesis, run.ledger().left()) else {
        return Err(Failure::no_room(run.ledger().left()));
    };
    run.hold(fitted.synthesis);
    fitted.trimmed.agents.extend(reused.keys());
    fitted.trimmed.agents.sort();
    match run.record(Event::Trimmed(fitted.trimmed)).await? {
        Event::Trimmed(trimmed) => Ok(trimmed),
        _ => Err(Failure::internal("the journal has something else in the place of the trimming")),
    }
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
    finished(run, AgentFinished { round: 1, agent, outcome, reused_from: Some(parent) }).await
}

async fn finished(run: &RunContext, finished: AgentFinished) -> Result<AgentOutcome, Failure> {
    match run.record(Event::AgentFinished(Box::new(finished))).await? {
        Event::AgentFinished(finished) => Ok(finished.outcome),
        _ => Err(Failure::internal("the journal has something else in the place of an agent's outcome")),
    }
}

/// The agents whose word is needed again: who holds a position in a disagreement, or is not VALID.
pub fn contested(judgement: &Judgement, latest: &BTreeMap<Agent, AgentOutcome>, panel: &[Agent]) -> Vec<Agent> {
    let holds = |agent: Agent| {
        let name = agent.as_str();
        judgement
            .disagreements
            .iter()
            .filter(|d| !d.settled)
            .flat_map(|d| &d.positions)
            .any(|p| p.agents.iter().any(|a| a == name))
    };
    let valid = |agent: Agent| judgement.scores.iter().any(|s| s.agent == agent.as_str() && s.status == Status::Valid);
    let stumbled = |agent: Agent| !matches!(latest.get(&agent), Some(AgentOutcome::Answered { .. })) || !valid(agent);
    panel.iter().copied().filter(|a| holds(*a) || (a.is_core() && stumbled(*a))).collect()
}

fn skip_reason(open: &[Agent], until: Instant) -> Option<String> {
    if open.is_empty() {
        return Some("nothing is left to settle: no disagreement, and every core output is VALID".into());
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

/// The family of a model: the letters that its name begins with, without the vendor's prefix ("claude" of
/// "anthropic/claude-sonnet-4.5", "gpt" of "gpt-4.1-mini"). Members of one family make the same mistakes more often.
pub fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let letters: String = name.chars().take_while(|c| c.is_alphabetic()).collect();
    if letters.is_empty() { name } else { letters }
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
    let families: BTreeMap<Agent, String> =
        panel.iter().filter_map(|agent| Some((*agent, family(&house.role(Role::Agent(*agent))?.shown())))).collect();
    let message = case.full_text();
    let panel = score::Panel {
        message: &message,
        task_type: Some(plan.task_type),
        outputs: outputs(panel, answers.latest, &families),
        first_round: answers.first.map(|first| outputs(panel, first, &families)).unwrap_or_default(),
    };
    let judgement = score::judge(&panel, &score::Policy::from(&house.policy));
    match run.record(Event::Scored(Box::new(Scored { round, judgement }))).await? {
        Event::Scored(scored) => Ok(scored.judgement),
        _ => Err(Failure::internal("the journal has something else in the place of the scores")),
    }
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

/// What every agent of a run has in front of it.
struct Table<'a> {
    run: &'a RunContext,
    house: &'a Committee,
    case: &'a Case,
    plan: &'a Plan,
    trimmed: &'a Trimmed,
    until: Instant,
}

impl Table<'_> {
    /// Why a further round of these agents cannot be paid, if it cannot: the money for the synthesis is set aside, and
    /// each agent would read what all of them wrote.
    fn unaffordable(&self, agents: &[Agent]) -> Option<String> {
        let written: u64 = self.trimmed.max_tokens.iter().map(|(_, tokens)| u64::from(*tokens)).sum();
        let read = [ModelText::planned(written)];
        let question = budget::text_bound(&self.case.full_text()) + SCAFFOLDING_TOKENS;
        let worst: Usd = agents
            .iter()
            .filter_map(|agent| {
                let model = self.house.role(Role::Agent(*agent))?;
                let system = self.house.prompt_bytes(Role::Agent(*agent));
                let input = InputBound::new(system, question, &read, 0);
                budget::worst_case(model, input, budget::LEAST_OUTPUT_TOKENS.max(model.max_tokens / 2))
            })
            .map(|reservation| reservation.amount)
            .sum();
        let left = self.run.ledger().left();
        (worst > left).then(|| format!("the cap cannot carry it: it may cost {worst}, and {left} is left"))
    }

    /// One round: all agents at once; outcomes in the order of the agents, whoever finishes first.
    async fn round(
        &self,
        round: u8,
        agents: &[Agent],
        latest: &BTreeMap<Agent, AgentOutcome>,
        judged: Option<&Judgement>,
    ) -> Result<Vec<(Agent, AgentOutcome)>, Failure> {
        let missing = Missing::new(agents.len());
        let turns = agents.iter().map(|agent| async {
            let outcome = self.turn(round, *agent, latest, judged, &missing).await;
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
        latest: &BTreeMap<Agent, AgentOutcome>,
        judged: Option<&Judgement>,
        missing: &Missing,
    ) -> Result<AgentOutcome, Failure> {
        if let Some(Event::AgentFinished(finished)) = self.run.recall(&agent_key(round, agent)) {
            return Ok(finished.outcome);
        }
        let role = Role::Agent(agent);
        let Some(model) = self.house.role(role) else {
            return Err(Failure::internal("an agent without a model is on the panel"));
        };
        let mut values = self.case.values(Some(self.plan.task_type.as_str()), &[]);
        let mut texts = vec![];
        set(&mut values, "round", json!(round));
        if let Some(judgement) = judged {
            let view = peers(self.case, round, agent, latest, judgement, self.house.policy.llm_confidence_ceiling);
            set(&mut values, "peers", view.peers);
            set(&mut values, "disagreements", disagreements(judgement, latest));
            set(&mut values, "own_report", view.own);
            texts = view.texts;
        }
        let images: &[_] = if agent == Agent::Visual { &self.case.images } else { &[] };
        set(&mut values, "images", json!(images.len()));
        let ask = Ask {
            step: format!("r{round}/{agent}"),
            role,
            prompt: self.house.prompts.render(model.prompts, agent.as_str(), values)?,
            images,
            model_texts: texts,
            max_tokens: self.trimmed.max_tokens.iter().find(|(r, _)| *r == role).map_or(model.max_tokens, |(_, t)| *t),
            until: self.until,
            hedge: Hedge::WhenLast(missing),
        };
        let bought = match model.output {
            OutputForm::Json => buy_json::<AgentReport>(self.run, self.house, ask).await?,
            OutputForm::Text => buy_text(self.run, self.house, ask).await?.map(|typed| Typed {
                value: score::report_from_text(agent.as_str(), &unquoted(&typed.value)),
                obtained: Obtained::Text,
                truncated: typed.truncated,
                notes: typed.notes,
                tokens: typed.tokens,
            }),
        };
        let outcome = match bought {
            Ok(typed) => AgentOutcome::Answered {
                report: clean(typed.value, self.house.policy.llm_confidence_ceiling),
                obtained: typed.obtained,
                truncated: typed.truncated,
                notes: typed.notes,
                tokens: typed.tokens,
            },
            Err(Unbought { cause, detail, .. }) => AgentOutcome::Failed { cause, detail },
        };
        finished(self.run, AgentFinished { round, agent, outcome, reused_from: None }).await
    }
}

/// A report in the service's terms: confidence capped, unit ids short, unique and without the signs that qualify them.
fn clean(mut report: AgentReport, ceiling: f64) -> AgentReport {
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

struct PeerView {
    peers: Value,
    own: Value,
    texts: Vec<ModelText>,
}

/// The others' units without names and scores, in seeded random order; discarded outputs are not shown.
fn peers(
    case: &Case,
    round: u8,
    agent: Agent,
    latest: &BTreeMap<Agent, AgentOutcome>,
    judgement: &Judgement,
    ceiling: f64,
) -> PeerView {
    let discarded = |name: &str| judgement.scores.iter().any(|s| s.agent == name && s.status == Status::Discard);
    let mut others: Vec<(&AgentReport, u64)> = vec![];
    let mut own = Value::Null;
    let mut texts = vec![];
    for (other, outcome) in latest {
        let AgentOutcome::Answered { report, tokens, .. } = outcome else { continue };
        if *other == agent {
            let text = json!(clean(report.clone(), ceiling)).to_string();
            texts.push(ModelText::of(&text, *tokens));
            own = Value::String(text);
        } else if !discarded(other.as_str()) {
            others.push((report, *tokens));
        }
    }
    others.shuffle(&mut case.random(u64::from(round) * 100 + agent as u64));
    let list: Vec<Value> = others
        .iter()
        .enumerate()
        .map(|(i, (report, _))| {
            let units: Vec<Value> = report.units.iter().map(|u| json!({ "topic": u.topic, "text": u.text })).collect();
            json!({ "label": format!("MEMBER {}", i + 1), "units": units })
        })
        .collect();
    texts.extend(others.iter().map(|(report, tokens)| {
        let text: String = report.units.iter().map(|u| format!("{} {} ", u.topic, u.text)).collect();
        ModelText::of(&text, *tokens)
    }));
    PeerView { peers: json!(list), own, texts }
}

/// Each disagreement with the positions of the given reports, where these hold two or more.
fn visible<'a>(all: &'a [Disagreement], reports: &[(&str, &AgentReport)]) -> Vec<(&'a Disagreement, Vec<Position>)> {
    let of_unit = |id: &String| {
        let (agent, unit) = id.split_once(':')?;
        let (_, report) = reports.iter().find(|(name, _)| *name == agent)?;
        report.units.iter().find(|u| u.id == unit)
    };
    let position = |p: &Position| {
        let agents: Vec<String> =
            p.agents.iter().filter(|a| reports.iter().any(|(name, _)| name == a)).cloned().collect();
        let units: Vec<String> = p.units.iter().filter(|id| of_unit(id).is_some()).cloned().collect();
        // A position that a discarded output shares is told in the words of one that is kept.
        let whole = agents.len() == p.agents.len();
        let own = units.first().and_then(of_unit).map(|unit| unit.text.clone());
        let text = if whole { Some(p.text.clone()) } else { own };
        Some(Position { text: text.filter(|_| !agents.is_empty())?, agents, units })
    };
    all.iter()
        .filter_map(|d| {
            let positions: Vec<Position> = d.positions.iter().filter_map(position).collect();
            (positions.len() >= 2).then_some((d, positions))
        })
        .collect()
}

/// Disagreements as the prompts show them to agents: without who says what, and nothing of a discarded output.
fn disagreements(judgement: &Judgement, latest: &BTreeMap<Agent, AgentOutcome>) -> Value {
    let kept = |name: &str| !judgement.scores.iter().any(|s| s.agent == name && s.status == Status::Discard);
    let reports: Vec<(&str, &AgentReport)> = latest
        .iter()
        .filter_map(|(agent, outcome)| match outcome {
            AgentOutcome::Answered { report, .. } if kept(agent.as_str()) => Some((agent.as_str(), report)),
            AgentOutcome::Answered { .. } | AgentOutcome::Failed { .. } => None,
        })
        .collect();
    let shown = visible(&judgement.disagreements, &reports).into_iter().map(|(d, positions)| {
        let positions: Vec<String> = positions.into_iter().map(|p| p.text).collect();
        json!({ "topic": d.topic, "positions": positions })
    });
    Value::Array(shown.collect())
}

pub(super) fn set(values: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = values {
        map.insert(key.to_owned(), value);
    }
}

/// The report's own text for a prompt of the master: without what the model thinks of itself.
pub(super) fn without_self_confidence(report: &AgentReport) -> String {
    let mut value = json!(report);
    if let Value::Object(map) = &mut value {
        map.remove("selfConfidence");
    }
    value.to_string()
}
