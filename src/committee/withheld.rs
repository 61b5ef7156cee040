//! What the audit says of discarded outputs: who held what is told by name, and nothing of it is quoted (SPEC 2, 7).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::sections::discarded::Discarded;
use super::sections::verbatim::Folded;
use crate::domain::{AgentReport, AnswerGroup, Disagreement, Judgement, Position, Review, Status};
use crate::journal::{AgentOutcome, Continuation, Event};

/// What stands in the place of a discarded text.
pub const WITHHELD: &str = "its text is withheld: the output was discarded";

/// A topic that only discarded outputs speak of.
const TOPIC: &str = "a point of a discarded output";

/// Which outputs may be quoted, and which may not.
pub struct Withheld<'a> {
    discarded: BTreeSet<&'a str>,
    kept: BTreeMap<&'a str, &'a AgentReport>,
    /// The texts of the kept outputs and of the user.
    said: Folded,
    barred: Discarded,
}

impl<'a> Withheld<'a> {
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
                        Some(Continuation::Answer { question, answer, .. }) => said.extend([question.as_str(), answer]),
                        Some(Continuation::Correction { wrong, correction, .. }) => {
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
        let scores = judgement.into_iter().flat_map(|judgement| &judgement.scores);
        let low = scores.filter(|score| score.status == Status::Discard).map(|score| score.agent.as_str());
        let mut discarded: BTreeSet<&str> = low.collect();
        discarded.extend(failed.into_iter().filter(|agent| !reports.contains_key(agent)));
        let (out, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            reports.into_iter().partition(|(agent, _)| discarded.contains(agent));
        said.extend(kept.values().flat_map(|report| report.texts()));
        Self { barred: Discarded::new(out, &said), said: Folded::of(&said.join("\n")), discarded, kept }
    }

    fn is_kept(&self, agent: &str) -> bool {
        !self.discarded.contains(agent)
    }

    /// Whether the user or a kept output says the same, word for word.
    fn is_said(&self, text: &str) -> bool {
        let folded = Folded::of(text).text;
        !folded.is_empty() && self.said.has(&folded)
    }

    pub fn disagreements(&self, judgement: &Judgement) -> Value {
        let told = |d: &Disagreement| {
            let positions: Vec<Position> = d.positions.iter().map(|position| self.position(position)).collect();
            json!(Disagreement { topic: self.topic(&d.topic), positions, ..d.clone() })
        };
        judgement.disagreements.iter().map(told).collect()
    }

    pub fn answer_groups(&self, judgement: &Judgement) -> Value {
        let told = |group: &AnswerGroup| {
            // Who kept the same answer gave it too, if in other words.
            let kept = group.agents.iter().any(|agent| self.is_kept(agent));
            let answer = if kept { group.answer.clone() } else { WITHHELD.to_owned() };
            json!(AnswerGroup { answer, ..group.clone() })
        };
        judgement.answer_groups.iter().map(told).collect()
    }

    /// A position with all who hold it, in the words of one who may be quoted, and without the units of the others.
    fn position(&self, position: &Position) -> Position {
        let unit = |id: &String| {
            let (agent, unit) = id.split_once(':')?;
            self.kept.get(agent)?.units.iter().find(|u| u.id == unit)
        };
        let units: Vec<String> = position.units.iter().filter(|id| unit(id).is_some()).cloned().collect();
        let mut keepers = position.agents.iter().filter(|agent| self.is_kept(agent)).peekable();
        let text = if position.agents.iter().all(|agent| self.is_kept(agent)) {
            position.text.clone()
        } else if keepers.peek().is_none() {
            WITHHELD.to_owned()
        } else if self.is_said(&position.text) {
            position.text.clone()
        } else {
            let of_unit = units.first().and_then(unit).map(|unit| unit.text.clone());
            let of_answer = || Some(self.kept.get(keepers.next()?.as_str())?.answer_summary.first()?.clone());
            of_unit.or_else(of_answer).unwrap_or_else(|| WITHHELD.to_owned())
        };
        Position { text, agents: position.agents.clone(), units }
    }

    /// A disagreement's topic, if it is the service's own word or a kept output's.
    pub fn topic(&self, topic: &str) -> String {
        let known = ["final answer", "claims"].contains(&topic)
            || self.is_said(topic)
            || self.kept.values().flat_map(|report| &report.units).any(|u| u.topic.trim().eq_ignore_ascii_case(topic));
        if known || self.discarded.is_empty() { topic.to_owned() } else { TOPIC.to_owned() }
    }

    /// A review without what a discarded output said: its position, or its reason.
    pub fn review(&self, review: &Review) -> Value {
        let held = |agents: &[String]| agents.iter().any(|agent| self.is_kept(agent));
        let all_kept = review.holders.iter().all(|agent| self.is_kept(agent));
        let shown = all_kept || (held(&review.holders) && self.is_said(&review.position));
        let position = if shown { review.position.clone() } else { WITHHELD.to_owned() };
        let told = shown && self.is_kept(review.reviewer.as_str());
        let reason = if told { review.reason.clone() } else { WITHHELD.to_owned() };
        json!(Review { topic: self.topic(&review.topic), position, reason, ..review.clone() })
    }

    /// What an agent says of its own, if it may be quoted.
    pub fn word_of(&self, agent: &str, text: &str) -> String {
        if self.is_kept(agent) { text.to_owned() } else { WITHHELD.to_owned() }
    }

    /// A text of the service that lists topics.
    pub fn without_topics(&self, text: &str, judged: &[Disagreement]) -> String {
        let hidden = judged.iter().map(|d| d.topic.as_str()).filter(|topic| self.topic(topic) == TOPIC);
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
    use crate::domain::{Agent, Unit};
    use crate::journal::{AgentFinished, Scored};

    fn finished(agent: Agent, topic: &str, text: &str) -> Event {
        let unit = Unit { id: "u1".into(), topic: topic.into(), text: text.into(), tags: vec![] };
        let report = AgentReport { units: vec![unit], ..AgentReport::empty(agent) };
        let outcome = AgentOutcome::Answered {
            report,
            obtained: crate::domain::Obtained::Clean,
            truncated: false,
            notes: vec![],
            tokens: 1,
        };
        Event::AgentFinished(Box::new(AgentFinished { round: 1, agent, outcome, reused_from: None, revision: None }))
    }

    fn position(text: &str, agents: &[&str]) -> Position {
        let owned = |agent: &&str| (*agent).to_owned();
        let units = agents.iter().map(|agent| format!("{agent}:u1")).collect();
        Position { text: text.into(), agents: agents.iter().map(owned).collect(), units }
    }

    fn judgement() -> Judgement {
        let axis = || crate::domain::AxisScore { points: 20.0, from_code: 20.0, features: vec![] };
        let axes = || crate::domain::Axes {
            coherence: axis(),
            alignment: axis(),
            verifiability: axis(),
            signal_density: axis(),
            compliance: axis(),
        };
        let score = |agent: &str, status| crate::domain::Score { agent: agent.into(), axes: axes(), cred: 0.8, status };
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
            scores: vec![score("solver", Status::Valid), score("critic", Status::Discard)],
            disagreements: vec![
                disagreement("days", vec![both, alone]),
                disagreement("SECRETLY", vec![position("31", &["solver"]), position("30", &["critic"])]),
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
            Event::Scored(Box::new(Scored { round: 1, judgement: judgement() })),
        ];
        let withheld = Withheld::of(&events);
        let told = withheld.disagreements(&judgement());
        assert!(!told.to_string().contains("SECRETLY") && !told.to_string().contains("critic:u1"), "{told}");
        let first = &told[0]["positions"];
        assert_eq!(
            first[0],
            json!({ "text": "March has 31 days.", "agents": ["critic", "solver"], "units": ["solver:u1"] })
        );
        assert_eq!(first[1], json!({ "text": WITHHELD, "agents": ["critic"], "units": [] }));
        assert_eq!((&told[0]["topic"], &told[1]["topic"]), (&json!("days"), &json!(TOPIC)));
        assert_eq!(withheld.answer_groups(&judgement())[0]["answer"], WITHHELD);
        assert_eq!(
            withheld.without_topics("contested: days, SECRETLY", &judgement().disagreements),
            format!("contested: days, {TOPIC}")
        );
    }

    #[test]
    fn a_review_quotes_nothing_of_a_discarded_output() {
        let events = [
            finished(Agent::Solver, "days", "March has 31 days."),
            finished(Agent::Critic, "days", "March has 30 days."),
            Event::Scored(Box::new(Scored { round: 1, judgement: judgement() })),
        ];
        let withheld = Withheld::of(&events);
        let review = |reviewer, holder: &str| Review {
            reviewer,
            claim: "C1".into(),
            topic: "days".into(),
            on_final_answer: false,
            position: "P".into(),
            holders: vec![holder.into()],
            own: false,
            finding: crate::domain::Finding::Holds,
            swapped: None,
            reason: "R".into(),
        };
        let told = |reviewer, holder| {
            let value = withheld.review(&review(reviewer, holder));
            (value["position"] == "P", value["reason"] == "R")
        };
        assert_eq!(told(Agent::Verifier, "solver"), (true, true));
        assert_eq!(told(Agent::Critic, "solver"), (true, false));
        assert_eq!(told(Agent::Verifier, "critic"), (false, false));
    }
}
