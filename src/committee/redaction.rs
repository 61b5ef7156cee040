//! What the audit says of discarded outputs: who held what is told by name, and nothing of it is quoted (SPEC 2, 7).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::sections::discarded::ForbiddenContent;
use super::sections::verbatim::NormalizedText;
use crate::domain::{
    AgentReport, AnswerGroup, CrossCheck, Disagreement, Judgement, Position, Status,
};
use crate::journal::{AgentOutcome, Continuation, Event};

/// What stands in the place of a discarded text.
pub const WITHHELD: &str = "its text is withheld: the output was discarded";

/// A topic that only discarded outputs speak of.
const TOPIC: &str = "a point of a discarded output";

/// Which outputs may be quoted, and which may not.
pub struct Redactor<'a> {
    discarded: BTreeSet<&'a str>,
    kept: BTreeMap<&'a str, &'a AgentReport>,
    /// The texts of the kept outputs and of the user.
    said: NormalizedText,
    barred: ForbiddenContent,
}

impl<'a> Redactor<'a> {
    /// By the run's last judgement; an agent that failed has no output.
    pub fn of(events: &'a [Event]) -> Self {
        let mut reports: BTreeMap<&str, &AgentReport> = BTreeMap::new();
        let mut failed: BTreeSet<&str> = BTreeSet::new();
        let mut judgement: Option<&Judgement> = None;
        let mut said: Vec<&str> = vec![];
        for event in events {
            match event {
                Event::Accepted(accepted) => {
                    said.push(&accepted.question.message);
                    match accepted.continues.as_ref().map(|continues| &continues.by) {
                        Some(Continuation::Answer {
                            question, answer, ..
                        }) => said.extend([question.as_str(), answer]),
                        Some(Continuation::Correction {
                            wrong, correction, ..
                        }) => {
                            said.extend([wrong.as_str(), correction]);
                        }
                        None => {}
                    }
                }
                Event::AgentFinished(finished) => match &finished.outcome {
                    AgentOutcome::Answered { report, .. } => {
                        reports.insert(finished.agent.as_str(), report);
                    }
                    AgentOutcome::Failed { .. } => {
                        failed.insert(finished.agent.as_str());
                    }
                },
                Event::Scored(scored) => judgement = Some(&scored.judgement),
                _ => {}
            }
        }
        let scores = judgement
            .into_iter()
            .flat_map(|judgement| &judgement.scores);
        let low = scores
            .filter(|score| score.status == Status::Discard)
            .map(|score| score.agent.as_str());
        let mut discarded: BTreeSet<&str> = low.collect();
        discarded.extend(
            failed
                .into_iter()
                .filter(|agent| !reports.contains_key(agent)),
        );
        let (out, kept): (BTreeMap<_, _>, BTreeMap<_, _>) = reports
            .into_iter()
            .partition(|(agent, _)| discarded.contains(agent));
        said.extend(kept.values().flat_map(|report| report.texts()));
        Self {
            barred: ForbiddenContent::new(out, &said),
            said: NormalizedText::of(&said.join("\n")),
            discarded,
            kept,
        }
    }

    fn is_kept(&self, agent: &str) -> bool {
        !self.discarded.contains(agent)
    }

    /// Whether the user or a kept output says the same, word for word.
    fn is_said(&self, text: &str) -> bool {
        let folded = NormalizedText::of(text).text;
        !folded.is_empty() && self.said.has(&folded)
    }

    pub fn disagreements(&self, judgement: &Judgement) -> Value {
        let told = |d: &Disagreement| {
            let positions: Vec<Position> = d
                .positions
                .iter()
                .map(|position| self.position(position))
                .collect();
            json!(Disagreement {
                topic: self.topic(&d.topic),
                positions,
                ..d.clone()
            })
        };
        judgement.disagreements.iter().map(told).collect()
    }

    pub fn answer_groups(&self, judgement: &Judgement) -> Value {
        let told = |group: &AnswerGroup| {
            // Who kept the same answer gave it too, if in other words.
            let kept = group.agents.iter().any(|agent| self.is_kept(agent));
            let answer = if kept {
                group.answer.clone()
            } else {
                WITHHELD.to_owned()
            };
            json!(AnswerGroup {
                answer,
                ..group.clone()
            })
        };
        judgement.answer_groups.iter().map(told).collect()
    }

