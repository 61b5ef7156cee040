//! Tests of final answers: which outputs have one, which mean the same, and the value of agreement.

use super::*;

/// Returns the number of different answers.
fn groups(message: &str, given: &[&str]) -> usize {
    of(message, &answers(given)).answer_groups.len()
}

#[test]
fn three_equal_answers_ship_and_three_different_ones_do_not() {
    assert!(ships(&of("How many days?", &answers(&["61", "61", "61"]))));
    assert!(!ships(&of("How many days?", &answers(&["61", "60", "59"]))));
}

#[test]
fn a_form_with_two_meanings_joins_no_different_answers() {
    for given in [
        ["3.000", "3", "3000"],
        ["50%", "50", "0.5"],
        ["1.500", "1500", "1.5"],
    ] {
        let split = of("How many people live there?", &answers(&given));
        assert_eq!(split.answer_groups.len(), 3, "{given:?}");
        assert!(!ships(&split), "{given:?}");
    }
    let agreed = groups("How many people live there?", &["3.000", "3000", "3,000"]);
    assert_eq!(agreed, 1);
}

#[test]
fn the_decimal_sign_of_the_texts_decides_what_a_figure_means() {
    let grams = "Wie viele Gramm sind 2,5 kg?";
    assert_eq!(groups(grams, &["2.500 g", "2,5 g", "2,5 g"]), 2);
    assert_eq!(groups(grams, &["2.512 g", "2512 g", "2512 g"]), 1);
    assert_eq!(groups("Quantos km?", &["1.500 km", "1,5 km", "1,5 km"]), 2);
    assert_eq!(
        groups("How far, at 0.75 km?", &["1.500 km", "1.5 km", "1.5 km"]),
        1
    );
    let judged = of(grams, &answers(&["2.500 g"; 3]));
    let settled = |answer: &str| answer_group(&judged.answer_groups, answer);
    assert_eq!(settled("2500 g"), Some(0));
    assert_eq!((settled("2,5 g"), settled("2.5 g")), (None, None));
    let judged = of("Wie hoch, bei 0,5 %?", &answers(&["2962 m"; 3]));
    let settled = |answer: &str| answer_group(&judged.answer_groups, answer);
    assert_eq!((settled("2.962 m"), settled("2.963 m")), (Some(0), None));
}

#[test]
fn a_reply_may_name_an_option_by_its_text() {
    let asked = "Which gas is most of the air? A) Oxygen B) Nitrogen C) Argon";
    let judged = of(asked, &answers(&["B", "B", "B"]));
    let settled = |answer: &str| answer_group(&judged.answer_groups, answer);
    assert_eq!(
        (settled("Nitrogen"), settled("B) Nitrogen")),
        (Some(0), Some(0))
    );
    assert_eq!((settled("Oxygen"), settled("A")), (None, None));
}

#[test]
fn signs_are_answers() {
    let of_signs = |sign: &str| of("Which sign is it?", &three(Some(sign), sign, ""));
    for sign in ["%", "==", "→"] {
        let judged = of_signs(sign);
        assert_eq!(labels(&judged), [sign]);
        assert_eq!(statuses(&judged), [Status::Valid; 3], "{sign}");
    }
    assert_eq!(statuses(&of_signs("...")), [Status::Discard; 3]);
    let signs = [";", ":", ","].iter().zip(AGENTS);
    let reports = signs.map(|(sign, agent)| report(agent, Some(sign), "It ends a statement.", ""));
    let split = of("Which sign is it?", &reports.collect::<Vec<_>>());
    assert_eq!(split.answer_groups.len(), 3);
}

#[test]
fn cred_ranks_unanimous_above_split_panels() {
    let best = |given: &[&str]| {
        let scores = of("How many?", &answers(given)).scores;
        scores.iter().map(|s| s.cred).fold(0.0, f64::max)
    };
    assert!(
        best(&["8", "8", "8"]) > best(&["8", "8", "9"])
            && best(&["8", "8", "9"]) > best(&["8", "9", "7"])
    );
}

