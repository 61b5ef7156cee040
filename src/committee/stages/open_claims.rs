//! Selects the claims that are contested among the outputs that are not discarded.

use std::collections::BTreeMap;

use crate::committee::stages::verdicts::merged;
use crate::domain::{
    Agent, AgentName, AgentReport, CrossCheck, Disagreement, Holds, Judgement, Obtained, Position,
    Status, UnitRef,
};
use crate::journal::AgentOutcome;
use crate::scoring;
use crate::text::one_line;

/// Maximum number of claims shown to the agents. The final answer comes first, then the claims by
/// severity.
const MAX_CLAIMS: usize = 8;

/// A contested claim in the form in which agents receive it.
pub struct ContestedClaim {
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
    /// Core agents that have no VALID output and hold no contested claim.
    pub reporting_again: Vec<Agent>,
}

impl Open {
    /// Returns the agents of both fields, sorted.
    pub fn agents(&self) -> Vec<Agent> {
        let mut agents = [self.holders.as_slice(), &self.reporting_again].concat();
        agents.sort();
        agents
    }
}

/// Returns the open claims, and the agents of a panel that a further round asks. Skips agents whose
/// report was read from plain text, because it has no typed fields. An agent whose report the
/// cross-check found to be no answer, or of which it refuted a claim, does not report again: no
/// further call reads the new report, so the finding would be lost.
pub fn open(
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
    panel: &[Agent],
    cross_checks: &[CrossCheck],
) -> (Vec<ContestedClaim>, Open) {
    let claims = claims(judgement, latest);
    let is_typed = |agent: &Agent| {
        let obtained = latest.get(agent).and_then(AgentOutcome::obtained);
        obtained != Some(Obtained::Text)
    };
    let holds = |agent: &Agent| {
        let own = |claim: &ContestedClaim| claim.position_of(*agent).is_some();
        claims.iter().any(own)
    };
    let asked = panel.iter().copied().filter(is_typed);
    let (holders, mut reporting_again): (Vec<_>, Vec<_>) = asked.partition(holds);
    let is_valid = |agent: Agent| judgement.status_of(agent) == Some(Status::Valid);
    let is_no_answer = |agent: Agent| {
        let mut found = cross_checks.iter().flat_map(|check| &check.conduct);
        found.any(|conduct| conduct.agent == agent)
    };
    let verdicts = merged(cross_checks.iter().flat_map(|check| &check.claims));
    let is_refuted = |agent: Agent| {
        let score = judgement.score_of(agent);
        let mut own = verdicts.iter().filter(|it| it.claim.agent == agent);
        score.is_some_and(scoring::is_disproved) || own.any(|verdict| verdict.holds == Holds::No)
    };
    let has_finding = |agent: Agent| is_refuted(agent) || is_no_answer(agent);
    reporting_again.retain(|agent| agent.is_core() && !is_valid(*agent) && !has_finding(*agent));
    (
        claims,
        Open {
            holders,
            reporting_again,
        },
    )
}

impl ContestedClaim {
    /// Returns the position that an agent can give up, because it states it in its own unit or as
    /// its final answer.
    pub fn position_of(&self, agent: Agent) -> Option<&Position> {
        self.positions.iter().find(|position| {
            let named = position.agents.iter().any(|name| *name == agent);
            named && (self.on_final_answer || !own_units(position, agent).is_empty())
        })
    }
}

/// Returns the ids, without the agent, of the units in which an agent states a position.
pub fn own_units(position: &Position, agent: Agent) -> Vec<String> {
    let own = position.units.iter().filter(|unit| unit.agent == agent);
    own.map(|unit| unit.unit.clone()).collect()
}

/// Returns the open claims, at most `MAX_CLAIMS`, with the positions that may be shown.
pub fn claims(
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
) -> Vec<ContestedClaim> {
    let is_kept = |agent: Agent| judgement.status_of(agent) != Some(Status::Discard);
    let kept = latest.iter().filter(|(agent, _)| is_kept(**agent));
    let kept = kept.filter_map(|(agent, outcome)| Some((*agent, outcome.report()?)));
    let kept: Vec<_> = kept.collect();
    let mut visible = visible(&judgement.disagreements, &kept);
    only_the_final_claim_holds_answers(&mut visible, &kept);
    visible.retain(|(disagreement, _)| !disagreement.settled);
    let claim = |(at, (disagreement, mut positions)): (usize, (&Disagreement, Vec<Position>))| {
        for position in &mut positions {
            position.text = one_line(&position.text);
        }
        ContestedClaim {
            id: format!("C{}", at + 1),
            topic: one_line(&disagreement.topic),
            on_final_answer: disagreement.on_final_answer,
            positions,
        }
    };
    let numbered = visible.into_iter().take(MAX_CLAIMS).enumerate();
    numbered.map(claim).collect()
}

