//! Builds the answer of a run without a usable synthesis: the best VALID report, marked as such. It
//! is used if the money has run out, if the master's synthesis is unusable or refused, or if it
//! breaks a rule of the service. If the master's provider fails, the run fails instead.

use crate::committee::call::CallFailure;
use crate::committee::failure::Failure;
use crate::committee::reply::{assumptions, sections};
use crate::committee::stages::synthesis_input::{SynthesisInput, answer_of};
use crate::committee::stages::{figures, question_rules};
use crate::domain::{Agent, AgentReport, Status};
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
    unbought: &CallFailure,
) -> Result<Option<Synthesized>, Failure> {
    let usable = input.usable();
    let valid = usable
        .iter()
        .find(|(.., score, _)| score.status == Status::Valid);
    let Some((agent, report, ..)) = valid else {
        return Ok(None);
    };
    let mut corrections = vec![format!(
        "{WHY} ({}: {}): the answer is the {agent}'s own report",
        unbought.cause, unbought.detail
    )];
    let read = || {
        let barred = input.barred(&[]);
        sections::main_answer(
            &text_of(report),
            &input.request.question.message,
            &barred,
            &mut corrections,
        )
    };
    let main = input.run.compute("reading the best report", read).await?;
    if main.trim().is_empty() {
        return Ok(None);
    }
    let estimate = figures::of_text(input, &main, &mut corrections).await?;
    let own: Vec<(Agent, &AgentReport)> = vec![(*agent, *report)];
    let collect = || assumptions::ledger(&assumptions::of_reports(&own), &own, input.request);
    let (assumptions, assumptions_left_out) =
        input.run.compute("collecting assumptions", collect).await?;
    let units = report.units.iter();
    let draft = Draft {
        task_type: input.plan.task_type,
        tldr: vec![sections::first_sentence(&main)],
        acceptance_tests: vec![],
        assumptions,
        assumptions_left_out,
        estimate,
        units_used: units.map(|unit| format!("{agent}:{}", unit.id)).collect(),
        disagreements: input.detected(),
        quarantine_justifications: vec![],
        conflict_penalty: None,
        coverage_bonus: None,
        final_answer: answer_of(report),
        answer_justification: None,
        main,
    };
    let question = question_rules::by_rule(input);
    Ok(Some(Synthesized {
        draft: Some(draft),
        question,
        obtained: SynthesisSource::Fallback,
        corrections,
        broken_rules: vec![],
    }))
}

/// Returns the summary, the numbered steps and the reasoning of a report as one text.
fn text_of(report: &AgentReport) -> String {
    let steps: String = report
        .steps_or_deliverables
        .iter()
        .enumerate()
        .map(|(i, s)| format!("\n{}. {s}", i + 1))
        .collect();
    let gap = if steps.is_empty() { "" } else { "\n" };
    format!(
        "{}{gap}{steps}\n\n{}",
        report.answer_summary.join(" "),
        report.reasoning
    )
}
