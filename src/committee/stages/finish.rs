//! Renders the reply from the journal and checks the invariants. The master's synthesis is checked
//! before it is recorded, so that a defect costs the synthesis and not the whole run.

use secrecy::ExposeSecret;

use crate::committee::call::CallFailure;
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::reply::audit;
use crate::committee::reply::invariants::{self, InvariantInput, Violation};
use crate::committee::reply::render;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::deliberation::Deliberation;
use crate::committee::stages::notes::Noted;
use crate::committee::stages::synthesis_input::{SynthesisInput, clean};
use crate::committee::stages::{confidence, fallback_answer, question_rules};
use crate::domain::{
    Agent, BudgetMeta, Gate, Invalidation, Meta, Outcome, Reply, Status, TaskType,
};
use crate::journal::{ChainFault, Gated, RunContext, Synthesized, Transcript};

/// Renders the reply and checks the invariants.
///
/// # Errors
/// If the reply breaks an invariant, or the database fails.
pub async fn reply(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    deliberation: Option<&Deliberation>,
    gated: &Gated,
) -> Result<Reply, Failure> {
    let ending = FinalState {
        run,
        deps,
        request,
        deliberation,
    };
    let chain_fault = run.chain_fault();
    let render = || {
        let events = run.events();
        let transcript = Transcript::of(&events);
        let reply = ending.render(&transcript, gated)?;
        let violations = ending.violations(&reply, &transcript, chain_fault, gated);
        Ok::<_, Failure>((reply, violations))
    };
    let (reply, violations) = run.compute_text("rendering the reply", render).await??;
    if violations.is_empty() {
        return Ok(reply);
    }
    let broken = violations
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ");
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
    let broken = input
        .run
        .compute_text("checking the synthesis", || violations(input, &synthesized))
        .await?;
    if broken.is_empty() {
        return Ok(synthesized);
    }
    let rules = broken.join("; ");
    let why = CallFailure::unusable(&format!(
        "with it the reply would break a rule of the service: {rules}"
    ));
    let stand_in = if synthesized.draft.is_some() {
        fallback_answer::of(input, &why).await?
    } else {
        None
    };
    let mut instead = match stand_in {
        Some(mut stand_in) => {
            input
                .run
                .compute("cleaning the best report", || {
                    clean(input, &mut stand_in);
                })
                .await?;
            stand_in
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
    corrections.push(format!(
        "what the master wrote would have broken a rule of the service: {rules}"
    ));
    Ok(Synthesized {
        corrections,
        broken_rules: broken,
        ..instead
    })
}

/// Returns the rules that the reply would break with this synthesis, once each.
fn violations(input: &SynthesisInput<'_>, synthesized: &Synthesized) -> Vec<String> {
    let end = FinalState {
        run: input.run,
        deps: input.deps,
        request: input.request,
        deliberation: Some(input.deliberation),
    };
    let judgement = &input.deliberation.judgement;
    let confidence = confidence::settle(&input.deps.policy, judgement, synthesized.draft.as_ref());
    let gated = Gated {
        gate: confidence.gate(input.request.may_ask()),
        confidence,
        mode: input.request.question.mode,
        is_last: !input.request.may_ask(),
    };
    let events = input.run.events();
    let mut transcript = Transcript::of(&events);
    transcript.synthesized = Some(synthesized);
    transcript.gated = Some(&gated);
    // A reply that cannot be rendered fails the run at its end.
    let Ok(reply) = end.render(&transcript, &gated) else {
        return vec![];
    };
    let mut rules: Vec<String> = vec![];
    for violation in end.violations(&reply, &transcript, None, &gated) {
        if !rules.iter().any(|known| known == violation.rule) {
            rules.push(violation.rule.to_owned());
        }
    }
    rules
}

/// A run whose rounds are over.
struct FinalState<'a> {
    run: &'a RunContext,
    deps: &'a Deps,
    request: &'a RequestContext,
    /// `None` if no agent ran.
    deliberation: Option<&'a Deliberation>,
}

impl FinalState<'_> {
    /// Renders the reply of a run.
    fn render(&self, transcript: &Transcript<'_>, gated: &Gated) -> Result<Reply, Failure> {
        let Some(synthesized) = transcript.synthesized else {
            return Err(Failure::internal("there is nothing to reply with"));
        };
        let audit = if self.request.question.mode.has_audit() {
            audit::view(self.run.id(), transcript)
        } else {
            None
        };
        let (outcome, text) = match (gated.gate, &synthesized.draft) {
            (Gate::Ship, Some(draft)) => {
                let noted = Noted {
                    request: self.request,
                    deliberation: self.deliberation,
                    transcript,
                    synthesized,
                    gated,
                };
                let notes = noted.notes();
                let mut text = render::answer(draft, &gated.confidence, &notes);
                if let Some(audit) = &audit {
                    text = format!(
                        "{text}\n{}",
                        crate::committee::reply::audit_text::markdown(audit)
                    );
                }
                (Outcome::Answered, text)
            }
            (Gate::Ask, _) => (
                Outcome::Clarification,
                render::clarification(&synthesized.question),
            ),
            (Gate::Ship, None) => {
                return Err(Failure::internal(
                    "the gate ships an answer that does not exist",
                ));
            }
        };
        let ledger = self.run.ledger();
        let planned = transcript.planned.map(|planned| planned.plan.task_type);
        let written = synthesized.draft.as_ref().map(|draft| draft.task_type);
        let panel = |d: &Deliberation| d.panel.iter().map(|(agent, _)| *agent).collect();
        let meta = Meta {
            task_type: written.or(planned).unwrap_or(TaskType::Mixed),
            c_final: gated.confidence.c_final,
            budget: BudgetMeta {
                cap: ledger.cap(),
                spent: ledger.spent(),
                exceeded: ledger.exceeded(),
            },
            used_agents: self.deliberation.map(panel).unwrap_or_default(),
            invalidation: self.deliberation.map(invalidation).unwrap_or_default(),
        };
        Ok(Reply {
            outcome,
            text,
            meta,
            audit,
        })
    }

    fn violations(
        &self,
        reply: &Reply,
        transcript: &Transcript<'_>,
        chain_fault: Option<ChainFault>,
        gated: &Gated,
    ) -> Vec<Violation> {
        let secrets: Vec<&str> = self
            .deps
            .secrets
            .iter()
            .map(ExposeSecret::expose_secret)
            .collect();
        invariants::check(&InvariantInput {
            reply,
            mode: self.request.question.mode,
            run: transcript,
            chain_fault,
            threshold: gated.confidence.threshold,
            secrets: &secrets,
        })
    }
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
