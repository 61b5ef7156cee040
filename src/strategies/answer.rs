//! Answers a chat's run by its strategy.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

use super::committee_first::CommitteeFirst;
use super::heuristic_first::HeuristicFirst;
use super::memory::{find, rank};
use super::strategy::{Candidate, DecisionContext, DecisionStrategy, How, Llm};
use crate::committee::{
    CallError, Deps, Failure, Length, SingleCall, call_once, convene, recalled, schema_of,
    single_call_price,
};
use crate::config::{Policy, Strategy};
use crate::domain::{Agent, AskedFirst, CallStep, DecisionPath, Mode, Reply, Role, fingerprint};
use crate::journal::{self, Accepted, Decided, Event, Matched, RunContext, Stop, Store, step};

/// The longest answer to whether two questions are the same, in output tokens.
const MAX_TOKENS: u32 = 100;

/// The call may cost one part of so many of the cap, so that the committee still has its room.
const MAX_SHARE: u64 = 20;

/// The most time for that call, and the part of the run's deadline in which it must be over, so that
/// the committee still has its time.
const DECISION_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIME_SHARE: u32 = 5;

/// The most candidates that a strategy is given, and so the most that a model is shown.
const MAX_CANDIDATES: usize = 5;

/// What a model says of two questions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Same {
    /// True if the answer to the known question fully and correctly answers the new one.
    same: bool,
}

/// Replies to a chat: by a learned answer, or by the committee. A run that was decided in an
/// earlier process keeps its decision.
///
/// # Errors
/// [`Failure`]: the run must stop, or there is no reply.
pub async fn answer(run: &RunContext, deps: &Deps, store: &dyn Store) -> Result<Reply, Failure> {
    if let Some(decided) = run.recorded(&step::decision()) {
        return match (&decided.answer, &decided.matched) {
            (Some(answer), Some(matched)) => {
                recalled(run, deps, answer, matched.id, decided.predicted_success).await
            }
            _ => convene(run, deps).await,
        };
    }
    let (strategy, arm) = chosen(run.accepted(), &deps.policy);
    // Without an A/B test there is nothing to decide.
    if strategy == Strategy::CommitteeFirst && arm.is_none() {
        return convene(run, deps).await;
    }
    let question = &run.accepted().question;
    let candidates = if strategy == Strategy::HeuristicFirst {
        let found = find(store, question).await.map_err(Stop::from)?;
        let ranked = || rank(found, &question.message);
        let mut ranked = run.compute(ranked).await?;
        ranked.truncate(MAX_CANDIDATES);
        unaltered(store, ranked).await.map_err(Stop::from)?
    } else {
        vec![]
    };
    let strategy = strategy_of(strategy, run.accepted().seed, &deps.policy);
    let context = DecisionContext {
        text: question.message.clone(),
        salience: question.salience,
        candidates,
        // A client waits.
        is_immediate: true,
        personality_biases: deps.policy.decisions.personality_biases.clone(),
    };
    let committee = Committee {
        run,
        deps,
        context: &context,
        strategy: &*strategy,
        arm,
    };
    let result = strategy.decide(&context, Some(&committee)).await?;
    match (result.path, result.reply.clone()) {
        (DecisionPath::Llm, Some(reply)) => Ok(*reply),
        (DecisionPath::Heuristic, _) => trusted(&committee, result.predicted_success).await,
        (DecisionPath::Llm | DecisionPath::Fallback | DecisionPath::Rejected, _) => {
            Err(Failure::internal("the strategy gave no reply"))
        }
    }
}

/// Returns the candidates whose runs, and what was learned from them, are as their journals say.
async fn unaltered(
    store: &dyn Store,
    candidates: Vec<Candidate>,
) -> Result<Vec<Candidate>, journal::Error> {
    let mut kept = vec![];
    for candidate in candidates {
        let run = candidate.shown.id;
        if journal::is_unaltered(store, run).await? {
            kept.push(candidate);
        } else {
            tracing::error!(%run, "its learned answer is left out: the run was altered");
        }
    }
    Ok(kept)
}

fn strategy_of(strategy: Strategy, seed: u64, policy: &Policy) -> Box<dyn DecisionStrategy> {
    let llm_confidence_ceiling = policy.llm_confidence_ceiling;
    let asking = |first| CommitteeFirst {
        first,
        llm_confidence_ceiling,
    };
    match strategy {
        Strategy::CommitteeFirst => Box::new(asking(AskedFirst::Panel)),
        Strategy::Escalate => Box::new(asking(AskedFirst::Solver)),
        Strategy::HeuristicFirst => Box::new(HeuristicFirst {
            confidence_threshold: policy.decisions.threshold,
            max_candidates: policy.decisions.max_candidates,
            llm_confidence_ceiling,
            seed,
        }),
    }
}

