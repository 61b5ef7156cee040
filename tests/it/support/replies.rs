//! The replies of the mock's models without faults. A scenario is one question with the committee's
//! replies.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use super::checked;
use super::dialect;
use super::record::Call;
use super::wire::{self, Wanted};

/// One question with the reply of each step of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    /// The user's message.
    pub message: String,
    pub(super) plan: Value,
    /// By step: `r1/solver`. A later round without a report of its own repeats the last one. An
    /// agent without any report gets the solver's.
    pub(super) reports: BTreeMap<String, Value>,
    pub(super) synthesis: Value,
    /// `{ question, options }`, the options with their letters.
    pub(super) question: Value,
    pub(super) estimate: Value,
    /// A claim holds if it contains one of these texts, and is wrong otherwise. If empty, the
    /// cross-check can only compare claims.
    pub(super) right: Vec<String>,
    /// The scenario that applies once the request carries an option that the user chose, by the
    /// option's text without its letter.
    pub(super) answered: Vec<(String, Scenario)>,
}

impl Scenario {
    /// Returns the options of the scenario's question, without their letters.
    pub fn options(&self) -> Vec<String> {
        self.answered
            .iter()
            .map(|(option, _)| option.clone())
            .collect()
    }

    /// Returns the report of a step such as `r1/solver`.
    pub fn report(&self, step: &str) -> Value {
        self.reply_to(step, "")
    }

    /// Returns the reply of a step to a request with this text.
    pub fn reply_to(&self, step: &str, request: &str) -> Value {
        self.reply(step, request).unwrap_or_default()
    }

    pub fn synthesis(&self) -> Value {
        self.synthesis.clone()
    }

    pub fn plan(&self) -> Value {
        self.plan.clone()
    }

    /// Returns the question of the gate.
    pub fn question(&self) -> Value {
        self.question.clone()
    }

    pub fn estimate(&self) -> Value {
        self.estimate.clone()
    }

    /// Sets the number of rounds in the plan.
    pub fn rounds(self, rounds: u8) -> Self {
        self.with("plan", &|plan| plan["rounds"] = json!(rounds))
    }

    /// Sets the plan's output shape: `ask`, `audit` or `deep`.
    pub fn shape(self, shape: &str) -> Self {
        self.with("plan", &|plan| plan["outputShape"] = json!(shape))
    }

    pub fn agents(self, agents: &[&str]) -> Self {
        self.with("plan", &|plan| plan["agentsToRun"] = json!(agents))
    }

    /// Sets the demands of the request in the plan.
    pub fn demands(self, demands: &Value) -> Self {
        self.with("plan", &|plan| plan["demands"] = demands.clone())
    }

    /// Removes the figures of the plan from the synthesis, but not its text: the `estimate` call
    /// must supply them.
    pub fn without_figures(self) -> Self {
        self.with("synthesis", &|synthesis| {
            synthesis["meta"]["planSteps"] = json!([]);
        })
    }

    /// Changes the plan or the synthesis, also in the scenarios that apply after an answer.
    fn with(mut self, part: &str, change: &dyn Fn(&mut Value)) -> Self {
        change(if part == "plan" {
            &mut self.plan
        } else {
            &mut self.synthesis
        });
        self.answered = self
            .answered
            .into_iter()
            .map(|(option, then)| (option, then.with(part, change)))
            .collect();
        self
    }

    /// Returns the reply of a step to a request with this text, or `None` for a step that no
    /// committee has.
    pub(super) fn reply(&self, step: &str, request: &str) -> Option<Value> {
        if let Some(then) = self.chosen(request) {
            return then.reply(step, request);
        }
        let step = step.strip_suffix("/repair").unwrap_or(step);
        match step {
            "plan" => Some(self.plan.clone()),
            "synthesis" => Some(self.synthesis_for(request)),
            "question" => Some(self.question.clone()),
            "estimate" => Some(self.estimate.clone()),
            _ if step.starts_with("cross-check") => {
                Some(checked::cross_check(&self.right, request))
            }
            _ if step.contains("/resolve/") => Some(checked::decisions(&self.right, request)),
            _ => {
                let (round, agent) = step.strip_prefix('r')?.split_once('/')?;
                self.report_of(round.parse().ok()?, agent)
            }
        }
    }

    fn report_of(&self, round: u8, agent: &str) -> Option<Value> {
        if !matches!(
            agent,
            "solver" | "critic" | "verifier" | "editor" | "implementer" | "visual"
        ) {
            return None;
        }
        let latest = |agent: &str| {
            (1..=round)
                .rev()
                .find_map(|round| self.reports.get(&format!("r{round}/{agent}")))
        };
        let mut report = latest(agent).or_else(|| latest("solver"))?.clone();
        report["agent"] = json!(agent);
        Some(report)
    }

    /// Returns the scenario of the option that the request names most often. If several are named
    /// equally often (the request quotes the question), the letter after the last of them decides.
    fn chosen(&self, request: &str) -> Option<&Scenario> {
        let count = |option: &str| request.matches(option).count();
        let most = self
            .answered
            .iter()
            .map(|(option, _)| count(option))
            .max()
            .filter(|most| *most > 0)?;
        let named: Vec<_> = self
            .answered
            .iter()
            .filter(|(option, _)| count(option) == most)
            .collect();
        if let [(_, only)] = named[..] {
            return Some(only);
        }
        let end = self
            .answered
            .iter()
            .filter_map(|(option, _)| Some(request.rfind(option)? + option.len()))
            .max()?;
        let letter = Regex::new(r"\b([A-C])\b")
            .unwrap()
            .captures(&request[end..])?[1]
            .chars()
            .next()?;
        self.answered
            .get(letter as usize - 'A' as usize)
            .map(|(_, then)| then)
    }

