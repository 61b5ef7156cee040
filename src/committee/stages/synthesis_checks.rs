//! Checks a synthesis before it is accepted.

use conclave_lenient_json::Problem;

use crate::committee::output_shapes::{FinalSynthesis, SynthesisAudit};
use crate::committee::reply::closing::closing_request;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::committee::stages::{confidence, question, question_rules};
use crate::domain::{Agent, Gate, Status, TaskType, is_blank};
use crate::journal::{Draft, Justification};
use crate::scoring;
use crate::text::{excerpt, one_line};

/// Returns the problem with the final answer that the master states, if there is one.
pub(super) fn answer_problem(
    input: &SynthesisInput<'_>,
    answer: &str,
    justification: &str,
) -> Option<String> {
    let judgement = &input.deliberation.judgement;
    let Some(leading) = confidence::leading(judgement) else {
        let detail = "no report supports it: give an answer that one supports, or leave it empty";
        return is_unsupported(input, answer).then(|| detail.to_owned());
    };
    if answer.trim().is_empty() {
        Some("the reports give a final answer: state the one that replyMarkdown gives".to_owned())
    } else if justification.trim().is_empty() && confidence::is_against_leading(judgement, answer) {
        let leading = excerpt(leading.shown(), 60);
        Some(format!(
            "it is not the answer of most reports, \"{leading}\": give that one, or say in \
             answerJustification what calculation, source or wording shows it to be wrong"
        ))
    } else {
        None
    }
}

/// True if the request is open and no VALID report supports the final answer of a reply.
pub(super) fn is_unsupported(input: &SynthesisInput<'_>, answer: &str) -> bool {
    let reports = input.usable().into_iter();
    let valid = reports.filter(|it| it.score.status == Status::Valid);
    let valid: Vec<_> = valid.map(|it| it.report).collect();
    confidence::leading(&input.deliberation.judgement).is_none()
        && !scoring::is_supported(&input.request.full_text(), answer, &valid)
}

/// True if a reply has no acceptance tests though its task can be built: the plan has an implementer
/// for a technical task.
pub(super) fn lacks_tests(input: &SynthesisInput<'_>, tests: &[String]) -> bool {
    let is_buildable = input.plan.task_type == TaskType::TechnicalExecution
        && input.plan.agents_to_run.contains(&Agent::Implementer);
    is_buildable && tests.iter().all(|test| test.trim().is_empty())
}

/// Returns the master's justifications for using quarantined outputs. Those for outputs that are
/// not quarantined are dropped.
pub(super) fn justifications_of(
    input: &SynthesisInput<'_>,
    audit: &SynthesisAudit,
) -> Vec<Justification> {
    let quarantined = input.deliberation.with_status(Status::Quarantine);
    let read = audit.quarantine_justifications.iter().filter_map(|j| {
        let agent = j.agent.trim().to_lowercase().parse::<Agent>().ok()?;
        (!j.why.trim().is_empty()).then(|| Justification {
            agent,
            why: one_line(&j.why),
        })
    });
    read.filter(|j| quarantined.contains(&j.agent)).collect()
}

