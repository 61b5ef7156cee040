//! The tests that seeds/decision-strategy.md lists, with scripted models.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use uuid::Uuid;

use super::committee_first::CommitteeFirst;
use super::escalate::Escalate;
use super::heuristic_first::HeuristicFirst;
use super::strategy::{Candidate, DecisionContext, DecisionResult, DecisionStrategy, How, Llm};
use crate::committee::Failure;
use crate::domain::{
    AskedFirst, BudgetMeta, DecisionPath, Invalidation, Meta, Outcome, Reply, RunId, ShownAnswer,
    Source, TaskType, Usd,
};
use crate::journal::Draft;

/// Models with fixed answers, which note what they were shown.
#[derive(Default)]
struct Scripted {
    /// `None`: they give no answer.
    c_final: Option<f64>,
    fits: Option<bool>,
    shown: Mutex<Vec<ShownAnswer>>,
    first: Mutex<AskedFirst>,
    asked: Mutex<u32>,
}

#[async_trait]
impl Llm for Scripted {
    async fn respond(&self, how: &How) -> Result<Option<Reply>, Failure> {
        *self.first.lock().unwrap() = how.first;
        *self.asked.lock().unwrap() += 1;
        *self.shown.lock().unwrap() = how.shown.clone();
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
        *self.asked.lock().unwrap() += 1;
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
        run: id(99),
        text: "How do we back up our shop?".to_owned(),
        source: Source::Http,
        salience: BTreeMap::new(),
        candidates,
        is_immediate: true,
        goals: vec![],
        personality_biases: BTreeMap::new(),
    }
}

fn strategy() -> HeuristicFirst {
    HeuristicFirst {
        confidence_threshold: 0.7,
        max_candidates: 3,
        llm_confidence_ceiling: 0.8,
        seed: 1,
    }
}

async fn decided(context: &DecisionContext, llm: Option<&Scripted>) -> DecisionResult {
    let llm = llm.map(|llm| llm as &dyn Llm);
    strategy().decide(context, llm).await.unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[tokio::test]
async fn heuristic_path_when_best_candidate_confidence_reaches_the_threshold() {
    let llm = Scripted::default();
    let result = decided(&context(vec![candidate(1, 0.7, true)]), Some(&llm)).await;
    assert_eq!(result.path, DecisionPath::Heuristic);
    assert_eq!(result.response_text, "Answer 1");
    assert_eq!(
        (result.matched, result.response_id),
        (Some(id(1)), Some(id(99)))
    );
    assert!(near(result.predicted_success, 0.7));
    assert_eq!(*llm.asked.lock().unwrap(), 0, "no model is asked");
}

#[tokio::test]
async fn llm_path_when_confidence_is_below_the_threshold_with_candidates_in_the_prompt() {
    let llm = Scripted {
        c_final: Some(0.75),
        ..Scripted::default()
    };
    let known = vec![
        candidate(1, 0.69, true),
        candidate(2, 0.9, false),
        candidate(3, 0.9, false),
        candidate(4, 0.9, false),
    ];
    let result = decided(&context(known), Some(&llm)).await;
    assert_eq!(result.path, DecisionPath::Llm);
    assert_eq!(result.matched, Some(id(1)));
    let mut shown: Vec<RunId> = llm.shown.lock().unwrap().iter().map(|s| s.id).collect();
    shown.sort();
    assert_eq!(shown, [id(1), id(2), id(3)], "at most three");
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
        assert_eq!(result.metadata["reason"], reason);
        assert_eq!(
            (result.response_id, result.response_text.as_str()),
            (None, "")
        );
    }
}

#[tokio::test]
async fn fallback_path_when_the_llm_returns_none() {
    let llm = Scripted::default();
    let result = decided(&context(vec![]), Some(&llm)).await;
    assert_eq!(result.path, DecisionPath::Fallback);
    assert_eq!(result.metadata["reason"], "llm_no_response");
}

#[tokio::test]
async fn confidence_ceiling_is_applied() {
    let llm = Scripted {
        c_final: Some(0.98),
        ..Scripted::default()
    };
    let result = decided(&context(vec![]), Some(&llm)).await;
    assert!(near(result.predicted_success, 0.8) && near(result.prediction_confidence, 0.8));
    let trusted = decided(&context(vec![candidate(1, 0.95, true)]), Some(&llm)).await;
    assert!(near(trusted.predicted_success, 0.8));
}

