//! Phase B: the master writes the answer; the service checks it and adds what it can compute.

use std::sync::Arc;

use serde_json::json;

use crate::committee::call::{CallFailure, Typed, call_salvaging, call_text};
use crate::committee::failure::Failure;
use crate::committee::money::budget::ModelText;
use crate::committee::output_shapes::{EstimateOut, FallbackQuestionOut, FinalSynthesis};
use crate::committee::reply::assumptions;
use crate::committee::reply::closing::{closing_request, is_only_request};
use crate::committee::reply::sections::{self, to_last_paragraph};
use crate::committee::stages::cut_answer::{continued, salvaged};
use crate::committee::stages::synthesis_checks::{
    answer_problem, is_unsupported, justifications_of, known_units, lacks_tests, non_empty,
    problems, shown_quarantine, would_ask,
};
use crate::committee::stages::synthesis_input::{SynthesisInput, answer_of, clean};
use crate::committee::stages::{
    confidence, fallback_answer, figures, finish, question, question_rules,
};
use crate::config::{OutputForm, RoleModel};
use crate::domain::{
    AgentReport, AssumptionKind, CallStep, Clarification, Earmark, FailureCause, Mode, Tag,
    is_blank, is_question_mark,
};
use crate::journal::step;
use crate::journal::{Cut, DisagreementNote, Draft, Justification, SynthesisSource, Synthesized};
use crate::scoring;
use crate::text::one_line;

/// The approximate limit of the main answer of `ask`, in words.
const ASK_WORDS: u32 = 250;

/// The usual tokens of a synthesis beside its main answer.
const REST_TOKENS: u32 = 700;

/// Writes the answer and the fallback question.
///
/// # Errors
/// If the master fails and the run cannot finish without it.
pub async fn write(input: &SynthesisInput<'_>) -> Result<Arc<Synthesized>, Failure> {
    let write = async {
        let mut synthesized = match input.stage().master()?.output {
            _ if !input.request.may_ask() && input.usable().is_empty() => {
                let nothing = SynthesisSource::Failed(FailureCause::EmptyOutput);
                fallback_answer::undecided(input, nothing)
            }
            OutputForm::Json => write_json(input).await?,
            OutputForm::Text => write_text(input).await?,
        };
        let clean = || clean(input, &mut synthesized);
        input.run.compute_text(clean).await?;
        let synthesized = finish::enforce_invariants(input, synthesized).await?;
        Ok::<_, Failure>(Arc::new(synthesized))
    };
    input.run.step(step::synthesis(), write).await
}

async fn write_json(input: &SynthesisInput<'_>) -> Result<Synthesized, Failure> {
    let max_words = max_words(input, input.stage().master()?);
    let values = || input.values(max_words, "");
    let (values, texts) = input.run.compute_text(values).await?;
    let ask = input.ask(CallStep::Synthesis, values, texts)?;
    input.run.release(Earmark::Synthesis);
    let check = |synthesis: &FinalSynthesis| problems(input, synthesis);
    let salvage = |text: &str| salvaged(input.plan.task_type, text);
    match call_salvaging::<FinalSynthesis>(ask, check, salvage).await {
        Ok(typed) if typed.salvaged.is_some() => {
            let (typed, cut) = continued(input, typed, max_words).await?;
            complete(input, typed, cut).await
        }
        Ok(typed) => complete(input, typed, None).await,
        Err(error) => instead(input, &error.no_output()?).await,
    }
}

/// Returns the words that the master is told to write: what fits into its output limit beside the
/// other parts of the synthesis.
fn max_words(input: &SynthesisInput<'_>, master: &RoleModel) -> u32 {
    let words = master.words_in(input.max_tokens(master), REST_TOKENS);
    match input.request.question.mode {
        Mode::Ask => words.min(ASK_WORDS),
        Mode::Audit | Mode::Deep => words,
    }
}

