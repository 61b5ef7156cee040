//! Selects the claims that are contested among the outputs that are not discarded.

use std::collections::BTreeMap;

use crate::domain::{
    Agent, AgentReport, Disagreement, Judgement, Obtained, Position, Status, UnitRef,
};
use crate::journal::AgentOutcome;
use crate::text::one_line;

/// Maximum number of claims shown to the agents. The final answer comes first, then the claims by
/// severity.
const MAX_CLAIMS: usize = 8;

/// A contested claim in the form in which agents receive it.
pub struct Claim {
    /// "C1", "C2", ...
    pub id: String,
    pub topic: String,
    pub on_final_answer: bool,
    /// Two or more. Each is stated by an output that is not discarded, or only by the cross-check.
    pub positions: Vec<Position>,
}

/// The agents that take part in a further round.
pub struct Open {
    /// Agents that hold contested claims. Each keeps or concedes its own.
    pub holders: Vec<Agent>,
    /// Core agents that have no VALID output and hold no contested claim. They report anew.
    pub anew: Vec<Agent>,
}

impl Open {
    /// Returns the agents of both fields, sorted.
    pub fn agents(&self) -> Vec<Agent> {
        let mut agents = [self.holders.as_slice(), &self.anew].concat();
        agents.sort();
        agents
    }
}

/// Returns the agents of a panel that a further round asks. Skips agents whose report was read from
/// plain text, because it has no typed fields.
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

/// Returns true if an agent can give up a position, because it states it in its own unit or as its
/// final answer.
pub fn is_held(claim: &Claim, position: &Position, agent: &str) -> bool {
    let named = position.agents.iter().any(|name| name == agent);
    named && (claim.on_final_answer || !own_units(position, agent).is_empty())
}

/// Returns the ids, without the agent, of the units in which an agent states a position.
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

/// Returns the open claims, at most `MAX_CLAIMS`, with the positions that may be shown.
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

/// Returns the reports that are not discarded, by agent.
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

/// Returns the disagreements that keep two or more positions when only `reports` are considered. A
/// position that only the cross-check states is kept.
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
        // If a discarded output shares a position, the text is that of a unit that is kept.
        let whole = agents.len() == p.agents.len();
        let own = units
            .first()
            .and_then(of_unit)
            .map(|unit| unit.text.clone());
        let text = if whole { Some(p.text.clone()) } else { own };
        // A position that only the cross-check states has no agents.
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
