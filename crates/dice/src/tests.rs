use rand::rngs::ChaCha12Rng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

/// Rolls an expression once.
fn once(expression: &Expression, die: &mut dyn FnMut(i64) -> i64) -> Result<Rolled, RollError> {
    Ok(expression.roll_times(1, die)?.remove(0))
}

/// Rolls with dice that show these faces in order.
fn with_faces(text: &str, faces: &[i64]) -> Rolled {
    let mut faces = faces.iter();
    let expression = Expression::parse(text).unwrap();
    let rolled = once(&expression, &mut |_| *faces.next().unwrap()).unwrap();
    assert_eq!(faces.next(), None, "{text}: a die was not rolled");
    rolled
}

fn seeded(text: &str, seed: u64) -> Result<Rolled, RollError> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let expression = Expression::parse(text).unwrap();
    once(&expression, &mut |sides| random.random_range(1..=sides))
}

#[test]
fn sums_products_and_brackets_are_as_in_arithmetic() {
    for (text, total) in [
        ("7+3*2", 13),
        ("(7+3)*2", 20),
        ("-7//2", -4),
        ("-7/2", -3),
        ("-7%4", 1),
        ("2--3", 5),
        ("3>2", 1),
        ("3!=3", 0),
        ("1+1>1", 1),
        ("ceil(7/2)", 4),
        ("max(4, 3, 9)", 9),
        ("(4, 7, 9)kh2", 16),
        ("(4, 7, 9)k<9", 11),
        ("(4, 7, 9)pl1", 16),
        ("(4)k3", 0),
        ("(4,)k4", 4),
    ] {
        assert_eq!(with_faces(text, &[]).total, total, "{text}");
    }
}

#[test]
fn every_operation_does_to_dice_what_it_says() {
    let cases: [(&str, &[i64], i64, &str); 18] = [
        ("3d8+2", &[1, 5, 8], 16, "3d8 (1, 5, 8) + 2 = 16"),
        ("4d6kh3", &[6, 1, 5, 4], 15, "4d6kh3 (6, ~~1~~, 5, 4) = 15"),
        ("2d20kl1", &[17, 4], 4, "2d20kl1 (~~17~~, 4) = 4"),
        ("4d6pl1", &[2, 3, 2, 6], 11, "4d6pl1 (~~2~~, 3, 2, 6) = 11"),
        ("3d6dh1", &[2, 6, 3], 5, "3d6dh1 (2, ~~6~~, 3) = 5"),
        (
            "4d6k5k6",
            &[5, 6, 1, 5],
            16,
            "4d6k5k6 (5, 6, ~~1~~, 5) = 16",
        ),
        ("2d6rr<3", &[1, 4, 2, 5], 9, "2d6rr<3 (1>2>5, 4) = 9"),
        ("2d6ro1", &[1, 4, 1], 5, "2d6ro1 (1>1, 4) = 5"),
        ("2d6ra6", &[6, 6, 3], 15, "2d6ra6 (6!, 6, 3) = 15"),
        ("2d6e6", &[6, 2, 6, 1], 15, "2d6e6 (6!, 2, 6!, 1) = 15"),
        ("2d6!", &[6, 2, 3], 11, "2d6! (6!, 2, 3) = 11"),
        ("2d6!!", &[6, 2, 6, 1], 15, "2d6!! (6>12>13!, 2) = 15"),
        ("1d6!p", &[6, 6, 2], 12, "1d6!p (6!, 5, 1) = 12"),
        ("2d6!>4", &[5, 1, 4], 10, "2d6!>4 (5!, 1, 4) = 10"),
        ("2d6mi3ma5", &[1, 6], 8, "2d6mi3ma5 (1>3, 6>5) = 8"),
        ("4dF", &[1, 3, 2, 3], 1, "4dF (-1, 1, 0, 1) = 1"),
        ("3d6usd", &[4, 4, 6, 2], 12, "3d6usd (6, 4, 4>2) = 12"),
        (
            "(1d8, 1d4)kh1 [best] - 1",
            &[3, 4],
            3,
            "(~~1d8 (3)~~, 1d4 (4)) [best] - 1 = 3",
        ),
    ];
    for (text, faces, total, shown) in cases {
        let rolled = with_faces(text, faces);
        assert_eq!(
            (rolled.total, rolled.text.as_str()),
            (total, shown),
            "{text}"
        );
    }
}

