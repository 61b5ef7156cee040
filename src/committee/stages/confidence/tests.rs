use super::*;
use crate::domain::{Gate, TaskType};

fn policy() -> Policy {
    let file = include_str!("../../../../llm.config.json");
    let env = crate::config::Env::of([("ANTHROPIC_API_KEY".to_owned(), "sk-test".to_owned())]);
    crate::config::from_text(file, &env).unwrap().policy
}

/// Returns a judgement with a base score of 0.8, and groups of answers with the penalty of each.
fn judgement(groups: &[(&str, f64)], cross_checked: bool) -> Judgement {
    let group = |(answer, penalty): &(&str, f64)| AnswerGroup {
        answer: (*answer).to_owned(),
        agents: vec!["solver".into()],
        conflict_penalty: Some(*penalty),
    };
    Judgement {
        cross_checked,
        answer_groups: groups.iter().map(group).collect(),
        base_score: 0.8,
        conflict_penalty: groups.first().map_or(0.0, |(_, penalty)| *penalty),
        coverage_bonus: 0.05,
        ..Judgement::default()
    }
}

fn draft(final_answer: Option<&str>, justification: Option<&str>) -> Draft {
    Draft {
        conflict_penalty: Some(0.0),
        coverage_bonus: Some(0.1),
        final_answer: final_answer.map(str::to_owned),
        answer_justification: justification.map(str::to_owned),
        ..Draft::new(TaskType::Mixed, String::new())
    }
}

fn penalty(groups: &[(&str, f64)], draft: &Draft) -> f64 {
    settle(&policy(), &judgement(groups, true), Some(draft))
        .conflict_penalty
        .applied
}

#[test]
fn c_final_belongs_to_the_answer_that_the_reply_gives() {
    let split = [("10", 0.05), ("5", 0.4)];
    assert_eq!(penalty(&split, &draft(Some("10"), None)), 0.05);
    assert_eq!(
        penalty(&split, &draft(Some("5"), Some("1.05 + 0.05 = 1.10"))),
        0.4
    );
    assert_eq!(
        penalty(&split, &draft(Some("5"), None)),
        0.6,
        "no reason is given against the leading answer"
    );
    assert_eq!(
        penalty(&split, &draft(Some("7"), Some("because"))),
        0.6,
        "no agent gave it"
    );
    assert_eq!(
        penalty(&split, &draft(Some(""), None)),
        0.6,
        "the reply says that it has no answer"
    );
    assert_eq!(
        penalty(&split, &draft(None, None)),
        0.4,
        "plain text does not say which one"
    );
    assert_eq!(
        penalty(&[], &draft(Some("5"), None)),
        0.0,
        "an open request has none to compare"
    );
}

#[test]
fn the_masters_estimates_only_lower() {
    let groups = [("10", 0.05)];
    let cautious = Draft {
        conflict_penalty: Some(0.3),
        coverage_bonus: Some(0.01),
        ..draft(Some("10"), None)
    };
    let confidence = settle(&policy(), &judgement(&groups, true), Some(&cautious));
    assert_eq!(
        (
            confidence.conflict_penalty.applied,
            confidence.coverage_bonus.applied
        ),
        (0.3, 0.01)
    );
    let bold = settle(
        &policy(),
        &judgement(&groups, true),
        Some(&draft(Some("10"), None)),
    );
    assert_eq!(
        (bold.conflict_penalty.applied, bold.coverage_bonus.applied),
        (0.05, 0.05)
    );
}

#[test]
fn an_open_request_without_a_cross_check_is_bounded_and_an_answer_is_not() {
    let c_final = |groups: &[(&str, f64)], checked| {
        settle(
            &policy(),
            &judgement(groups, checked),
            Some(&draft(Some("10"), None)),
        )
        .c_final
    };
    assert!((c_final(&[], true) - 0.85).abs() < 1e-9);
    assert_eq!(c_final(&[], false), 0.75);
    assert!((c_final(&[("10", 0.0)], false) - 0.85).abs() < 1e-9);
}

#[test]
fn the_synthesis_is_bought_if_any_answer_may_reach_the_threshold() {
    assert!(!out_of_reach(
        &policy(),
        &judgement(&[("5", 0.4), ("10", 0.05)], true)
    ));
    assert!(out_of_reach(
        &policy(),
        &judgement(&[("5", 0.4), ("10", 0.3)], true)
    ));
    let asks = settle(
        &policy(),
        &judgement(&[("10", 0.3)], true),
        Some(&draft(Some("10"), None)),
    );
    assert_eq!(asks.gate(true), Gate::Ask);
}

#[test]
fn a_bound_of_c_final_below_the_threshold_is_out_of_reach_too() {
    let unseen = Judgement {
        rests_on_unseen: true,
        ..judgement(&[("10", 0.0)], true)
    };
    assert!(out_of_reach(&policy(), &unseen));
    let strict = Policy {
        ask_user_threshold: 0.8,
        ..policy()
    };
    assert!(out_of_reach(&strict, &judgement(&[], false)));
    assert!(!out_of_reach(&strict, &judgement(&[], true)));
}
