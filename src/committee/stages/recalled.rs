//! Replies with a learned answer. No model is called.

use secrecy::ExposeSecret;

use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::reply::invariants::{self, InvariantInput};
use crate::committee::reply::render;
use crate::committee::rule_texts::RuleTexts;
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
    let threshold = deps.policy.ask_user_threshold;
    let confidence = Confidence::new(predicted, Terms::default(), Terms::default(), threshold);
    let chain_fault = run.chain_fault();
    let render = || {
        let texts = RuleTexts::for_question(&run.accepted().question.message);
        let from = learned_from.to_string();
        let notes = [texts.note("learned", &[("run", &from)])];
        let ledger = run.ledger();
        let reply = Reply {
            outcome: Outcome::Heuristic,
            text: render::answer(answer, &confidence, &notes),
            meta: Meta {
                task_type: answer.task_type,
                c_final: confidence.c_final,
                budget: BudgetMeta {
                    cap: ledger.cap(),
                    spent: ledger.spent(),
                    exceeded: ledger.exceeded(),
                },
                used_agents: vec![],
                invalidation: Invalidation::default(),
            },
            audit: None,
        };
        let events = run.events();
        let secrets: Vec<&str> = deps
            .secrets
            .iter()
            .map(ExposeSecret::expose_secret)
            .collect();
        let violations = invariants::check(&InvariantInput {
            reply: &reply,
            mode: run.accepted().question.mode,
            run: &Transcript::of(&events),
            chain_fault,
            threshold,
            secrets: &secrets,
        });
        (reply, violations)
    };
    let (reply, violations) = run.compute("rendering a learned answer", render).await?;
    if violations.is_empty() {
        return Ok(reply);
    }
    let broken: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let broken = broken.join("; ");
    Err(Failure::internal(&format!(
        "the learned answer breaks a rule of the service: {broken}"
    )))
}
