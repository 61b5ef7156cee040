//! The tests that seeds/decision-strategy.md lists, with scripted models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use uuid::Uuid;

use super::committee_first::CommitteeFirst;
use super::heuristic_first::HeuristicFirst;
use super::strategy::{Candidate, DecisionContext, DecisionResult, DecisionStrategy, How, Llm};
use crate::committee::Failure;
use crate::domain::{
    AskedFirst, BudgetMeta, DecisionPath, Invalidation, Meta, Outcome, Reply, RunId, Salience,
    ShownAnswer, TaskType, Usd,
};
use crate::journal::Draft;

/// Models with fixed answers, which note how they were asked.
#[derive(Default)]
struct Scripted {
    /// `None`: they give no answer.
    c_final: Option<f64>,
    fits: Option<bool>,
    asked: Mutex<Vec<How>>,
    compared: Mutex<u32>,
}

impl Scripted {
    fn with(c_final: f64) -> Self {
        Self {
            c_final: Some(c_final),
            ..Self::default()
        }
    }

    fn shown(&self) -> Vec<RunId> {
        let asked = self.asked.lock().unwrap();
        let shown = asked.iter().flat_map(|how| &how.shown);
        shown.map(|shown| shown.id).collect()
    }

    fn first(&self) -> Option<AskedFirst> {
        self.asked.lock().unwrap().first().map(|how| how.first)
    }
}

#[async_trait]
impl Llm for Scripted {
    async fn respond(&self, how: &How) -> Result<Option<Reply>, Failure> {
        self.asked.lock().unwrap().push(how.clone());
        Ok(self.c_final.map(|c_final| Reply {
            outcome: Outcome::Answered,
            text: "From the committee".to_owned(),
            meta: Meta {
                task_type: TaskType::Mixed,
                c_final,
                budget: BudgetMeta {
                    cap: Usd::ZERO,
                    spent: Usd::ZERO,
                    exceeded: false,
                },
                used_agents: vec![],
                invalidation: Invalidation::default(),
            },
            audit: None,
        }))
    }

    async fn answers(&self, _candidate: &Candidate) -> Result<Option<bool>, Failure> {
        *self.compared.lock().unwrap() += 1;
        Ok(self.fits)
    }
}

fn id(number: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(number))
}

fn candidate(number: u128, confidence: f64, is_same: bool) -> Candidate {
    let action = format!("Answer {number}");
    let condition = "How do we back up the shop?".to_owned();
    Candidate {
        condition: condition.clone(),
        shown: ShownAnswer {
            id: id(number),
            condition,
            action: action.clone(),
        },
        answer: Draft::new(TaskType::Mixed, action),
        similarity: 0.9,
        is_same,
        confidence,
    }
}

fn context(candidates: Vec<Candidate>) -> DecisionContext {
    DecisionContext {
        text: "How do we back up our shop?".to_owned(),
        salience: Salience::default(),
        candidates,
        is_immediate: true,
        personality_biases: BTreeMap::new(),
    }
}

/// A request of this gravity, with a trusted learned answer.
fn grave(gravity: f64) -> DecisionContext {
    let mut context = context(vec![candidate(1, 0.95, true)]);
    context.salience.gravity = gravity;
    context
}

fn strategy(seed: u64, max_candidates: usize) -> HeuristicFirst {
    HeuristicFirst {
        confidence_threshold: 0.7,
        max_candidates,
        llm_confidence_ceiling: 0.8,
        seed,
    }
}