/// Returns why a main answer is none, if so. The answer may rightly be a question, such as a
/// translation: then a report is one too.
fn no_answer(input: &SynthesisInput<'_>, main: &str) -> Option<&'static str> {
    let asks = |report: &AgentReport| {
        let units = report
            .units
            .iter()
            .filter(|unit| unit.tags.contains(&Tag::Answer));
        let mut texts = units.map(|unit| unit.text.as_str());
        texts.any(|text| text.trim_end().ends_with(is_question_mark))
    };
    // A refusal may be what was asked for.
    let answers = |report: &AgentReport| !scoring::declines(&report.answer_summary.join(" "));
    if is_blank(main) {
        Some("the main answer is empty")
    } else if is_only_request(main) && !input.reports().iter().any(|(_, report)| asks(report)) {
        Some("the main answer is nothing but a question to the user")
    } else if scoring::declines(main) && input.reports().iter().any(|(_, report)| answers(report)) {
        Some("the main answer declines, and the reports do not")
    } else {
        None
    }
}

/// Returns the replacement for a synthesis that the master failed to give: the fallback answer, or
/// the question.
async fn instead(
    input: &SynthesisInput<'_>,
    failure: &CallFailure,
) -> Result<Synthesized, Failure> {
    if !failure.is_recoverable() {
        return Err(Failure::master("synthesis", failure));
    }
    tracing::warn!(cause = %failure.cause, "the master wrote no synthesis");
    let source = SynthesisSource::Failed(failure.cause.clone());
    let found = fallback_answer::of(input, failure).await?;
    Ok(found.unwrap_or_else(|| fallback_answer::undecided(input, source)))
}

/// Gets plain text from the master as the main answer. Fixed rules make the rest.
async fn write_text(input: &SynthesisInput<'_>) -> Result<Synthesized, Failure> {
    let usable = input.usable().into_iter();
    let (drafts, tokens): (Vec<String>, Vec<u64>) =
        usable.map(|it| (gist(it.report), it.tokens)).unzip();
    let texts = drafts.iter().zip(tokens);
    let texts = texts
        .map(|(draft, tokens)| ModelText::of(draft, tokens))
        .collect();
    let own = json!({ "task_type": input.plan.task_type, "drafts": drafts });
    let values = input.request.values(own);
    let ask = input.ask(CallStep::Synthesis, values, texts)?;
    input.run.release(Earmark::Synthesis);
    let typed = match call_text(ask).await {
        Ok(typed) => typed,
        Err(error) => return instead(input, &error.no_output()?).await,
    };
    let mut corrections =
        vec!["written as plain text: fixed rules made TL;DR, assumptions and terms".to_owned()];
    let read = || {
        let mut text = typed.value;
        if typed.truncated {
            text = to_last_paragraph(&text);
        }
        let question = &input.request.question.message;
        sections::main_answer(&text, question, &input.discarded(), &mut corrections)
    };
    let main = input.run.compute_text(read).await?;
    if let Some(why) = no_answer(input, &main) {
        return instead(input, &CallFailure::unusable(why)).await;
    }
    let estimate = figures::of_text(input, &main, &mut corrections).await?;
    let report = scoring::report_from_text("master", &input.request.full_text(), &main);
    // Plain text does not say what it took from which draft, so `units_used` stays empty.
    let draft = Draft {
        estimate,
        quarantine_justifications: shown_quarantine(input),
        final_answer: answer_of(&report),
        cut: typed.truncated.then_some(Cut::EndMissing),
        ..input.draft(main, &input.reports())
    };
    let source = SynthesisSource::Model(typed.obtained);
    let question = question_rules::by_rule(input);
    Ok(Synthesized::new(Some(draft), question, source, corrections))
}

/// Returns the master's question, or one by rule if it is malformed and will not be asked. If it
/// will be asked, returns why it cannot be.
fn fallback_question(
    input: &SynthesisInput<'_>,
    draft: &Draft,
    written: &FallbackQuestionOut,
) -> Result<Clarification, &'static str> {
    if would_ask(input, draft) {
        return question_rules::question_of(input, written);
    }
    let ruled = || question_rules::by_rule(input);
    Ok(question_rules::written(input, written).unwrap_or_else(ruled))
}

async fn complete(
    input: &SynthesisInput<'_>,
    typed: Typed<FinalSynthesis>,
    cut: Option<Cut>,
) -> Result<Synthesized, Failure> {
    let lacks_rest = typed.salvaged.is_some();
    let noted = |note: &String| format!("the synthesis's JSON: {note}");
    let mut corrections: Vec<String> = typed.notes.iter().map(noted).collect();
    let synthesis = typed.value;
    let FinalSynthesis { meta, audit, .. } = &synthesis;
    let read = || {
        let justifications = justifications_of(input, audit);
        let redactor = input.redactor_for(&justifications);
        let (text, question) = (&synthesis.reply_markdown, &input.request.question.message);
        let main = sections::main_answer(text, question, &redactor, &mut corrections);
        (justifications, main)
    };
    let (justifications, main) = input.run.compute_text(read).await?;
    if let Some(why) = no_answer(input, &main) {
        return instead(input, &CallFailure::unusable(why)).await;
    }
    let given = EstimateOut {
        plan_unit: meta.plan_unit,
        plan_steps: meta.plan_steps.clone(),
        plan_assumptions: meta.plan_assumptions.clone(),
        plan_risks: meta.plan_risks.clone(),
        plan_confidence: meta.plan_confidence,
    };
    let estimate = figures::of_synthesis(input, given, &main, &mut corrections).await?;
    let complete = || {
        let mut draft = draft_of(input, &synthesis, main, justifications, &mut corrections);
        (draft.estimate, draft.cut) = (estimate, cut);
        if lacks_tests(input, &meta.acceptance_tests) {
            corrections.push("the task can be built, and no acceptance test was given".into());
        }
        if lacks_rest {
            complete_cut(input, &mut draft, &meta.final_answer);
        }
        if cut == Some(Cut::EndMissing) {
            draft.coverage_bonus = Some(0.0);
        }
        corrections.extend(without_other_answer(input, &mut draft));
        let answer = draft.final_answer.as_deref().unwrap_or_default();
        draft.answer_unsupported = is_unsupported(input, answer);
        let unjustified = answer_problem(input, answer, &audit.answer_justification);
        let why = "the reply's final answer bears the largest penalty";
        corrections.extend(unjustified.map(|detail| format!("{why}: {detail}")));
        let question = fallback_question(input, &draft, &audit.fallback_question);
        (draft, question)
    };
    let (draft, question) = input.run.compute_text(complete).await?;
    let question = match question {
        Ok(question) => question,
        Err(_) => question::asked(input, &mut corrections).await?.0,
    };
    let source = SynthesisSource::Model(typed.obtained);
    Ok(Synthesized::new(Some(draft), question, source, corrections))
}

