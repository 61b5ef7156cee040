//! The units of discarded outputs: nothing that a master wrote may refer to them.

use std::ops::Range;

use regex::Regex;

use super::outline::Outline;
use super::plain_line;
use crate::domain::AgentReport;
use crate::journal::{Draft, Synthesized};

/// How often a text is looked over at most.
const MOST_PASSES: usize = 8;

/// What must not be referred to, by the ids that the discarded reports really have.
#[derive(Debug, Default)]
pub struct Discarded {
    pattern: Option<Regex>,
}

impl Discarded {
    /// From each discarded agent's name and report.
    pub fn new<'a>(reports: impl IntoIterator<Item = (&'a str, &'a AgentReport)>) -> Self {
        let mut ids: Vec<String> = reports
            .into_iter()
            .flat_map(|(agent, report)| report.units.iter().map(move |unit| format!("{agent}:{}", unit.id)))
            .collect();
        if ids.is_empty() {
            return Self::default();
        }
        // The longest first, so that "u12" is not taken for "u1".
        ids.sort_by_key(|id| std::cmp::Reverse(id.len()));
        let ids: Vec<String> = ids.iter().map(|id| regex::escape(id)).collect();
        Self { pattern: Regex::new(&format!("(?i){}", ids.join("|"))).ok() }
    }

    /// Cuts the names of the two labels too, which are the service's own business, unless the question has them.
    pub fn with_labels(mut self, question: &str) -> Self {
        let labels = r"DISCARD(?:ED)?|QUARANTINED?";
        if ["DISCARD", "QUARANTINE"].iter().all(|label| !question.to_uppercase().contains(label)) {
            let ids = self.pattern.as_ref().map(|ids| format!("{ids}|")).unwrap_or_default();
            self.pattern = Regex::new(&format!("{ids}(?-i:{labels})")).ok();
        }
        self
    }

    /// Where the text refers to a discarded unit; code is not looked at.
    pub fn mentions(&self, text: &str) -> Vec<Range<usize>> {
        let Some(pattern) = &self.pattern else { return vec![] };
        if !pattern.is_match(text) {
            return vec![];
        }
        let outline = Outline::of(text);
        let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let whole = |range: &Range<usize>| {
            let before = text.get(..range.start).and_then(|t| t.chars().next_back());
            let after = text.get(range.end..).and_then(|t| t.chars().next());
            !before.is_some_and(joins) && !after.is_some_and(joins)
        };
        pattern.find_iter(text).map(|m| m.range()).filter(|r| whole(r) && !outline.in_code(r.start)).collect()
    }

    /// The text without those references and the brackets around them.
    pub fn cut(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for range in self.mentions(&text).into_iter().rev() {
            let wider = with_brackets(&text, range);
            text.replace_range(wider, "");
        }
        text
    }

    /// Brings everything but the main answer, which has been cut by itself, into the form in which it is shown, and cuts
    /// the references from it.
    pub fn cut_all(&self, synthesized: &mut Synthesized) {
        let Some(draft) = &mut synthesized.draft else { return };
        Self::default().cut_draft(draft);
        let before = draft.clone();
        self.cut_draft(draft);
        if *draft != before {
            synthesized.corrections.push("a reference to a discarded unit was cut from the draft".into());
        }
    }

    fn cut_draft(&self, draft: &mut Draft) {
        self.cut_paragraph(&mut draft.tldr);
        if draft.tldr.is_empty() {
            let first = self.cut_line(&super::first_sentence(&draft.main));
            draft.tldr.push(if first.is_empty() { "See below.".to_owned() } else { first });
        }
        self.cut_lines(&mut draft.acceptance_tests);
        for assumption in &mut draft.assumptions {
            assumption.text = self.cut_line(&assumption.text);
        }
        draft.assumptions.retain(|assumption| !assumption.text.is_empty());
        for (i, assumption) in draft.assumptions.iter_mut().enumerate() {
            assumption.handle = format!("A{}", i + 1);
        }
        if let Some(estimate) = &mut draft.estimate {
            for step in &mut estimate.steps {
                step.step = self.cut_line(&step.step);
            }
            self.cut_lines(&mut estimate.assumptions);
            self.cut_lines(&mut estimate.risks);
        }
        for note in &mut draft.disagreements {
            note.topic = self.cut_line(&note.topic);
            note.summary = self.cut_line(&note.summary);
        }
        for justification in &mut draft.quarantine_justifications {
            justification.why = self.cut_line(&justification.why);
            if justification.why.is_empty() {
                "the master's reason named nothing but a discarded unit".clone_into(&mut justification.why);
            }
        }
    }

    fn cut_lines(&self, lines: &mut Vec<String>) {
        for line in lines.iter_mut() {
            *line = self.cut_line(line);
        }
        lines.retain(|line| !line.is_empty());
    }

    fn cut_line(&self, line: &str) -> String {
        let mut lines = vec![line.to_owned()];
        self.cut_paragraph(&mut lines);
        lines.pop().unwrap_or_default()
    }

    /// Cuts lines that are shown as one paragraph, in which code may go over a line's end. What a cut leaves may begin
    /// with a mark, and without the mark something else may be code: so until nothing changes.
    fn cut_paragraph(&self, lines: &mut Vec<String>) {
        for _ in 0..MOST_PASSES {
            let cut = self.cut(&lines.join("\n"));
            let next: Vec<String> = cut.lines().map(plain_line).filter(|line| !line.is_empty()).collect();
            if next == *lines {
                return;
            }
            *lines = next;
        }
    }
}

