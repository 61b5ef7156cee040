//! Removes references to outputs that a reply must not refer to (SPEC 2). A reference is the id of
//! a unit with its agent, such as `critic:u1`. The wording of a discarded output is not searched
//! for, because the master never receives it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::domain::{Agent, AgentReport, Status, without_controls};
use crate::journal::{Draft, Synthesized, Transcript};

/// Finds and removes references to the units of some agents. The default has no agents.
#[derive(Debug, Default)]
pub struct Redactor {
    /// How references begin, such as `critic:`. In lower case.
    beginnings: Vec<String>,
    /// The pattern of one reference.
    ids: String,
    /// Compiled for the first text that may have a reference. Most replies have none.
    patterns: OnceLock<Option<Patterns>>,
}

/// One reference, and brackets that contain only references with the space before them.
type Patterns = (Regex, Regex);

impl Redactor {
    /// Builds a redactor for all units of these agents: each `u` with a number, and the other ids of
    /// their reports. An agent has one entry for each of its reports. One that failed has no report.
    pub fn new<'a>(reports: impl IntoIterator<Item = (&'a str, Option<&'a AgentReport>)>) -> Self {
        let mut units: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (agent, report) in reports {
            let own = report.iter().flat_map(|report| &report.units);
            let ids = own.map(|unit| unit.id.as_str());
            units.entry(agent).or_default().extend(ids);
        }
        // Further ids belong to the reference, so that none is left when it is replaced.
        let of_agent = |(agent, ids): (&&str, &Vec<&str>)| {
            format!("{}(?::(?:{}))+", regex::escape(agent), alternatives(ids))
        };
        let ids: Vec<String> = units.iter().map(of_agent).collect();
        let beginnings = units.keys().map(|agent| format!("{agent}:"));
        Self {
            beginnings: beginnings.collect(),
            ids: ids.join("|"),
            patterns: OnceLock::new(),
        }
    }

    /// Returns the patterns for a text; `None` if it cannot have a reference.
    fn patterns_for(&self, text: &str) -> Option<&Patterns> {
        let compiled = |form: String| {
            let mut pattern = RegexBuilder::new(&form);
            // With Unicode rules, `ſ` and the Kelvin sign would equal ASCII letters of an id.
            pattern.unicode(false).case_insensitive(true).build().ok()
        };
        let ids = &self.ids;
        let compile = || {
            let id = compiled(format!(r"\b(?:{ids})"))?;
            let bracketed = format!(r"[ \t]*[\[(]\s*(?:{ids})(?:\s*[,;]\s*(?:{ids}))*\s*[\])]");
            Some((id, compiled(bracketed)?))
        };
        if self.beginnings.is_empty() {
            return None;
        }
        let lower = text.to_ascii_lowercase();
        let mut beginnings = self.beginnings.iter();
        beginnings.find(|beginning| lower.contains(beginning.as_str()))?;
        self.patterns.get_or_init(compile).as_ref()
    }

    /// Returns the redactor for the selected agents of a run, with their units of every round.
    pub fn of(run: &Transcript<'_>, selected: impl Fn(Agent) -> bool) -> Self {
        let outcomes = run.outcomes.iter().filter(|it| selected(it.agent));
        Self::new(outcomes.map(|it| (it.agent.into_str(), it.outcome.report())))
    }

    /// Returns the redactor for the outputs that the last judgement of a run discards, and for the
    /// agents that failed.
    pub fn of_discarded(run: &Transcript<'_>) -> Self {
        let (discarded, reports) = (discarded_agents(run), run.reports());
        Self::of(run, |agent| {
            discarded.contains(&agent) || !reports.contains_key(&agent)
        })
    }

    /// Returns the redactor for all that the text of a reply must not refer to: discarded outputs, and
    /// quarantined ones whose use the draft does not justify.
    pub fn of_excluded(run: &Transcript<'_>) -> Self {
        let discarded = discarded_agents(run);
        let (judgement, reports) = (run.judgement(), run.reports());
        let justified = run
            .draft()
            .map_or(&[][..], |it| &it.quarantine_justifications);
        Self::of(run, |agent| {
            let is_quarantined =
                judgement.and_then(|it| it.status_of(agent)) == Some(Status::Quarantine);
            let is_justified = justified
                .iter()
                .any(|it| it.agent == agent && !it.why.is_empty());
            discarded.contains(&agent)
                || !reports.contains_key(&agent)
                || (is_quarantined && !is_justified)
        })
    }

    /// Returns the references in a text, in order.
    pub fn references<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let patterns = self.patterns_for(text);
        let ids = patterns.iter().flat_map(|(id, _)| id.find_iter(text));
        ids.map(|found| found.as_str()).collect()
    }

    /// Returns the number of references in all strings of a value, keys excluded.
    pub fn count(&self, value: &Value) -> usize {
        match value {
            Value::String(text) => self.references(text).len(),
            Value::Array(values) => values.iter().map(|value| self.count(value)).sum(),
            Value::Object(map) => map.values().map(|value| self.count(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

    /// Returns the text without references. Brackets that contain only references are removed. Any
    /// other reference is replaced by its agent's name.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some((id, bracketed)) = self.patterns_for(text) else {
            return Cow::Borrowed(text);
        };
        let mut text = Cow::Borrowed(text);
        // Each pass shortens the text. One suffices, unless what is left joins to a reference.
        while id.is_match(&text) {
            let without = bracketed.replace_all(&text, "");
            let named = id.replace_all(&without, |found: &regex::Captures<'_>| {
                let found = found.get(0).map_or("", |id| id.as_str());
                found.split(':').next().unwrap_or_default().to_owned()
            });
            text = Cow::Owned(named.into_owned());
        }
        text
    }

    /// Redacts all strings of a value, keys excluded.
    pub fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redact(text) {
                    *text = redacted;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_value(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.redact_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Redacts all texts of a draft that a reader sees. Appends `correction` if a text changes.
    pub fn redact_draft(&self, synthesized: &mut Synthesized, correction: &str) {
        let Some(draft) = &mut synthesized.draft else {
            return;
        };
        let mut changed = false;
        for text in texts(draft) {
            // A control character within a reference would hide it here.
            if let Cow::Owned(clean) = without_controls(text) {
                *text = clean;
            }
            if let Cow::Owned(redacted) = self.redact(text) {
                *text = redacted;
                changed = true;
            }
        }
        if changed {
            synthesized.corrections.push(correction.to_owned());
        }
    }
}

/// Returns a pattern for any of these ids and any `u` with a number. The longest comes first, so
/// that `u12` is not matched as `u1`.
fn alternatives(ids: &[&str]) -> String {
    let mut ids = ids.to_vec();
    ids.sort_by_key(|id| std::cmp::Reverse(id.len()));
    let one = |id: &str| {
        let is_word = id.ends_with(|c: char| c.is_ascii_alphanumeric());
        format!("{}{}", regex::escape(id), if is_word { r"\b" } else { "" })
    };
    let known = ids.into_iter().map(one);
    let all = known.chain([r"u\d+\b".to_owned()]);
    all.collect::<Vec<_>>().join("|")
}

/// Returns all texts of a draft that a reader sees.
pub(super) fn texts(draft: &mut Draft) -> impl Iterator<Item = &mut String> {
    let estimate = draft.estimate.iter_mut().flat_map(|estimate| {
        let steps = estimate.steps.iter_mut().map(|step| &mut step.step);
        steps
            .chain(&mut estimate.assumptions)
            .chain(&mut estimate.risks)
    });
    let notes = draft.disagreements.iter_mut();
    let justifications = draft.quarantine_justifications.iter_mut();
    std::iter::once(&mut draft.main)
        .chain(&mut draft.tldr)
        .chain(&mut draft.acceptance_tests)
        .chain(draft.assumptions.iter_mut().map(|it| &mut it.text))
        .chain(estimate)
        .chain(notes.flat_map(|note| [&mut note.topic, &mut note.summary]))
        .chain(justifications.map(|it| &mut it.why))
}

/// Returns the agents whose outputs the last judgement of a run discards.
pub fn discarded_agents(run: &Transcript<'_>) -> BTreeSet<Agent> {
    let scores = run.judgement().into_iter().flat_map(|it| &it.scores);
    let discarded = scores.filter(|score| score.status == Status::Discard);
    discarded.filter_map(|score| score.agent.agent()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Unit;

    #[test]
    fn references_are_removed_or_become_the_name_of_their_agent() {
        let unit = |id: &str| Unit {
            id: id.to_owned(),
            topic: "t".into(),
            text: "x".into(),
            tags: vec![],
        };
        let critic = AgentReport {
            units: ["u1", "u12", "u2", "claim-3"].map(unit).into(),
            ..AgentReport::default()
        };
        let redactor = Redactor::new([("critic", Some(&critic)), ("verifier", None)]);
        let many = format!("critic{}", ":u1:u2".repeat(1000));
        for (text, expected) in [
            (
                "It is 4 [critic:u1], see solver:u2.",
                "It is 4, see solver:u2.",
            ),
            ("It is 4 [critic:u1, critic:u12].", "It is 4."),
            (
                "It is 4 (Critic:U1; solver:u2).",
                "It is 4 (Critic; solver:u2).",
            ),
            ("As critic:u2 says, 4.", "As critic says, 4."),
            (
                "See verifier:u7, verifier:us.",
                "See verifier, verifier:us.",
            ),
            ("critic:u1:u1", "critic"),
            ("critic:u1:claim-3:u2, critic:u12:u13", "critic, critic"),
            // It has no such unit now, but may have had it in an earlier round.
            ("See critic:u13 and critic:us.", "See critic and critic:us."),
            (&many, "critic"),
        ] {
            assert_eq!(redactor.redact(text), expected);
            assert!(redactor.references(&redactor.redact(text)).is_empty());
        }
        let references = redactor.references("critic:u1, CRITIC:u12");
        assert_eq!(references, ["critic:u1", "CRITIC:u12"]);
        assert_eq!(Redactor::default().redact("critic:u1"), "critic:u1");
    }
}