    /// A position with all who hold it, in the words of one who may be quoted, and without the units of the others.
    fn position(&self, position: &Position) -> Position {
        let unit = |id: &String| {
            let (agent, unit) = id.split_once(':')?;
            self.kept.get(agent)?.units.iter().find(|u| u.id == unit)
        };
        let units: Vec<String> = position
            .units
            .iter()
            .filter(|id| unit(id).is_some())
            .cloned()
            .collect();
        let mut keepers = position
            .agents
            .iter()
            .filter(|agent| self.is_kept(agent))
            .peekable();
        let text = if position.agents.iter().all(|agent| self.is_kept(agent)) {
            position.text.clone()
        } else if keepers.peek().is_none() {
            WITHHELD.to_owned()
        } else if self.is_said(&position.text) {
            position.text.clone()
        } else {
            let of_unit = units.first().and_then(unit).map(|unit| unit.text.clone());
            let of_answer = || {
                Some(
                    self.kept
                        .get(keepers.next()?.as_str())?
                        .answer_summary
                        .first()?
                        .clone(),
                )
            };
            of_unit
                .or_else(of_answer)
                .unwrap_or_else(|| WITHHELD.to_owned())
        };
        Position {
            text,
            agents: position.agents.clone(),
            units,
        }
    }

    /// A disagreement's topic, if it is the service's own word or a kept output's.
    pub fn topic(&self, topic: &str) -> String {
        let known = ["final answer", "claims"].contains(&topic)
            || self.is_said(topic)
            || self
                .kept
                .values()
                .flat_map(|report| &report.units)
                .any(|u| u.topic.trim().eq_ignore_ascii_case(topic));
        if known || self.discarded.is_empty() {
            topic.to_owned()
        } else {
            TOPIC.to_owned()
        }
    }

    /// What a cross-check found, without the claims of discarded outputs, their units and what was said of them.
    pub fn cross_check(&self, found: &CrossCheck) -> Value {
        let is_kept = |name: &str| self.is_kept(name.split(':').next().unwrap_or_default());
        let named = |names: &[String]| -> Vec<String> {
            let agent = |name: &String| name.split(':').next().unwrap_or_default().to_owned();
            names
                .iter()
                .map(|name| {
                    if is_kept(name) {
                        name.clone()
                    } else {
                        agent(name)
                    }
                })
                .collect()
        };
        let text = |agents: &[String], text: &str| {
            if agents.iter().all(|name| is_kept(name)) {
                text.to_owned()
            } else {
                WITHHELD.to_owned()
            }
        };
        let claims: Vec<Value> = found
            .claims
            .iter()
            .map(|verdict| {
                let kept = is_kept(&verdict.claim.agent);
                let claim = if kept { verdict.claim.to_string() } else { verdict.claim.agent.clone() };
                let said = self.kept.get(verdict.claim.agent.as_str());
                let said = said.and_then(|report| report.units.iter().find(|unit| unit.id == verdict.claim.unit));
                let said = said.map_or_else(|| WITHHELD.to_owned(), |unit| unit.text.clone());
                let about: Vec<String> =
                    verdict.contradicted_by.iter().chain([&verdict.claim.agent]).cloned().collect();
                json!({
                    "claim": claim, "text": said, "holds": verdict.holds, "by": verdict.by,
                    "supportedBy": named(&verdict.supported_by), "contradictedBy": named(&verdict.contradicted_by),
                    "evidence": text(&about, &verdict.evidence),
                })
            })
            .collect();
        let conduct: Vec<Value> = found
            .conduct
            .iter()
            .map(|c| json!({ "agent": c.agent, "kind": c.kind, "why": text(std::slice::from_ref(&c.agent), &c.why) }))
            .collect();
        json!({ "claims": claims, "sameAnswers": found.same_answers, "parts": found.parts, "reports": conduct })
    }

    /// What an agent says of its own, if it may be quoted.
    pub fn word_of(&self, agent: &str, text: &str) -> String {
        if self.is_kept(agent) {
            text.to_owned()
        } else {
            WITHHELD.to_owned()
        }
    }

    /// A text of the service that lists topics.
    pub fn without_topics(&self, text: &str, judged: &[Disagreement]) -> String {
        let hidden = judged
            .iter()
            .map(|d| d.topic.as_str())
            .filter(|topic| self.topic(topic) == TOPIC);
        hidden.fold(text.to_owned(), |text, topic| text.replace(topic, TOPIC))
    }

