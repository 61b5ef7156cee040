//! The assumptions ledger: each assumption once, with a handle, a kind and the agents that made it.

use std::collections::BTreeSet;

use crate::committee::request_context::RequestContext;
use crate::domain::{Agent, AgentReport, Assumption, AssumptionKind};
use crate::text::one_line;

/// The most assumptions that a reply lists. It states how many more there were.
const MAX: usize = 24;

/// The most entries of each list that are read. Later ones are ignored.
const MAX_READ: usize = 50;

/// The most words of an assumption that are compared.
const MAX_WORDS: usize = 60;

/// Two wordings with at least this overlap are the same assumption (Jaccard index of their words).
const SAME: f64 = 0.6;

/// Merges the master's assumptions with the agents that made the same ones. Corrections by the user
/// come as given. An assumption of an earlier reply keeps its handle; a new one gets the next
/// number. Returns the entries, and how many more there would be.
pub fn ledger(
    stated: &[(String, AssumptionKind)],
    reports: &[(Agent, &AgentReport)],
    request: &RequestContext,
) -> (Vec<Assumption>, usize) {
    let read = |texts: &[String]| -> Vec<Wording> {
        texts
            .iter()
            .take(MAX_READ)
            .map(|text| Wording::of(text))
            .collect()
    };
    let assumed: Vec<(Agent, Vec<Wording>)> = reports
        .iter()
        .map(|(agent, r)| (*agent, read(&r.assumptions)))
        .collect();
    let mut ledger = Ledger::continuing(request);
    for corrected in &request.corrections {
        ledger.correct(&corrected.handle, &corrected.correction);
    }
    let corrected = request.corrections.iter();
    let corrected: Vec<Wording> = corrected.map(|c| Wording::of(&c.wrong)).collect();
    for (text, kind) in stated.iter().take(MAX_READ) {
        let text = one_line(text);
        let wording = Wording::of(&text);
        let is_among = |others: &[Wording]| others.iter().any(|other| other.is_same(&wording));
        if !text.is_empty() && !is_among(&corrected) && !is_nothing(&text) {
            let made = assumed.iter().filter(|(_, assumed)| is_among(assumed));
            let agents = made.map(|(agent, _)| *agent).collect();
            ledger.add(text, wording, *kind, agents);
        }
    }
    let mut entries = ledger.entries;
    entries.sort_by_key(Assumption::number);
    let left_out = entries.len().saturating_sub(MAX) + stated.len().saturating_sub(MAX_READ);
    entries.truncate(MAX);
    (entries, left_out)
}

/// The entries so far, and the handles that earlier replies gave.
struct Ledger {
    earlier: Vec<(String, Wording)>,
    next: usize,
    entries: Vec<Assumption>,
    known: Vec<Wording>,
}

impl Ledger {
    fn continuing(request: &RequestContext) -> Self {
        let parent = request.parent.iter();
        let earlier = parent.flat_map(|parent| &parent.assumptions);
        Self {
            earlier: earlier
                .map(|a| (a.handle.clone(), Wording::of(&a.text)))
                .collect(),
            next: request.highest_handle + 1,
            entries: vec![],
            known: vec![],
        }
    }

    /// Adds what the user said of an assumption, under its handle. The last correction counts.
    fn correct(&mut self, handle: &str, text: &str) {
        let text = one_line(text);
        self.entries.retain(|entry| entry.handle != handle);
        self.known.push(Wording::of(&text));
        self.entries.push(Assumption {
            handle: handle.to_owned(),
            text,
            kind: AssumptionKind::Given,
            agents: vec![],
        });
    }

    fn add(&mut self, text: String, wording: Wording, kind: AssumptionKind, agents: Vec<Agent>) {
        if self.known.iter().any(|known| known.is_same(&wording)) {
            return;
        }
        let taken = |handle: &str| self.entries.iter().any(|entry| entry.handle == handle);
        let mut earlier = self.earlier.iter();
        let same = earlier.find(|(handle, earlier)| earlier.is_same(&wording) && !taken(handle));
        let handle = same.map_or_else(|| format!("A{}", self.next), |(handle, _)| handle.clone());
        if same.is_none() {
            self.next += 1;
        }
        self.known.push(wording);
        self.entries.push(Assumption {
            handle,
            text,
            kind,
            agents,
        });
    }
}

/// Returns the agents' own assumptions, all as guesses, for a master that cannot state any.
pub fn of_reports(reports: &[(Agent, &AgentReport)]) -> Vec<(String, AssumptionKind)> {
    let all = reports.iter().flat_map(|(_, report)| &report.assumptions);
    all.map(|text| (text.clone(), AssumptionKind::Guess))
        .collect()
}

/// A text prepared for comparison with others.
struct Wording {
    words: BTreeSet<String>,
    /// Figures and negations.
    decisive: BTreeSet<String>,
    /// The words with a capital, also the first one.
    names: BTreeSet<String>,
}

impl Wording {
    fn of(text: &str) -> Self {
        let split = text.split(|c: char| !c.is_alphanumeric());
        let all: Vec<&str> = split
            .filter(|word| !word.is_empty())
            .take(MAX_WORDS)
            .collect();
        let lower = |wanted: fn(&str) -> bool| -> BTreeSet<String> {
            let chosen = all.iter().filter(|word| wanted(word));
            chosen.map(|word| word.to_lowercase()).collect()
        };
        Self {
            words: lower(|_| true),
            decisive: lower(|word| {
                let negates = ["not", "no", "never", "without", "nor", "t"]
                    .iter()
                    .any(|not| word.eq_ignore_ascii_case(not));
                negates || word.contains(|c: char| c.is_ascii_digit())
            }),
            names: lower(|word| word.starts_with(char::is_uppercase)),
        }
    }

    /// True if two texts assume the same. Texts that differ in a figure, a name or a "not" do not,
    /// however similar they are.
    fn is_same(&self, other: &Self) -> bool {
        let foreign = |one: &Self, other: &Self| !one.names.is_subset(&other.words);
        if self.decisive != other.decisive || (foreign(self, other) && foreign(other, self)) {
            return false;
        }
        let common = self.words.intersection(&other.words).count();
        let all = self.words.len() + other.words.len() - common;
        all > 0 && common as f64 / all as f64 >= SAME
    }
}

fn is_nothing(text: &str) -> bool {
    let bare = text.trim_end_matches('.').to_lowercase();
    matches!(bare.as_str(), "none" | "n/a" | "no assumptions" | "nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        Wording::of(a).is_same(&Wording::of(b))
    }

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
            (
                "The server runs Ubuntu 22.04.",
                "the server runs on Ubuntu 22.04",
            ),
            ("Water is at sea level.", "The water is at sea level"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
    }
}