/// Completes a draft of which the output limit cut the parts after the main answer. The main answer
/// may state a final answer that was not `given` apart.
fn complete_cut(input: &SynthesisInput<'_>, draft: &mut Draft, given: &str) {
    (draft.conflict_penalty, draft.coverage_bonus) = (None, None);
    if draft.assumptions.is_empty() {
        let reports = input.reports();
        let stated = assumptions::of_reports(&reports);
        let (ledger, left_out) = assumptions::ledger(&stated, &reports, input.request);
        (draft.assumptions, draft.assumptions_left_out) = (ledger, left_out);
    }
    if given.is_empty() {
        let request = input.request.full_text();
        let report = scoring::report_from_text("master", &request, &draft.main);
        draft.final_answer = Some(answer_of_cut(input, &draft.main, answer_of(&report)));
    }
}

/// Returns the final answer of a main answer without its `finalAnswer`. What it states as a whole may
/// be a sentence, so the leading answer counts if it is the only one that the text has.
fn answer_of_cut(input: &SynthesisInput<'_>, main: &str, stated: Option<String>) -> String {
    let judgement = &input.deliberation.judgement;
    let groups = &judgement.answer_groups;
    let is_known = |answer: &String| scoring::answer_group(groups, answer).is_some();
    if let Some(known) = stated.as_ref().filter(|answer| is_known(answer)) {
        return known.clone();
    }
    let mentioned = || groups.iter().filter(|group| scoring::mentions(main, group));
    let leading = confidence::leading(judgement).filter(|group| scoring::mentions(main, group));
    let leading = leading.filter(|_| stated.is_none() || mentioned().count() == 1);
    let answer = leading.map(|group| group.shown().to_owned());
    answer.or(stated).unwrap_or_default()
}

/// Returns the draft of a structured synthesis after its main answer is cut, without an estimate.
fn draft_of(
    input: &SynthesisInput<'_>,
    FinalSynthesis { meta, audit, .. }: &FinalSynthesis,
    main: String,
    justifications: Vec<Justification>,
    corrections: &mut Vec<String>,
) -> Draft {
    let mut cited = audit.units_used.clone();
    cited.extend(input.units_named(&main));
    let mut tldr = sections::plain_lines(&meta.tldr);
    tldr.retain(|line| closing_request(line).is_none());
    tldr.truncate(3);
    let disagreements = audit.disagreements.iter().map(|it| DisagreementNote {
        topic: one_line(&it.topic),
        summary: one_line(&it.summary),
    });
    let mut disagreements: Vec<_> = disagreements.collect();
    if disagreements.is_empty() {
        disagreements = input.detected();
    }
    let stated = meta.assumptions.iter().map(|it| (it.text.clone(), it.kind));
    let stated: Vec<(String, AssumptionKind)> = stated.collect();
    // A quarantined report that nothing justifies is not named as the source of one.
    let unjustified = input.without_reason(&justifications);
    let mut reports = input.reports();
    reports.retain(|(agent, _)| !unjustified.contains(agent));
    let (assumptions, left_out) = assumptions::ledger(&stated, &reports, input.request);
    Draft {
        tldr,
        acceptance_tests: meta.acceptance_tests.clone(),
        assumptions,
        assumptions_left_out: left_out,
        units_used: known_units(input, &cited, &justifications, corrections),
        disagreements,
        quarantine_justifications: justifications,
        conflict_penalty: Some(audit.conflict_penalty),
        coverage_bonus: Some(audit.coverage_bonus),
        final_answer: Some(one_line(&meta.final_answer)),
        answer_justification: non_empty(&audit.answer_justification),
        ..Draft::new(meta.task_type, main)
    }
}

/// Takes the final answer away from a draft whose text does not give it. Returns the correction.
fn without_other_answer(input: &SynthesisInput<'_>, draft: &mut Draft) -> Option<String> {
    let answer = draft.final_answer.as_mut()?;
    let request = &input.request.question.message;
    let groups = &input.deliberation.judgement.answer_groups;
    let tldr = draft.tldr.join("\n");
    (!scoring::may_give(request, &tldr, &draft.main, answer, groups)).then(|| {
        answer.clear();
        "the reply does not give its finalAnswer: it counts as none".to_owned()
    })
}

/// Returns an agent's answer in its own words, as a draft for a plain-text master.
fn gist(report: &AgentReport) -> String {
    let summary = report.answer_summary.join(" ");
    let steps = fallback_answer::numbered(&report.steps_or_deliverables);
    let text = if summary.is_empty() {
        report.reasoning.clone()
    } else {
        format!("{summary}{steps}")
    };
    text.chars().take(1200).collect()
}
