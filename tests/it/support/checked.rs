//! Generates the replies of a truthful model to a cross-check, and to a decision on its own
//! contested claims. Both are derived from the request.

use regex::Regex;
use serde_json::{Value, json};

struct Claim {
    id: String,
    text: String,
    is_answer: bool,
}

struct Report {
    label: String,
    claims: Vec<Claim>,
}

impl Report {
    fn answer(&self) -> Option<&str> {
        self.claims
            .iter()
            .find(|claim| claim.is_answer)
            .map(|claim| claim.text.as_str())
    }
}

/// Returns the reports that a request shows.
fn reports(request: &str) -> Vec<Report> {
    let head = Regex::new(r"^<<<[0-9a-f]+ REPORT (R\d+)$").unwrap();
    let line = Regex::new(r"^(R\d+\.\d+) \(([^)]*)\): (.*)$").unwrap();
    let mut reports: Vec<Report> = vec![];
    for text in request.lines() {
        if let Some(found) = head.captures(text) {
            reports.push(Report {
                label: found[1].to_owned(),
                claims: vec![],
            });
        } else if let (Some(found), Some(report)) = (line.captures(text), reports.last_mut()) {
            let is_answer = found[2].contains("answer");
            report.claims.push(Claim {
                id: found[1].to_owned(),
                text: found[3].to_owned(),
                is_answer,
            });
        }
    }
    reports
}

pub fn cross_check(right: &[String], request: &str) -> Value {
    let reports = reports(request);
    let is_right = |text: &str| right.iter().any(|known| text.contains(known.as_str()));
    let mut claims = vec![];
    for report in &reports {
        let others = || reports.iter().filter(|other| other.label != report.label);
        let agrees =
            |other: &&Report| report.answer().is_none() || other.answer() == report.answer();
        let labels = |wanted: &dyn Fn(&&Report) -> bool| -> Vec<&str> {
            others()
                .filter(wanted)
                .map(|other| other.label.as_str())
                .collect()
        };
        let (same, differ) = (labels(&agrees), labels(&|other| !agrees(other)));
        for claim in &report.claims {
            let (holds, contradicted, evidence) = match (right.is_empty(), is_right(&claim.text)) {
                (false, true) => ("yes", vec![], "Redone: it comes out the same."),
                (false, false) => ("no", differ.clone(), "Redone: it comes out differently."),
                (true, _) if differ.is_empty() => ("yes", vec![], "Redone: it comes out the same."),
                (true, _) if claim.is_answer => ("unknown", differ.clone(), ""),
                (true, _) => ("unknown", vec![], ""),
            };
            claims.push(json!({
                "claim": claim.id, "supportedBy": same, "contradictedBy": contradicted, "holds": holds,
                "by": "calculation", "evidence": evidence,
            }));
        }
    }
    let all: Vec<&str> = reports.iter().map(|report| report.label.as_str()).collect();
    let mut groups: Vec<(&str, Vec<&str>)> = vec![];
    for report in &reports {
        let Some(answer) = report.answer() else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, labels)) => labels.push(&report.label),
            None => groups.push((answer, vec![&report.label])),
        }
    }
    let same: Vec<&Vec<&str>> = groups
        .iter()
        .map(|(_, labels)| labels)
        .filter(|labels| labels.len() > 1)
        .collect();
    let parts = if all.is_empty() {
        json!([])
    } else {
        json!([{ "part": "the question", "answeredBy": all }])
    };
    json!({ "claims": claims, "sameAnswers": same, "parts": parts, "reports": [] })
}

/// Keeps right claims and concedes the others to a right one. Keeps all if the right answer is
/// unknown.
pub fn decisions(right: &[String], request: &str) -> Value {
    let line = Regex::new(r"^(?:(C\d+): |  (yours): |  ([A-Z]): )(.*)$").unwrap();
    let is_right = |text: &str| right.iter().any(|known| text.contains(known.as_str()));
    let block = request.split(" CONTESTED\n").nth(1).unwrap_or_default();
    let mut decisions: Vec<Value> = vec![];
    for found in block
        .lines()
        .map_while(|l| (!l.ends_with(">>>")).then(|| line.captures(l)))
        .flatten()
    {
        if let Some(claim) = found.get(1) {
            decisions.push(
                json!({ "claim": claim.as_str(), "decision": "keep", "to": "", "by": "calculation",
                                   "evidence": "Redone: it comes out the same.", "wrong": false }),
            );
        }
        let Some(decision) = decisions.last_mut() else {
            continue;
        };
        if found.get(2).is_some() {
            decision["wrong"] = json!(!right.is_empty() && !is_right(&found[4]));
        }
        if let Some(letter) = found.get(3)
            && decision["wrong"] == true
            && is_right(&found[4])
        {
            decision["decision"] = json!("concede");
            decision["to"] = json!(letter.as_str());
            decision["evidence"] = json!("March has 31 days and not 30, so 31 + 30 = 61.");
        }
    }
    for decision in &mut decisions {
        decision.as_object_mut().unwrap().remove("wrong");
    }
    json!({ "decisions": decisions })
}
