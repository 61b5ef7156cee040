//! Scores recorded outputs, one request per line (SPEC 13.1). It uses the same `judge` as a run, on
//! texts that were written elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Output, Panel, family, judge, report_from_text};
use crate::domain::{
    AgentReport, AnswerGroup, Confidence, CrossCheck, Demand, Judgement, Obtained, Resolution,
    Score, ScoringPolicy, TaskType, Terms,
};

/// A line as parsed from JSON. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// Copied to the output unchanged.
    id: Value,
    message: String,
    task_type: Option<TaskType>,
    outputs: Option<Vec<Value>>,
    rounds: Option<Vec<Vec<Value>>>,
    #[serde(default)]
    demands: Vec<Demand>,
    /// The findings of the cross-check: see [`Calls::add`].
    cross_check: Option<Value>,
    #[serde(default)]
    resolutions: Vec<Resolution>,
}

/// A request with the outputs of one or several rounds, and the evidence about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    line: Line,
    rounds: Vec<Vec<Recorded>>,
    cross_checks: Vec<CrossCheck>,
}

/// A recorded output: a whole report, or raw text.
#[derive(Debug, Clone, PartialEq)]
struct Recorded {
    report: AgentReport,
    obtained: Obtained,
    /// The family of the model that wrote it, if the record names the model.
    family: Option<String>,
}

impl Recorded {
    fn read(mut value: Value, message: &str) -> Result<Self, String> {
        let model = value.as_object_mut().and_then(|it| it.remove("model"));
        let family = match model {
            None | Some(Value::Null) => None,
            Some(Value::String(model)) => Some(family(&model)),
            Some(_) => return Err("\"model\" is not a text".to_owned()),
        };
        let (report, obtained) = if value.get("text").is_some() {
            #[derive(Deserialize)]
            struct Raw {
                agent: String,
                text: String,
            }
            let raw: Raw = serde_json::from_value(value).map_err(|error| error.to_string())?;
            let report = report_from_text(&raw.agent, message, &raw.text);
            (report, Obtained::Text)
        } else {
            let named = |error: serde_json::Error| {
                format!("neither {{agent, text}} nor an agent's report: {error}")
            };
            let report = serde_json::from_value(value).map_err(named)?;
            (report, Obtained::Clean)
        };
        Ok(Self {
            report,
            obtained,
            family,
        })
    }

    fn output(&self) -> Output<'_> {
        Output {
            agent: self.report.agent.clone().into(),
            report: &self.report,
            obtained: self.obtained,
            truncated: false,
            role_matches: true,
            family: self.family.as_deref(),
        }
    }
}

/// Parses one line.
///
/// # Errors
/// If the line is not JSON, lacks a field, has no output, or names an agent twice in a round.
pub fn parse(line: &str) -> Result<Record, String> {
    // serde would also take the fields from an array.
    if line.trim_start().starts_with('[') {
        return Err("it is no object".to_owned());
    }
    let mut line: Line = serde_json::from_str(line)
        .map_err(|error| error.to_string().replace(" at line 1 column", " at column"))?;
    let rounds = match (line.outputs.take(), line.rounds.take()) {
        (Some(outputs), None) => vec![outputs],
        (None, Some(rounds)) => rounds,
        _ => return Err("either \"outputs\" or \"rounds\" is needed, and not both".to_owned()),
    };
    let read = |round: Vec<Value>| {
        let outputs = round.into_iter();
        outputs
            .map(|output| Recorded::read(output, &line.message))
            .collect()
    };
    let rounds: Vec<Vec<Recorded>> = rounds.into_iter().map(read).collect::<Result<_, _>>()?;
    for round in &rounds {
        let mut names = BTreeSet::new();
        let mut agents = round.iter().map(|output| &output.report.agent);
        if let Some(twice) = agents.find(|agent| !names.insert(*agent)) {
            return Err(format!("the agent {twice:?} is there twice in one round"));
        }
    }
    if rounds.iter().all(Vec::is_empty) {
        return Err("there is no output in it".to_owned());
    }
    if rounds.first().is_none_or(Vec::is_empty) {
        let why = "the first of several rounds is empty: no agent has answered on its own";
        return Err(why.to_owned());
    }
    let mut calls = Calls::default();
    if let Some(found) = line.cross_check.take() {
        calls.add(found, "crossCheck")?;
    }
    Ok(Record {
        line,
        rounds,
        cross_checks: calls.all(),
    })
}

