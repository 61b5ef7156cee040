//! The reply's text (SPEC 2), in its fixed order.

use std::fmt::Write as _;

use crate::committee::reply::headings::{ACCEPTANCE, ASSUMPTIONS, CONFIDENCE, ESTIMATE, TLDR};
use crate::committee::reply::sections::{plain_line, plain_lines, renderable};
use crate::domain::{
    Agent, Assumption, Clarification, Confidence, Estimate, OPTION_LETTERS, Pert, counted,
    shown_c_final, without_controls,
};
use crate::journal::Draft;

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
    let left_out = draft.assumptions_left_out;
    if left_out > 0 {
        let more = counted(
            left_out,
            "more was stated and is",
            "more were stated and are",
        );
        let _ = writeln!(text, "- {more} left out here");
    }
    let c_final = shown_c_final(confidence.c_final, confidence.threshold, 2);
    let _ = write!(text, "\n{CONFIDENCE}\n\n{c_final}\n");
    if !notes.is_empty() {
        let _ = write!(text, "\n{}", bullets(notes));
    }
    if let Some(estimate) = &draft.estimate {
        let _ = write!(text, "\n{}", estimate_section(estimate));
    }
    without_controls(&text).into_owned()
}

/// Renders the gate's question: one question, three options, and nothing after them.
pub fn clarification(question: &Clarification) -> String {
    let mut text = format!("{}\n", question.question);
    for (letter, option) in OPTION_LETTERS.iter().zip(&question.options) {
        let _ = write!(text, "\n{letter}) {option}");
    }
    without_controls(&text).into_owned()
}

fn assumption_line(assumption: &Assumption) -> String {
    let kind = std::iter::once(assumption.kind.into_str());
    let agents = assumption.agents.iter().map(Agent::into_str);
    let agents: Vec<&str> = agents.collect();
    let agents = (!agents.is_empty()).then(|| agents.join(", "));
    let origin: Vec<&str> = kind.chain(agents.as_deref()).collect();
    let (handle, text) = (&assumption.handle, plain_line(&assumption.text));
    format!("{handle} ({}): {text}", origin.join("; "))
}

fn estimate_section(estimate: &Estimate) -> String {
    let mut text = format!(
        "{ESTIMATE}\n\n- Unit: {}\n- Per step, with O optimistic, M most likely, P pessimistic and E expected: E = (O + 4M + P) / 6\n",
        estimate.unit.into_str()
    );
    for (i, step) in estimate.steps.iter().enumerate() {
        let [o, m, p, e] = figures(&step.time);
        let _ = write!(text, "  - Step {}: O={o}, M={m}, P={p}, E={e}", i + 1);
        let name = plain_line(&step.step);
        if !name.is_empty() {
            let _ = write!(text, " ({name})");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", totals_line(estimate));
    for (title, lines) in [
        ("Assumptions", &estimate.assumptions),
        ("Risks that push to P", &estimate.risks),
    ] {
        let _ = writeln!(text, "- {title}:");
        let mut lines = plain_lines(lines);
        if lines.is_empty() {
            lines.push("none stated".to_owned());
        }
        for line in lines {
            let _ = writeln!(text, "  - {line}");
        }
    }
    let _ = writeln!(text, "- Confidence in estimate: {:.2}", estimate.confidence);
    if estimate.by_rule {
        text.push_str("- The figures are a rule of thumb: no model gave any.\n");
    }
    text
}

/// Returns the line of the estimate with the sums of its steps.
pub(super) fn totals_line(estimate: &Estimate) -> String {
    let [o, m, p, e] = figures(&estimate.total());
    format!("- Total: O_total={o}, M_total={m}, P_total={p}, E_total={e}")
}

fn figures(time: &Pert) -> [String; 4] {
    [
        time.optimistic,
        time.likely,
        time.pessimistic,
        time.expected,
    ]
    .map(figure)
}

/// Formats a number with at most two decimals, without trailing zeros.
pub(super) fn figure(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn bullets(lines: &[String]) -> String {
    let lines = plain_lines(lines).into_iter();
    lines.map(|line| format!("- {line}\n")).collect()
}
