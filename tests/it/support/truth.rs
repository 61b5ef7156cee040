//! The replies of a truthful model to a cross-check, and to a decision on its own contested claims.
//! Both are derived from the request.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

fn holds_one_of(right: &[String], text: &str) -> bool {
    right.iter().any(|known| text.contains(known.as_str()))
}

pub fn cross_check(right: &[String], request: &str) -> Value {
    let claim = Regex::new(r"(?m)^((R\d+)\.\d+) \(([^)]*)\): (.*)$").unwrap();
    let claims = claim.captures_iter(request).map(|found| found.extract().1);
    let claims: Vec<[&str; 4]> = claims.collect();
    // The final answer of each report, by its label.
    let mut answers: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for [_, label, tags, text] in &claims {
        let answer = answers.entry(label).or_default();
        *answer = answer.or(tags.contains("answer").then_some(text));
    }
    let judged = claims.iter().map(|[id, label, tags, text]| {
        let own = answers[label];
        let others = answers.iter().map(|(other, answer)| (*other, *answer));
        let others = others.filter(|(other, _)| other != label);
        let (same, differ): (Vec<_>, Vec<_>) =
            others.partition(|(_, answer)| own.is_none() || *answer == own);
        let [same, differ] = [same, differ].map(|of| Vec::from_iter(of.iter().map(|it| it.0)));
        let (holds, evidence) = match (right, differ.is_empty()) {
            ([], true) => ("yes", "Redone: it comes out the same."),
            ([], false) => ("unknown", ""),
            _ if holds_one_of(right, text) => ("yes", "Redone: it comes out the same."),
            _ => ("no", "Redone: it comes out differently."),
        };
        let is_contradicted = holds == "no" || (holds == "unknown" && tags.contains("answer"));
        let contradicting = if is_contradicted { &differ[..] } else { &[] };
        json!({
            "claim": id, "supportedBy": same, "holds": holds, "by": "calculation",
            "evidence": evidence, "contradictedBy": contradicting,
        })
    });
    let judged: Vec<Value> = judged.collect();
    let mut same: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (label, answer) in &answers {
        if let Some(answer) = answer {
            same.entry(answer).or_default().push(label);
        }
    }
    let same = same.into_values().filter(|labels| labels.len() > 1);
    let part = json!({ "part": "the question", "answeredBy": Vec::from_iter(answers.keys()) });
    json!({ "claims": judged, "sameAnswers": Vec::from_iter(same), "parts": [part], "reports": [] })
}

/// Keeps right claims and concedes the others to a right one. Keeps all if the right answer is
/// unknown.
pub fn decisions(right: &[String], request: &str) -> Value {
    let block = Regex::new(r"(?s) CONTESTED\n(.*?)>>>").unwrap();
    let claim = Regex::new(r"(?m)^(C\d+): .*\n  yours: (.*)\n((?:  [A-Z]: .*\n)*)").unwrap();
    let block = block.captures(request);
    let block = block.map_or("", |found| found.extract::<1>().1[0]);
    let decide = |found: regex::Captures<'_>| {
        let (_, [id, own, others]) = found.extract();
        let is_wrong = !right.is_empty() && !holds_one_of(right, own);
        let mut others = others.lines();
        let better = others.rfind(|line| is_wrong && holds_one_of(right, line));
        let why = "March has 31 days and not 30, so 31 + 30 = 61.";
        let (decision, to, evidence) = match better {
            Some(line) => ("concede", &line[2..3], why),
            None => ("keep", "", "Redone: it comes out the same."),
        };
        json!({ "claim": id, "decision": decision, "to": to, "by": "calculation", "evidence": evidence })
    };
    json!({ "decisions": claim.captures_iter(block).map(decide).collect::<Vec<_>>() })
}