/// The cross-check calls of a record.
#[derive(Default)]
struct Calls {
    whole: Vec<CrossCheck>,
    /// All single verdicts together form one call.
    single: CrossCheck,
}

impl Calls {
    fn all(mut self) -> Vec<CrossCheck> {
        if !self.single.claims.is_empty() {
            self.whole.push(self.single);
        }
        self.whole
    }

    /// Adds the calls of a value: a verdict on one claim, all findings of a call, a pass of the
    /// journal, its entry `cross_checked`, or a list of them. `place` is where it is in the line.
    fn add(&mut self, found: Value, place: &str) -> Result<(), String> {
        let wrong = |error: serde_json::Error| format!("{place}: {error}");
        let mut found = match found {
            Value::Array(list) => {
                for (at, found) in list.into_iter().enumerate() {
                    self.add(found, &format!("{place}/{at}"))?;
                }
                return Ok(());
            }
            Value::Null => return Ok(()),
            found => found,
        };
        for inner in ["data", "passes", "found"] {
            if let Some(found) = found.get_mut(inner) {
                let place = format!("{place}/{inner}");
                return self.add(found.take(), &place);
            }
        }
        if found.get("claim").is_some() {
            self.single
                .claims
                .push(serde_json::from_value(found).map_err(wrong)?);
            return Ok(());
        }
        let fields = ["claims", "sameAnswers", "parts", "conduct", "reports"];
        if !fields.iter().any(|name| found.get(name).is_some()) {
            return Err(format!(
                "{place}: neither a verdict nor a pass of a cross-check"
            ));
        }
        self.whole
            .push(serde_json::from_value(found).map_err(wrong)?);
        Ok(())
    }
}

impl Record {
    /// Returns the number of outputs in the record.
    pub fn outputs(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }

    /// Judges the last round, with the first round as the independent votes. An agent that gives no
    /// output in the last round keeps its earlier one. Returns the line to print.
    pub fn judge(&self, policy: &ScoringPolicy) -> Value {
        let mut latest: Vec<&Recorded> = Vec::new();
        for recorded in self.rounds.iter().flatten() {
            let agent = &recorded.report.agent;
            match latest.iter_mut().find(|it| it.report.agent == *agent) {
                Some(known) => *known = recorded,
                None => latest.push(recorded),
            }
        }
        let first = self.rounds.first().filter(|_| self.rounds.len() > 1);
        let panel = Panel {
            message: &self.line.message,
            task_type: self.line.task_type,
            demands: &self.line.demands,
            outputs: latest.into_iter().map(Recorded::output).collect(),
            lost: 0,
            first_round: first.into_iter().flatten().map(Recorded::output).collect(),
            cross_checks: &self.cross_checks,
            resolutions: &self.line.resolutions,
        };
        printed(&self.line.id, judge(&panel, policy))
    }
}

/// Returns the printed form of a judgement (SPEC 13.1).
fn printed(id: &Value, judgement: Judgement) -> Value {
    let term = |measured| Terms {
        estimated: None,
        measured,
        applied: measured,
    };
    let (penalty, bonus) = (judgement.conflict_penalty, judgement.coverage_bonus);
    let confidence = Confidence::new(judgement.base_score, term(penalty), term(bonus), 1.0);
    json!({
        "id": id,
        "scores": judgement.scores.iter().map(printed_score).collect::<Vec<_>>(),
        "disagreements": judgement.disagreements,
        "answerGroups": printed_groups(judgement.answer_groups),
        "baseScore": confidence.base_score,
        "conflictPenalty": penalty,
        "coverageBonus": bonus,
        "c_final": confidence.c_final,
    })
}

