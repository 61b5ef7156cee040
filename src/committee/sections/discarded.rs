//! What nothing that a master wrote may refer to: units by their ids, and texts word for word, of outputs that were
//! discarded, or that were quarantined and whose use nobody has justified.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::outline::Outline;
use super::plain_line;
use super::verbatim::{NormalizedText, expand_range};
use crate::domain::{Agent, AgentReport};
use crate::journal::{Draft, Synthesized};

/// How often a text is looked over at most.
const MAX_PASSES: usize = 8;

/// A text shorter than this, in bytes, may be anyone's.
const MIN_TEXT: usize = 80;

/// What must not be referred to, by the ids and texts that the reports really have.
#[derive(Debug, Default)]
pub struct ForbiddenContent {
    ids: Vec<Regex>,
    /// Folded, the longest first.
    texts: Vec<String>,
    /// Whether the names of the two labels are cut too.
    labels: bool,
}

impl ForbiddenContent {
    /// From each barred agent's name and report. What also stands in one of the `kept` texts, of the user or of an output that
    /// may be used, is no reference.
    pub fn new<'a>(
        reports: impl IntoIterator<Item = (&'a str, &'a AgentReport)>,
        kept: &[&str],
    ) -> Self {
        let reports: Vec<(&str, &AgentReport)> = reports.into_iter().collect();
        if reports.is_empty() {
            return Self::default();
        }
        let kept = NormalizedText::of(&kept.join("\n"));
        let ids = reports.iter().flat_map(|(agent, r)| {
            r.units
                .iter()
                .map(move |unit| format!("{agent}:{}", unit.id))
        });
        let mut ids: Vec<String> = ids
            .filter(|id| !kept.has(&NormalizedText::of(id).text))
            .collect();
        // The longest first, so that "u12" is not taken for "u1".
        ids.sort_by_key(|id| std::cmp::Reverse(id.len()));
        let ids: Vec<String> = ids.iter().map(|id| regex::escape(id)).collect();
        let ids = if ids.is_empty() {
            None
        } else {
            Regex::new(&format!("(?i){}", ids.join("|"))).ok()
        };
        let ids = Vec::from_iter(ids);
        let long = reports
            .iter()
            .flat_map(|(_, report)| report.texts())
            .filter(|text| text.trim().len() >= MIN_TEXT);
        let mut texts: Vec<String> = long.map(|text| NormalizedText::of(text).text).collect();
        texts.retain(|text| !text.is_empty() && !kept.has(text));
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
        Self {
            ids,
            texts,
            labels: false,
        }
    }

    /// What either of the two bars.
    pub fn joined(mut self, other: Self) -> Self {
        self.ids.extend(other.ids);
        self.texts.extend(other.texts);
        Self {
            labels: self.labels || other.labels,
            ..self
        }
    }

    /// Cuts the names of the two labels too where they are the service's own, unless the question has them in any case of
    /// letters, or a text that may be used has them in capitals.
    pub fn with_labels(self, question: &str, kept: &[&str]) -> Self {
        let question = question.to_uppercase();
        let asked = ["DISCARD", "QUARANTINE"]
            .iter()
            .any(|label| question.contains(label));
        let said = kept
            .iter()
            .any(|text| LABEL.as_ref().is_some_and(|label| label.is_match(text)));
        Self {
            labels: !asked && !said,
            ..self
        }
    }

    /// Where the text refers to what it may not, in order and without overlaps. Code is not looked at: a command is what it is,
    /// whoever else has it too, and the master never sees a discarded output.
    pub fn mentions(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = self.quotes(text);
        found.extend(self.named(text));
        merged(found)
    }

    /// Where ids and labels stand outside code.
    pub fn named(&self, text: &str) -> Vec<Range<usize>> {
        let ids = self
            .ids
            .iter()
            .flat_map(|ids| ids.find_iter(text))
            .map(|m| m.range());
        let named: Vec<_> = ids
            .chain(if self.labels {
                labels_of_the_service(text)
            } else {
                vec![]
            })
            .collect();
        if named.is_empty() {
            return named;
        }
        let outline = Outline::of(text);
        merged(
            named
                .into_iter()
                .filter(|range| is_whole(text, range) && !outline.in_code(range.start))
                .collect(),
        )
    }

    /// Where whole texts stand outside code.
    pub fn quotes(&self, text: &str) -> Vec<Range<usize>> {
        if self.texts.is_empty() {
            return vec![];
        }
        let folded = NormalizedText::of(text);
        let mut found: Vec<_> = self
            .texts
            .iter()
            .flat_map(|barred| folded.find(barred))
            .collect();
        if !found.is_empty() {
            let outline = Outline::of(text);
            found.retain(|range| !outline.in_code(range.start));
        }
        merged(found)
    }

    /// The text without those references and the brackets around them.
    pub fn cut(&self, text: &str) -> String {
        let quotes = self.quotes(text);
        let mut text = text.to_owned();
        for range in quotes.into_iter().rev() {
            let wider = expand_range(&text, range);
            text.replace_range(wider, "");
        }
        for range in listed(&text, self.mentions(&text)).into_iter().rev() {
            let wider = with_lead(&text, with_brackets(&text, range));
            text.replace_range(wider, "");
        }
        text
    }

    /// Brings everything but the main answer, which has been cut by itself, into the form in which it is shown, and cuts
    /// the references from it.
    pub fn cut_all(&self, synthesized: &mut Synthesized) {
        let Some(draft) = &mut synthesized.draft else {
            return;
        };
        Self::default().cut_draft(draft);
        let before = draft.clone();
        self.cut_draft(draft);
        if *draft != before {
            synthesized
                .corrections
                .push("a reference to a discarded output was cut from the draft".into());
        }
    }

    fn cut_draft(&self, draft: &mut Draft) {
        self.cut_answer(draft);
        for note in &mut draft.disagreements {
            note.topic = self.cut_line(&note.topic);
            note.summary = self.cut_line(&note.summary);
        }
        for justification in &mut draft.quarantine_justifications {
            justification.why = self.cut_line(&justification.why);
            if justification.why.is_empty() {
                "the master's reason named nothing but a discarded output"
                    .clone_into(&mut justification.why);
            }
        }
    }

    /// The same for what of a draft stands before the appendix.
    pub fn cut_answer(&self, draft: &mut Draft) {
        self.cut_paragraph(&mut draft.tldr);
        if draft.tldr.is_empty() {
            let first = self.cut_line(&super::first_sentence(&draft.main));
            draft.tldr.push(if first.is_empty() {
                "See below.".to_owned()
            } else {
                first
            });
        }
        self.cut_lines(&mut draft.acceptance_tests);
        for assumption in &mut draft.assumptions {
            assumption.text = self.cut_line(&assumption.text);
        }
        draft
            .assumptions
            .retain(|assumption| !assumption.text.is_empty());
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
        for _ in 0..MAX_PASSES {
            let cut = self.cut(&lines.join("\n"));
            let next: Vec<String> = cut
                .lines()
                .map(plain_line)
                .filter(|line| !line.is_empty())
                .collect();
            if next == *lines {
                return;
            }
            *lines = next;
        }
    }
}