#[test]
fn a_cross_check_that_finds_different_answers_true_proves_none() {
    let true_all = |given: &[&str]| {
        let claims = AGENTS.iter().take(given.len());
        let claims = claims.map(|agent| verdict(&format!("{agent}:u1"), &[], &[], Holds::Yes));
        judged("How many?", &answers(given), &checked(claims.collect()))
    };
    assert!(ships(&true_all(&["100", "100", "100"])));
    let split = true_all(&["100", "90", "80"]);
    assert!(!ships(&split), "{}", c_final(&split));
    let unchecked = of("How many?", &answers(&["100", "90", "80"]));
    assert!((c_final(&split) - c_final(&unchecked)).abs() < 0.05);
    // Three names that it does not call the same are three answers.
    let names = true_all(&["Paris", "Lyon", "Nice"]);
    assert!(!ships(&names), "{}", c_final(&names));
    assert!(ships(&true_all(&["Paris", "Paris", "The city of Paris"])));
    // What was checked outweighs what was remembered.
    let by = |agent: &str, by| ClaimVerdict {
        by,
        ..verdict(&format!("{agent}:u1"), &[], &[], Holds::Yes)
    };
    let claims = vec![
        by("solver", Basis::Calculation),
        by("critic", Basis::Calculation),
        by("verifier", Basis::Memory),
    ];
    let checked_first = judged(
        "How many?",
        &answers(&["100", "100", "90"]),
        &checked(claims),
    );
    assert!(ships(&checked_first), "{}", c_final(&checked_first));
}

#[test]
fn a_lone_vote_ships_only_if_a_check_of_it_holds() {
    let alone = of("How many days?", &answers(&["61"]));
    assert!(!ships(&alone));
    let proof = report("solver", Some("61"), "It is 61.", "31 + 30 = 61");
    assert!(c_final(&of("How many days?", &[proof])) >= c_final(&alone));
    let told = judged(
        "How many days?",
        &answers(&["61"]),
        &checked(vec![verdict("solver:u1", &[], &[], Holds::Yes)]),
    );
    assert!(ships(&told), "{}", c_final(&told));
    let mixed = texts("Is it legal?", &["yes", "it depends", "usually yes"], &[]);
    assert!(!ships(&mixed), "{}", c_final(&mixed));
    assert_eq!(
        statuses(&mixed),
        [Status::Valid; 3],
        "no extractable answer is no vote against"
    );
}

#[test]
fn languages_are_scored_alike() {
    for (message, given) in [
        (
            "Was ist die Hauptstadt von Australien?",
            ["Canberra", "Sydney", "Melbourne"],
        ),
        ("Ist 91 eine Primzahl?", ["ja", "nein", "ja"]),
        (
            "Welche Datenbank sollen wir nehmen?",
            ["PostgreSQL", "MongoDB", "SQLite"],
        ),
        ("91は素数ですか。", ["はい", "いいえ", "はい"]),
    ] {
        for judgement in [of(message, &answers(&given)), texts(message, &given, &[])] {
            assert!(
                !ships(&judgement) && judgement.answer_groups.len() >= 2,
                "{message}: {judgement:?}"
            );
        }
    }
    let english = of("Is 91 prime?", &answers(&["no", "no", "no"]));
    let german = of("Ist 91 eine Primzahl?", &answers(&["nein", "nein", "nein"]));
    assert_eq!(c_final(&english), c_final(&german));
    assert_eq!(labels(&german), ["no"]);
}

#[test]
fn a_cross_check_joins_answers_only_where_values_cannot_tell() {
    let told = |given: &[&str]| {
        let mut evidence = checked(vec![]);
        let all = AGENTS.iter().take(given.len());
        evidence.calls[0].same_answers =
            vec![all.map(|agent| (*agent).to_owned().into()).collect()];
        let judgement = judged("Which is it?", &answers(given), &evidence);
        judgement.answer_groups.len()
    };
    assert_eq!(told(&["391", "401", "391"]), 2);
    assert_eq!(told(&["yes", "no", "yes"]), 2);
    assert_eq!(
        told(&["yes", "it is so", "no"]),
        3,
        "it cannot be both of them"
    );
    assert_eq!(told(&["yes", "it is so", "yes"]), 1);
    assert_eq!(told(&["Paris", "the French capital", "Paris, France"]), 1);
    let equal = ["299792458", "299792458 m/s", "299,792,458 m/s"];
    let light = [equal.as_slice(), &["300000000"]].concat();
    assert_eq!(told(&light), 2, "what is equal stays together");
}

