//! What is contested among the outputs that are not discarded.

use std::collections::BTreeMap;

use crate::domain::{
    Agent, AgentReport, Disagreement, Judgement, Obtained, Position, Status, UnitRef,
};
use crate::journal::AgentOutcome;

/// Claims that are put to the agents at most, the weightiest first.
const MAX_CLAIMS: usize = 8;

/// A contested claim as it is put to the agents.
pub struct Claim {
    /// "C1", "C2", ...
    pub id: String,
    pub topic: String,
    pub on_final_answer: bool,
    /// Two or more, each held by outputs that are not discarded.
    pub positions: Vec<Position>,
}

/// The agents of which a further round asks something.
pub struct Open {
    /// Hold contested claims: each keeps or concedes its own.
    pub holders: Vec<Agent>,
    /// Core agents without a VALID output that hold none: they report anew.
    pub anew: Vec<Agent>,
}

impl Open {
    pub fn agents(&self) -> Vec<Agent> {
        let mut agents = [self.holders.as_slice(), &self.anew].concat();
        agents.sort();
        agents
    }
}

/// What is open among a panel. An agent whose report was read from plain text decides nothing: it has no typed fields.
pub fn open(
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
    panel: &[Agent],
) -> Open {
    let claims = claims(judgement, latest);
    let in_prose = |agent: Agent| {
        matches!(
            latest.get(&agent),
            Some(AgentOutcome::Answered {
                obtained: Obtained::Text,
                ..
            })
        )
    };
    let holds = |agent: Agent| {
        let own = |claim: &Claim| {
            claim
                .positions
                .iter()
                .any(|p| is_held(claim, p, agent.as_str()))
        };
        claims.iter().any(own)
    };
    let valid = |agent: Agent| {
        judgement
            .scores
            .iter()
            .any(|s| s.agent == agent.as_str() && s.status == Status::Valid)
    };
    let asked = || panel.iter().copied().filter(|agent| !in_prose(*agent));
    Open {
        holders: asked().filter(|agent| holds(*agent)).collect(),
        anew: asked()
            .filter(|agent| agent.is_core() && !valid(*agent) && !holds(*agent))
            .collect(),
    }
}

/// Whether an agent can give a position up: it states it in a unit of its own, or as its final answer.
pub fn is_held(claim: &Claim, position: &Position, agent: &str) -> bool {
    let named = position.agents.iter().any(|name| name == agent);
    named && (claim.on_final_answer || !own_units(position, agent).is_empty())
}

/// The units by which an agent states a position.
pub fn own_units(position: &Position, agent: &str) -> Vec<String> {
    let units = position
        .units
        .iter()
        .filter_map(|unit| unit.parse::<UnitRef>().ok());
    units
        .filter(|unit| unit.agent == agent)
        .map(|unit| unit.unit)
        .collect()
}

/// The claims that are still open, with the positions that may be shown.
pub fn claims(judgement: &Judgement, latest: &BTreeMap<Agent, AgentOutcome>) -> Vec<Claim> {
    let open = visible(&judgement.disagreements, &kept(judgement, latest))
        .into_iter()
        .filter(|(d, _)| !d.settled);
    let numbered = open.take(MAX_CLAIMS).enumerate();
    numbered
        .map(|(at, (disagreement, positions))| Claim {
            id: format!("C{}", at + 1),
            topic: one_line(&disagreement.topic),
            on_final_answer: disagreement.on_final_answer,
            positions: positions
                .into_iter()
                .map(|p| Position {
                    text: one_line(&p.text),
                    ..p
                })
                .collect(),
        })
        .collect()
}

/// A text as one line without control characters: no line of its own can pass for a claim or a position.
pub fn one_line(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The reports that are not discarded, by agent.
fn kept<'a>(
    judgement: &Judgement,
    latest: &'a BTreeMap<Agent, AgentOutcome>,
) -> Vec<(&'static str, &'a AgentReport)> {
    let discarded = |name: &str| {
        judgement
            .scores
            .iter()
            .any(|s| s.agent == name && s.status == Status::Discard)
    };
    let read = |(agent, outcome): (&Agent, &'a AgentOutcome)| match outcome {
        AgentOutcome::Answered { report, .. } if !discarded(agent.as_str()) => {
            Some((agent.as_str(), report))
        }
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
        let agents: Vec<String> = p
            .agents
            .iter()
            .filter(|a| reports.iter().any(|(name, _)| name == a))
            .cloned()
            .collect();
        let units: Vec<String> = p
            .units
            .iter()
            .filter(|id| of_unit(id).is_some())
            .cloned()
            .collect();
        // A position that a discarded output shares is told in the words of one that is kept.
        let whole = agents.len() == p.agents.len();
        let own = units
            .first()
            .and_then(of_unit)
            .map(|unit| unit.text.clone());
        let text = if whole { Some(p.text.clone()) } else { own };
        // What only the cross-check says is held by none of them.
        let stands = !agents.is_empty() || p.agents.is_empty();
        Some(Position {
            text: text.filter(|_| stands)?,
            agents,
            units,
        })
    };
    all.iter()
        .filter_map(|d| {
            let positions: Vec<Position> = d.positions.iter().filter_map(position).collect();
            (positions.len() >= 2).then_some((d, positions))
        })
        .collect()
}
