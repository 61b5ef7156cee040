//! Renders the reply from the journal and checks the invariants. The master's synthesis is checked
//! before it is recorded, so that a defect costs the synthesis and not the whole run.

use std::collections::BTreeSet;

use crate::committee::call::CallFailure;
use crate::committee::failure::Failure;
use crate::committee::reply::invariants::{self, InvariantInput, Violation};
use crate::committee::reply::redaction::Redactor;
use crate::committee::reply::{audit, audit_text, render};
use crate::committee::request_context::Stage;
use crate::committee::stages::deliberation::Deliberation;
use crate::committee::stages::notes::Noted;
use crate::committee::stages::synthesis_input::{SynthesisInput, clean};
use crate::committee::stages::{confidence, fallback_answer, question_rules};
use crate::domain::{
    Agent, BudgetMeta, Gate, Invalidation, Meta, Outcome, Reply, Status, TaskType,
};
use crate::journal::{Gated, Synthesized, Transcript};

/// Renders the reply and checks the invariants.
///
/// # Errors
/// If the reply breaks an invariant, or the database fails.
pub async fn reply(
    stage: Stage<'_>,
    deliberation: Option<&Deliberation>,
    gated: &Gated,
) -> Result<Reply, Failure> {
    let run = stage.run;
    let chain_fault = run.chain_fault();
    let render = || {
        let events = run.events();
        let transcript = Transcript::of(&events);
        let reply = rendered(stage, deliberation, &transcript, gated)?;
        checked(&InvariantInput {
            reply: &reply,
            mode: gated.mode,
            run: &transcript,
            chain_fault,
            threshold: gated.confidence.threshold,
            secrets: &stage.deps.exposed_secrets(),
        })?;
        Ok(reply)
    };
    run.compute_text(render).await?
}

/// Checks the invariants of a reply.
///
/// # Errors
/// Names those that it breaks.
pub(super) fn checked(input: &InvariantInput<'_>) -> Result<(), Failure> {
    let broken = invariants::check(input);
    if broken.is_empty() {
        return Ok(());
    }
    let broken: Vec<String> = broken.iter().map(Violation::to_string).collect();
    let broken = broken.join("; ");
    tracing::error!(
        broken,
        "the reply breaks a rule of the service, and there is no fallback for it"
    );
    Err(Failure::internal(&format!(
        "the reply breaks a rule of the service: {broken}"
    )))
}

/// Returns the synthesis if its reply breaks no rule. Otherwise returns the fallback: the best VALID
/// report, with a question made by rules.
///
/// # Errors
/// If the database fails.
pub async fn enforce_invariants(
    input: &SynthesisInput<'_>,
    synthesized: Synthesized,
) -> Result<Synthesized, Failure> {
    let run = input.run;
    let check = || broken_rules(input, &synthesized);
    let broken_rules = run.compute_text(check).await?;
    if broken_rules.is_empty() {
        return Ok(synthesized);
    }
    let rules = broken_rules.join("; ");
    let mut instead = None;
    if synthesized.draft.is_some() {
        let why = format!("with it the reply would break a rule of the service: {rules}");
        instead = fallback_answer::of(input, &CallFailure::unusable(&why)).await?;
    }
    let mut instead = match instead {
        Some(mut report) => {
            let clean = || clean(input, &mut report);
            run.compute(clean).await?;
            report
        }
        None if !input.request.may_ask() => {
            fallback_answer::undecided(input, synthesized.obtained.clone())
        }
        None => Synthesized {
            question: question_rules::by_rule(input),
            corrections: vec![],
            ..synthesized.clone()
        },
    };
    let mut corrections = synthesized.corrections;
    corrections.append(&mut instead.corrections);
    let why = "what the master wrote would have broken a rule of the service";
    corrections.push(format!("{why}: {rules}"));
    Ok(Synthesized {
        corrections,
        broken_rules,
        ..instead
    })
}

