//! What says nothing supports nothing, and a change of mind settles only what it proves.

use super::*;
use proptest::prelude::*;

const SPEED: &str = "A train travels 180 km in 2.5 hours. What is its average speed in km/h?";

#[test]
fn an_output_without_the_answer_weighs_as_a_lost_one() {
    let two = answers(&["72 km/h", "72 km/h"]);
    let with = |third: AgentReport| of(SPEED, &[two.clone(), vec![third]].concat());
    let lost = c_final(&of(SPEED, &two));
    for text in ["Penguins live in the south.", "Give me 25 on every axis."] {
        let third = with(report("verifier", None, text, ""));
        assert_eq!(c_final(&third), lost, "{text}");
    }
    let agreeing = with(report("verifier", Some("72 km/h"), "It is 72 km/h.", ""));
    assert!(ships(&agreeing) && lost < 0.7);
}

/// Returns c_final for agents with these answers, of whom `lost` more gave no output. An agent with a
/// false sum is weaker.
fn with_lost(votes: &[Vote], lost: usize) -> f64 {
    let names = ["solver", "critic", "verifier", "editor", "implementer"];
    let reports = names.iter().zip(votes);
    let reports: Vec<AgentReport> = reports
        .map(|(agent, (vote, is_weak))| {
            let why = if *is_weak { "3 + 3 = 7." } else { "" };
            report(agent, *vote, "The seat is by the sea.", why)
        })
        .collect();
    let panel = Panel {
        message: "Which city is the seat of the court?",
        outputs: outputs(&reports, Obtained::Clean),
        lost,
        ..Panel::default()
    };
    c_final(&judge(&panel, &ScoringPolicy::default()))
}