/// Returns the problems of a synthesis beyond its schema.
pub(super) fn problems(input: &SynthesisInput<'_>, synthesis: &FinalSynthesis) -> Vec<Problem> {
    let FinalSynthesis { meta, audit, .. } = synthesis;
    let problem = |pointer: &str, detail: &str| Problem {
        pointer: pointer.into(),
        detail: detail.into(),
    };
    let mut problems = vec![];
    if is_blank(&synthesis.reply_markdown) {
        problems.push(problem("/replyMarkdown", "the main answer is empty"));
    }
    if closing_request(&synthesis.reply_markdown).is_some() {
        let detail = "it ends in a question or an offer to the user, who cannot answer: end with the \
                      answer; put a text that was asked for, such as a post or a mail, into a block quote";
        problems.push(problem("/replyMarkdown", detail));
    }
    if meta.tldr.iter().any(|line| closing_request(line).is_some()) {
        let detail = "it asks or offers the user something, who cannot answer: state the answer";
        problems.push(problem("/meta/tldr", detail));
    }
    // Only these parts decide about c_final.
    let estimates = Draft {
        conflict_penalty: Some(audit.conflict_penalty),
        coverage_bonus: Some(audit.coverage_bonus),
        final_answer: Some(one_line(&meta.final_answer)),
        answer_unsupported: is_unsupported(input, &meta.final_answer),
        answer_justification: non_empty(&audit.answer_justification),
        ..Draft::new(input.plan.task_type, String::new())
    };
    if would_ask(input, &estimates)
        && let Err(why) = question_rules::question_of(input, &audit.fallback_question)
    {
        problems.push(question::unusable("/audit/fallbackQuestion", why));
    }
    let (request, main) = (&input.request.question.message, &synthesis.reply_markdown);
    let groups = &input.deliberation.judgement.answer_groups;
    let tldr = meta.tldr.join("\n");
    if !scoring::may_give(request, &tldr, main, &meta.final_answer, groups) {
        let detail = "the TL;DR or replyMarkdown gives another answer, not this one: state one answer in all three";
        problems.push(problem("/meta/finalAnswer", detail));
    }
    if lacks_tests(input, &meta.acceptance_tests) {
        let detail = "an implementer worked on this, so it can be built: give at least one check that a reader can observe";
        problems.push(problem("/meta/acceptanceTests", detail));
    }
    let answer = answer_problem(input, &meta.final_answer, &audit.answer_justification);
    problems.extend(answer.map(|detail| problem("/meta/finalAnswer", &detail)));
    for agent in input.without_reason(&justifications_of(input, audit)) {
        let prefix = format!("{agent}:");
        let mut listed = audit.units_used.iter();
        let own = input.units_of(agent);
        if listed.any(|id| id.trim().starts_with(&prefix))
            || shown_texts(synthesis).any(|text| !own.references(text).is_empty())
        {
            let detail = format!(
                "the output of {agent}, which is QUARANTINE, is used without a justification"
            );
            problems.push(problem("/audit/quarantineJustifications", &detail));
        }
    }
    problems
}

/// Returns a text on one line, if it is not empty.
pub(super) fn non_empty(text: &str) -> Option<String> {
    Some(one_line(text)).filter(|text| !text.is_empty())
}

/// True if the gate would ask with this draft.
pub(super) fn would_ask(input: &SynthesisInput<'_>, draft: &Draft) -> bool {
    let judgement = &input.deliberation.judgement;
    let confidence = confidence::settle(&input.deps.policy, judgement, Some(draft));
    confidence.gate(input.request.may_ask()) == Gate::Ask
}

/// Returns the texts of a synthesis that readers see before the appendix.
fn shown_texts(synthesis: &FinalSynthesis) -> impl Iterator<Item = &String> {
    let meta = &synthesis.meta;
    let lists = [
        &meta.tldr,
        &meta.acceptance_tests,
        &meta.plan_assumptions,
        &meta.plan_risks,
    ];
    std::iter::once(&synthesis.reply_markdown)
        .chain(lists.into_iter().flatten())
        .chain(meta.assumptions.iter().map(|assumption| &assumption.text))
        .chain(meta.plan_steps.iter().map(|step| &step.step))
}

/// Returns the cited units that exist and may be used, each once.
pub(super) fn known_units(
    input: &SynthesisInput<'_>,
    cited: &[String],
    justified: &[Justification],
    corrections: &mut Vec<String>,
) -> Vec<String> {
    let usable = input.usable();
    let mut known: Vec<String> = vec![];
    for id in cited.iter().map(|id| id.trim()) {
        let (agent, unit) = id.split_once(':').unwrap_or(("", id));
        let found = usable.iter().find(|it| it.agent.into_str() == agent);
        let found = found.filter(|it| it.report.units.iter().any(|own| own.id == unit));
        let is_justified = |agent| justified.iter().any(|it| it.agent == agent);
        match found {
            None => corrections.push("a cited unit was dropped: no usable output has it".into()),
            Some(it) if it.score.status == Status::Quarantine && !is_justified(it.agent) => {
                let why = "is quarantined and unjustified: it does not count as a source";
                corrections.push(format!("unit {id} {why}"));
            }
            Some(_) if known.iter().any(|other| other == id) => {}
            Some(_) => known.push(id.to_owned()),
        }
    }
    known
}

/// Justifies the quarantined drafts for a plain-text master. Plain text does not say what it used,
/// so every quarantined draft that was shown counts as used. The reason given is the rule by which
/// it was shown.
pub(super) fn shown_quarantine(input: &SynthesisInput<'_>) -> Vec<Justification> {
    let why = "a plain-text master is shown every draft that is not discarded, ranked by Cred";
    let quarantined = input.deliberation.with_status(Status::Quarantine);
    let justify = |agent| Justification {
        agent,
        why: why.to_owned(),
    };
    quarantined.into_iter().map(justify).collect()
}