#[test]
fn zero_has_no_sign() {
    for (text, shown) in [
        ("0*-1", "0 * -1 = 0"),
        ("0*-1d4", "0 * -1d4 (3) = 0"),
        ("-1/1000", "-1 / 1000 = 0"),
    ] {
        let faces: &[i64] = if text.contains('d') { &[3] } else { &[] };
        let rolled = with_faces(text, faces);
        assert_eq!((rolled.total, rolled.text.as_str()), (0, shown), "{text}");
    }
}

#[test]
fn decimals_and_fractions_are_exact() {
    for (text, total) in [
        ("8.2-0.2", 8),
        ("1.15*100", 115),
        ("29d1/100*100", 29),
        ("(1/49)*49", 1),
        ("ceil(0.1*3*10)", 3),
        ("0.1+0.2==0.3", 1),
        ("round(-2.5)", -3),
        ("-7.5//2", -4),
        ("(1000000000*10000000+1)%10", 1),
        ("1000000000*1000000000%7", 1),
    ] {
        let faces: &[i64] = if text.contains("29d1") { &[1; 29] } else { &[] };
        assert_eq!(with_faces(text, faces).total, total, "{text}");
    }
}

#[test]
fn a_number_is_shown_with_all_its_decimals() {
    for (text, shown) in [
        ("0.0000001*10000000", "0.0000001 * 10000000 = 1"),
        ("-0.001", "-0.001 = 0"),
        ("2.50+.05", "2.5 + 0.05 = 2"),
        ("1d6mi2.125", "1d6mi2.125 (1>2.125) = 2"),
    ] {
        let faces: &[i64] = if text.contains('d') { &[1] } else { &[] };
        assert_eq!(with_faces(text, faces).text, shown);
    }
}

#[test]
fn a_part_that_is_too_large_is_refused_and_never_overflows() {
    let million_to_the_seventh = ["1000000"; 7].join("*");
    // 2 to the power of 127.
    let least = "-536870912*536870912*536870912*536870912*2048";
    for text in [
        million_to_the_seventh.clone(),
        format!("1/({million_to_the_seventh})"),
        format!("({million_to_the_seventh})/({million_to_the_seventh})"),
        format!("abs({least})"),
        format!("-({least})//-3"),
    ] {
        assert_eq!(with_faces_err(&text), RollError::TooLarge, "{text}");
    }
    assert!(Expression::parse(&format!("0.{}1", "0".repeat(MAX_DECIMALS))).is_err());
}

#[test]
fn a_roll_is_repeated_with_fresh_dice_and_within_one_bound() {
    let mut faces = [1, 2, 3, 4].into_iter();
    let rolled = Expression::parse("2d4+1")
        .unwrap()
        .roll_times(2, &mut |_| faces.next().unwrap())
        .unwrap();
    let shown: Vec<_> = rolled
        .iter()
        .map(|rolled| (rolled.total, rolled.text.as_str(), rolled.dice.len()))
        .collect();
    assert_eq!(
        shown,
        [(4, "2d4 (1, 2) + 1 = 4", 1), (8, "2d4 (3, 4) + 1 = 8", 1)]
    );
    let many = Expression::parse("5000d6").unwrap();
    assert_eq!(many.roll_times(2, &mut |_| 1).unwrap().len(), 2);
    assert_eq!(many.roll_times(3, &mut |_| 1), Err(RollError::TooManyDice));
}

#[test]
fn brackets_around_dice_are_the_dice() {
    assert_eq!(with_faces("((6d4kh5)kl2)kh1", &[1, 2, 3, 4, 4, 2]).total, 2);
    let rolled = with_faces("(2d6, 1d4)kl1", &[3, 3, 2]);
    assert!(
        rolled
            .dice
            .iter()
            .flat_map(|g| &g.rolls)
            .map(|d| d.kept)
            .eq([false, false, true])
    );
}

#[test]
fn what_cannot_be_rolled_is_no_expression() {
    let texts = "|d|3d|3d0|d-8|3dx|roll|1d8 hello|1d8\n1d8|1d8; ls|(1d8|1d8)|2**3|1d8 + @me|dF.3|d8max|10001d6|99999999999d6|1d8[fire\
        |floor()|floor(1, 2)|sqrt(4)|1e5|{3d6}|1d8,2";
    for text in texts.split('|') {
        assert!(Expression::parse(text).is_err(), "{text:?} was taken");
    }
    assert_eq!(
        Expression::parse("3d6 + fish").unwrap_err().to_string(),
        "dice or a number were expected here (at character 7)"
    );
}