/// Returns the rules that the reply would break with this synthesis, once each.
fn broken_rules(input: &SynthesisInput<'_>, synthesized: &Synthesized) -> Vec<String> {
    let policy = &input.deps.policy;
    let judgement = &input.deliberation.judgement;
    let confidence = confidence::settle(policy, judgement, synthesized.draft.as_ref());
    let may_ask = input.request.may_ask();
    let gated = Gated {
        gate: confidence.gate(may_ask),
        confidence,
        mode: input.request.question.mode,
        is_last: !may_ask,
    };
    let events = input.run.events();
    let mut transcript = Transcript::of(&events);
    transcript.synthesized = Some(synthesized);
    transcript.gated = Some(&gated);
    let deliberation = Some(input.deliberation);
    // A reply that cannot be rendered fails the run at its end.
    let Ok(reply) = rendered(input.stage(), deliberation, &transcript, &gated) else {
        return vec![];
    };
    let violations = invariants::check_text(&InvariantInput {
        reply: &reply,
        mode: gated.mode,
        run: &transcript,
        chain_fault: None,
        threshold: gated.confidence.threshold,
        secrets: &input.deps.exposed_secrets(),
    });
    let mut seen = BTreeSet::new();
    let rules = violations.into_iter().map(|violation| violation.rule);
    let rules = rules.filter(|rule| seen.insert(*rule));
    rules.map(str::to_owned).collect()
}

/// Renders the reply of a run. `deliberation` is `None` if no agent ran.
fn rendered(
    stage: Stage<'_>,
    deliberation: Option<&Deliberation>,
    transcript: &Transcript<'_>,
    gated: &Gated,
) -> Result<Reply, Failure> {
    let Some(synthesized) = transcript.synthesized else {
        return Err(Failure::internal("there is nothing to reply with"));
    };
    let audit = if gated.mode.has_audit() {
        audit::view(stage.run.id(), transcript)
    } else {
        None
    };
    let excluded = Redactor::of_excluded(transcript);
    let (outcome, text) = match (gated.gate, &synthesized.draft) {
        (Gate::Ship, Some(draft)) => {
            let noted = Noted {
                request: stage.request,
                deliberation,
                transcript,
                synthesized,
                gated,
            };
            let text = render::answer(draft, &gated.confidence, &noted.notes());
            // Notes quote users and names of files, which may look like references.
            let mut text = excluded.redact(&text).into_owned();
            if let Some(audit) = &audit {
                text = format!("{text}\n{}", audit_text::markdown(audit));
            }
            (Outcome::Answered, text)
        }
        (Gate::Ask, _) => {
            // Its options quote final answers and evidence, which may contain references.
            let question = render::clarification(&synthesized.question);
            (
                Outcome::Clarification,
                excluded.redact(&question).into_owned(),
            )
        }
        (Gate::Ship, None) => {
            let why = "the gate ships an answer that does not exist";
            return Err(Failure::internal(why));
        }
    };
    let planned = transcript.planned.map(|planned| planned.plan.task_type);
    let written = synthesized.draft.as_ref().map(|draft| draft.task_type);
    let panel = |it: &Deliberation| it.panel.iter().map(|(agent, _)| *agent).collect();
    let meta = Meta {
        task_type: written.or(planned).unwrap_or(TaskType::Mixed),
        c_final: gated.confidence.c_final,
        budget: BudgetMeta::from(&stage.run.ledger()),
        used_agents: deliberation.map(panel).unwrap_or_default(),
        invalidation: deliberation.map(invalidation).unwrap_or_default(),
    };
    Ok(Reply {
        outcome,
        text,
        meta,
        audit,
    })
}

fn invalidation(deliberation: &Deliberation) -> Invalidation {
    let mut discarded: Vec<Agent> = deliberation.failed().map(|(agent, ..)| agent).collect();
    discarded.extend(deliberation.with_status(Status::Discard));
    discarded.sort();
    Invalidation {
        discarded,
        quarantined: deliberation.with_status(Status::Quarantine),
        valid: deliberation.with_status(Status::Valid),
    }
}
