//! Scores recorded outputs, one request per line (SPEC 13.1). It uses the same `judge` as a run, on
//! texts that were written elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Output, Panel, Policy, family, judge, report_from_text};
use crate::domain::Terms;
use crate::domain::{
    AgentReport, AnswerGroup, Axis, ClaimVerdict, Confidence, CrossCheck, Demand, Disagreement,
    Judgement, Obtained, Resolution, Status, TaskType,
};

/// A line as parsed from JSON. Unknown fields are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: Value,
    message: String,
    task_type: Option<TaskType>,
    outputs: Option<Vec<Value>>,
    rounds: Option<Vec<Vec<Value>>>,
    #[serde(default)]
    demands: Vec<Demand>,
    cross_check: Option<Vec<Found>>,
    #[serde(default)]
    resolutions: Vec<Resolution>,
}

/// Either one verdict on one claim, or all findings of a cross-check call as the journal stores
/// them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Found {
    Verdict(ClaimVerdict),
    Call(CrossCheck),
}

/// A request with the outputs of one or several rounds, and the evidence about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Copied to the output unchanged.
    pub id: Value,
    pub message: String,
    pub task_type: Option<TaskType>,
    demands: Vec<Demand>,
    rounds: Vec<Vec<Recorded>>,
    cross_checks: Vec<CrossCheck>,
    resolutions: Vec<Resolution>,
}

/// A recorded output: a whole report, or raw text.
#[derive(Debug, Clone, PartialEq)]
struct Recorded {
    report: AgentReport,
    obtained: Obtained,
    /// The family of the model that wrote it, if the record names the model.
    family: Option<String>,
}

#[derive(Deserialize)]
struct Raw {
    agent: String,
    text: String,
}

impl Recorded {
    fn read(mut value: Value, message: &str) -> Result<Self, Error> {
        let json = |error: serde_json::Error| Error::Json(error.to_string());
        let family = match value
            .as_object_mut()
            .and_then(|output| output.remove("model"))
        {
            None | Some(Value::Null) => None,
            Some(Value::String(model)) => Some(family(&model)),
            Some(_) => return Err(Error::Json("\"model\" is not a text".to_owned())),
        };
        if value.get("text").is_some() {
            let raw: Raw = serde_json::from_value(value).map_err(json)?;
            let report = report_from_text(&raw.agent, message, &raw.text);
            return Ok(Self {
                report,
                obtained: Obtained::Text,
                family,
            });
        }
        let report = serde_json::from_value(value).map_err(|error| {
            Error::Json(format!(
                "neither {{agent, text}} nor an agent's report: {error}"
            ))
        })?;
        Ok(Self {
            report,
            obtained: Obtained::Clean,
            family,
        })
    }
}

/// The fault of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Json(String),
    #[error("either \"outputs\" or \"rounds\" is needed, and not both")]
    Shape,
    #[error("there is no output in it")]
    Empty,
    #[error("the first of several rounds is empty: no agent has answered on its own")]
    NoFirstRound,
    #[error("the agent {0:?} is there twice in one round")]
    Twice(String),
}

/// Parses one line.
///
/// # Errors
/// If the line is not JSON, lacks a field, has no output, or names an agent twice in a round.
pub fn parse(line: &str) -> Result<Record, Error> {
    let line: Line = serde_json::from_str(line).map_err(|error| {
        Error::Json(error.to_string().replace(" at line 1 column", " at column"))
    })?;
    let rounds = match (line.outputs, line.rounds) {
        (Some(outputs), None) => vec![outputs],
        (None, Some(rounds)) => rounds,
        _ => return Err(Error::Shape),
    };
    let read = |round: Vec<Value>| {
        round
            .into_iter()
            .map(|output| Recorded::read(output, &line.message))
            .collect()
    };
    let rounds = rounds
        .into_iter()
        .map(read)
        .collect::<Result<Vec<Vec<Recorded>>, Error>>()?;
    for round in &rounds {
        for (at, output) in round.iter().enumerate() {
            if round
                .iter()
                .take(at)
                .any(|earlier| earlier.report.agent == output.report.agent)
            {
                return Err(Error::Twice(output.report.agent.clone()));
            }
        }
    }
    if rounds.iter().all(Vec::is_empty) {
        return Err(Error::Empty);
    }
    if rounds.first().is_none_or(Vec::is_empty) {
        return Err(Error::NoFirstRound);
    }
    let Line {
        id,
        message,
        task_type,
        demands,
        resolutions,
        ..
    } = line;
    Ok(Record {
        id,
        message,
        task_type,
        demands,
        rounds,
        cross_checks: calls(line.cross_check),
        resolutions,
    })
}

/// Returns the cross-check calls. All single verdicts together form one call.
fn calls(found: Option<Vec<Found>>) -> Vec<CrossCheck> {
    let (mut calls, mut single) = (vec![], CrossCheck::default());
    for found in found.into_iter().flatten() {
        match found {
            Found::Verdict(verdict) => single.claims.push(verdict),
            Found::Call(call) => calls.push(call),
        }
    }
    if !single.claims.is_empty() {
        calls.push(single);
    }
    calls
}

