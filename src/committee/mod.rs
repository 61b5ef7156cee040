//! The committee: turns a question into a reply with a measured confidence.
//!
//! [`convene`] is a function over the run's journal. It calls its stages in the order of the list in
//! `stages`. It may be called again with the same journal at any time: a settled call is recalled
//! from the journal, not made again.
//!
//! `stages` uses `call`, `money` and `reply`. These three use none of its files. What several of
//! the four need is in files beside them: `request_context`, `deps`, `failure`, `output_shapes`,
//! `call_names` and `schemas`. `replayed` and `track_record` read the journals of past runs. `routines` is for
//! measurements and the fuzzer.

mod request_context;
mod stages;
mod call;
mod money;
mod reply;

mod deps;
mod failure;
mod output_shapes;
mod call_names;
mod rule_texts;
mod schemas;

mod replayed;
mod track_record;
pub mod routines;

use crate::domain::{Choice, Confidence, Gate, Plan, Reply};
use crate::journal::step::{GateStep, HintsStep};
use crate::journal::{Event, Gated, RunContext};
use request_context::RequestContext;
use stages::synthesis_input::SynthesisInput;
use stages::{ahead, confidence, finish, hints, question, rounds, synthesize};

pub use call::prompts::{Error as PromptError, Prompts};
pub use call::single_call::{Consultation, consult, consultation_price};
pub use call_names::stage_under_way;
pub use deps::Deps;
pub use failure::{CallError, Failure};
pub use money::budget::text_bound;
pub use money::price::{Length, Quote, context_needed, quote};
pub use output_shapes::{CrossCheckReply, Decisions, FinalSynthesis, OrchestrationPlan};
pub use replayed::{Replayed, Verdict, replay};
pub use reply::audit::view as audit_view;
pub use reply::audit_text::markdown as audit_markdown;
pub use reply::invariants;
pub use reply::rounding::rounded as rounded_audit;
pub use stages::recalled::recalled;
pub use track_record::TrackRecord;

/// Answers the run's question.
///
/// # Errors
/// [`Failure`]. A failed agent is no error as long as one core agent has answered.
pub async fn convene(run: &RunContext, deps: &Deps) -> Result<Reply, Failure> {
    let request = request_context::open(run, deps).await?;
    let hints = hint(run, &request).await?;
    let planned = ahead::plan(run, deps, &request, &hints).await?;
    let request = request.read_as(&planned, run.accepted());
    if let Some(question) = &planned.plan.clarification_question {
        run.record(Event::Synthesized(Box::new(question::of_plan(question))))
            .await?;
        let gated = gate(
            run,
            &request,
            Confidence::none(deps.policy.ask_user_threshold),
            Gate::Ask,
        )
        .await?;
        return finish::reply(run, deps, &request, None, &gated).await;
    }
    if request.choice() == Some(Choice::Stop) {
        return stop(run, deps, &request, &planned.plan).await;
    }
    let deliberation = rounds::rounds(run, deps, &request, &planned.plan).await?;
    let input = SynthesisInput {
        run,
        deps,
        request: &request,
        plan: &planned.plan,
        deliberation: &deliberation,
    };
    let is_hopeless = confidence::out_of_reach(&deps.policy, &deliberation.judgement);
    let synthesized = if is_hopeless && request.may_ask() {
        question::ask_only(&input).await?
    } else {
        synthesize::write(&input).await?
    };
    let confidence = confidence::settle(
        &deps.policy,
        &deliberation.judgement,
        synthesized.draft.as_ref(),
    );
    let decision = confidence.gate(request.may_ask());
    let gated = gate(run, &request, confidence, decision).await?;
    finish::reply(run, deps, &request, Some(&deliberation), &gated).await
}

/// Ends the run without a call, because the user chose to stop.
async fn stop(
    run: &RunContext,
    deps: &Deps,
    request: &RequestContext,
    plan: &Plan,
) -> Result<Reply, Failure> {
    let stopped = question::stopped(request, plan);
    run.record(Event::Synthesized(Box::new(stopped))).await?;
    let none = Confidence::none(deps.policy.ask_user_threshold);
    let gated = gate(run, request, none, Gate::Ship).await?;
    finish::reply(run, deps, request, None, &gated).await
}

async fn hint(
    run: &RunContext,
    request: &RequestContext,
) -> Result<crate::journal::Hinted, Failure> {
    let hints = crate::journal::Hinted {
        unseen: request.unseen.clone(),
        images: request.images.len(),
        ..hints::hints_of(&request.question)
    };
    Ok(run.record_output(HintsStep, hints).await?)
}

async fn gate(
    run: &RunContext,
    request: &RequestContext,
    confidence: Confidence,
    gate: Gate,
) -> Result<Gated, Failure> {
    let gated = Gated {
        gate,
        confidence,
        mode: request.question.mode,
        is_last: !request.may_ask(),
    };
    Ok(run.record_output(GateStep, gated).await?)
}
