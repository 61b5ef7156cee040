//! Properties of c_final over random panels (SPEC 6).

use super::*;
use proptest::prelude::*;

const NAMES: [&str; 6] = [
    "solver",
    "critic",
    "verifier",
    "editor",
    "implementer",
    "visual",
];

/// What an agent of a random panel gives.
#[derive(Debug, Clone)]
struct Member {
    answers: bool,
    /// How many false sums it has, which lower its Cred.
    false_sums: usize,
    verdict: Option<Holds>,
}

fn member(answers: bool) -> impl Strategy<Value = Member> {
    let verdict = prop_oneof![
        Just(None),
        Just(Some(Holds::Unknown)),
        Just(Some(Holds::Yes)),
    ];
    (0usize..3, verdict).prop_map(move |(false_sums, verdict)| Member {
        answers,
        false_sums,
        verdict,
    })
}

fn c_final_of(members: &[(usize, Member)], cross_checked: bool) -> (f64, Vec<Status>) {
    let reports: Vec<AgentReport> = members
        .iter()
        .map(|(at, it)| {
            let why = ["", "3 + 3 = 7.", "3 + 3 = 7. 4 + 5 = 8."][it.false_sums];
            let answer = it.answers.then_some("Lima");
            report(NAMES[*at], answer, "The seat is by the sea.", why)
        })
        .collect();
    let verdicts = members.iter().filter_map(|(at, it)| {
        let unit = if it.answers { "u1" } else { "u2" };
        Some(verdict(
            &format!("{}:{unit}", NAMES[*at]),
            &[],
            &[],
            it.verdict?,
        ))
    });
    let calls = vec![CrossCheck {
        claims: verdicts.collect(),
        ..CrossCheck::default()
    }];
    let evidence = Evidence {
        calls: if cross_checked { calls } else { vec![] },
        ..Evidence::default()
    };
    let judged = judged("Which city is the seat of the court?", &reports, &evidence);
    (c_final(&judged), statuses(&judged))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A VALID output more never lowers c_final, and one less never raises it.
    #[test]
    fn more_agreement_never_lowers_c_final(
        all in prop::collection::vec(member(true), 2..5),
        lost in 0usize..5,
        cross_checked: bool,
    ) {
        let all: Vec<(usize, Member)> = all.into_iter().enumerate().collect();
        let (whole, statuses) = c_final_of(&all, cross_checked);
        let lost = lost % all.len();
        prop_assume!(statuses[lost] == Status::Valid);
        let mut left = all.clone();
        left.remove(lost);
        let (fewer, _) = c_final_of(&left, cross_checked);
        prop_assert!(fewer <= whole + 1e-9, "{fewer} {whole}");
    }

    /// Silent outputs do not confirm the only vote.
    #[test]
    fn a_lone_vote_without_a_check_never_ships(
        silent in prop::collection::vec(member(false), 0..5),
        false_sums in 0usize..3,
        cross_checked: bool,
    ) {
        let alone = Member { answers: true, false_sums, verdict: Some(Holds::Unknown) };
        let all = std::iter::once(alone).chain(silent).enumerate().collect::<Vec<_>>();
        let (c_final, _) = c_final_of(&all, cross_checked);
        prop_assert!(c_final < 0.70, "{c_final}");
    }
}

#[test]
fn a_weak_output_that_agrees_does_not_turn_an_answer_into_a_question() {
    let member = |at, false_sums| {
        (
            at,
            Member {
                answers: true,
                false_sums,
                verdict: None,
            },
        )
    };
    let three: Vec<_> = (0..3).map(|at| member(at, 0)).collect();
    let four: Vec<_> = three.iter().cloned().chain([member(3, 2)]).collect();
    let (fewer, more) = (c_final_of(&three, false), c_final_of(&four, false));
    assert_eq!(more.1, [Status::Valid; 4]);
    assert!(more.0 >= fewer.0, "{more:?} {fewer:?}");
}

/// The order of two verdicts on one claim says nothing.
#[test]
fn two_verdicts_on_one_claim_that_differ_count_as_unknown() {
    let found = |holds: &[Holds]| {
        let claims = holds
            .iter()
            .map(|holds| verdict("solver:u1", &[], &[], *holds));
        let calls = vec![CrossCheck {
            claims: claims.collect(),
            ..CrossCheck::default()
        }];
        let evidence = Evidence {
            calls,
            ..Evidence::default()
        };
        c_final(&judged("?", &answers(&["Lima", "Lima", "Lima"]), &evidence))
    };
    let unknown = found(&[Holds::Unknown]);
    assert_eq!(found(&[Holds::Yes, Holds::No]), unknown);
    assert_eq!(found(&[Holds::No, Holds::Yes]), unknown);
}

/// Once a claim was checked, a tag alone proves nothing.
#[test]
fn a_basis_that_the_cross_check_does_not_confirm_earns_what_memory_does() {
    let tagged = |tag: Tag, holds: Holds| {
        let mut reports = answers(&["Lima", "Lima", "Lima"]);
        for report in &mut reports {
            report.units = vec![unit("u1", "Queues decouple services", &[Tag::Key, tag])];
        }
        let claims = NAMES[..3].iter();
        let claims = claims.map(|name| verdict(&format!("{name}:u1"), &[], &[], holds));
        let checked = CrossCheck {
            claims: claims.collect(),
            ..CrossCheck::default()
        };
        let evidence = Evidence {
            calls: vec![checked],
            ..Evidence::default()
        };
        c_final(&judged("How do I connect them?", &reports, &evidence))
    };
    for tag in [Tag::Calculated, Tag::Tested, Tag::Sourced] {
        let (unknown, held) = (Holds::Unknown, Holds::Yes);
        assert_eq!(
            tagged(tag, unknown),
            tagged(Tag::Memory, unknown),
            "{tag:?}"
        );
        assert!(tagged(tag, held) > tagged(Tag::Memory, held), "{tag:?}");
    }
}
