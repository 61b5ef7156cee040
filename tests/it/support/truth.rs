//! The replies of a truthful model to a cross-check, and to a decision on its own contested claims.
//! Both are derived from the request.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Value, json};

/// A report as a request shows it: its label, and its claims as id, tags and text.
struct Report<'a>(&'a str, Vec<[&'a str; 3]>);

impl Report<'_> {
    fn answer(&self) -> Option<&str> {
        let mut claims = self.1.iter();
        let answer = claims.find(|[_, tags, _]| tags.contains("answer"));
        answer.map(|[_, _, text]| *text)
    }
}

fn reports(request: &str) -> Vec<Report<'_>> {
    let claim = Regex::new(r"(?m)^(R\d+\.\d+) \(([^)]*)\): (.*)$").unwrap();
    let block = Regex::new(r"(?ms)^<<<[0-9a-f]+ REPORT (R\d+)\n(.*?)>>>$").unwrap();
    let reports = block.captures_iter(request).map(|found| {
        let (_, [label, text]) = found.extract();
        let claims = claim.captures_iter(text).map(|claim| claim.extract().1);
        Report(label, claims.collect())
    });
    reports.collect()
}

fn holds_one_of(right: &[String], text: &str) -> bool {
    right.iter().any(|known| text.contains(known.as_str()))
}

pub fn cross_check(right: &[String], request: &str) -> Value {
    let reports = reports(request);
    let labels = |of: Vec<&Report<'_>>| json!(of.iter().map(|of| of.0).collect::<Vec<_>>());
    let mut claims = vec![];
    for report in &reports {
        let agrees =
            |other: &&Report<'_>| report.answer().is_none() || other.answer() == report.answer();
        let others = reports.iter().filter(|other| other.0 != report.0);
        let (same, differ): (Vec<_>, Vec<_>) = others.partition(agrees);
        let (same, differ) = (labels(same), labels(differ));
        for [id, tags, text] in &report.1 {
            let (holds, evidence) = match (right, differ == json!([])) {
                ([], true) => ("yes", "Redone: it comes out the same."),
                ([], false) => ("unknown", ""),
                _ if holds_one_of(right, text) => ("yes", "Redone: it comes out the same."),
                _ => ("no", "Redone: it comes out differently."),
            };
            let is_contradicted = holds == "no" || (holds == "unknown" && tags.contains("answer"));
            claims.push(json!({
                "claim": id, "supportedBy": same, "holds": holds, "by": "calculation", "evidence": evidence,
                "contradictedBy": if is_contradicted { differ.clone() } else { json!([]) },
            }));
        }
    }
    let with = |answer: &str| -> Vec<&str> {
        let reports = reports.iter().filter(|it| it.answer() == Some(answer));
        reports.map(|it| it.0).collect()
    };
    let answers: BTreeSet<&str> = reports.iter().filter_map(Report::answer).collect();
    let mut same: Vec<Vec<&str>> = answers.into_iter().map(with).collect();
    same.retain(|labels| labels.len() > 1);
    let part = |all| json!([{ "part": "the question", "answeredBy": labels(all) }]);
    let parts = if reports.is_empty() {
        json!([])
    } else {
        part(reports.iter().collect())
    };
    json!({ "claims": claims, "sameAnswers": same, "parts": parts, "reports": [] })
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
