//! Checks minimum results of the scoring engine on recorded outputs (docs/scoring.md). The
//! recordings are not in the repository. `CONCLAVE_EVAL` or `../shared/eval` names their folder;
//! without it the tests pass without a check.

use std::path::PathBuf;

use conclave::domain::ScoringPolicy;
use conclave::scoring::parse_record;
use serde_json::{Value, json};

fn rows(name: &str) -> Option<Vec<Value>> {
    let folder = std::env::var_os("CONCLAVE_EVAL")
        .map_or_else(|| PathBuf::from("../shared/eval"), PathBuf::from);
    let text = std::fs::read_to_string(folder.join(name)).ok()?;
    Some(
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

fn scored(line: &Value) -> Value {
    let record = parse_record(&line.to_string()).unwrap();
    record.judge(&ScoringPolicy::default())
}

/// Returns the probability that a right row has a higher figure than a wrong one. A tie counts as
/// half.
fn auroc(figures: &[(f64, bool)]) -> f64 {
    let of = |right: bool| {
        figures
            .iter()
            .filter(move |(_, is)| *is == right)
            .map(|(figure, _)| *figure)
    };
    let pairs = of(true).flat_map(|a| {
        of(false).map(move |b| {
            if a > b {
                1.0
            } else {
                f64::from(u8::from(a == b)) / 2.0
            }
        })
    });
    let (sum, n) = pairs.fold((0.0, 0.0), |(sum, n), win| (sum + win, n + 1.0));
    sum / n
}

/// Returns the input line of a debate: its rounds and, with `with_truth`, a cross-check of round 1
/// that knows the right answers.
fn debate(row: &Value, with_truth: bool) -> Value {
    let agents = row["agents"].as_array().unwrap();
    let most = agents
        .iter()
        .map(|agent| agent["rounds"].as_array().unwrap().len())
        .max()
        .unwrap_or(0);
    let said = |agent: &Value, n: usize| {
        agent["rounds"]
            .get(n)
            .filter(|round| !round.is_null())
            .cloned()
    };
    let rounds: Vec<Vec<Value>> = (0..most)
        .map(|n| {
            let outputs = agents.iter().filter_map(|agent| {
                Some(json!({ "agent": agent["agent"], "text": said(agent, n)?.get("text")?.clone() }))
            });
            outputs.collect()
        })
        .collect();
    let first: Vec<(String, Value)> = agents
        .iter()
        .filter_map(|agent| Some((agent["agent"].as_str()?.to_owned(), said(agent, 0)?)))
        .collect();
    let verdicts = first.iter().map(|(agent, own)| {
        let others = |same: bool| {
            let differs = |other: &Value| !other["answer"].is_null() && (other["answer"] == own["answer"]) == same;
            first
                .iter()
                .filter(|(name, other)| name != agent && differs(other))
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        json!({ "claim": format!("{agent}:u1"), "supportedBy": others(true), "contradictedBy": others(false),
            "holds": if own["correct"] == true { "yes" } else { "no" }, "by": "calculation", "evidence": "the label" })
    });
    let truth = if with_truth {
        verdicts.collect()
    } else {
        vec![]
    };
    json!({ "id": row["id"], "message": row["prompt"], "rounds": rounds, "crossCheck": truth })
}

/// Returns a number as the references have it: without unit, separators and needless zeros.
fn bare(answer: &str) -> String {
    let number = answer.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '-');
    let end = number.find(|c: char| !(c.is_ascii_digit() || "-,.".contains(c)));
    let (number, unit) = number.split_at(end.unwrap_or(number.len()));
    let is_unit = !unit.starts_with(char::is_alphanumeric);
    match number.replace(',', "").parse::<f64>() {
        Ok(number) if is_unit => number.to_string(),
        _ => answer.to_owned(),
    }
}

/// Returns c_final of each row with whether the leading answer is the reference. Also counts the
/// panels that ship although their first answer is contested.
fn debates(rows: &[Value], with_truth: bool) -> (Vec<(f64, bool)>, usize) {
    let mut contested_and_shipped = 0;
    let figures = rows.iter().map(|row| {
        let out = scored(&debate(row, with_truth));
        let c_final = out["c_final"].as_f64().unwrap();
        let firsts = row["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| agent["rounds"][0]["answer"].clone());
        let mut firsts: Vec<String> = firsts
            .filter(|answer| !answer.is_null())
            .map(|answer| answer.to_string())
            .collect();
        firsts.sort();
        firsts.dedup();
        contested_and_shipped += usize::from(firsts.len() > 1 && c_final >= 0.70);
        (
            c_final,
            out["answerGroups"][0]["answer"].as_str().map(bare)
                == row["reference"].as_str().map(str::to_owned),
        )
    });
    (figures.collect(), contested_and_shipped)
}

#[test]
fn c_final_ranks_debates_and_a_truthful_cross_check_stops_contested_panels() {
    let Some(rows) = rows("debate.dev.jsonl") else {
        return;
    };
    let (plain, _) = debates(&rows, false);
    let (checked, shipped) = debates(&rows, true);
    assert!(auroc(&plain) >= 0.80, "{}", auroc(&plain));
    assert!(auroc(&checked) >= 0.95, "{}", auroc(&checked));
    assert_eq!(shipped, 0, "panels with a contested answer");
}

#[test]
fn agreement_and_contradiction_in_recorded_answers_are_recognized() {
    let Some(rows) = rows("contradiction.dev.jsonl") else {
        return;
    };
    let committee = rows.iter().filter(|row| {
        row["source"]
            .as_str()
            .is_some_and(|source| source.starts_with("committee"))
    });
    let told: Vec<bool> = committee
        .map(|row| {
            let outputs = [
                json!({ "agent": "a", "text": row["a"] }),
                json!({ "agent": "b", "text": row["b"] }),
            ];
            let out = scored(&json!({ "id": row["id"], "message": "", "outputs": outputs }));
            let groups = out["answerGroups"].as_array().unwrap();
            let agree = groups
                .iter()
                .any(|group| group["agents"].as_array().unwrap().len() == 2);
            let found = if agree {
                "agree"
            } else if groups.len() == 2 {
                "contradict"
            } else {
                "unrelated"
            };
            row["label"] == found
        })
        .collect();
    let share = told.iter().filter(|right| **right).count() as f64 / told.len() as f64;
    assert!(share >= 0.88, "{share}");
}

#[test]
fn refusals_of_safe_requests_are_rarely_valid() {
    let Some(rows) = rows("refusal.dev.jsonl") else {
        return;
    };
    let refused: Vec<&Value> = rows
        .iter()
        .filter(|row| row["label"] == "full_refusal" && row["prompt_safe"] == true)
        .collect();
    let valid =
        refused.iter().filter(|row| {
            let output = json!({ "agent": "a", "text": row["text"] });
            scored(&json!({ "id": 1, "message": row["prompt"], "outputs": [output] }))["scores"][0]
                ["status"]
                == "VALID"
        });
    assert!(valid.count() <= 1, "of {}", refused.len());
}
