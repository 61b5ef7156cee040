//! The assumptions ledger: each assumption once, with a handle, a kind and the agents who made it.

use std::collections::BTreeSet;

use super::case::Case;
use crate::domain::{Agent, AgentReport, Assumption, AssumptionKind};

/// The most that a reply lists; how many more there were is said.
const MOST: usize = 24;

/// How much two wordings must share to be the same assumption (Jaccard index of their words).
const SAME: f64 = 0.6;

/// Merges what the master stated with who of the agents assumed the same. Corrections by the user come first, as given.
/// Returns the entries, and how many more there would be.
pub fn ledger(
    stated: &[(String, AssumptionKind)],
    reports: &[(Agent, &AgentReport)],
    case: &Case,
) -> (Vec<Assumption>, usize) {
    let mut entries: Vec<(String, AssumptionKind, Vec<Agent>)> = vec![];
    for corrected in &case.corrections {
        entries.push((one_line(&corrected.correction), AssumptionKind::Given, vec![]));
    }
    for (text, kind) in stated {
        let text = one_line(text);
        let agents = reports.iter().filter(|(_, r)| r.assumptions.iter().any(|a| same(a, &text))).map(|(a, _)| *a);
        let agents: Vec<Agent> = agents.collect();
        let corrected = case.corrections.iter().any(|c| same(&c.wrong, &text));
        let known = entries.iter().any(|(known, ..)| same(known, &text));
        if !text.is_empty() && !known && !corrected && !is_nothing(&text) {
            entries.push((text, *kind, agents));
        }
    }
    let left_out = entries.len().saturating_sub(MOST);
    let listed = entries.into_iter().take(MOST).enumerate();
    let assumption = |(i, (text, kind, agents))| Assumption { handle: format!("A{}", i + 1), text, kind, agents };
    (listed.map(assumption).collect(), left_out)
}

/// The agents' own assumptions, for when the master cannot state any: all are guesses.
pub fn of_reports(reports: &[(Agent, &AgentReport)]) -> Vec<(String, AssumptionKind)> {
    let all = reports.iter().flat_map(|(_, report)| &report.assumptions);
    all.map(|text| (text.clone(), AssumptionKind::Guess)).collect()
}

fn same(a: &str, b: &str) -> bool {
    let (a, b) = (words(a), words(b));
    let common = a.intersection(&b).count();
    let all = a.union(&b).count();
    all > 0 && common as f64 / all as f64 >= SAME
}

fn is_nothing(text: &str) -> bool {
    let bare = text.trim_end_matches('.').to_lowercase();
    matches!(bare.as_str(), "none" | "n/a" | "no assumptions" | "nothing")
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