/// Takes the units that are final answers out of the claims about anything else. So an agent whose
/// final answer is contested gives it up in that claim only, and for another final answer: the text of
/// a calculation does not replace it.
fn only_the_final_claim_holds_answers(
    visible: &mut [(&Disagreement, Vec<Position>)],
    reports: &[(Agent, &AgentReport)],
) {
    let on_answer = visible.iter().filter(|(it, _)| it.on_final_answer);
    let holders = on_answer.flat_map(|(_, positions)| positions.iter().flat_map(|it| &it.agents));
    let holders: Vec<AgentName> = holders.cloned().collect();
    let is_answer = |id: &UnitRef| {
        let mut own = reports.iter().filter(|(agent, _)| id.agent == *agent);
        let answers = own.next().map(|(_, report)| report.answers());
        holders.contains(&id.agent)
            && answers.is_some_and(|mut it| it.any(|unit| unit.id == id.unit))
    };
    let others = visible.iter_mut().filter(|(it, _)| !it.on_final_answer);
    for position in others.flat_map(|(_, positions)| positions) {
        position.units.retain(|id| !is_answer(id));
    }
}

/// Returns the disagreements that keep two or more positions when only `reports` are considered.
pub fn visible<'a>(
    all: &'a [Disagreement],
    reports: &[(Agent, &AgentReport)],
) -> Vec<(&'a Disagreement, Vec<Position>)> {
    let report_of = |agent: &AgentName| {
        let own = reports.iter().find(|(known, _)| agent == known);
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
        if kept.agents.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Tag, Unit};

    fn report(answer: &str, sum: &str) -> AgentReport {
        let unit = |id: &str, text: &str, tag| Unit {
            id: id.into(),
            topic: "sum".into(),
            text: text.into(),
            tags: vec![tag, Tag::Key],
        };
        AgentReport {
            units: vec![
                unit("u1", answer, Tag::Answer),
                unit("u2", sum, Tag::Calculated),
            ],
            ..AgentReport::default()
        }
    }

    fn position(text: &str, agent: Agent, units: &[&str]) -> Position {
        Position {
            text: text.into(),
            agents: vec![agent.into()],
            units: units.iter().map(|unit| UnitRef::new(agent, unit)).collect(),
        }
    }

    #[test]
    fn a_position_of_no_shown_agent_is_left_out() {
        let reports = [
            (Agent::Solver, &report("61", "31 + 30 = 61")),
            (Agent::Critic, &report("60", "30 + 30 = 60")),
        ];
        let unheld = Position {
            agents: vec![],
            ..position("471147", Agent::Verifier, &[])
        };
        let all = [Disagreement {
            topic: "final answer".into(),
            on_final_answer: true,
            settled: true,
            severity: 0.5,
            positions: vec![
                position("61", Agent::Solver, &["u1"]),
                position("60", Agent::Critic, &["u1"]),
                position("52", Agent::Verifier, &["u1"]),
                unheld,
            ],
        }];
        let shown = visible(&all, &reports);
        let texts: Vec<&str> = shown[0].1.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts, ["61", "60"]);
    }

    #[test]
    fn a_final_answer_is_given_up_in_the_claim_about_it_only() {
        let reports = [
            (Agent::Solver, &report("720", "12 * 60 = 720")),
            (Agent::Critic, &report("700", "12 * 60 = 700")),
        ];
        let disagreement = |on_final_answer, units: &[&str]| Disagreement {
            topic: "sum".into(),
            on_final_answer,
            positions: vec![
                position("12 * 60 = 720", Agent::Solver, units),
                position("700", Agent::Critic, units),
            ],
            settled: false,
            severity: 0.5,
        };
        let units = |all: &[Disagreement]| {
            let mut visible = visible(all, &reports);
            only_the_final_claim_holds_answers(&mut visible, &reports);
            let positions = visible.into_iter().flat_map(|(_, positions)| positions);
            let own = positions.map(|it| own_units(&it, it.agents[0].agent().unwrap()));
            own.collect::<Vec<_>>()
        };
        let (both, own) = (["u1", "u2"], ["u2"]);
        let all = [disagreement(true, &["u1"]), disagreement(false, &both)];
        assert_eq!(units(&all), [&["u1"][..], &["u1"], &own, &own]);
        // Without such a claim an answer can be given up in any.
        assert_eq!(units(&all[1..]), [both, both]);
    }
}