impl Record {
    /// Returns the number of outputs in the record.
    pub fn outputs(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }

    /// Judges the last round, with the first round as the independent votes. An agent that gives no
    /// output in the last round keeps its earlier one.
    pub fn judge(&self, policy: &Policy) -> Scored<'_> {
        let mut latest: Vec<&Recorded> = Vec::new();
        for recorded in self.rounds.iter().flatten() {
            match latest
                .iter_mut()
                .find(|known| known.report.agent == recorded.report.agent)
            {
                Some(known) => *known = recorded,
                None => latest.push(recorded),
            }
        }
        let first = self.rounds.first().filter(|_| self.rounds.len() > 1);
        let panel = Panel {
            message: &self.message,
            task_type: self.task_type,
            demands: &self.demands,
            outputs: latest.into_iter().map(Recorded::output).collect(),
            first_round: first.into_iter().flatten().map(Recorded::output).collect(),
            cross_checks: &self.cross_checks,
            resolutions: &self.resolutions,
        };
        Scored::new(&self.id, judge(&panel, policy))
    }
}

impl Recorded {
    fn output(&self) -> Output<'_> {
        Output {
            agent: &self.report.agent,
            report: &self.report,
            obtained: self.obtained,
            truncated: false,
            role_matches: true,
            family: self.family.as_deref(),
        }
    }
}

/// The printed result of a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scored<'a> {
    pub id: &'a Value,
    pub scores: Vec<AgentScore>,
    pub disagreements: Vec<Disagreement>,
    /// The most supported answer first.
    pub answer_groups: Vec<AnswerGroup>,
    pub base_score: f64,
    pub conflict_penalty: f64,
    pub coverage_bonus: f64,
    #[serde(rename = "c_final")]
    pub c_final: f64,
}

/// One agent's score, with its features by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentScore {
    pub agent: String,
    /// 0 to 25 points each.
    pub axes: BTreeMap<&'static str, f64>,
    /// Of the 125 points, those from checks of the text itself and those from other agents.
    pub from_code: f64,
    pub from_peers: f64,
    pub cred: f64,
    pub status: Status,
    /// The measured value of each feature, and the points that it added or subtracted.
    pub features: BTreeMap<String, Measured>,
}

/// A feature's value, and its points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    pub value: f64,
    pub points: f64,
}

impl<'a> Scored<'a> {
    fn new(id: &'a Value, judgement: Judgement) -> Self {
        let term = |measured| Terms {
            estimated: None,
            measured,
            applied: measured,
        };
        let confidence = Confidence::new(
            judgement.base_score,
            term(judgement.conflict_penalty),
            term(judgement.coverage_bonus),
            1.0,
        );
        let scores = judgement.scores.into_iter().map(|score| AgentScore {
            axes: score
                .axes
                .iter()
                .map(|(axis, it): (Axis, _)| (axis.into_str(), it.points))
                .collect(),
            features: score
                .axes
                .iter()
                .flat_map(|(_, axis)| &axis.features)
                .map(|it| {
                    (
                        it.name.clone(),
                        Measured {
                            value: it.value,
                            points: it.points,
                        },
                    )
                })
                .collect(),
            from_code: score.axes.iter().map(|(_, axis)| axis.from_code).sum(),
            from_peers: score
                .axes
                .iter()
                .map(|(_, axis)| axis.points - axis.from_code)
                .sum(),
            agent: score.agent,
            cred: score.cred,
            status: score.status,
        });
        Self {
            id,
            scores: scores.collect(),
            disagreements: judgement.disagreements,
            answer_groups: without_units(judgement.answer_groups),
            base_score: confidence.base_score,
            conflict_penalty: confidence.conflict_penalty.applied,
            coverage_bonus: confidence.coverage_bonus.applied,
            c_final: confidence.c_final,
        }
    }
}

/// Returns the answers as bare numbers, without unit and percent sign, if they still differ then.
fn without_units(mut groups: Vec<AnswerGroup>) -> Vec<AnswerGroup> {
    groups
        .iter_mut()
        .for_each(|group| group.conflict_penalty = None);
    let bare: Vec<String> = groups
        .iter()
        .map(|group| bare(&group.answer).to_owned())
        .collect();
    for (group, own) in groups.iter_mut().zip(&bare) {
        if bare.iter().filter(|other| *other == own).count() == 1 {
            group.answer.clone_from(own);
        }
    }
    groups
}