static LABEL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:DISCARD(?:ED)?|QUARANTINED?)\b").ok());

/// A label in connection with what it is put on: an agent, a unit, an output, a status; or in brackets of its own.
static LABELLED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = r"(?-i:DISCARD(?:ED)?|QUARANTINED?)";
    let agents = Agent::ALL.map(Agent::as_str).join("|");
    let things = "outputs?|reports?|units?|members?|agents?";
    let verbs =
        "status|label|labell?ed|labels|marked|marks|rated|rates|judged|deemed|classified|scored";
    let joins = "is|was|are|were|be|been|being|has|have|as|to|it|them|and|or|both";
    let before = format!(
        r"\b(?:(?:{agents}):\S+|(?:{agents})(?:['’]s)?(?:\s+(?:{things}|claims?|answers?))?|{things}|{verbs})\b"
    );
    let between = format!(r"(?:\s*[(\[:=,/–—]\s*|\s+|\b(?:{joins}|{verbs}|{label})\b)*?");
    let after = format!(r"(?:{label})(?:\s+(?:{things}|status|label|material)\b)");
    Regex::new(&format!(r"(?i){before}{between}(?:{label})\b(?:(?:\s*[,/]\s*|\s+(?:and|or)\s+){label}\b)*|\b{after}|[(\[]\s*{label}\s*[)\]]"))
        .ok()
});

