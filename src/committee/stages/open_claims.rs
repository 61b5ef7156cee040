//! Selects the claims that are contested among the outputs that are not discarded.

use std::collections::BTreeMap;

use crate::domain::{
    Agent, AgentReport, CrossCheck, Disagreement, Judgement, Obtained, Position, Status, UnitRef,
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

/// Returns the open claims, and the agents of a panel that a further round asks. Skips agents whose
/// report was read from plain text, because it has no typed fields. An agent whose report the
/// cross-check found to be no answer does not report anew, because no further call reads it.
pub fn open(
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
    panel: &[Agent],
    cross_checks: &[CrossCheck],
) -> (Vec<Claim>, Open) {
    let claims = claims(judgement, latest);
    let is_typed = |agent: &Agent| {
        let obtained = latest.get(agent).and_then(AgentOutcome::obtained);
        obtained != Some(Obtained::Text)
    };
    let holds = |agent: &Agent| {
        let own = |claim: &Claim| claim.position_of(*agent).is_some();
        claims.iter().any(own)
    };
    let asked = panel.iter().copied().filter(is_typed);
    let (holders, mut anew): (Vec<_>, Vec<_>) = asked.partition(holds);
    let is_valid = |agent: Agent| judgement.status_of(agent) == Some(Status::Valid);
    let is_no_answer = |agent: Agent| {
        let mut found = cross_checks.iter().flat_map(|check| &check.conduct);
        found.any(|conduct| conduct.agent == agent.into_str())
    };
    anew.retain(|agent| agent.is_core() && !is_valid(*agent) && !is_no_answer(*agent));
    (claims, Open { holders, anew })
}

impl Claim {
    /// Returns the position that an agent can give up, because it states it in its own unit or as
    /// its final answer.
    pub fn position_of(&self, agent: Agent) -> Option<&Position> {
        let agent = agent.into_str();
        self.positions.iter().find(|position| {
            let named = position.agents.iter().any(|name| name == agent);
            named && (self.on_final_answer || !own_units(position, agent).is_empty())
        })
    }
}

/// Returns the ids, without the agent, of the units in which an agent states a position.
pub fn own_units(position: &Position, agent: &str) -> Vec<String> {
    let own = position.units.iter().filter(|unit| unit.agent == agent);
    own.map(|unit| unit.unit.clone()).collect()
}

/// Returns the open claims, at most `MAX_CLAIMS`, with the positions that may be shown.
pub fn claims(judgement: &Judgement, latest: &BTreeMap<Agent, AgentOutcome>) -> Vec<Claim> {
    let is_kept = |agent: Agent| judgement.status_of(agent) != Some(Status::Discard);
    let kept = latest.iter().filter(|(agent, _)| is_kept(**agent));
    let kept = kept.filter_map(|(agent, outcome)| Some((*agent, outcome.report()?)));
    let mut visible = visible(&judgement.disagreements, &kept.collect::<Vec<_>>());
    visible.retain(|(disagreement, _)| !disagreement.settled);
    let claim = |(at, (disagreement, mut positions)): (usize, (&Disagreement, Vec<Position>))| {
        for position in &mut positions {
            position.text = one_line(&position.text);
        }
        Claim {
            id: format!("C{}", at + 1),
            topic: one_line(&disagreement.topic),
            on_final_answer: disagreement.on_final_answer,
            positions,
        }
    };
    let numbered = visible.into_iter().take(MAX_CLAIMS).enumerate();
    numbered.map(claim).collect()
}

/// Returns the disagreements that keep two or more positions when only `reports` are considered. A
/// position that only the cross-check states is kept.
pub fn visible<'a>(
    all: &'a [Disagreement],
    reports: &[(Agent, &AgentReport)],
) -> Vec<(&'a Disagreement, Vec<Position>)> {
    let report_of = |agent: &str| {
        let own = reports.iter().find(|(known, _)| known.into_str() == agent);
        own.map(|(_, report)| *report)
    };
    let text_of = |id: &UnitRef| {
        let mut units = report_of(&id.agent)?.units.iter();
        units
            .find(|u| u.id == id.unit)
            .map(|unit| unit.text.clone())
    };
    let position = |p: &Position| {
        let mut kept = p.clone();
        kept.agents.retain(|agent| report_of(agent).is_some());
        kept.units.retain(|id| text_of(id).is_some());
        // A position that only the cross-check states has no agents.
        if kept.agents.is_empty() && !p.agents.is_empty() {
            return None;
        }
        // If a discarded output shares a position, the text is that of a unit that is kept.
        if kept.agents.len() < p.agents.len() {
            kept.text = kept.units.first().and_then(text_of)?;
        }
        Some(kept)
    };
    all.iter()
        .filter_map(|d| {
            let positions: Vec<Position> = d.positions.iter().filter_map(position).collect();
            (positions.len() >= 2).then_some((d, positions))
        })
        .collect()
}
