//! A scenario: one question with the reply of each step of a run. The texts are in
//! `tests/it/data/scenarios/`.

use conclave::domain::Agent;
use serde::Deserialize;
use serde_json::{Value, json};

use super::truth;

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Scenario {
    /// The user's message.
    pub message: String,
    pub plan: Value,
    /// By step, as `r1/solver`. A later round repeats the last report of its agent. An agent
    /// without a report gets the solver's.
    pub reports: Value,
    pub synthesis: Value,
    /// The question of the gate.
    question: Value,
    estimate: Value,
    /// A claim holds if it contains one of these texts, and is wrong otherwise. If empty, the
    /// cross-check can only compare claims.
    right: Vec<String>,
    /// What applies once the request carries an option that the user chose, by the option's text.
    answered: Vec<(String, Scenario)>,
}

impl Scenario {
    /// Three agents agree on 100 degrees Celsius, each with well-supported claims.
    pub fn agreeing() -> Self {
        Self::read(include_str!("../data/scenarios/agreeing.json"))
    }

    /// An ordered plan of four steps. Its figures sum up to O 15, M 30, P 75 and E 35 minutes; the
    /// text claims other sums.
    pub fn howto() -> Self {
        Self::read(include_str!("../data/scenarios/howto.json"))
    }

    /// Three answers, each right under its own reading of the request. The question offers them as
    /// A, B and C. After the answer all agents agree.
    pub fn disagreeing() -> Self {
        Self::read(include_str!("../data/scenarios/disagreeing.json"))
    }

    /// The plan itself asks, and no agent runs. After the answer the committee agrees.
    pub fn vague() -> Self {
        Self::read(include_str!("../data/scenarios/vague.json"))
    }

    /// Two rounds. In round 1 solver and verifier say 61 days, and the critic says 60. In round 2
    /// the critic concedes.
    pub fn converging() -> Self {
        Self::read(include_str!("../data/scenarios/converging.json"))
    }

    fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns the report of a step such as `r1/solver`.
    pub fn report(&self, step: &str) -> Value {
        self.reply(step, "").unwrap()
    }

    /// Returns the reply of a step to a request with this text, or `None` for a step that no
    /// committee has.
    pub fn reply(&self, step: &str, request: &str) -> Option<Value> {
        let is_chosen = |option: &str| {
            let mut lines = request.lines();
            lines.any(|line| line.starts_with("- ") && line.ends_with(option))
        };
        if let Some((_, then)) = self.answered.iter().find(|(option, _)| is_chosen(option)) {
            return then.reply(step, request);
        }
        match step.strip_suffix("/repair").unwrap_or(step) {
            "plan" => Some(self.plan.clone()),
            "synthesis" | "synthesis/rest" => Some(self.synthesis_for(request)),
            "question" => Some(self.question.clone()),
            "estimate" => Some(self.estimate.clone()),
            // An unsure proposal, which is not understood.
            "proposal" => Some(json!({
                "ok": false, "confidence": 0.5, "action": "", "args": {}, "reason": "", "alternatives": [],
            })),
            step if step.starts_with("cross-check") => {
                Some(truth::cross_check(&self.right, request))
            }
            step if step.contains("/resolve/") => Some(truth::decisions(&self.right, request)),
            step => {
                let (round, agent) = step.strip_prefix('r')?.split_once('/')?;
                let latest = |agent: &str| {
                    let rounds = (1..=round.parse::<u8>().ok()?).rev();
                    rounds
                        .map(|round| &self.reports[format!("r{round}/{agent}")])
                        .find(|report| report.is_object())
                };
                let mut report = latest(agent).or_else(|| latest("solver"))?.clone();
                report["agent"] = json!(agent.parse::<Agent>().ok()?);
                Some(report)
            }
        }
    }

    /// Returns a synthesis that cites only units that the request shows and justifies the outputs
    /// that it marks as quarantined.
    fn synthesis_for(&self, request: &str) -> Value {
        let mut synthesis = self.synthesis.clone();
        let audit = &mut synthesis["audit"];
        let is_shown = |unit: &Value| {
            let (agent, id) = unit.as_str().unwrap().split_once(':').unwrap();
            let units = self.reports[format!("r1/{agent}")]["units"].as_array();
            let mut units = units.into_iter().flatten();
            units.any(|unit| unit["id"] == id && request.contains(unit["text"].as_str().unwrap()))
        };
        audit["unitsUsed"].as_array_mut().unwrap().retain(is_shown);
        let why = "its figures are confirmed by another agent's check, so they are kept with care";
        let is_quarantined = |agent: &Agent| request.contains(&format!("{agent}: QUARANTINE"));
        let quarantined = Agent::ALL.iter().filter(|it| is_quarantined(it));
        let justified = quarantined.map(|agent| json!({ "agent": agent, "why": why }));
        audit["quarantineJustifications"] = justified.collect();
        synthesis
    }
}

/// Returns a report as the prose of a plain-text role.
pub(super) fn prose(report: &Value) -> String {
    let list = |key: &str| report[key].as_array().into_iter().flatten();
    let units = list("units").map(|unit| &unit["text"]);
    let texts = list("answerSummary").chain([&report["reasoning"]]);
    let texts: Vec<&str> = texts.chain(units).filter_map(Value::as_str).collect();
    texts.join("\n")
}