/// The labels that are the service's own; one before another word in capitals is a command's ("DISCARD ALL").
fn labels_of_the_service(text: &str) -> Vec<Range<usize>> {
    let (Some(labelled), Some(label)) = (LABELLED.as_ref(), LABEL.as_ref()) else {
        return vec![];
    };
    let commands = |range: &Range<usize>| {
        let next = text.get(range.end..).unwrap_or("").trim_start_matches(' ');
        let word: String = next.chars().take_while(|c| c.is_alphanumeric()).collect();
        word.len() > 1 && word.chars().all(char::is_uppercase) && !label.is_match(&word)
    };
    let inside = |found: regex::Match<'_>| -> Vec<Range<usize>> {
        let labels = label.find_iter(found.as_str());
        labels
            .map(|m| found.start() + m.start()..found.start() + m.end())
            .collect()
    };
    let found: Vec<Range<usize>> = labelled.find_iter(text).flat_map(inside).collect();
    if found.iter().any(commands) {
        vec![]
    } else {
        found
    }
}

/// Whether an id or a label stands for itself and is no part of a longer name.
fn is_whole(text: &str, range: &Range<usize>) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let before = text.get(..range.start).and_then(|t| t.chars().next_back());
    let after = text.get(range.end..).and_then(|t| t.chars().next());
    !before.is_some_and(joins) && !after.is_some_and(joins)
}

/// In order, and what overlaps as one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut out: Vec<Range<usize>> = vec![];
    for range in ranges {
        match out.last_mut().filter(|last| range.start < last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => out.push(range),
        }
    }
    out
}

/// What only joins references in a list.
static JOINS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?:,|;|&|/|,?\s*(?:and|or))\s*$").ok());

/// A reference's lead-in at the end of a text.
static LEAD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:\s*[,;–—-])?\s*\b(?:see(?:\s+also)?|cf\.?|(?:as\s+)?per|as\s+in|according\s+to|based\s+on)$")
        .ok()
});

/// Bytes before a reference in which its lead-in is looked for. Spaces before a longer one are left.
const MAX_LEAD: usize = 64;

/// References that a list joins, as one.
fn listed(text: &str, ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = vec![];
    for range in ranges {
        let joined = |last: &&mut Range<usize>| {
            let between = text.get(last.end..range.start).unwrap_or("x");
            JOINS.as_ref().is_some_and(|re| re.is_match(between))
        };
        match out.last_mut().filter(joined) {
            Some(last) => last.end = range.end,
            None => out.push(range),
        }
    }
    out
}

/// The range with the words that lead to it, if the sentence ends with it: ", see".
fn with_lead(text: &str, range: Range<usize>) -> Range<usize> {
    let (lead, tail) = (
        text.get(..range.start).unwrap_or(""),
        text.get(range.end..).unwrap_or(""),
    );
    let ends = tail.is_empty() || tail.starts_with(['.', ',', ';', ')', '\n']);
    let from = lead.floor_char_boundary(lead.len().saturating_sub(MAX_LEAD));
    let last = lead.get(from..).unwrap_or("");
    let found = LEAD.as_ref().filter(|_| ends).and_then(|re| re.find(last));
    let start = found.map_or(range.start, |found| from + found.start());
    // A sentence of nothing else is left alone.
    if lead
        .get(..start)
        .is_none_or(|before| before.trim().is_empty())
    {
        range
    } else {
        start..range.end
    }
}

