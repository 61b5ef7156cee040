use super::*;
use crate::domain::{Agent, Gate, TaskType};

fn policy() -> Policy {
    let file = include_str!("../../../../llm.config.json");
    let env = crate::config::Env::of([("ANTHROPIC_API_KEY".to_owned(), "sk-test".to_owned())]);
    crate::config::from_text(file, &env).unwrap().policy
}

/// Returns a judgement with a base score of 0.8, and groups of answers with the penalty of each.
fn judgement(groups: &[(&str, f64)], cross_checked: bool) -> Judgement {
    let group = |(answer, penalty): &(&str, f64)| AnswerGroup {
        answer: (*answer).to_owned(),
        wordings: vec![],
        agents: vec![Agent::Solver.into()],
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

fn settled(groups: &[(&str, f64)], cross_checked: bool, draft: &Draft) -> Confidence {
    settle(&policy(), &judgement(groups, cross_checked), Some(draft))
}

#[test]
fn c_final_belongs_to_the_answer_that_the_reply_gives() {
    let split = [("10", 0.05), ("5", 0.4)];
    for (groups, answer, justification, penalty) in [
        (&split[..], Some("10"), None, 0.05),
        (&split, Some("5"), Some("1.05 + 0.05 = 1.10"), 0.4),
        // No reason is given against the leading answer.
        (&split, Some("5"), None, 0.6),
        // Of two that lead equally, neither is the answer of most.
        (&[("10", 0.05), ("5", 0.05)], Some("5"), None, 0.05),
        // No agent gave it.
        (&split, Some("7"), Some("because"), 0.6),
        // The reply says that it has no answer.
        (&split, Some(""), None, 0.6),
        // Plain text does not say which one.
        (&split, None, None, 0.4),
        // An open request has none to compare.
        (&[], Some("5"), None, 0.0),
    ] {
        let settled = settled(groups, true, &draft(answer, justification));
        assert_eq!(
            settled.conflict_penalty.applied, penalty,
            "{answer:?} {justification:?}"
        );
    }
}

#[test]
fn the_masters_estimates_only_lower() {
    let cautious = Draft {
        conflict_penalty: Some(0.3),
        coverage_bonus: Some(0.01),
        ..draft(Some("10"), None)
    };
    for (draft, expected) in [
        (cautious, (0.3, 0.01)),
        (draft(Some("10"), None), (0.05, 0.05)),
    ] {
        let settled = settled(&[("10", 0.05)], true, &draft);
        let applied = (
            settled.conflict_penalty.applied,
            settled.coverage_bonus.applied,
        );
        assert_eq!(applied, expected);
    }
}

#[test]
fn what_limits_c_final_is_named() {
    let unseen = Judgement {
        rests_on_unseen: true,
        ..judgement(&[("10", 0.0)], true)
    };
    for (judgement, most, limit) in [
        (unseen, MAX_UNSEEN, Some(ConfidenceLimit::UnseenImage)),
        (judgement(&[], true), 0.85, None),
        (
            judgement(&[], false),
            scoring::MAX_UNCHECKED,
            Some(ConfidenceLimit::NotCrossChecked),
        ),
        // The agents' final answers check each other.
        (judgement(&[("10", 0.0)], false), 0.85, None),
    ] {
        let Confidence {
            c_final,
            limited_by,
            ..
        } = settle(&policy(), &judgement, None);
        assert!((c_final - most).abs() < 1e-9, "{limit:?} {c_final}");
        assert_eq!(limited_by, limit);
    }
}

#[test]
fn the_synthesis_is_bought_if_any_answer_may_reach_the_threshold() {
    let mut strict = policy();
    strict.scoring.ask_threshold = 0.8;
    let unseen = Judgement {
        rests_on_unseen: true,
        ..judgement(&[("10", 0.0)], true)
    };
    for (policy, judgement, expected) in [
        (
            policy(),
            judgement(&[("5", 0.4), ("10", 0.05)], true),
            false,
        ),
        (policy(), judgement(&[("5", 0.4), ("10", 0.3)], true), true),
        // A bound of c_final below the threshold is out of reach too.
        (policy(), unseen, true),
        (strict.clone(), judgement(&[], false), true),
        (strict, judgement(&[], true), false),
    ] {
        assert_eq!(out_of_reach(&policy, &judgement), expected, "{judgement:?}");
    }
    let asks = settled(&[("10", 0.3)], true, &draft(Some("10"), None));
    assert_eq!((asks.gate(true), asks.limited_by), (Gate::Ask, None));
}

#[test]
fn the_solver_alone_has_to_reach_the_threshold_without_the_bonus() {
    for (penalty, expected) in [(0.05, true), (0.12, false)] {
        let judgement = judgement(&[("10", penalty)], true);
        assert!(!out_of_reach(&policy(), &judgement));
        let is_reached = is_in_reach_without_bonus(&policy(), &judgement);
        assert_eq!(is_reached, expected, "{penalty}");
    }
}
