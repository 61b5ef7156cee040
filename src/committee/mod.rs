//! The committee: turns a question into a reply with a measured confidence.
//!
//! [`convene`] is a function over the run's journal. It calls its stages in the order of the list in
//! `stages`. It may be called again with the same journal at any time: a settled call is recalled
//! from the journal, not made again.
//!
//! `stages` uses `call`, `money` and `reply`. These three use none of its files. What several of
//! the four need is in files beside them: `request_context`, `deps`, `failure`, `output_shapes` and
//! `schemas`. `replayed` and `track_record` read the journals of past runs. `routines` is for
//! measurements and the fuzzer.

mod request_context;
mod stages;
mod call;
mod money;
mod reply;

mod deps;
mod failure;
mod output_shapes;
mod rule_texts;
mod schemas;

mod replayed;
mod track_record;
pub mod routines;

use std::sync::Arc;

use crate::domain::{Confidence, Gate, Reply};
use crate::journal::step;
use crate::journal::{Event, Gated, Hinted, RunContext};
use request_context::Stage;
use stages::synthesis_input::SynthesisInput;
use stages::{ahead, confidence, finish, hints, question, rounds, synthesize};

pub use call::prompts::Prompts;
pub use call::single_call::{
    SingleAnswer, SingleCall, call_once, call_with_retries, single_call_price,
};
pub use deps::Deps;
pub use failure::{CallError, Failure};
pub use money::budget::text_bound;
pub use money::check_cost::checkers;
pub use money::price::{Length, Quote, context_needed, quote};
pub use output_shapes::{CrossCheckReply, Decisions, FinalSynthesis, OrchestrationPlan};
pub use replayed::{ReplayResult, Replayed, replay};
pub use reply::audit::view as audit_view;
pub use reply::audit_text::markdown as audit_markdown;
pub use reply::invariants;
pub use reply::rounding::rounded as rounded_audit;
pub use schemas::schema_of;
pub use stages::recalled::recalled;
pub use track_record::{MemberKey, TrackRecord};

/// Answers the run's question.
///
/// # Errors
/// [`Failure`]. A failed agent is no error as long as one core agent has answered.
pub async fn convene(run: &RunContext, deps: &Deps) -> Result<Reply, Failure> {
    // The stages are boxed to keep the future of a run small.
    let request = request_context::open(run, deps).await?;
    let stage = Stage::new(run, deps, &request);
    let hints = hint(stage)?;
    let planned = Box::pin(ahead::plan(stage, &hints)).await?;
    let request = request.read_as(&planned, run.accepted());
    let stage = Stage::new(run, deps, &request);
    if let Some((synthesized, decision)) = question::without_agents(&request, &planned.plan) {
        run.record(Event::Synthesized(Arc::new(synthesized)))?;
        let none = Confidence::none(deps.policy.scoring.ask_threshold);
        let gated = gate(stage, none, decision)?;
        return finish::reply(stage, None, &gated).await;
    }
    let deliberation = Box::pin(rounds::rounds(stage, &planned.plan)).await?;
    request.answered.get_or_init(|| deliberation.summaries());
    let input = SynthesisInput {
        run,
        deps,
        request: &request,
        plan: &planned.plan,
        deliberation: &deliberation,
    };
    let judgement = &deliberation.judgement;
    let is_hopeless = confidence::out_of_reach(&deps.policy, judgement);
    let synthesized = if is_hopeless && request.may_ask() {
        Box::pin(question::ask_only(&input)).await?
    } else {
        Box::pin(synthesize::write(&input)).await?
    };
    let confidence = confidence::settle(&deps.policy, judgement, synthesized.draft.as_ref());
    let decision = confidence.gate(request.may_ask());
    let gated = gate(stage, confidence, decision)?;
    finish::reply(stage, Some(&deliberation), &gated).await
}

fn hint(stage: Stage<'_>) -> Result<Hinted, Failure> {
    let hints = Hinted {
        unseen: stage.request.unseen.clone(),
        images: stage.request.images.len(),
        ..hints::hints_of(&stage.request.question)
    };
    Ok(stage.run.record_output(&step::hints(), hints)?)
}

fn gate(stage: Stage<'_>, confidence: Confidence, gate: Gate) -> Result<Gated, Failure> {
    let gated = Gated {
        gate,
        confidence,
        mode: stage.request.question.mode,
        is_last: !stage.request.may_ask(),
    };
    Ok(stage.run.record_output(&step::gate(), gated)?)
}