/// The range with the brackets that hold nothing else, the comma that parts it from its neighbour, and the space before.
fn with_brackets(text: &str, range: Range<usize>) -> Range<usize> {
    let space = [' ', '\t'];
    let marks = [',', ';', '/'];
    let lead = text
        .get(..range.start)
        .unwrap_or("")
        .trim_end_matches(space);
    let tail = text
        .get(range.end..)
        .unwrap_or("")
        .trim_start_matches(space);
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

    fn discarded(ids: &[(Agent, &str)]) -> ForbiddenContent {
        let reports: Vec<AgentReport> = ids
            .iter()
            .map(|(agent, id)| {
                let unit = Unit {
                    id: (*id).to_owned(),
                    topic: "t".into(),
                    text: "x".into(),
                    tags: vec![],
                };
                AgentReport {
                    units: vec![unit],
                    ..AgentReport::empty(*agent)
                }
            })
            .collect();
        ForbiddenContent::new(reports.iter().map(|r| (r.agent.as_str(), r)), &[])
    }

    #[test]
    fn references_go_with_their_brackets() {
        let d = discarded(&[(Agent::Critic, "u1"), (Agent::Critic, "u2")]);
        for (text, expected) in [
            (
                "It is 4 [critic:u1], see solver:u2.",
                "It is 4, see solver:u2.",
            ),
            ("It is 4 [critic:u1, critic:u2].", "It is 4."),
            ("It is 4 (Critic:U1; solver:u2).", "It is 4 (solver:u2)."),
            ("It is 4 [solver:u2, critic:u1].", "It is 4 [solver:u2]."),
            ("critic:u1 says 4", "says 4"),
            ("It is 4, see critic:u1 and critic:u2.", "It is 4."),
            ("Run the test, per critic:u1, critic:u2.", "Run the test."),
            (
                "See critic:u1, solver:u2 and critic:u2.",
                "See, solver:u2 and.",
            ),
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

    const LONG: &str = "The month of March has exactly thirty days in every common year, for the old calendar of the Romans said so.";

    fn quoting(kept: &[&str]) -> ForbiddenContent {
        let report = AgentReport {
            steps_or_deliverables: vec![LONG.into()],
            ..AgentReport::empty(Agent::Critic)
        };
        ForbiddenContent::new([("critic", &report)], kept)
    }

    #[test]
    fn a_text_word_for_word_goes_however_it_is_set() {
        let d = quoting(&[]);
        let wrapped = LONG.replace(" in ", "\nin  ").to_uppercase();
        for (text, expected) in [
            (format!("It is 61. {LONG}"), "It is 61."),
            (
                format!("It is 61. {wrapped} So it is."),
                "It is 61. So it is.",
            ),
            (format!("**{LONG}**\n\nIt is 61."), "It is 61."),
            (
                format!("1. Install it\n2. {LONG}\n3. Run it"),
                "1. Install it\n3. Run it",
            ),
            (LONG.to_owned(), ""),
        ] {
            assert_eq!(d.cut(&text), expected, "{text}");
            assert!(d.mentions(expected).is_empty());
        }
        for text in [
            format!("It is 61.\n\n```sh\n{LONG}\n```\n\nDone."),
            format!("Run `{LONG}` twice."),
        ] {
            assert_eq!(d.cut(&text), text, "a command is nobody's");
        }
    }

    #[test]
    fn a_text_that_the_user_or_a_kept_output_has_too_is_nobodys() {
        let said = format!("As I see it: {LONG} Right?");
        for kept in [LONG, &said] {
            assert!(quoting(&[kept]).mentions(LONG).is_empty());
        }
        assert_eq!(quoting(&["March has 31 days."]).mentions(LONG).len(), 1);
    }

    #[test]
    fn a_label_goes_where_it_is_the_services_and_stays_where_it_is_a_word() {
        let d = || {
            ForbiddenContent::default().with_labels("How do I reset a session?", &["Use RESET."])
        };
        for (text, expected) in [
            (
                "The critic's output (DISCARD) says 60.",
                "The critic's output says 60.",
            ),
            ("It was labelled QUARANTINE.", "It was labelled."),
            ("The DISCARD output says 60.", "The output says 60."),
            ("Its status is DISCARD.", "Its status is."),
            ("See solver:u1 [QUARANTINE].", "See solver:u1."),
            ("It is 100 °C (DISCARD).", "It is 100 °C."),
        ] {
            assert_eq!(d().cut(text), expected);
        }
        for text in [
            "Run DISCARD ALL in the session. Unlike RESET ALL, DISCARD ALL also drops temporary tables.",
            "DISCARD PLANS only drops plans.",
            "The editor runs DISCARD ALL.",
            "Send TRIM or DISCARD to the disk.",
            "The file is moved to QUARANTINE.",
            "The output is `status: DISCARD`.",
        ] {
            assert_eq!(d().cut(text), text);
        }
        let labelled = "The DISCARD output says 60.";
        assert_eq!(
            ForbiddenContent::default()
                .with_labels("What is discard?", &[])
                .cut(labelled),
            labelled
        );
        assert_eq!(
            ForbiddenContent::default()
                .with_labels("What?", &["Use DISCARD ALL."])
                .cut(labelled),
            labelled
        );
    }
}
