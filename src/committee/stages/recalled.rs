//! Replies with a learned answer. No model is called.

use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::reply::invariants::InvariantInput;
use crate::committee::reply::render;
use crate::committee::rule_texts::RuleTexts;
use crate::committee::stages::finish::checked;
use crate::domain::{BudgetMeta, Confidence, Invalidation, Meta, Outcome, Reply, RunId, Terms};
use crate::journal::{Draft, RunContext, Transcript};

/// Renders a learned answer in the form of every reply. `predicted` is the probability that it
/// serves its reader, 0 to 1; the reply shows it as its confidence, and the run that the answer
/// comes from.
///
/// # Errors
/// If the reply breaks an invariant, or the run must stop.
pub async fn recalled(
    run: &RunContext,
    deps: &Deps,
    answer: &Draft,
    learned_from: RunId,
    predicted: f64,
) -> Result<Reply, Failure> {
    let threshold = deps.policy.scoring.ask_threshold;
    let confidence = Confidence::new(predicted, Terms::default(), Terms::default(), threshold);
    let chain_fault = run.chain_fault();
    let render = || {
        let texts =
            RuleTexts::in_language_of([run.accepted().question.message.as_str(), &answer.main]);
        let from = learned_from.to_string();
        let notes = [texts.note("learned", &[("run", &from)])];
        let reply = Reply {
            outcome: Outcome::Heuristic,
            text: render::answer(answer, &confidence, &notes),
            meta: Meta {
                task_type: answer.task_type,
                c_final: confidence.c_final,
                budget: BudgetMeta::from(&run.ledger()),
                used_agents: vec![],
                invalidation: Invalidation::default(),
            },
            audit: None,
        };
        let events = run.events();
        checked(&InvariantInput {
            reply: &reply,
            mode: run.accepted().question.mode,
            run: &Transcript::of(&events),
            chain_fault,
            threshold,
            secrets: &deps.exposed_secrets(),
        })?;
        Ok(reply)
    };
    run.compute(render).await?
}
