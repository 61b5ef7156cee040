//! What is contested, and how it is shown to those who shall settle it: without names and scores, and without anything
//! of a discarded output.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::ChaCha12Rng;
use rand::seq::{IteratorRandom, SliceRandom};
use serde_json::{Value, json};

use super::budget::ModelText;
use super::case::Case;
use crate::domain::{Agent, AgentReport, Disagreement, Judgement, Obtained, Position, Review, Status};
use crate::journal::AgentOutcome;

/// Claims that are put to the agents at most, the weightiest first.
const MOST_CLAIMS: usize = 8;

/// Tokens of a reviewer's reason, at most.
const TOKENS_A_REASON: u64 = 160;

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
            topic: one_line(&disagreement.topic),
            on_final_answer: disagreement.on_final_answer,
            positions: positions.into_iter().map(|p| Position { text: one_line(&p.text), ..p }).collect(),
        })
        .collect()
}

/// The agents whose word is needed again: who holds a position on a claim that is put to the agents, or is of the core and not
/// VALID. Whoever wrote plain text is not asked again: he cannot name the claim that he changes.
pub fn contested(judgement: &Judgement, latest: &BTreeMap<Agent, AgentOutcome>, panel: &[Agent]) -> Vec<Agent> {
    let claims = claims(judgement, latest);
    let holds = |agent: Agent| {
        claims.iter().flat_map(|claim| &claim.positions).any(|p| p.agents.iter().any(|name| name == agent.as_str()))
    };
    let valid = |agent: Agent| judgement.scores.iter().any(|s| s.agent == agent.as_str() && s.status == Status::Valid);
    let in_prose =
        |agent: Agent| matches!(latest.get(&agent), Some(AgentOutcome::Answered { obtained: Obtained::Text, .. }));
    let wanted = |agent: &Agent| holds(*agent) || (agent.is_core() && !valid(*agent));
    panel.iter().copied().filter(wanted).filter(|agent| !in_prose(*agent)).collect()
}

/// A text as one line without control characters: no line of its own can pass for a claim or a position.
pub fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
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

/// The claims for the prompt of one who may revise them, in an order seeded by the run, the round and him: with a position one
/// reason of somebody who checked it and does not hold it. Only reasons are shown, and no count of findings.
pub fn shown(case: &Case, round: u8, agent: Agent, claims: &[Claim], reviews: &[Review]) -> Value {
    let mut random = case.random(90_000 + u64::from(round) * 100 + agent as u64);
    let reason = |claim: &Claim, position: &Position, random: &mut ChaCha12Rng| {
        let about = reviews.iter().filter(|r| r.topic == claim.topic && r.position == position.text);
        let sound: BTreeSet<&str> = about
            .filter(|r| r.counts() && r.is_consistent() && !r.reason.is_empty())
            .map(|r| r.reason.as_str())
            .collect();
        sound.into_iter().choose(random).map(str::to_owned)
    };
    let mut list: Vec<Value> = claims
        .iter()
        .map(|claim| {
            let mut positions: Vec<Value> = claim
                .positions
                .iter()
                .map(|p| {
                    let reasons: Vec<String> = reason(claim, p, &mut random).into_iter().collect();
                    json!({ "text": p.text, "reasons": reasons })
                })
                .collect();
            positions.shuffle(&mut random);
            json!({ "id": claim.id, "topic": claim.topic, "positions": positions })
        })
        .collect();
    list.shuffle(&mut random);
    Value::Array(list)
}

/// What reviewers' reasons add to a prompt at most.
pub fn tokens_of_reasons(claims: &[Claim]) -> u64 {
    claims.iter().map(|claim| claim.positions.len() as u64 * TOKENS_A_REASON).sum()
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
            // The role may have another model by now, and no model is told what one thought of itself.
            let text = report.for_models();
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
            let units: Vec<Value> = report
                .units
                .iter()
                .map(|u| json!({ "topic": one_line(&u.topic), "text": one_line(&u.text) }))
                .collect();
            json!({ "label": format!("MEMBER {}", i + 1), "units": units })
        })
        .collect();
    texts.extend(others.iter().map(|(report, tokens)| {
        let text: String = report.units.iter().map(|u| format!("{} {} ", u.topic, u.text)).collect();
        ModelText::of(&text, *tokens)
    }));
    PeerView { peers: json!(list), own, texts }
}