#[tokio::test]
async fn a_long_request_is_shown_no_candidates() {
    let llm = Scripted {
        c_final: Some(0.75),
        ..Scripted::default()
    };
    let mut long = context(vec![candidate(1, 0.1, false)]);
    long.text = "Long. ".repeat(1000);
    assert_eq!(decided(&long, Some(&llm)).await.path, DecisionPath::Llm);
    assert!(llm.shown.lock().unwrap().is_empty());
}

#[tokio::test]
async fn empty_candidates_list() {
    let llm = Scripted {
        c_final: Some(0.75),
        ..Scripted::default()
    };
    let result = decided(&context(vec![]), Some(&llm)).await;
    assert_eq!((result.path, result.matched), (DecisionPath::Llm, None));
    assert!(llm.shown.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_similar_question_fires_only_if_a_model_confirms_it() {
    for (fits, path) in [
        (Some(true), DecisionPath::Heuristic),
        (Some(false), DecisionPath::Llm),
        (None, DecisionPath::Llm),
    ] {
        let llm = Scripted {
            c_final: Some(0.75),
            fits,
            ..Scripted::default()
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
        c_final: Some(0.75),
        fits: Some(true),
        ..Scripted::default()
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
    ] {
        let mut context = context(vec![]);
        context
            .personality_biases
            .insert("confidence_threshold".to_owned(), bias);
        context.salience.insert("urgency".to_owned(), urgency);
        let threshold = strategy().threshold(&context);
        assert!(near(threshold, wanted), "{bias} {urgency}: {threshold}");
    }
}

#[tokio::test]
async fn candidates_are_shown_in_an_order_of_the_seed() {
    let known: Vec<Candidate> = (1..=5).map(|n| candidate(n, 0.1, false)).collect();
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let llm = Scripted {
            c_final: Some(0.75),
            ..Scripted::default()
        };
        let strategy = HeuristicFirst {
            max_candidates: 9,
            seed,
            ..strategy()
        };
        strategy
            .decide(&context(known.clone()), Some(&llm))
            .await
            .unwrap();
        let shown: Vec<RunId> = llm.shown.lock().unwrap().iter().map(|s| s.id).collect();
        assert_eq!(shown.len(), 5, "never more than five");
        orders.insert(shown);
    }
    assert!(orders.len() > 20, "{}", orders.len());
}

#[tokio::test]
async fn committee_first_always_asks_the_committee() {
    let llm = Scripted {
        c_final: Some(0.75),
        ..Scripted::default()
    };
    let strategy = CommitteeFirst {
        llm_confidence_ceiling: 0.8,
    };
    let known = context(vec![candidate(1, 0.95, true)]);
    let result = strategy.decide(&known, Some(&llm)).await.unwrap();
    assert_eq!(result.path, DecisionPath::Llm);
    assert!(llm.shown.lock().unwrap().is_empty());
    assert_eq!(strategy.config()["strategy"], "committee_first");
}

#[tokio::test]
async fn escalate_asks_the_solver_first_unless_the_request_is_grave() {
    let strategy = Escalate {
        llm_confidence_ceiling: 0.8,
    };
    for (gravity, first) in [
        (0.0, AskedFirst::Solver),
        (0.4, AskedFirst::Solver),
        (0.5, AskedFirst::Panel),
        (1.0, AskedFirst::Panel),
    ] {
        let llm = Scripted {
            c_final: Some(0.9),
            ..Scripted::default()
        };
        let mut context = context(vec![candidate(1, 0.9, true)]);
        context.salience.insert("gravity".to_owned(), gravity);
        let result = strategy.decide(&context, Some(&llm)).await.unwrap();
        assert_eq!(result.path, DecisionPath::Llm);
        assert_eq!(*llm.first.lock().unwrap(), first, "{gravity}");
        assert!(llm.shown.lock().unwrap().is_empty());
        assert!((result.predicted_success - 0.8).abs() < 1e-9);
    }
    let rejected = strategy.decide(&context(vec![]), None).await.unwrap();
    assert_eq!(rejected.path, DecisionPath::Rejected);
}

#[tokio::test]
async fn a_grave_request_never_gets_a_learned_answer() {
    let llm = Scripted {
        c_final: Some(0.9),
        ..Scripted::default()
    };
    let mut context = context(vec![candidate(1, 0.95, true)]);
    context.salience.insert("gravity".to_owned(), 1.0);
    assert_eq!(decided(&context, Some(&llm)).await.path, DecisionPath::Llm);
}
