//! The assumptions ledger: each assumption once, with a handle, a kind and the agents that made it.

use crate::committee::request_context::RequestContext;
use crate::domain::{Agent, AgentReport, Assumption, AssumptionKind};
use crate::text::{count_words, one_line};

/// The most assumptions that a reply lists. It states how many more there were.
const MAX: usize = 24;

/// The most entries of each list that are read. Later ones are ignored.
const MAX_READ: usize = 50;

/// Merges the master's assumptions with the agents that made the same ones. Corrections by the user
/// come as given. An assumption of an earlier reply keeps its handle; a new one gets the next
/// number. Returns the entries, and how many more there would be.
pub fn ledger(
    stated: &[(String, AssumptionKind)],
    reports: &[(Agent, &AgentReport)],
    request: &RequestContext,
) -> (Vec<Assumption>, usize) {
    let read = |(agent, report): &(Agent, &AgentReport)| {
        let texts = report.assumptions.iter().take(MAX_READ);
        (*agent, texts.map(|text| Wording::of(text)).collect())
    };
    let assumed: Vec<(Agent, Vec<Wording>)> = reports.iter().map(read).collect();
    let mut ledger = Ledger::continuing(request);
    for corrected in &request.corrections {
        ledger.correct(&corrected.handle, &corrected.correction);
    }
    let corrected = request.corrections.iter();
    let corrected = corrected.flat_map(|c| c.wrong.lines().map(Wording::of));
    let corrected: Vec<Wording> = corrected.collect();
    for (text, kind) in stated.iter().take(MAX_READ) {
        let text = one_line(text);
        let wording = Wording::of(&text);
        let is_among = |others: &[Wording]| others.contains(&wording);
        if !is_among(&corrected) && is_statement(&text) {
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
        let earlier = request.earlier_assumptions.iter();
        let highest = earlier.clone().map(Assumption::number).max();
        Self {
            earlier: earlier
                .map(|a| (a.handle.clone(), Wording::of(&a.text)))
                .collect(),
            next: highest.unwrap_or(0) + 1,
            entries: vec![],
            known: vec![],
        }
    }

    /// Adds what the user said of assumptions ("A2, A3"), under the first handle. The last correction
    /// counts.
    fn correct(&mut self, handles: &str, text: &str) {
        let text = one_line(text);
        let corrected: Vec<&str> = handles.split(", ").collect();
        self.entries
            .retain(|entry| !corrected.contains(&entry.handle.as_str()));
        self.known.push(Wording::of(&text));
        self.entries.push(Assumption {
            handle: corrected.first().copied().unwrap_or(handles).to_owned(),
            text,
            kind: AssumptionKind::Given,
            agents: vec![],
        });
    }

    fn add(&mut self, text: String, wording: Wording, kind: AssumptionKind, agents: Vec<Agent>) {
        if self.known.contains(&wording) {
            return;
        }
        let taken = |handle: &str| self.entries.iter().any(|entry| entry.handle == handle);
        let mut earlier = self.earlier.iter();
        let same = earlier.find(|(handle, earlier)| *earlier == wording && !taken(handle));
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

/// False for a single word, such as "none" in any language: it assumes nothing.
fn is_statement(text: &str) -> bool {
    count_words(text) > 1
}

/// A text prepared for comparison with others: its words in order, in lower case, without
/// punctuation around them. Two texts assume the same only if all words are equal. Anything less
/// could merge opposites in some language ("ist öffentlich", "ist nicht öffentlich").
#[derive(PartialEq, Eq)]
struct Wording(Vec<String>);

impl Wording {
    fn of(text: &str) -> Self {
        let around = |c: char| AROUND.contains(c);
        let words = text
            .split_whitespace()
            .map(|word| word.trim_matches(around));
        let words = words.filter(|word| !word.is_empty());
        Self(words.map(str::to_lowercase).collect())
    }
}

/// Punctuation around words that does not change what they say. A sign before a figure does.
const AROUND: &str = ".,;:!()[]{}\"'*_`“”„«»‘’。、，；：！（）「」『』";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_word_is_no_assumption_in_any_language() {
        for none in ["none", "None.", "Keine.", "Ninguna", "Нет", ""] {
            assert!(!is_statement(none), "{none}");
        }
        assert!(is_statement("It rains") && is_statement("負荷は低い"));
    }

    #[test]
    fn only_case_and_punctuation_may_differ_in_the_same_assumption() {
        let same = |a, b| Wording::of(a) == Wording::of(b);
        for (a, b) in [
            ("The API is public.", "The API is not public."),
            ("Die API ist öffentlich.", "Die API ist nicht öffentlich."),
            ("Die API ist öffentlich.", "Die API ist privat."),
            ("その API は公開です。", "その API は公開ではありません。"),
            ("The budget is 100 USD.", "The budget is 500 USD."),
            ("It is 5 °C outside.", "It is -5 °C outside."),
            ("It doesn't run as root.", "It does run as root."),
            ("Ann manages Bob.", "Bob manages Ann."),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
        for (a, b) in [
            (
                "The server runs Ubuntu 22.04.",
                "the server runs  Ubuntu 22.04",
            ),
            ("It runs \"Docker Swarm\".", "It runs Docker Swarm"),
            (
                "チームはDocker Swarmを使っている。",
                "チームはDocker Swarmを使っている",
            ),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
    }
}
