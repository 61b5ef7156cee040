//! Builds the answer of a run without a usable synthesis: the best VALID report, marked as such. It
//! is used if the money has run out, if the master's synthesis is unusable or refused, or if it
//! breaks a rule of the service. If the master's provider fails, the run fails instead.

use crate::committee::call::CallFailure;
use crate::committee::failure::Failure;
use crate::committee::reply::sections;
use crate::committee::stages::deliberation::ScoredReport;
use crate::committee::stages::synthesis_input::{SynthesisInput, answer_of};
use crate::committee::stages::{figures, question_rules};
use crate::domain::{AgentReport, Status};
use crate::journal::{Draft, SynthesisSource, Synthesized};

/// Start of the correction that states why there is no synthesis.
pub const WHY: &str = "the master wrote no synthesis";

/// Returns the best VALID report as the answer. Returns `None` if no report is VALID or its main
/// answer is empty.
///
/// # Errors
/// If the run must stop, for example because the database fails.
pub async fn of(
    input: &SynthesisInput<'_>,
    failure: &CallFailure,
) -> Result<Option<Synthesized>, Failure> {
    let mut usable = input.usable().into_iter();
    let best = usable.find(|it| it.score.status == Status::Valid);
    let Some(ScoredReport { agent, report, .. }) = best else {
        return Ok(None);
    };
    let CallFailure { cause, detail, .. } = failure;
    let why = format!("{WHY} ({cause}: {detail}): the answer is the {agent}'s own report");
    let mut corrections = vec![why];
    let read = || {
        let question = &input.request.question.message;
        let redactor = input.redactor_for(&[]);
        sections::main_answer(&text_of(report), question, &redactor, &mut corrections)
    };
    let main = input.run.compute(read).await?;
    if main.trim().is_empty() {
        return Ok(None);
    }
    let estimate = figures::of_text(input, &main, &mut corrections).await?;
    let collect = || input.draft(main, &[(agent, report)]);
    let draft = input.run.compute(collect).await?;
    let units = report.units.iter();
    let draft = Draft {
        estimate,
        units_used: units.map(|unit| format!("{agent}:{}", unit.id)).collect(),
        final_answer: answer_of(report),
        // A reply without a synthesis is not more certain than one with the least estimate.
        coverage_bonus: Some(0.0),
        ..draft
    };
    let (question, source) = (question_rules::by_rule(input), SynthesisSource::Fallback);
    Ok(Some(Synthesized::new(
        Some(draft),
        question,
        source,
        corrections,
    )))
}

/// Returns the outcome of a run without an answer: the question by rule, or after an answered
/// question the statement that it cannot be decided.
pub(super) fn undecided(input: &SynthesisInput<'_>, obtained: SynthesisSource) -> Synthesized {
    let draft = Draft::of_sentence(input.plan.task_type, &input.request.rule_texts().undecided);
    let draft = (!input.request.may_ask()).then_some(draft);
    let corrections = vec!["no report can be used as the answer".to_owned()];
    Synthesized::new(draft, question_rules::by_rule(input), obtained, corrections)
}

/// Returns the summary, the numbered steps and the reasoning of a report as one text. The reasoning of a
/// plain text is all of it.
fn text_of(report: &AgentReport) -> String {
    let parts = report.answer_summary.iter();
    let mut parts = parts.chain(&report.steps_or_deliverables);
    if parts.all(|part| report.reasoning.contains(part.as_str())) {
        return report.reasoning.clone();
    }
    let summary = report.answer_summary.join(" ");
    let steps = numbered(&report.steps_or_deliverables);
    let gap = if steps.is_empty() { "" } else { "\n" };
    format!("{summary}{gap}{steps}\n\n{}", report.reasoning)
}

/// Returns the steps of a report as a numbered list that follows on a text. The further lines of a
/// step are indented, so that they belong to its item.
pub(super) fn numbered(steps: &[String]) -> String {
    let item = |(i, step): (usize, &str)| {
        let mark = format!("\n{}. ", i + 1);
        let indent = format!("\n{}", " ".repeat(mark.len() - 1));
        format!("{mark}{}", step.replace('\n', &indent))
    };
    let steps = steps.iter().map(|step| step.trim());
    let steps = steps.filter(|step| !step.is_empty());
    steps.enumerate().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_is_not_repeated() {
        let text = "The answer is 42.\n\n- apples are red\n- pears are green";
        let report = crate::scoring::report_from_text("solver", "What is 6 times 7?", text);
        assert_eq!(text_of(&report), text);
    }
}