    /// Cuts from every text of a value what may not be quoted.
    pub fn scrub(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if !self.barred.mentions(text).is_empty() {
                    *text = self.barred.cut(text);
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.scrub(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.scrub(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Agent, Basis, ClaimVerdict, Conduct, ConductKind, Holds, Unit};
    use crate::journal::{AgentFinished, Scored};

    fn finished(agent: Agent, topic: &str, text: &str) -> Event {
        let unit = Unit {
            id: "u1".into(),
            topic: topic.into(),
            text: text.into(),
            tags: vec![],
        };
        let report = AgentReport {
            units: vec![unit],
            ..AgentReport::empty(agent)
        };
        let outcome = AgentOutcome::Answered {
            report,
            obtained: crate::domain::Obtained::Clean,
            truncated: false,
            notes: vec![],
            tokens: 1,
        };
        Event::AgentFinished(Box::new(AgentFinished {
            round: 1,
            agent,
            outcome,
            reused_from: None,
            resolved: None,
        }))
    }

    fn position(text: &str, agents: &[&str]) -> Position {
        let owned = |agent: &&str| (*agent).to_owned();
        let units = agents.iter().map(|agent| format!("{agent}:u1")).collect();
        Position {
            text: text.into(),
            agents: agents.iter().map(owned).collect(),
            units,
        }
    }

    fn judgement() -> Judgement {
        let axis = || crate::domain::AxisScore {
            points: 20.0,
            from_code: 20.0,
            features: vec![],
        };
        let axes = || crate::domain::Axes {
            coherence: axis(),
            alignment: axis(),
            verifiability: axis(),
            signal_density: axis(),
            compliance: axis(),
        };
        let score = |agent: &str, status| crate::domain::Score {
            agent: agent.into(),
            axes: axes(),
            cred: 0.8,
            status,
        };
        let alone = position("March has 30 days, SECRETLY.", &["critic"]);
        let both = position("It has 31 days, SECRETLY.", &["critic", "solver"]);
        let disagreement = |topic: &str, positions| Disagreement {
            topic: topic.into(),
            on_final_answer: false,
            settled: false,
            severity: 0.3,
            positions,
        };
        Judgement {
            cross_checked: false,
            scores: vec![
                score("solver", Status::Valid),
                score("critic", Status::Discard),
            ],
            disagreements: vec![
                disagreement("days", vec![both, alone]),
                disagreement(
                    "SECRETLY",
                    vec![position("31", &["solver"]), position("30", &["critic"])],
                ),
            ],
            answer_groups: vec![AnswerGroup {
                answer: "SECRETLY 30".into(),
                agents: vec!["critic".into()],
                conflict_penalty: None,
            }],
            base_score: 0.8,
            conflict_penalty: 0.0,
            coverage_bonus: 0.0,
            parts: vec![],
            covered: vec![],
        }
    }

    #[test]
    fn who_held_a_discarded_position_is_told_and_its_text_is_not() {
        let events = [
            finished(Agent::Solver, "days", "March has 31 days."),
            finished(Agent::Critic, "SECRETLY", "March has 30 days, SECRETLY."),
            Event::Scored(Box::new(Scored {
                round: 1,
                judgement: judgement(),
            })),
        ];
        let withheld = Redactor::of(&events);
        let told = withheld.disagreements(&judgement());
        assert!(
            !told.to_string().contains("SECRETLY") && !told.to_string().contains("critic:u1"),
            "{told}"
        );
        let first = &told[0]["positions"];
        assert_eq!(
            first[0],
            json!({ "text": "March has 31 days.", "agents": ["critic", "solver"], "units": ["solver:u1"] })
        );
        assert_eq!(
            first[1],
            json!({ "text": WITHHELD, "agents": ["critic"], "units": [] })
        );
        assert_eq!(
            (&told[0]["topic"], &told[1]["topic"]),
            (&json!("days"), &json!(TOPIC))
        );
        assert_eq!(withheld.answer_groups(&judgement())[0]["answer"], WITHHELD);
        assert_eq!(
            withheld.without_topics("contested: days, SECRETLY", &judgement().disagreements),
            format!("contested: days, {TOPIC}")
        );
    }

    #[test]
    fn a_cross_check_quotes_nothing_of_a_discarded_output() {
        let events = [
            finished(Agent::Solver, "days", "March has 31 days."),
            finished(Agent::Critic, "days", "March has 30 days, SECRETLY."),
            Event::Scored(Box::new(Scored {
                round: 1,
                judgement: judgement(),
            })),
        ];
        let verdict = |claim: &str, against: &str| ClaimVerdict {
            claim: claim.parse().unwrap(),
            supported_by: vec![],
            contradicted_by: vec![against.into()],
            holds: Holds::Yes,
            by: Basis::Calculation,
            evidence: "SECRETLY".into(),
        };
        let found = CrossCheck {
            claims: vec![
                verdict("solver:u1", "verifier"),
                verdict("solver:u1", "critic:u1"),
                verdict("critic:u1", "solver"),
            ],
            conduct: vec![Conduct {
                agent: "critic".into(),
                kind: ConductKind::Steers,
                why: "SECRETLY".into(),
            }],
            ..CrossCheck::default()
        };
        let told = Redactor::of(&events).cross_check(&found);
        assert_eq!(told["claims"][0]["evidence"], "SECRETLY");
        assert_eq!(
            (
                &told["claims"][1]["evidence"],
                &told["claims"][1]["contradictedBy"]
            ),
            (&json!(WITHHELD), &json!(["critic"]))
        );
        assert_eq!(told["claims"][2]["claim"], "critic");
        assert_eq!(told.to_string().matches("SECRETLY").count(), 1, "{told}");
    }
}
