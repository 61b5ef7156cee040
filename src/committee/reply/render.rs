//! The reply's text (SPEC 2), in its fixed order.

use std::fmt::Write as _;

use crate::committee::reply::sections::{plain_line, renderable};
use crate::domain::{Assumption, Clarification, Confidence, Estimate, OPTION_LETTERS};
use crate::journal::Draft;

pub const TLDR: &str = "## TL;DR";
pub const ACCEPTANCE: &str = "## Acceptance tests";
pub const ASSUMPTIONS: &str = "## Assumptions";
pub const CONFIDENCE: &str = "## Confidence";
/// One heading level below the others.
pub const ESTIMATE: &str = "### Execution time estimate";
pub const AUDIT: &str = "## Audit appendix";

/// Renders the answer without its audit appendix.
pub fn answer(draft: &Draft, confidence: &Confidence, notes: &[String]) -> String {
    let tldr = plain_lines(&draft.tldr).join("\n");
    let mut text = format!("{TLDR}\n\n{tldr}\n\n{}\n", renderable(&draft.main));
    let tests = bullets(&draft.acceptance_tests);
    if !tests.is_empty() {
        let _ = write!(text, "\n{ACCEPTANCE}\n\n{tests}");
    }
    let _ = write!(text, "\n{ASSUMPTIONS}\n\n");
    if draft.assumptions.is_empty() {
        text.push_str("none\n");
    }
    for assumption in &draft.assumptions {
        let _ = writeln!(text, "- {}", assumption_line(assumption));
    }
    if draft.assumptions_left_out > 0 {
        let _ = writeln!(
            text,
            "- {} more were stated and are left out here",
            draft.assumptions_left_out
        );
    }
    let _ = write!(text, "\n{CONFIDENCE}\n\n{:.2}\n", confidence.c_final);
    if !notes.is_empty() {
        let _ = write!(text, "\n{}", bullets(notes));
    }
    if let Some(estimate) = &draft.estimate {
        let _ = write!(text, "\n{}", estimate_section(estimate));
    }
    text
}

/// Renders the gate's question: one question, three options, and nothing after them.
pub fn clarification(question: &Clarification) -> String {
    let mut text = format!("{}\n", question.question);
    for (letter, option) in OPTION_LETTERS.iter().zip(&question.options) {
        let _ = write!(text, "\n{letter}) {option}");
    }
    text
}

fn assumption_line(assumption: &Assumption) -> String {
    let agents = assumption
        .agents
        .iter()
        .map(|a| a.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let by = if agents.is_empty() {
        String::new()
    } else {
        format!("; {agents}")
    };
    format!(
        "{} ({}{by}): {}",
        assumption.handle,
        assumption.kind.as_str(),
        plain_line(&assumption.text)
    )
}

fn estimate_section(estimate: &Estimate) -> String {
    let mut text = format!(
        "{ESTIMATE}\n\n- Unit: {}\n- Per step, E = (O + 4M + P) / 6:\n",
        estimate.unit.as_str()
    );
    for (i, step) in estimate.steps.iter().enumerate() {
        let t = step.time;
        let name = plain_line(&step.step);
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" ({name})")
        };
        let _ = writeln!(
            text,
            "  - Step {}: O={}, M={}, P={}, E={}{name}",
            i + 1,
            figure(t.optimistic),
            figure(t.likely),
            figure(t.pessimistic),
            figure(t.expected)
        );
    }
    let t = estimate.total();
    let _ = writeln!(
        text,
        "- Total: O_total={}, M_total={}, P_total={}, E_total={}",
        figure(t.optimistic),
        figure(t.likely),
        figure(t.pessimistic),
        figure(t.expected)
    );
    let or_none = |lines: &[String]| -> String {
        let lines = plain_lines(lines);
        let lines = if lines.is_empty() {
            vec!["none stated".to_owned()]
        } else {
            lines
        };
        lines
            .iter()
            .fold(String::new(), |all, line| format!("{all}  - {line}\n"))
    };
    let _ = write!(text, "- Assumptions:\n{}", or_none(&estimate.assumptions));
    let _ = write!(
        text,
        "- Risks that push to P:\n{}",
        or_none(&estimate.risks)
    );
    let _ = writeln!(text, "- Confidence in estimate: {:.2}", estimate.confidence);
    if estimate.by_rule {
        text.push_str("- The figures are a rule of thumb: no model gave any.\n");
    }
    text
}

/// Formats a number with at most two decimals, without trailing zeros.
pub(super) fn figure(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn bullets(lines: &[String]) -> String {
    plain_lines(lines)
        .iter()
        .fold(String::new(), |all, line| format!("{all}- {line}\n"))
}

fn plain_lines(lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .map(|line| plain_line(line))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Returns the text of one of the heading constants above without its Markdown mark.
pub(super) fn title(heading: &'static str) -> &'static str {
    heading.trim_start_matches(['#', ' '])
}
