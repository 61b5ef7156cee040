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

/// Whether two texts assume the same. Where they differ in a figure, a name or a "not", they do not, however alike they are.
fn same(a: &str, b: &str) -> bool {
    let (said_a, said_b) = (words(a), words(b));
    let foreign = |text: &str, other: &BTreeSet<String>| names(text).iter().any(|name| !other.contains(name));
    if decisive(&said_a) != decisive(&said_b) || (foreign(a, &said_b) && foreign(b, &said_a)) {
        return false;
    }
    let common = said_a.intersection(&said_b).count();
    let all = said_a.union(&said_b).count();
    all > 0 && common as f64 / all as f64 >= SAME
}

/// Figures and negations.
fn decisive(words: &BTreeSet<String>) -> BTreeSet<&str> {
    let negation = |word: &str| matches!(word, "not" | "no" | "never" | "without" | "nor" | "t");
    words
        .iter()
        .map(String::as_str)
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()) || negation(word))
        .collect()
}

/// Words in capitals; the first of a text is in them either way.
fn names(text: &str) -> BTreeSet<String> {
    let capital = |word: &&str| word.chars().next().is_some_and(char::is_uppercase);
    text.split(|c: char| !c.is_alphanumeric()).filter(capital).map(str::to_lowercase).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_a_name_or_a_negation_makes_another_assumption() {
        for (a, b) in [
            ("PostgreSQL is version 14.", "Redis is version 14."),
            ("The budget is 100 USD.", "The budget is 500 USD."),
            ("The API is public.", "The API is not public."),
            ("It doesn't run as root.", "It does run as root."),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("The server runs Ubuntu 22.04.", "the server runs on Ubuntu 22.04"),
            ("Water is at sea level.", "The water is at sea level"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
    }
}