/// Returns one agent's score: 0 to 25 points for each axis; of the 125 points those from checks of
/// the text itself and those from other agents; the value of each feature with its points.
fn printed_score(score: &Score) -> Value {
    let axes = || score.axes.iter();
    let points: BTreeMap<&str, f64> = axes()
        .map(|(name, it)| (name.into_str(), it.points))
        .collect();
    let features = axes().flat_map(|(_, axis)| &axis.features);
    let features: BTreeMap<&str, Value> = features
        .map(|it| {
            (
                it.name.as_str(),
                json!({ "value": it.value, "points": it.points }),
            )
        })
        .collect();
    json!({
        "agent": score.agent,
        "axes": points,
        "fromCode": axes().map(|(_, axis)| axis.from_code).sum::<f64>(),
        "fromPeers": axes().map(|(_, axis)| axis.points - axis.from_code).sum::<f64>(),
        "cred": score.cred,
        "status": score.status,
        "features": features,
    })
}

/// Returns the answers with their agents only.
fn printed_groups(mut groups: Vec<AnswerGroup>) -> Vec<AnswerGroup> {
    for group in &mut groups {
        group.conflict_penalty = None;
        group.wordings.clear();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(record: &Value) -> Value {
        parse(&record.to_string())
            .unwrap()
            .judge(&ScoringPolicy::default())
    }

    fn said(agent: &str, text: &str) -> Value {
        json!({ "agent": agent, "text": text })
    }

    #[test]
    fn a_record_is_scored_in_the_published_form() {
        let outputs = [
            said("a", "2 + 2 = 4"),
            said("b", "The answer is 4."),
            said("c", "4"),
        ];
        let record = json!({ "id": 7, "message": "What is 2 + 2?", "outputs": outputs, "note": 1 });
        let out = scored(&record);
        let keys: Vec<&str> = out
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let expected = "id scores disagreements answerGroups baseScore conflictPenalty \
            coverageBonus c_final";
        assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
        assert_eq!(out["id"], 7);
        let groups = json!([{ "answer": "4", "agents": ["a", "b", "c"] }]);
        assert_eq!(out["answerGroups"], groups);
        let score = &out["scores"][0];
        let points = score["axes"].as_object().unwrap().values();
        let sum: f64 = points.filter_map(Value::as_f64).sum();
        assert!((sum / 125.0 - score["cred"].as_f64().unwrap()).abs() < 1e-9);
        let base = json!({ "value": 12.0, "points": 12.0 });
        assert_eq!(score["features"]["coherence.base"], base);
    }

    #[test]
    fn later_unanimity_does_not_hide_the_first_split() {
        let round = |given: [&str; 3]| {
            let agents = ["a", "b", "c"].into_iter().zip(given);
            agents
                .map(|(agent, text)| said(agent, text))
                .collect::<Vec<_>>()
        };
        let judged = |first, last| {
            let rounds = [round(first), round(last)];
            scored(&json!({ "id": "x", "message": "How many are there?", "rounds": rounds }))
        };
        let steady = judged(["8", "8", "8"], ["8", "8", "8"]);
        let conformed = judged(["8", "9", "9"], ["9", "9", "9"]);
        assert_eq!(steady["disagreements"], json!([]));
        assert_eq!(conformed["disagreements"][0]["settled"], true);
        let agents = conformed["answerGroups"][0]["agents"].as_array().unwrap();
        assert_eq!(agents.len(), 3);
        assert!(conformed["c_final"].as_f64() < steady["c_final"].as_f64());
    }

    #[test]
    fn whole_reports_and_silent_agents_are_taken() {
        let report = report_from_text("b", "How many?", "It is 8.");
        let record = json!({ "id": null, "message": "How many?", "taskType": "MIXED",
            "rounds": [[said("a", "8"), report], [said("a", "8")]] });
        assert_eq!(scored(&record)["scores"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let a = said("a", "x");
        for (rest, expected) in [
            (json!({}), "is needed, and not both"),
            (
                json!({ "outputs": [], "rounds": [] }),
                "is needed, and not both",
            ),
            (json!({ "outputs": [] }), "there is no output"),
            (json!({ "rounds": [[], [a]] }), "first of several rounds"),
            (json!({ "outputs": [a, a] }), "\"a\" is there twice"),
            (json!({ "outputs": [{ "agent": "a" }] }), "agent's report"),
            (
                json!({ "outputs": [{ "agent": "a", "model": 1 }] }),
                "is not a text",
            ),
            (
                json!({ "outputs": [a], "crossCheck": [{ "claim": "a:u1", "holds": "maybe" }] }),
                "crossCheck/0: unknown variant `maybe`",
            ),
            (
                json!({ "outputs": [a], "crossCheck": [{ "bogus": 1 }] }),
                "crossCheck/0: neither a verdict",
            ),
            (
                json!({ "outputs": [a], "crossCheck": { "passes": [{ "found": {} }] } }),
                "crossCheck/passes/0/found: neither",
            ),
        ] {
            let mut record = rest;
            record["id"] = json!(1);
            let error = parse(&record.to_string()).unwrap_err();
            assert!(error.contains("message"), "{error}");
            record["message"] = json!("m");
            let error = parse(&record.to_string()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(parse("{").is_err());
    }

    #[test]
    fn a_cross_check_is_read_in_every_form_of_the_journal() {
        let verdict = json!({ "claim": "a:u1", "holds": "no", "by": "source", "evidence": "x" });
        let call = json!({ "claims": [verdict] });
        let entry = json!({ "passes": [{ "role": "verifier", "found": call }], "notes": [] });
        let c_final = |found: &Value| {
            let outputs = [said("a", "Lima"), said("b", "Lima"), said("c", "Lima")];
            scored(&json!({ "id": 1, "message": "?", "outputs": outputs, "crossCheck": found }))
        };
        let expected = c_final(&json!([verdict]));
        assert_ne!(expected, c_final(&Value::Null));
        for found in [
            json!([call]),
            json!([{ "found": call }]),
            json!({ "kind": "cross_checked", "data": entry }),
            entry,
        ] {
            assert_eq!(c_final(&found), expected, "{found}");
        }
    }

    #[test]
    fn the_name_of_a_recorded_agent_may_have_a_colon() {
        let supported = |other: &str| {
            let outputs = [said("a", "Lima"), said(other, "Lima")];
            let verdict = json!({ "claim": "a:u1", "supportedBy": [other] });
            let record =
                json!({ "id": 1, "message": "?", "outputs": outputs, "crossCheck": [verdict] });
            scored(&record)["scores"][0]["features"]["coherence.claims_supported"]["value"].clone()
        };
        assert_eq!(supported("llama3:8b"), 1.0);
        assert_eq!(supported("b"), 1.0);
    }

    #[test]
    fn members_of_one_model_family_support_each_other_less() {
        let c_final = |models: [&str; 3]| {
            let agents = ["solver", "critic", "verifier"].into_iter().zip(models);
            let outputs = agents.map(|(agent, model)| {
                json!({ "agent": agent, "model": model, "text": "The answer is 61. 31 + 30 = 61." })
            });
            let outputs: Vec<Value> = outputs.collect();
            let record = json!({ "id": 1, "message": "How many days?", "outputs": outputs });
            scored(&record)["c_final"].as_f64().unwrap()
        };
        let kin = c_final([
            "claude-haiku-4-5",
            "anthropic/claude-sonnet-4.5",
            "claude-opus-4-5",
        ]);
        let strangers = c_final(["claude-haiku-4-5", "gpt-4.1", "grok-4"]);
        assert!(kin < strangers, "{kin} {strangers}");
    }
}
