//! What is contested, and how it is shown to those who shall settle it: without names and scores, and without anything
//! of a discarded output.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use serde_json::{Value, json};

use super::budget::ModelText;
use super::case::Case;
use crate::domain::{Agent, AgentReport, Disagreement, Judgement, Obtained, Position, Review, Status};
use crate::journal::AgentOutcome;

/// Claims that are put to the agents at most, the weightiest first.
const MOST_CLAIMS: usize = 8;

/// Reasons of reviewers that are shown with a position, at most.
const MOST_REASONS: usize = 2;

/// A contested claim as it is put to the agents.
pub struct Claim {
    /// "C1", "C2", ...
    pub id: String,
    pub topic: String,
    pub on_final_answer: bool,
    /// Two or more, each held by outputs that are not discarded.
    pub positions: Vec<Position>,
}

/// The claims that are still open, with the positions that may be shown.
pub fn claims(judgement: &Judgement, latest: &BTreeMap<Agent, AgentOutcome>) -> Vec<Claim> {
    let open = visible(&judgement.disagreements, &kept(judgement, latest)).into_iter().filter(|(d, _)| !d.settled);
    let numbered = open.take(MOST_CLAIMS).enumerate();
    numbered
        .map(|(at, (disagreement, positions))| Claim {
            id: format!("C{}", at + 1),
            topic: disagreement.topic.clone(),
            on_final_answer: disagreement.on_final_answer,
            positions,
        })
        .collect()
}

/// The agents whose word is needed again: who holds a position in a disagreement, or is of the core and not VALID. Whoever
/// wrote plain text is not asked again: he cannot name the claim that he changes.
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
    let answered = |agent: Agent| matches!(latest.get(&agent), Some(AgentOutcome::Answered { .. }));
    let in_prose =
        |agent: Agent| matches!(latest.get(&agent), Some(AgentOutcome::Answered { obtained: Obtained::Text, .. }));
    let stumbled = |agent: Agent| !answered(agent) || !valid(agent);
    let wanted = |agent: &Agent| holds(*agent) || (agent.is_core() && stumbled(*agent));
    panel.iter().copied().filter(wanted).filter(|agent| !in_prose(*agent)).collect()
}

/// The reports that are not discarded, by agent.
fn kept<'a>(judgement: &Judgement, latest: &'a BTreeMap<Agent, AgentOutcome>) -> Vec<(&'static str, &'a AgentReport)> {
    let discarded = |name: &str| judgement.scores.iter().any(|s| s.agent == name && s.status == Status::Discard);
    let read = |(agent, outcome): (&Agent, &'a AgentOutcome)| match outcome {
        AgentOutcome::Answered { report, .. } if !discarded(agent.as_str()) => Some((agent.as_str(), report)),
        AgentOutcome::Answered { .. } | AgentOutcome::Failed { .. } => None,
    };
    latest.iter().filter_map(read).collect()
}

/// Each disagreement with the positions of the given reports, where these hold two or more.
pub fn visible<'a>(
    all: &'a [Disagreement],
    reports: &[(&str, &AgentReport)],
) -> Vec<(&'a Disagreement, Vec<Position>)> {
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

/// The claims for a prompt, each position with the reasons for and against it that reviewers gave. Those who judged their own
/// position, or whose finding turned with the order, are left out: only reasons are shown, and no count of findings.
pub fn shown(claims: &[Claim], reviews: &[Review]) -> Value {
    let reasons = |claim: &Claim, position: &Position| -> Vec<String> {
        let about = reviews.iter().filter(|r| r.topic == claim.topic && r.position == position.text);
        let sound = about.filter(|r| r.counts() && r.is_consistent() && !r.reason.is_empty());
        sound.map(|r| r.reason.clone()).take(MOST_REASONS).collect()
    };
    let position = |claim: &Claim, p: &Position| json!({ "text": p.text, "reasons": reasons(claim, p) });
    let claim = |claim: &Claim| {
        let positions: Vec<Value> = claim.positions.iter().map(|p| position(claim, p)).collect();
        json!({ "id": claim.id, "topic": claim.topic, "positions": positions })
    };
    Value::Array(claims.iter().map(claim).collect())
}

/// What an agent is shown of the others.
pub struct PeerView {
    pub peers: Value,
    /// Its own earlier report.
    pub own: Value,
    pub texts: Vec<ModelText>,
}

/// The others' units without names and scores, in seeded random order; discarded outputs are not shown.
pub fn peers(
    case: &Case,
    round: u8,
    agent: Agent,
    latest: &BTreeMap<Agent, AgentOutcome>,
    judgement: &Judgement,
) -> PeerView {
    let kept = kept(judgement, latest);
    let mut others: Vec<(&AgentReport, u64)> = vec![];
    let mut own = Value::Null;
    let mut texts = vec![];
    for (other, outcome) in latest {
        let AgentOutcome::Answered { report, tokens, .. } = outcome else { continue };
        if *other == agent {
            let text = json!(report).to_string();
            texts.push(ModelText::of(&text, *tokens));
            own = Value::String(text);
        } else if kept.iter().any(|(name, _)| *name == other.as_str()) {
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