/// The range with the brackets that hold nothing else, the comma that parts it from its neighbour, and the space before.
fn with_brackets(text: &str, range: Range<usize>) -> Range<usize> {
    let space = [' ', '\t'];
    let marks = [',', ';', '/'];
    let lead = text.get(..range.start).unwrap_or("").trim_end_matches(space);
    let tail = text.get(range.end..).unwrap_or("").trim_start_matches(space);
    let opened = lead.strip_suffix(['[', '(']);
    let closed = tail.strip_prefix([']', ')']);
    let end = |rest: &str| text.len() - rest.len();
    match (opened, closed) {
        (Some(lead), Some(tail)) => lead.trim_end_matches(space).len()..end(tail),
        (Some(_), None) => match tail.strip_prefix(marks) {
            Some(tail) => range.start..end(tail.trim_start_matches(space)),
            None => range.start..end(tail),
        },
        (None, Some(_)) => lead.trim_end_matches(marks).trim_end_matches(space).len()..range.end,
        (None, None) if lead.is_empty() || lead.ends_with('\n') => range.start..end(tail),
        (None, None) => lead.len()..range.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Agent, Unit};

    fn discarded(ids: &[(Agent, &str)]) -> Discarded {
        let reports: Vec<AgentReport> = ids
            .iter()
            .map(|(agent, id)| {
                let unit = Unit { id: (*id).to_owned(), topic: "t".into(), text: "x".into(), tags: vec![] };
                AgentReport { units: vec![unit], ..AgentReport::empty(*agent) }
            })
            .collect();
        Discarded::new(reports.iter().map(|r| (r.agent.as_str(), r)))
    }

    #[test]
    fn references_go_with_their_brackets() {
        let d = discarded(&[(Agent::Critic, "u1"), (Agent::Critic, "u2")]);
        for (text, expected) in [
            ("It is 4 [critic:u1], see solver:u2.", "It is 4, see solver:u2."),
            ("It is 4 [critic:u1, critic:u2].", "It is 4."),
            ("It is 4 (Critic:U1; solver:u2).", "It is 4 (solver:u2)."),
            ("It is 4 [solver:u2, critic:u1].", "It is 4 [solver:u2]."),
            ("critic:u1 says 4", "says 4"),
            ("- critic:u1 says 4", "- says 4"),
        ] {
            assert_eq!(d.cut(text), expected);
            assert!(d.mentions(expected).is_empty());
        }
    }

    #[test]
    fn only_ids_that_exist_are_references_and_code_is_let_alone() {
        let d = discarded(&[(Agent::Editor, "u1"), (Agent::Solver, "u1")]);
        for text in [
            "Set `git` with editor:vim and solver:lbfgs.",
            "See editor:u12, editor:u1-x and myeditor:u1.",
            "Run `docker run editor:u1`.\n\n```\nimage: solver:u1\n```",
        ] {
            assert_eq!(d.cut(text), text);
        }
        assert_eq!(discarded(&[]).cut("solver:u1"), "solver:u1");
    }
}
