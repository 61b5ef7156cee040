//! Asks the solver first, and the other agents only if its report is not clearly VALID.
//!
//! The report is clearly VALID if two conditions hold. It is VALID by its own text, and after another
//! model's cross-check c_final reaches the threshold without the bonus. The master may lower the
//! bonus. The scoring engine judges both. Otherwise the other agents are asked as usual, beside the report that exists.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::committee::deps::StageEnd;
use crate::committee::failure::Failure;
use crate::committee::money::trim;
use crate::committee::stages::confidence::is_in_reach_without_bonus;
use crate::committee::stages::cross_check;
use crate::committee::stages::judge::judgement;
use crate::committee::stages::reuse::ReuseDecision;
use crate::committee::stages::round_context::RoundContext;
use crate::domain::{Agent, AskedFirst, Status};
use crate::journal::step;
use crate::journal::{AgentOutcome, CrossChecked, SolverJudged};

/// True if the solver is to be asked first, and there are others that could be asked.
fn is_wanted(context: &RoundContext<'_>, reuse: &ReuseDecision) -> bool {
    let is_judged = context.run.recorded(&step::solver()).is_some();
    let is_first = context.request.asked_first == AskedFirst::Solver;
    let has_others = context.trimmed.agents.len() > 1;
    is_judged || (is_first && has_others && reuse.asked.contains(&Agent::Solver))
}

/// Asks the solver first, if the run is to do so. Returns its report if that is enough.
///
/// # Errors
/// Like every call.
pub(super) async fn solver_alone(
    context: &RoundContext<'_>,
    reuse: &ReuseDecision,
) -> Result<Option<BTreeMap<Agent, AgentOutcome>>, Failure> {
    let run = context.run;
    if !is_wanted(context, reuse) {
        return Ok(None);
    }
    let why = "the solver is asked first".to_owned();
    context.start(1, vec![Agent::Solver], why)?;
    let until = context.deps.stage_end(run, StageEnd::Solver);
    let outcome = context.first_turn(Agent::Solver, until).await?;
    let Some(outcome) = outcome else {
        return Ok(None);
    };
    let latest = BTreeMap::from([(Agent::Solver, outcome)]);
    let judged = run
        .step(step::solver(), async {
            let (why, check) = judge(context, &latest).await?;
            let is_enough = why.is_none();
            let others = context.trimmed.agents.iter().copied();
            let others = others.filter(|agent| !is_enough && *agent != Agent::Solver);
            Ok::<_, Failure>(Arc::new(SolverJudged {
                others: others.collect(),
                why: why.unwrap_or_else(|| "the solver's report is clearly VALID".to_owned()),
                check,
            }))
        })
        .await?;
    Ok(judged.others.is_empty().then_some(latest))
}

/// Returns why the solver's report is not enough, if so, and its cross-check.
async fn judge(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
) -> Result<(Option<String>, CrossChecked), Failure> {
    let none = CrossChecked::default();
    let refused = |why: &str| Some(format!("the solver's report is not enough: {why}"));
    let solver = latest.get(&Agent::Solver).filter(|it| it.is_answered());
    let Some(tokens) = solver.map(AgentOutcome::tokens) else {
        return Ok((refused("there is none"), none));
    };
    let run = context.run;
    let score = || judgement(context, None, None);
    let alone = run.compute(score).await?;
    if alone.status_of(Agent::Solver) != Some(Status::Valid) {
        return Ok((refused("it is not VALID"), none));
    }
    if let Err(why) = cross_check::size(context) {
        return Ok((refused(&format!("not cross-checked, {why}")), none));
    }
    let is_checked = cross_check::has_solver_check(run);
    if !is_checked && !trim::affords_solver_check(context.stage(), &context.trimmed, tokens) {
        let why = "not cross-checked, it would exceed the cap beside the other agents";
        return Ok((refused(why), none));
    }
    let until = context.deps.stage_end(run, StageEnd::SolverCheck);
    let check = cross_check::of_solver(context, latest, until).await?;
    if check.passes.is_empty() {
        let why = format!("not cross-checked, {}", check.notes.join("; "));
        return Ok((refused(&why), check));
    }
    let score = || judgement(context, Some(&check), None);
    let checked = run.compute(score).await?;
    let why = if checked.status_of(Agent::Solver) != Some(Status::Valid) {
        refused("it is not VALID after its cross-check")
    } else if !is_in_reach_without_bonus(&context.deps.policy, &checked) {
        refused("c_final stays below the threshold after its cross-check")
    } else {
        None
    };
    Ok((why, check))
}
