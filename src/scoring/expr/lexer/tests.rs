use super::*;

fn numbers(text: &str) -> Vec<f64> {
    let value = |token: Token<'_>| {
        if let Kind::Number { value, .. } = token.kind {
            Some(value)
        } else {
            None
        }
    };
    lex(text, Notation::Prose)
        .into_iter()
        .filter_map(value)
        .collect()
}

#[test]
fn separators_of_thousands_and_decimals_are_told_apart() {
    for (text, expected) in [
        ("86,400", 86_400.0),
        ("86 400", 86_400.0),
        ("86\u{202f}400", 86_400.0),
        ("86'400", 86_400.0),
        ("1{,}000{,}000", 1e6),
        ("1.234.567", 1_234_567.0),
        ("1.234,5", 1_234.5),
        ("1,234.5", 1_234.5),
        ("3,5", 3.5),
        ("0,125", 0.125),
        ("1.5e3", 1_500.0),
        (".5", 0.5),
    ] {
        assert_eq!(numbers(text), [expected], "{text}");
    }
    assert_eq!(numbers("1,2,3"), [1.0, 2.0, 3.0]);
    assert_eq!(numbers("2020 100"), [2020.0, 100.0]);
    assert_eq!(numbers("3.11.2"), [] as [f64; 0]);
    assert_eq!(numbers(r"\frac12"), [1.0, 2.0]);
}

#[test]
fn money_is_told_from_mathematics() {
    let money = |text| {
        lex(text, Notation::Prose)
            .iter()
            .filter(|token| matches!(token.kind, Kind::Currency(_)))
            .count()
    };
    assert_eq!(money("$500 to $1000"), 2);
    assert_eq!(money("$5 + $3 = $8"), 3);
    assert_eq!(money(r"$5 + 3$ and $x$, \$7"), 1);
}

#[test]
fn bold_powers_and_units_are_told_apart() {
    let kinds = |text| {
        lex(text, Notation::Prose)
            .into_iter()
            .map(|token| token.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds("5 km × **2**"),
        [
            whole(5),
            Kind::Word("km"),
            Kind::Sign(Sign::Times),
            whole(2)
        ]
    );
    assert_eq!(kinds("2**3"), [whole(2), Kind::Sign(Sign::Power), whole(3)]);
    assert_eq!(kinds(r"90 \text{ min}"), [whole(90), Kind::Word("min")]);
    assert_eq!(kinds(r"45^\circ"), kinds("45°"));
}
