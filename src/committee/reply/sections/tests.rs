//! What is cut from a main answer and what stays.

use super::*;

/// Returns the main answer to a request, and the number of corrections.
fn read(text: &str, request: &str) -> (String, usize) {
    let mut told = vec![];
    let main = main_answer(text, request, &Redactor::default(), &mut told);
    (main, told.len())
}

#[test]
fn the_services_own_sections_are_cut_with_all_they_hold() {
    let text = "Use Docker.\n\n## Execution time estimate\n- Total: E_total=99\n\n### By step\n1\n\n## Confidence\n0.99\n\n## Next\nMore.";
    assert_eq!(
        read(text, ""),
        ("Use Docker.\n\n## Next\nMore.".to_owned(), 2)
    );
    for heading in [
        "## TL;DR",
        "# **TLDR**:",
        "## 🎯 Confidence 🎯",
        "Audit appendix\n---",
        "**Acceptance tests:**",
    ] {
        let (main, _) = read(&format!("{heading}\nx\n\n# Answer\nIt is 4."), "");
        assert_eq!(main, "# Answer\nIt is 4.", "{heading}");
    }
}

#[test]
fn what_only_looks_like_a_section_or_follows_one_stays() {
    for (text, rest) in [
        (
            "## TL;DR\nIt is 4.\n\nTwo and two are four.\n\n## Notes\nNone.",
            "Two and two are four.\n\n## Notes\nNone.",
        ),
        (
            "**Assumptions**\n\n- Whole numbers.\n\n- Base ten.\n\nIt is 4.",
            "It is 4.",
        ),
        (
            "It is 4.\n\n### Execution time estimate\n\n- Total: 9\n\nOf which 3 for tests.",
            "It is 4.",
        ),
        ("  \n", ""),
    ] {
        assert_eq!(read(text, "").0, rest);
    }
    for text in [
        "Assumptions matter here.\n\n```\n# Confidence\n```\nConfidence in the supplier is low.",
        "Use it:\n\n~~~md\n## Execution time estimate\n\n**TL;DR**\n~~~\n\nDone.",
        "## Audit trail: design\n\nText of it.",
        "## Assumptions of the model\n\nText of it.",
        "**Acceptance tests of the supplier:** none.\n\nText of it.",
    ] {
        assert_eq!(read(text, "").0, text);
    }
    // An answer of nothing else is kept as plain text.
    let (main, told) = read("## TL;DR\n391.\n\n## Confidence\n0.9", "");
    assert_eq!(main, "**TL;DR**\n\n391.\n\n**Confidence**\n\n0.9");
    assert_eq!(told, 1);
}

#[test]
fn a_section_that_the_request_names_stays_and_is_no_heading() {
    let record = "## Context\n\nWe deploy weekly.\n\n## Assumptions\n\n- Traffic is low.\n\n## Confidence\n\nHigh.\n\n## Consequences\n\nTwice the cost.";
    let request = "Write an ADR with the sections Context, Assumptions, Confidence, Consequences.";
    let (main, told) = read(record, request);
    assert!(main.contains("\n\n**Assumptions**\n\n- Traffic is low.\n\n"));
    // Only the service states what it computes.
    assert!(!main.contains("Confidence") && main.contains("## Consequences\n\nTwice"));
    assert_eq!((told, renderable(&main)), (2, main));
    let (other, _) = read(record, "How do I deploy?");
    assert!(!other.contains("Assumptions"), "{other}");
}

#[test]
fn a_plain_line_opens_no_block_and_a_first_sentence_is_one_line() {
    for (text, expected) in [
        ("## Execution time estimate", "Execution time estimate"),
        ("- > # Confidence\n", "Confidence"),
        ("~~~\nx", "x"),
        ("---", ""),
        ("", ""),
        ("+", "\\+"),
        ("-5 degrees, C#", "-5 degrees, C#"),
        (">= 5 servers", "\\>= 5 servers"),
        ("<!-- x", "\\<!-- x"),
        ("**Use** `a`", "**Use** `a`"),
        ("#1 in sales", "#1 in sales"),
    ] {
        assert_eq!(plain_line(text), expected);
        assert_eq!(plain_line(expected), expected);
    }
    for (text, expected) in [
        ("## It is 3.5 **km**. Next.", "It is 3.5 km."),
        ("```sh\n-5 is it.\n```", "-5 is it."),
        ("Use .NET 8. It is free.", "Use .NET 8."),
        ("Use e.g. Docker. It is free.", "Use e.g. Docker."),
        ("See https://a.b/c?d=1. Next.", "See https://a.b/c?d=1."),
        ("Is it 100? No, it is 90.", "No, it is 90."),
        ("Is it?", "Is it?"),
        ("# Docker\n\nSure! Steps:\n\n1. Install it.", "Install it."),
        ("もちろんです！東京です。", "東京です。"),
        ("**Answer**\n\nPossibly 4.", "Possibly 4."),
        ("**Paris**", "Paris"),
        ("Paris!", "Paris!"),
        ("", ""),
    ] {
        assert_eq!(first_sentence(text), expected);
    }
}