fn bare(answer: &str) -> &str {
    let number = answer.split([' ', '%']).next().unwrap_or(answer);
    if number.parse::<f64>().is_ok() {
        number
    } else {
        answer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scored(record: &Value) -> Value {
        let record = parse(&record.to_string()).unwrap();
        serde_json::to_value(record.judge(&Policy::default())).unwrap()
    }

    #[test]
    fn a_record_is_scored_in_the_published_form() {
        let texts = ["2 + 2 = 4", "The answer is 4.", "4"];
        let outputs: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| json!({ "agent": format!("model {n}"), "text": text }))
            .collect();
        let out = scored(
            &json!({ "id": 7, "message": "What is 2 + 2?", "outputs": outputs, "note": "not read" }),
        );
        let keys: Vec<&str> = out
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let expected = [
            "id",
            "scores",
            "disagreements",
            "answerGroups",
            "baseScore",
            "conflictPenalty",
            "coverageBonus",
            "c_final",
        ];
        assert_eq!(keys, expected);
        assert_eq!(out["id"], 7);
        assert_eq!(
            out["answerGroups"],
            json!([{ "answer": "4", "agents": ["model 0", "model 1", "model 2"] }])
        );
        let score = &out["scores"][0];
        let sum: f64 = score["axes"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_f64)
            .sum();
        assert!((sum / 125.0 - score["cred"].as_f64().unwrap()).abs() < 1e-9);
        assert_eq!(
            score["features"]["coherence.base"],
            json!({ "value": 12.0, "points": 12.0 })
        );
        let term = |name: &str| out[name].as_f64().unwrap();
        let sum = term("baseScore") - term("conflictPenalty") + term("coverageBonus");
        assert!((term("c_final") - sum.clamp(0.0, 1.0)).abs() < 1e-9);
    }

    #[test]
    fn later_unanimity_does_not_hide_the_first_split() {
        let round = |answers: [&str; 3]| {
            let outputs: Vec<Value> = ["a", "b", "c"]
                .iter()
                .zip(answers)
                .map(|(agent, text)| json!({ "agent": agent, "text": text }))
                .collect();
            Value::Array(outputs)
        };
        let judged = |rounds: Value| {
            scored(&json!({ "id": "x", "message": "How many are there?", "rounds": rounds }))
        };
        let steady = judged(json!([round(["8", "8", "8"]), round(["8", "8", "8"])]));
        let conformed = judged(json!([round(["8", "9", "9"]), round(["9", "9", "9"])]));
        assert_eq!(steady["disagreements"], json!([]));
        assert_eq!(conformed["disagreements"][0]["settled"], true);
        assert_eq!(
            conformed["answerGroups"][0]["agents"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
        assert!(conformed["c_final"].as_f64() < steady["c_final"].as_f64());
    }

    #[test]
    fn whole_reports_and_silent_agents_are_taken() {
        let report = crate::domain::AgentReport {
            answer_summary: vec!["8".into()],
            ..report_from_text("b", "How many?", "It is 8.")
        };
        let record = json!({ "id": null, "message": "How many?", "taskType": "MIXED",
            "rounds": [[{ "agent": "a", "text": "8" }, report], [{ "agent": "a", "text": "8" }]] });
        assert_eq!(scored(&record)["scores"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let error = |record: Value| parse(&record.to_string()).unwrap_err().to_string();
        let a = json!({ "agent": "a", "text": "x" });
        assert!(parse("{").is_err());
        assert!(error(json!({ "id": 1, "outputs": [a] })).contains("message"));
        assert_eq!(
            error(json!({ "id": 1, "message": "m" })),
            Error::Shape.to_string()
        );
        assert_eq!(
            error(json!({ "id": 1, "message": "m", "outputs": [], "rounds": [] })),
            Error::Shape.to_string()
        );
        assert_eq!(
            error(json!({ "id": 1, "message": "m", "outputs": [] })),
            Error::Empty.to_string()
        );
        assert_eq!(
            error(json!({ "id": 1, "message": "m", "outputs": [a, a] })),
            Error::Twice("a".into()).to_string()
        );
        assert!(
            error(json!({ "id": 1, "message": "m", "outputs": [{ "agent": "a" }] }))
                .contains("agent's report")
        );
    }

    #[test]
    fn a_record_may_name_the_models_and_members_of_one_family_support_each_other_less() {
        let line = |models: [&str; 3]| {
            let output = |(agent, model): (&str, &str)| {
                format!(
                    r#"{{"agent":"{agent}","model":"{model}","text":"The answer is 61 days. 31 + 30 = 61."}}"#
                )
            };
            let outputs = ["solver", "critic", "verifier"]
                .into_iter()
                .zip(models)
                .map(output)
                .collect::<Vec<_>>();
            format!(
                r#"{{"id":1,"message":"How many days is it?","outputs":[{}]}}"#,
                outputs.join(",")
            )
        };
        let c_final = |models| {
            parse(&line(models))
                .unwrap()
                .judge(&Policy::default())
                .c_final
        };
        let kin = c_final([
            "claude-haiku-4-5",
            "anthropic/claude-sonnet-4.5",
            "claude-opus-4-5",
        ]);
        let strangers = c_final(["claude-haiku-4-5", "gpt-4.1", "grok-4"]);
        assert!(kin < strangers, "{kin} {strangers}");
        let number = line(["a", "b", "c"]).replace(r#""model":"a""#, r#""model":1"#);
        assert!(
            parse(&number)
                .unwrap_err()
                .to_string()
                .contains("\"model\" is not a text")
        );
    }
}