#[test]
fn a_dissent_in_other_words_than_no_is_a_vote_against() {
    let judgement = of("Is 91 prime?", &answers(&["yes", "yes", "it is composite"]));
    assert_eq!(judgement.answer_groups.len(), 2);
    assert!(!ships(&judgement), "{}", c_final(&judgement));
}

#[test]
fn an_output_with_two_answers_gives_none() {
    let mut reports = answers(&["4", "4", "4"]);
    reports[2].units[1] = unit("u2", "5", &[Tag::Answer]);
    let judgement = of("How many?", &reports);
    assert_eq!(statuses(&judgement)[2], Status::Quarantine);
    assert_eq!(judgement.answer_groups[0].agents.len(), 2);
    reports[2].units[1] = unit("u2", "4.0", &[Tag::Answer]);
    assert_eq!(
        of("How many?", &reports).answer_groups[0].agents.len(),
        3,
        "the same one again"
    );
}

#[test]
fn the_order_of_the_panel_changes_nothing() {
    let mut reports = answers(&["61", "60", "61"]);
    let forward = of("How many days?", &reports);
    reports.reverse();
    let backward = of("How many days?", &reports);
    assert_eq!(
        (c_final(&forward), labels(&forward)),
        (c_final(&backward), labels(&backward))
    );
}

#[test]
fn ordinary_questions_have_no_final_answer_unless_agents_tag_one() {
    for message in [
        "I work with order numbers 1001, 1002 and 1003; how do I get 3 labels on one page?",
        "$500 to $1000: which laptop?",
        "We run Postgres 15 on 2 servers. What is the best way to fail over?",
    ] {
        let judgement = of(message, &open_reports());
        assert_eq!(judgement.answer_groups, [], "{message}");
        assert!(ships(&judgement), "{message}: {}", c_final(&judgement));
        assert!(
            c_final(&judgement) <= 0.75,
            "without a cross-check at most 0.75"
        );
    }
}

#[test]
fn the_penalty_belongs_to_the_answer_that_the_reply_gives() {
    let judgement = of(
        "What is the capital of Australia?",
        &answers(&["Canberra", "Canberra", "Sydney"]),
    );
    let penalty = |answer: &str| {
        let group = answer_group(&judgement.answer_groups, answer)
            .and_then(|at| judgement.answer_groups.get(at));
        group.and_then(|group| group.conflict_penalty).unwrap()
    };
    assert!(penalty("Sydney") > penalty("Canberra"));
    assert_eq!(answer_group(&judgement.answer_groups, "Perth"), None);
}

#[test]
fn a_reply_may_use_any_wording_of_an_answer() {
    for given in [
        ["3.11.4"; 3],
        ["10.0.0.1"; 3],
        ["May 1945"; 3],
        ["25 December"; 3],
        ["V = IR"; 3],
        ["1, 2, 3"; 3],
        ["(3, 4)"; 3],
        ["48.8566° N, 2.3522° E"; 3],
        ["500 BC", "500 BC", "500 AD"],
    ] {
        let judgement = of("Which one?", &answers(&given));
        let group = answer_group(&judgement.answer_groups, given[0]);
        assert_eq!(group, Some(0), "{given:?}: {:?}", judgement.answer_groups);
        let other = given[2] != given[0];
        assert_eq!(
            answer_group(&judgement.answer_groups, given[2]),
            Some(usize::from(other))
        );
    }
}