#[test]
fn what_has_no_end_or_no_value_is_an_error_when_it_is_rolled() {
    for text in ["1d1rr1", "1d1!!", "2d1u", "3d6rr<7", "3d6rrh1"] {
        assert_eq!(with_faces_err(text), RollError::TooManyDice, "{text}");
    }
    for text in ["1d1e1", "1d1!", "1d1000000e<1000000"] {
        assert_eq!(with_faces_err(text), RollError::Endless, "{text}");
    }
    for text in ["4/0", "4//0", "4%0"] {
        assert_eq!(with_faces_err(text), RollError::DivisionByZero, "{text}");
    }
}

#[test]
fn limits_hold_against_abuse() {
    let deep = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::parse(&deep(MAX_DEPTH)).is_ok());
    assert!(Expression::parse(&deep(MAX_DEPTH + 1)).is_err());
    assert!(Expression::parse(&"-".repeat(MAX_DEPTH + 1)).is_err());
    assert!(Expression::parse(&format!("1{}", "+1".repeat(MAX_CHARS / 2))).is_err());
    assert!(Expression::parse("5000d6+5001d6").is_err());
    let most = seeded("10000d6", 1).unwrap();
    assert_eq!(most.dice[0].rolls.len(), MAX_DICE);
    assert!(
        most.text
            .ends_with(&format!("... 9900 more) = {}", most.total)),
        "{}",
        most.text
    );
    assert_eq!(seeded("10000d6e<6", 1), Err(RollError::TooManyDice));
    assert_eq!(with_faces_err("1000000000*1000000000"), RollError::TooLarge);
    assert_eq!(with_faces_err("7/(1d4-1)"), RollError::DivisionByZero);
}

fn with_faces_err(text: &str) -> RollError {
    once(&Expression::parse(text).unwrap(), &mut |_| 1).unwrap_err()
}

#[test]
fn a_label_stays() {
    let expression = Expression::parse(" 2d6 [cold] + 3 ").unwrap();
    assert_eq!(expression.text(), "2d6 [cold] + 3");
    assert!(expression.has_dice() && !Expression::parse("1+2").unwrap().has_dice());
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Generates expressions of limited size from a part of the grammar.
    fn expressions() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            3 => "[12]?[0-9]d(6|%|F|[1-3]?[1-9])(|kh2|kl1|pl1|ro1|mi2|ma4|k>2|k1k2|p<3|!|dh1kl2|!p)",
            1 => "[1-4]?[0-9](|[.][0-9]{1,3})",
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (inner.clone(), "(\\+|-|\\*|//|/|%|>)", inner.clone())
                    .prop_map(|(l, sign, r)| format!("{l} {sign} {r}")),
                inner.clone().prop_map(|e| format!("({e})")),
                inner.clone().prop_map(|e| format!("-{e}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}, {b})kh1")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("min({a}, {b})")),
                inner.prop_map(|e| format!("floor({e})")),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_expression_rolls_the_same_again_and_reads_as_itself(text in expressions(), seed: u64) {
            let Ok(expression) = Expression::parse(&text) else { return Ok(()) };
            prop_assert_eq!(&Expression::parse(expression.text()).unwrap(), &expression);
            let roll = || {
                let mut random = ChaCha12Rng::seed_from_u64(seed);
                let mut rolled_dice = 0;
                let rolled = once(&expression, &mut |sides| {
                    rolled_dice += 1;
                    random.random_range(1..=sides)
                });
                (rolled, rolled_dice)
            };
            let (rolled, rolled_dice) = roll();
            prop_assert!(rolled_dice <= MAX_DICE, "{}: {} dice", &text, rolled_dice);
            prop_assert_eq!(roll().0, rolled);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9d%F+*/() ,.!<>=khlprema#\\[\\]-]{0,60}") {
            if let Ok(expression) = Expression::parse(&text) {
                let mut random = ChaCha12Rng::seed_from_u64(1);
                let _ = once(&expression, &mut |sides| random.random_range(1..=sides));
            }
        }

        #[test]
        fn what_is_translated_is_read_again_as_the_same(
            text in "([0-9]{0,2}[#x ]{0,1})(d20|2d6|4d8|w6|[(]1d4, 3[)])([ ,+k3advis!d1x#0-9]{0,20})"
        ) {
            for place in [Place::Bare, Place::Explicit] {
                let Ok(read) = written(&text, place) else { continue };
                let again = Expression::parse(read.expression.text()).unwrap();
                prop_assert_eq!(&again, &read.expression, "{}", &text);
                let twice = written(read.expression.text(), place);
                prop_assert_eq!(twice.unwrap().expression, read.expression, "{}", &text);
            }
        }
    }
}
