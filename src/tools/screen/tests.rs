use super::*;
use std::time::{Duration, Instant};

fn kinds(text: &str, errors: &[&str], verbatim: &[&str]) -> Vec<Disallowed> {
    screen(text, errors, verbatim)
        .into_iter()
        .map(|finding| finding.kind)
        .collect()
}

#[test]
fn every_line_of_the_table_is_read_and_compiles() {
    let lines = TABLE
        .lines()
        .filter(|line| !line.starts_with(['#']) && !line.starts_with("define"));
    let rows = rows(TABLE);
    assert_eq!(rows.len(), lines.count());
    for row in &rows {
        assert!(compile(&row.pattern).is_ok(), "{}", row.pattern);
    }
    assert_eq!(PATTERNS.set.len(), PATTERNS.rejected.len());
    assert!(!PATTERNS.set.is_empty() && PATTERNS.allowed.is_some());
}

#[test]
fn each_example_is_rejected_with_its_kind_and_allowed_examples_pass() {
    for row in rows(TABLE) {
        let want = Vec::from_iter(row.kind);
        assert_eq!(kinds(row.example, &[], &[]), want, "{}", row.example);
    }
}

/// The indexes of the patterns that match an example, with these `allow` patterns.
fn matches(example: &str, allowed: Option<Regex>) -> Vec<usize> {
    let own = OwnWords::of(example, &[]);
    let hiding = Patterns {
        set: RegexSet::empty(),
        rejected: Vec::new(),
        allowed,
    };
    let clauses = own
        .clauses()
        .into_iter()
        .map(|clause| own.clause_text(clause));
    clauses
        .flat_map(|clause| PATTERNS.set.matches(&hiding.hide_allowed(clause)))
        .collect()
}

#[test]
fn no_pattern_can_be_left_out() {
    let (rejected, allowed): (Vec<Row>, Vec<Row>) =
        rows(TABLE).into_iter().partition(|row| row.kind.is_some());
    for (index, row) in rejected.iter().enumerate() {
        let found = matches(row.example, PATTERNS.allowed.clone());
        assert_eq!(found, [index], "{}", row.example);
    }
    for row in &allowed {
        let others = allowed.iter().filter(|other| other.pattern != row.pattern);
        let others: Vec<&str> = others.map(|other| other.pattern.as_str()).collect();
        let found = matches(row.example, compile(&others.join("|")).ok());
        assert!(!found.is_empty(), "{}", row.example);
    }
}

#[test]
fn a_quotation_of_the_tool_output_is_not_the_models_claim() {
    let output = "note: this might be caused by a stale index\nhelp: see risk.rs";
    let quote = "The tool says \"this might be caused by a stale index\".";
    assert_eq!(kinds(quote, &[], &[output]), []);
    let cut = "The tool says \"note: this might ... a stale index\".";
    assert_eq!(kinds(cut, &[], &[output]), []);
    let unmarked = "It printed this might be caused by a stale index to stderr.";
    assert_eq!(kinds(unmarked, &[], &[output]), []);
    assert_eq!(
        kinds("See risk.rs, `cause_of` and policy::risky.", &[], &[output]),
        []
    );
}

#[test]
fn a_model_cannot_quote_itself() {
    let verbatim = [
        "Is the patch safe to merge?",
        "error: required because of `T`",
    ];
    let quoted = "In short: \"the change is probably fine\".";
    assert_eq!(kinds(quoted, &[], &verbatim), [Disallowed::Confidence]);
    assert_eq!(
        kinds("It `might be stale` now.", &[], &verbatim),
        [Disallowed::Confidence]
    );
    let short_copy = "The patch is safe to merge.";
    assert_eq!(kinds(short_copy, &[], &verbatim), [Disallowed::Risk]);
    assert_eq!(
        kinds("It failed because of the index.", &[], &verbatim),
        [Disallowed::Causal]
    );
}

#[test]
fn a_quotation_counts_without_tool_outputs() {
    assert_eq!(
        kinds("Searching for \"because\" gave 9 matches.", &[], &[]),
        []
    );
    assert_eq!(
        kinds("```\nthis might fail\n```\nis the output.", &[], &[]),
        []
    );
}

#[test]
fn a_tool_error_has_to_appear_word_for_word() {
    let error = "Symbol 'bar'\n  not found";
    let verbatim = [error];
    assert_eq!(
        kinds(
            "splice_patch failed: Symbol 'bar' not found",
            &[error],
            &verbatim
        ),
        []
    );
    let reworded = screen("The symbol wasn't found.", &[error], &verbatim);
    let quote = "Symbol 'bar' not found".to_owned();
    assert_eq!(
        reworded,
        [Finding {
            kind: Disallowed::RewordedError,
            quote
        }]
    );
    assert_eq!(kinds("Done.", &[" \n"], &[]), []);
}

#[test]
fn a_declined_cause_does_not_cover_a_claim_in_the_next_clause() {
    let text = "The log does not say what the cause is, but the rename caused it.";
    assert_eq!(kinds(text, &[], &[]), [Disallowed::Causal]);
}

#[test]
fn quotes_are_the_words_of_the_text() {
    let text = "Naïve **PROBABLY**\n\nyes. It isn’t\n  safe to merge.";
    let quotes: Vec<String> = screen(text, &[], &[])
        .into_iter()
        .map(|finding| finding.quote)
        .collect();
    assert_eq!(quotes, ["PROBABLY", "isn’t\n  safe to"]);
}

#[test]
fn the_message_has_the_four_lines_of_the_seed() {
    let findings = screen("This is 90% likely to succeed.", &[], &[]);
    let lines = [
        "Response contains disallowed element: confidence score",
        "Permitted: evidence summaries, tool output, explanations",
        "Rejected: '90% likely'",
        "Correct format: 'Q1 shows 2/3 prior attempts succeeded'",
    ];
    assert_eq!(message(&findings), lines.join("\n"));
    assert_eq!(message(&[]), "");
}

#[test]
fn hostile_texts_take_linear_time() {
    screen("warm up", &[], &[]);
    let output = "a b c d e f g h\n".repeat(8000);
    for part in [
        "because ",
        "\"",
        "`",
        "“",
        "``` `a` ",
        " '",
        "a. ",
        "\n",
        "patch ",
        "error ",
        "a b c ",
        "%",
        "not say what ",
        "the ",
        "\u{3000}",
        "a\"b` ",
        "x",
        "I ",
        "no ",
        "'a “b` ",
    ] {
        let text = part.repeat(65_536 / part.len());
        let start = Instant::now();
        screen(&text, &[&text], &[&output]);
        let time = start.elapsed();
        println!("{time:>10.0?} {part:?}");
        assert!(time < Duration::from_secs(2), "{part:?} took {time:?}");
    }
}