#[test]
fn ninety_ordinary_questions_are_open_in_plain_text_too() {
    let advice = [
        "Begin with what you have, and change one thing at a time. Most people need 2 or 3 attempts before it works well.",
        "Es kommt vor allem auf den Rahmen an. Wer 10 Minuten am Tag dafür einplant, kommt nach einigen Wochen gut voran.",
        "There are several ways. A simple one costs little and is enough for 90 % of cases; the others pay off later.",
    ];
    let questions = include_str!("../../../tests/it/support/ordinary_questions.txt");
    assert_eq!(questions.lines().count(), 90);
    for question in questions.lines() {
        let judgement = texts(question, &advice, &[]);
        assert_eq!(judgement.answer_groups, [], "{question}");
        assert_eq!(statuses(&judgement), [Status::Valid; 3], "{question}");
    }
}

/// An answer is shown as an agent wrote it.
#[test]
fn a_number_is_shown_as_it_was_written() {
    for text in [
        "1.380 €",
        "12,5 %",
        "15511210043330985984000000",
        "3.14159265358",
        "5 hours",
    ] {
        assert_eq!(labels(&of("How much is it?", &answers(&[text; 3]))), [text]);
    }
}

#[test]
fn brackets_slashes_and_parts_of_dates_keep_answers_apart() {
    for (a, b) in [
        ("V/(R1+R2)", "V/R1+R2"),
        ("(A OR B) AND C", "A OR (B AND C)"),
        ("not (p and q)", "not p and q"),
        ("P(A and B)", "P(A) and B"),
        ("（甲或乙）且丙", "甲或（乙且丙）"),
        ("newton/metre", "newton metre"),
        ("new York New", "York New"),
        ("0.5%", "0.5"),
    ] {
        assert_eq!(groups("What is it?", &[a, b, b]), 2, "{a} {b}");
    }
    for given in [
        ["March 2024", "5 March 2024", "12 March 2024"],
        ["5 March", "5 March 2023", "5 March 2024"],
    ] {
        assert_eq!(groups("When was it?", &given), 3, "{given:?}");
    }
    for given in [
        ["Paris (France)", "Paris, France", "(Paris, France)"],
        ["50%", "50", "50 percent"],
        ["March 2024", "5 March 2024", "2024-03-05"],
    ] {
        assert_eq!(groups("What is it?", &given), 1, "{given:?}");
    }
}

#[test]
fn an_answer_whose_calculation_fails_does_not_ship() {
    let told = |count: usize, reasoning: &str| {
        let all = AGENTS.iter().take(3).enumerate().map(|(at, agent)| {
            let answer = (at < count).then_some("685");
            report(agent, answer, "She works 37.5 hours.", reasoning)
        });
        let claims = (0..count).map(|at| {
            let claim = format!("{}:u1", AGENTS[at]);
            verdict(&claim, &[], &[], Holds::Yes)
        });
        judged(
            "What is her pay?",
            &all.collect::<Vec<_>>(),
            &checked(claims.collect()),
        )
    };
    let wrong = |count| c_final(&told(count, "37.5 * 18.4 = 685"));
    assert!(wrong(1) < 0.70 && wrong(2) < 0.70 && wrong(3) < 0.70);
    assert!(c_final(&told(3, "37.5 * 18.4 = 690, and 690 - 5 = 685")) >= 0.70);
}

#[test]
fn a_base_is_stated_beside_its_name() {
    let sum = |request: &str| {
        let reports = three(Some("13"), "They are 13.", "7 + 8 = 13");
        of(request, &reports)
    };
    let eggs = sum("A box holds 12 eggs. Anna has 7 and Ben 8. How many are they?");
    assert!(!ships(&eggs), "{}", c_final(&eggs));
    for request in [
        "What is 7 + 8 in base 12?",
        "Was ist 7 + 8 zur Basis 12?",
        "12進数で7 + 8はいくつですか。",
    ] {
        assert!(ships(&sum(request)), "{request}");
    }
}

