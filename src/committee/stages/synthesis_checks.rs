//! Checks a synthesis before it is accepted.

use conclave_lenient_json::Problem;

use crate::committee::output_shapes::{FinalSynthesis, SynthesisAudit};
use crate::committee::reply::closing::closing_request;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::committee::stages::{confidence, question, question_rules};
use crate::domain::{Agent, Gate, Status};
use crate::journal::{Draft, Justification};
use crate::text::{excerpt, one_line};

/// Returns the problem with the final answer that the master states, if there is one.
pub(super) fn answer_problem(
    input: &SynthesisInput<'_>,
    answer: &str,
    justification: &str,
) -> Option<String> {
    let judgement = &input.deliberation.judgement;
    let leading = confidence::leading(judgement)?;
    if answer.trim().is_empty() {
        Some("the reports give a final answer: state the one that replyMarkdown gives".to_owned())
    } else if justification.trim().is_empty() && confidence::is_against_leading(judgement, answer) {
        let leading = excerpt(&leading.answer, 60);
        Some(format!(
            "it is not the answer of most reports, \"{leading}\": give that one, or say in answerJustification what \
             calculation, source or wording shows it to be wrong"
        ))
    } else {
        None
    }
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
    let mut problems = vec![];
    if synthesis.reply_markdown.trim().is_empty() {
        problems.push(Problem {
            pointer: "/replyMarkdown".into(),
            detail: "the main answer is empty".into(),
        });
    }
    if closing_request(&synthesis.reply_markdown).is_some() {
        problems.push(Problem {
            pointer: "/replyMarkdown".into(),
            detail: "it ends in a question or an offer to the user, who cannot answer: end with the answer; \
                     put a text that was asked for, such as a post or a mail, into a block quote"
                .into(),
        });
    }
    if would_ask(input, &estimates(input, synthesis))
        && question_rules::question_of(input, &synthesis.audit.fallback_question).is_none()
    {
        problems.push(Problem {
            pointer: "/audit/fallbackQuestion".into(),
            detail: question::UNUSABLE.into(),
        });
    }
    let answer = answer_problem(
        input,
        &synthesis.meta.final_answer,
        &synthesis.audit.answer_justification,
    );
    problems.extend(answer.map(|detail| Problem {
        pointer: "/meta/finalAnswer".into(),
        detail,
    }));
    for agent in input.without_reason(&justifications_of(input, &synthesis.audit)) {
        let prefix = format!("{agent}:");
        let mut listed = synthesis.audit.units_used.iter();
        let own = input.units_of(agent);
        if listed.any(|id| id.trim().starts_with(&prefix))
            || shown_texts(synthesis).any(|text| !own.references(text).is_empty())
        {
            problems.push(Problem {
                pointer: "/audit/quarantineJustifications".into(),
                detail: format!(
                    "the output of {agent}, which is QUARANTINE, is used without a justification"
                ),
            });
        }
    }
    problems
}

/// Returns a draft with only those parts of a synthesis that c_final depends on.
fn estimates(input: &SynthesisInput<'_>, synthesis: &FinalSynthesis) -> Draft {
    let FinalSynthesis { meta, audit, .. } = synthesis;
    let why = one_line(&audit.answer_justification);
    Draft {
        conflict_penalty: Some(audit.conflict_penalty),
        coverage_bonus: Some(audit.coverage_bonus),
        final_answer: Some(one_line(&meta.final_answer)),
        answer_justification: Some(why).filter(|why| !why.is_empty()),
        ..Draft::new(input.plan.task_type, String::new())
    }
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
    let mut known = vec![];
    for id in cited.iter().map(|id| id.trim()) {
        let (agent, unit) = id.split_once(':').unwrap_or(("", id));
        let found = input
            .usable()
            .into_iter()
            .find(|(a, ..)| a.into_str() == agent);
        let exists = found.is_some_and(|(_, report, ..)| report.units.iter().any(|u| u.id == unit));
        let quarantined = found.is_some_and(|(.., score, _)| score.status == Status::Quarantine);
        let allowed = !quarantined || justified.iter().any(|j| j.agent.into_str() == agent);
        if exists && allowed {
            if !known.iter().any(|k| k == id) {
                known.push(id.to_owned());
            }
        } else if exists {
            corrections.push(format!(
                "unit {id} is quarantined and unjustified: it does not count as a source"
            ));
        } else {
            corrections.push("a cited unit was dropped: no usable output has it".into());
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
    quarantined
        .into_iter()
        .map(|agent| Justification {
            agent,
            why: why.to_owned(),
        })
        .collect()
}