async fn decided(context: &DecisionContext, llm: Option<&Scripted>) -> DecisionResult {
    let llm = llm.map(|llm| llm as &dyn Llm);
    strategy(1, 3).decide(context, llm).await.unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[tokio::test]
async fn heuristic_path_when_best_candidate_confidence_reaches_the_threshold() {
    let llm = Scripted::default();
    let result = decided(&context(vec![candidate(1, 0.7, true)]), Some(&llm)).await;
    assert_eq!(result.path, DecisionPath::Heuristic);
    assert_eq!(result.matched, Some(id(1)));
    assert!(near(result.predicted_success, 0.7));
    let asked = (llm.first(), *llm.compared.lock().unwrap());
    assert_eq!(asked, (None, 0), "no model is asked");
}

#[tokio::test]
async fn llm_path_when_confidence_is_below_the_threshold_with_candidates_in_the_prompt() {
    let llm = Scripted::with(0.75);
    let mut known = vec![candidate(1, 0.69, true)];
    known.extend((2..=4).map(|number| candidate(number, 0.9, false)));
    let result = decided(&context(known), Some(&llm)).await;
    assert_eq!(
        (result.path, result.matched),
        (DecisionPath::Llm, Some(id(1)))
    );
    let shown: BTreeSet<RunId> = llm.shown().into_iter().collect();
    assert_eq!(shown, [id(1), id(2), id(3)].into(), "at most three");
}

#[tokio::test]
async fn rejected_path_when_no_llm_and_not_immediate() {
    let mut waiting = context(vec![]);
    waiting.is_immediate = false;
    let llm = Scripted::default();
    for (context, llm, reason) in [
        (&context(vec![]), None, "llm_unavailable"),
        (&waiting, Some(&llm), "not_immediate"),
    ] {
        let result = decided(context, llm).await;
        assert_eq!(result.path, DecisionPath::Rejected);
        assert_eq!(result.reason, Some(reason));
        assert_eq!((result.matched, result.reply), (None, None));
    }
}

#[tokio::test]
async fn fallback_path_when_the_llm_returns_none() {
    let result = decided(&context(vec![]), Some(&Scripted::default())).await;
    assert_eq!(result.path, DecisionPath::Fallback);
    assert_eq!(result.reason, Some("llm_no_response"));
}

#[tokio::test]
async fn confidence_ceiling_is_applied() {
    let llm = Scripted::with(0.98);
    for known in [vec![], vec![candidate(1, 0.95, true)]] {
        let result = decided(&context(known), Some(&llm)).await;
        assert!(near(result.predicted_success, 0.8));
    }
}

#[tokio::test]
async fn no_candidates_are_shown_if_there_are_none_or_the_request_is_long() {
    let mut long = context(vec![candidate(1, 0.4, false)]);
    long.text = "Long. ".repeat(1000);
    for (context, matched) in [(context(vec![]), None), (long, Some(id(1)))] {
        let llm = Scripted::with(0.75);
        let result = decided(&context, Some(&llm)).await;
        assert_eq!((result.path, result.matched), (DecisionPath::Llm, matched));
        assert_eq!(llm.shown(), []);
    }
}

#[tokio::test]
async fn an_answer_that_readers_found_wrong_is_not_shown() {
    let llm = Scripted::with(0.75);
    let known = vec![candidate(1, 0.2, false), candidate(2, 0.3, false)];
    decided(&context(known), Some(&llm)).await;
    let shown = llm.shown();
    assert_eq!(shown, [id(2)]);
}

#[tokio::test]
async fn a_similar_question_fires_only_if_a_model_confirms_it() {
    for (fits, path) in [
        (Some(true), DecisionPath::Heuristic),
        (Some(false), DecisionPath::Llm),
        (None, DecisionPath::Llm),
    ] {
        let llm = Scripted {
            fits,
            ..Scripted::with(0.75)
        };
        let result = decided(&context(vec![candidate(1, 0.9, false)]), Some(&llm)).await;
        assert_eq!(result.path, path, "{fits:?}");
    }
    let alone = decided(&context(vec![candidate(1, 0.9, false)]), None).await;
    assert_eq!(alone.path, DecisionPath::Rejected);
}

#[tokio::test]
async fn another_figure_or_version_never_fires() {
    let llm = Scripted {
        fits: Some(true),
        ..Scripted::with(0.75)
    };
    let mut known = candidate(1, 0.9, false);
    known.condition = "How do I install v3.11?".to_owned();
    let mut asked = context(vec![known]);
    asked.text = "How do I install v3.12?".to_owned();
    assert_eq!(decided(&asked, Some(&llm)).await.path, DecisionPath::Llm);
}

#[test]
fn the_threshold_is_shifted_and_clamped() {
    for (bias, urgency, wanted) in [
        (0.0, 0.0, 0.7),
        (-0.05, 0.0, 0.65),
        (0.0, 0.5, 0.6),
        (0.0, 9.0, 0.5),
        (-0.9, 0.0, 0.3),
        (0.9, 0.0, 0.95),
        (0.1, 0.5, 0.7),
    ] {
        let mut context = context(vec![]);
        context.personality_biases = [("confidence_threshold".to_owned(), bias)].into();
        context.salience.urgency = urgency;
        let threshold = strategy(1, 3).threshold(&context).unwrap();
        assert!(near(threshold, wanted), "{bias} {urgency}: {threshold}");
    }
}

#[tokio::test]
async fn candidates_are_shown_in_an_order_of_the_seed() {
    let known: Vec<Candidate> = (1..=6).map(|n| candidate(n, 0.4, false)).collect();
    let context = context(known);
    let mut orders = BTreeSet::new();
    for seed in 0..40 {
        let llm = Scripted::with(0.75);
        strategy(seed, 5)
            .decide(&context, Some(&llm))
            .await
            .unwrap();
        assert_eq!(llm.shown().len(), 5);
        orders.insert(llm.shown());
    }
    assert!(orders.len() > 20, "{}", orders.len());
}

#[tokio::test]
async fn the_committee_or_the_solver_is_always_asked_and_the_panel_if_the_request_is_grave() {
    use AskedFirst::{Panel, Solver};
    for (name, own, gravity, first) in [
        ("committee_first", Panel, 0.0, Panel),
        ("committee_first", Panel, 1.0, Panel),
        ("escalate", Solver, 0.4, Solver),
        ("escalate", Solver, 0.5, Panel),
    ] {
        let strategy = CommitteeFirst {
            first: own,
            llm_confidence_ceiling: 0.8,
        };
        assert_eq!(strategy.config()["strategy"], name);
        let llm = Scripted::with(0.9);
        let result = strategy.decide(&grave(gravity), Some(&llm)).await.unwrap();
        assert_eq!(result.path, DecisionPath::Llm);
        assert_eq!(
            (llm.first(), llm.shown()),
            (Some(first), vec![]),
            "{name} {gravity}"
        );
        assert!(near(result.predicted_success, 0.8));
        let rejected = strategy.decide(&context(vec![]), None).await.unwrap();
        assert_eq!(rejected.path, DecisionPath::Rejected);
    }
}

#[tokio::test]
async fn a_grave_request_never_gets_a_learned_answer() {
    let result = decided(&grave(1.0), Some(&Scripted::with(0.9))).await;
    assert_eq!(result.path, DecisionPath::Llm);
}