#[test]
fn a_reply_says_the_answer_that_it_names() {
    let request = "Which is it?\n(A) red\n(B) green\n(C) blue";
    for (tldr, main, answer, may) in [
        ("", "It is **145**.", "144", false),
        ("", "It is **144**, and not 145.", "144", true),
        (
            "5400.",
            "It is 5040, because 84 * 60 = 5040.",
            "5040",
            false,
        ),
        (
            "It is 84 * 60.",
            "It is 84 * 60. That is 5040.",
            "5040",
            true,
        ),
        ("", "Es sind 1.500 kg in 2 Fuhren.", "1500", true),
        ("", "There is no number.", "12", true),
        ("", "It is $\\frac{1}{2}$.", "0.5", true),
        ("", "It is Paris, of 20 towns.", "Paris", true),
        ("Sydney.", "It is Canberra.", "Canberra", false),
        ("", "It is easy to find out.", "Canberra", true),
        (
            "It was planned for this.",
            "Canberra is the seat.",
            "Canberra",
            true,
        ),
        ("", "Столица находится в Москве.", "Москва", true),
        ("", "राजधानी कैनबरा है।", "Canberra", true),
        ("", "首都は東京です。", "東京", true),
        ("Yes.", "It is not prime: 7 * 13 = 91.", "no", false),
        ("", "Ja, man kann es essen.", "nein", false),
        ("No.", "No, 91 is 7 * 13.", "no", true),
        ("", "91 is 7 * 13, so it is not prime.", "no", true),
        ("C.", "It is green.", "B", false),
        ("", "The answer is (C) blue.", "B", false),
        (
            "B.",
            "The answer is (B) green, and (C) is wrong.",
            "B",
            true,
        ),
        ("", "A look at the leaf shows it: green.", "B", true),
    ] {
        let given = may_give(request, tldr, main, answer, &[]);
        assert_eq!(given, may, "{tldr} {main} {answer}");
    }
}

#[test]
fn a_reply_with_the_words_of_another_report_gives_another_answer() {
    for (given, main, may) in [
        (["東京", "大阪"], "首都は大阪です。", false),
        (["東京", "大阪"], "首都は、大阪ではなく東京です。", true),
        (["Canberra", "Sydney"], "It is Sydney.", false),
        (["Canberra", "Sydney"], "It is easy to find out.", true),
        (["Per Holm", "Eva Holm"], "The mayor is Eva Holm.", false),
        (["Москва", "Казань"], "Он в Москве, не в Казани.", true),
        (["Москва", "Казань"], "Он в Казани.", false),
        (["Kyllä", "Ei"], "Ei, se on kiellettyä.", false),
        (["Kyllä", "Ei"], "Se on meidän mielestä sallittua.", true),
    ] {
        let panel = of("Which is it?", &answers(&[given[0], given[0], given[1]]));
        let may_be = may_give("Which is it?", "", main, given[0], &panel.answer_groups);
        assert_eq!(may_be, may, "{main}");
    }
}

#[test]
fn hyphens_and_minus_signs_of_all_kinds_are_one() {
    for (plain, answer) in [
        ("2024-03-05", "2024\u{2011}03\u{2011}05"),
        ("-78 °C", "\u{2011}78 °C"),
        ("-78 °C", "\u{2212}78 °C"),
        ("-78 °C", "\u{2014}78 °C"),
        ("-78 °C", "\u{2015}78 °C"),
        (
            "Antoine de Saint-Exupéry",
            "Antoine de Saint\u{2010}Exupéry",
        ),
        ("-7", "\u{fe63}7"),
    ] {
        assert_eq!(
            groups("What is it?", &[plain, answer, plain]),
            1,
            "{answer}"
        );
        assert!(may_give(
            "What is it?",
            "",
            &format!("It is {answer}."),
            plain,
            &[]
        ));
        assert!(may_give(
            "What is it?",
            "",
            &format!("It is {plain}."),
            answer,
            &[]
        ));
    }
    assert_eq!(groups("What is it?", &["7 °C", "\u{2014}7 °C", "7 °C"]), 2);
    let sum = |sign| three(Some("61"), "It is 61.", &format!("92 {sign} 30 = 61"));
    for sign in ["-", "\u{2011}", "\u{2212}"] {
        assert!(!ships(&of("How many?", &sum(sign))), "{sign}");
    }
}