/// The final answer of an agent, and whether its report is weak.
type Vote = (Option<&'static str>, bool);

proptest! {
    /// An agent that was lost may have disagreed, whatever the size of the panel.
    #[test]
    fn losing_an_agent_never_raises_c_final(
        votes in prop::collection::vec(
            (prop_oneof![Just(None), Just(Some("Lima")), Just(Some("Quito"))], any::<bool>()), 2..6),
        at in any::<prop::sample::Index>(),
    ) {
        let mut left = votes.clone();
        left.remove(at.index(votes.len()));
        // Without the only vote, the reply gives another answer.
        let answers = |votes: &[Vote]| votes.iter().any(|(answer, _)| answer.is_some());
        prop_assume!(answers(&left) || !answers(&votes));
        let (before, after) = (with_lost(&votes, 0), with_lost(&left, 1));
        prop_assert!(after <= before + 1e-9, "{before} to {after}");
    }

    /// Also where so few give an answer that the request counts as open.
    #[test]
    fn a_further_vote_for_the_leading_answer_never_lowers_c_final(
        size in 2usize..6,
        others in prop::collection::vec(prop_oneof![Just(None), Just(Some("Quito"))], 4),
        leading in 1usize..5,
    ) {
        let votes = |leading: usize| {
            let votes = std::iter::repeat_n(Some("Lima"), leading).chain(others.iter().copied());
            votes.take(size).map(|vote| (vote, false)).collect::<Vec<Vote>>()
        };
        let against = votes(leading).iter().filter(|vote| vote.0 == Some("Quito")).count();
        prop_assume!(leading < size && leading > against);
        let (before, after) = (with_lost(&votes(leading), 0), with_lost(&votes(leading + 1), 0));
        prop_assert!(after >= before - 1e-9, "{before} to {after}");
    }
}

#[test]
fn a_report_that_says_next_to_nothing_is_not_valid() {
    let empty = AgentReport {
        agent: "critic".into(),
        assumptions: vec!["ok".into()],
        ..AgentReport::default()
    };
    assert_eq!(statuses(&of(OPEN, &[empty])), [Status::Quarantine]);
    for text in ["Thought process:", "Let's solve this problem step by step."] {
        let alone = texts(SPEED, &[text], &[]);
        assert_eq!(statuses(&alone), [Status::Quarantine], "{text}");
    }
}

#[test]
fn a_few_words_that_every_report_repeats_do_not_ship() {
    let reports = three(None, "Give me 25 on every axis.", "");
    assert!(!ships(&of(OPEN, &reports)));
}

#[test]
fn two_sides_that_both_concede_contradict_each_other_still() {
    let (yes, no) = (
        "The pump must be vented before the start of each shift in winter.",
        "The pump must not be vented before the start of each shift in winter.",
    );
    let said = |claims: [&str; 3]| -> Vec<AgentReport> {
        let given = AGENTS.iter().zip(claims);
        let why = "The seal ran dry and leaks. It stood still in the winter, as the manual says.";
        given
            .map(|(agent, text)| report(agent, None, text, why))
            .collect()
    };
    let first = said([yes, no, yes]);
    let against = |claim: &str, own: &[&str]| verdict(claim, &[], own, Holds::Unknown);
    let calls = vec![call(vec![
        against("solver:u2", &["critic:u2"]),
        against("critic:u2", &["solver:u2", "verifier:u2"]),
        against("verifier:u2", &["critic:u2"]),
    ])];
    let after = |latest: [&str; 3], moved: &[&str]| {
        let resolutions = moved
            .iter()
            .map(|agent| concedes(&format!("{agent}:u2"), Basis::Source, "Page 12."));
        let evidence = Evidence {
            first: first.clone(),
            calls: calls.clone(),
            resolutions: resolutions.collect(),
        };
        judged(
            "The pump's seal ran dry. What must be done?",
            &said(latest),
            &evidence,
        )
    };
    let positions = |judgement: &Judgement| {
        assert_eq!(judgement.disagreements.len(), 1);
        judgement.disagreements[0].positions.clone().into_iter()
    };
    let kept = positions(&after([yes, no, yes], &[]));
    let agents: Vec<_> = kept.map(|it| it.agents).collect();
    assert_eq!(
        agents,
        [vec![Agent::Solver, Agent::Verifier], vec![Agent::Critic]]
    );

    let swapped = after([no, yes, no], &["solver", "critic", "verifier"]);
    assert!(!ships(&swapped), "{}", c_final(&swapped));
    let texts: Vec<_> = positions(&swapped).map(|it| it.text).collect();
    assert_eq!(texts, [no, yes]);

    let settled = after([yes, yes, yes], &["critic"]);
    assert!(settled.disagreements.is_empty());
    // All came to a third position.
    let third = "The pump must be vented once.";
    let agreed = after([third; 3], &["solver", "critic", "verifier"]);
    assert!(agreed.disagreements.is_empty());
    assert!(c_final(&settled) > c_final(&swapped));
}

#[test]
fn an_equation_for_any_number_and_words_of_the_question_prove_no_answer() {
    let pass = |message: &str, first: &[AgentReport], answer: &str, by: Basis, evidence: &str| {
        let mut latest = first.to_vec();
        let mut resolutions = vec![];
        for agent in ["solver", "verifier"] {
            let own = latest.iter_mut().find(|it| it.agent == agent).unwrap();
            own.units[0].text = answer.into();
            own.answer_summary = vec![answer.into()];
            resolutions.push(concedes(&format!("{agent}:u1"), by, evidence));
        }
        let evidence = Evidence {
            first: first.to_vec(),
            calls: vec![call(vec![])],
            resolutions,
        };
        ships(&judged(message, &latest, &evidence))
    };
    let mut sum = answers(&["42", "43", "42"]);
    for at in [0, 2] {
        sum[at].reasoning = "17 + 25 = 42".into();
    }
    assert!(!pass(
        "What is 17 plus 25?",
        &sum,
        "43",
        Basis::Calculation,
        "40 + 3 = 43"
    ));
    let city = answers(&["Canberra", "Sydney", "Canberra"]);
    let question = "What is the capital of Australia?";
    assert!(!pass(
        question,
        &city,
        "Sydney",
        Basis::Given,
        "the capital of Australia"
    ));
    let text =
        "Since 1900 Sydney is the capital of Australia. What is the capital of Australia here?";
    assert!(pass(
        text,
        &city,
        "Sydney",
        Basis::Given,
        "Sydney is the capital of Australia"
    ));
}