/// Replies with the best learned answer, which the strategy trusts, and records the decision.
async fn trusted(committee: &Committee<'_>, predicted: f64) -> Result<Reply, Failure> {
    let best = committee.context.candidates.first();
    let best = best.ok_or_else(|| Failure::internal("no learned answer was matched"))?;
    let why = "a learned answer fits and is trusted";
    let decided = Decided {
        predicted_success: predicted,
        answer: Some(Box::new(best.answer.clone())),
        ..committee.decision(DecisionPath::Heuristic, why)
    };
    committee.record(decided)?;
    let (run, deps) = (committee.run, committee.deps);
    recalled(run, deps, &best.answer, best.shown.id, predicted).await
}

/// Returns the strategy for a request, with the arm of an A/B test. A user always gets the same arm.
fn chosen(accepted: &Accepted, policy: &Policy) -> (Strategy, Option<&'static str>) {
    let question = &accepted.question;
    let user = format!("{}/{}", question.source.into_str(), question.user.id);
    let user = fingerprint(&[user.as_bytes()]);
    let (strategy, arm) = policy.decisions.strategy_for(&user);
    let rests_on_more = accepted.continues.is_some()
        || question.mode != Mode::Ask
        || !question.attachments.is_empty();
    // A request that wants a new answer gets no learned one.
    let wants_new = accepted.ignores_learned && strategy == Strategy::HeuristicFirst;
    if rests_on_more || wants_new {
        (Strategy::CommitteeFirst, arm)
    } else {
        (strategy, arm)
    }
}

/// The committee of a run, as strategies use it.
struct Committee<'a> {
    run: &'a RunContext,
    deps: &'a Deps,
    context: &'a DecisionContext,
    strategy: &'a dyn DecisionStrategy,
    arm: Option<&'static str>,
}

impl Committee<'_> {
    /// Returns the decision for a path, without what is shown and without a reply.
    fn decision(&self, path: DecisionPath, why: &str) -> Decided {
        let best = self.context.candidates.first();
        Decided {
            strategy: self.strategy.config(),
            arm: self.arm.map(str::to_owned),
            threshold: self.strategy.threshold(self.context),
            path,
            why: why.to_owned(),
            first: AskedFirst::Panel,
            matched: best.map(|best| Matched {
                id: best.shown.id,
                similarity: best.similarity,
                confidence: best.confidence,
            }),
            shown: vec![],
            predicted_success: 0.0,
            answer: None,
        }
    }

    fn record(&self, decided: Decided) -> Result<(), Failure> {
        self.run.record(Event::Decided(Box::new(decided)))?;
        Ok(())
    }
}

#[async_trait]
impl Llm for Committee<'_> {
    async fn respond(&self, how: &How) -> Result<Option<Reply>, Failure> {
        let decided = Decided {
            first: how.first,
            shown: how.shown.clone(),
            ..self.decision(DecisionPath::Llm, how.why)
        };
        self.record(decided)?;
        convene(self.run, self.deps).await.map(Some)
    }

    async fn answers(&self, candidate: &Candidate) -> Result<Option<bool>, Failure> {
        let question = format!(
            "Known question: {}\n\nIts answer: {}\n\nNew question: {}",
            candidate.condition, candidate.answer.main, self.context.text
        );
        let deadline = self.deps.policy.deadline(self.run.accepted().question.mode);
        let end = self.run.started() + deadline / MAX_TIME_SHARE;
        let until = end.min(Instant::now() + DECISION_TIMEOUT);
        let asked = || SingleCall {
            step: CallStep::SameQuestion,
            role: Role::Agent(Agent::Verifier),
            prompt: "same_question",
            appendix: String::new(),
            question: &question,
            schema: schema_of::<Same>(),
            max_tokens: MAX_TOKENS,
            until,
        };
        let price = || single_call_price(self.deps, &asked(), Length::Full);
        let price = self.run.compute(price).await??;
        if price > self.run.accepted().cap.share_down(1, MAX_SHARE) {
            return Ok(None);
        }
        match call_once::<Same>(self.run, self.deps, asked()).await {
            Ok(answer) => Ok((!answer.is_damaged).then_some(answer.value.same)),
            Err(CallError::NoOutput(_)) => Ok(None),
            Err(CallError::Stopped(failure)) => Err(failure),
        }
    }
}