    /// Returns a synthesis that cites only units that the request shows and justifies those that
    /// the request marks as quarantined.
    fn synthesis_for(&self, request: &str) -> Value {
        let mut synthesis = self.synthesis.clone();
        let texts = |agent: &str, id: &str| -> Vec<String> {
            let own = self
                .reports
                .iter()
                .filter(|(step, _)| step.ends_with(&format!("/{agent}")));
            let units = own
                .filter_map(|(_, report)| report["units"].as_array())
                .flatten();
            units
                .filter(|unit| unit["id"] == id)
                .filter_map(|unit| Some(unit["text"].as_str()?.to_owned()))
                .collect()
        };
        let used = synthesis["audit"]["unitsUsed"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let shown: Vec<Value> = used
            .into_iter()
            .filter(|unit| {
                let (agent, id) = unit
                    .as_str()
                    .and_then(|unit| unit.split_once(':'))
                    .unwrap_or_default();
                texts(agent, id)
                    .iter()
                    .any(|text| request.contains(text.as_str()))
            })
            .collect();
        let quarantined = |agent: &str| {
            let marked = format!(r"\b{agent}\b\W+(?:\w+\W+){{0,4}}?QUARANTINE\b");
            Regex::new(&marked).unwrap().is_match(request)
        };
        let why = "its figures are confirmed by another agent's check, so they are kept with care";
        let justified: Vec<Value> = [
            "solver",
            "critic",
            "verifier",
            "editor",
            "implementer",
            "visual",
        ]
        .into_iter()
        .filter(|agent| quarantined(agent))
        .map(|agent| json!({"agent": agent, "why": why}))
        .collect();
        synthesis["audit"]["unitsUsed"] = shown.into();
        synthesis["audit"]["quarantineJustifications"] = justified.into();
        synthesis
    }
}

/// Returns the text of the model's reply: JSON if the call wants JSON, or prose of the same report
/// for a plain-text role. A step that no scenario knows gets the smallest value that its schema
/// allows.
pub(super) fn text_for(scenario: &Scenario, call: &Call) -> String {
    let request = call.text();
    let wanted = wire::wanted(call);
    match (scenario.reply(&call.step, &request), wanted) {
        (Some(report), Wanted::Text)
            if !report["units"].is_null() && !request.contains("selfConfidence") =>
        {
            prose(&report)
        }
        (Some(value), _) => value.to_string(),
        (None, Wanted::Json(schema) | Wanted::Tool(_, schema)) => {
            dialect::sample(&schema).to_string()
        }
        (None, Wanted::Text) => "OK.".to_owned(),
    }
}

fn prose(report: &Value) -> String {
    let list = |key: &str| -> Vec<&str> {
        report[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let mut parts = vec![
        list("answerSummary").join(" "),
        report["reasoning"].as_str().unwrap_or_default().to_owned(),
    ];
    let steps = list("stepsOrDeliverables");
    parts.push(
        steps
            .iter()
            .enumerate()
            .map(|(i, step)| format!("{}. {step}\n", i + 1))
            .collect(),
    );
    let units = report["units"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|unit| unit["text"].as_str());
    parts.push(units.map(|text| format!("- {text}\n")).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Builds a report.
#[derive(Debug, Clone)]
pub struct ReportBuilder(Value);

/// Returns an empty report of the agent, with self-confidence 0.7.
pub fn report(agent: &str) -> ReportBuilder {
    ReportBuilder(json!({
        "agent": agent, "answerSummary": [], "assumptions": [], "reasoning": "", "stepsOrDeliverables": [],
        "failureModes": [], "units": [], "selfConfidence": 0.7,
    }))
}

impl ReportBuilder {
    fn push(mut self, key: &str, value: Value) -> Self {
        self.0[key].as_array_mut().unwrap().push(value);
        self
    }

    /// Adds a sentence to the summary. The first one is the final answer.
    pub fn says(self, text: &str) -> Self {
        self.push("answerSummary", json!(text))
    }

    pub fn assumes(self, text: &str) -> Self {
        self.push("assumptions", json!(text))
    }

    pub fn because(mut self, reasoning: &str) -> Self {
        self.0["reasoning"] = json!(reasoning);
        self
    }

    pub fn step(self, text: &str) -> Self {
        self.push("stepsOrDeliverables", json!(text))
    }

    pub fn fails_if(self, text: &str) -> Self {
        self.push("failureModes", json!(text))
    }

    /// Adds a claim. Ids are `u1`, `u2`, ... in order.
    pub fn unit(self, topic: &str, text: &str, tags: &[&str]) -> Self {
        let id = format!("u{}", self.0["units"].as_array().unwrap().len() + 1);
        self.push(
            "units",
            json!({"id": id, "topic": topic, "text": text, "tags": tags}),
        )
    }

    pub fn sure(mut self, self_confidence: f64) -> Self {
        self.0["selfConfidence"] = json!(self_confidence);
        self
    }

    pub fn value(self) -> Value {
        self.0
    }
}
