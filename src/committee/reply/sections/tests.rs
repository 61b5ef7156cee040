//! What is cut from a main answer and what stays.

use super::*;
use crate::domain::{Agent, AgentReport, Unit};

fn main_of(text: &str) -> String {
    main_answer(text, "", &Redactor::default(), &mut vec![])
}

#[test]
fn the_services_own_sections_are_cut_with_all_they_hold() {
    let mut told = vec![];
    let text = "Use Docker.\n\n## Execution time estimate\n- Total: E_total=99\n\n### By step\n1\n\n## Confidence\n0.99\n\n## Next\nMore.";
    assert_eq!(
        main_answer(text, "", &Redactor::default(), &mut told),
        "Use Docker.\n\n## Next\nMore."
    );
    assert_eq!(told.len(), 2);
    for heading in [
        "## TL;DR",
        "# **TLDR**:",
        "## 🎯 Confidence 🎯",
        "Audit appendix\n---",
        "**Acceptance tests:**",
    ] {
        assert_eq!(
            main_of(&format!("{heading}\nx\n\n# Answer\nIt is 4.")),
            "# Answer\nIt is 4.",
            "{heading}"
        );
    }
}

#[test]
fn an_answer_that_follows_a_section_without_a_heading_stays() {
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
    ] {
        assert_eq!(main_of(text), rest);
    }
}

#[test]
fn sentences_and_code_that_look_like_sections_stay() {
    for text in [
        "Assumptions matter here.\n\n```\n# Confidence\n```\nConfidence in the supplier is low.",
        "Use it:\n\n~~~md\n## Execution time estimate\n\n**TL;DR**\n~~~\n\nDone.",
        "## Audit trail: design\n\nText of it.",
        "## Assumptions of the model\n\nText of it.",
        "**Acceptance tests of the supplier:** none.\n\nText of it.",
    ] {
        assert_eq!(main_of(text), text);
    }
}

#[test]
fn an_answer_of_nothing_but_own_sections_is_kept_as_plain_text() {
    let mut told = vec![];
    let text = "## TL;DR\n391.\n\n## Confidence\n0.9";
    let main = main_answer(text, "", &Redactor::default(), &mut told);
    assert_eq!(main, "**TL;DR**\n\n391.\n\n**Confidence**\n\n0.9");
    assert_eq!(told.len(), 1);
    assert_eq!(main_of("  \n"), "");
}

#[test]
fn a_section_that_the_request_names_stays_and_is_no_heading() {
    let record = "## Context\n\nWe deploy weekly.\n\n## Assumptions\n\n- Traffic is low.\n\n## Confidence\n\nHigh.\n\n## Consequences\n\nTwice the cost.";
    let mut told = vec![];
    let request = "Write an ADR with the sections Context, Assumptions, Confidence, Consequences.";
    let main = main_answer(record, request, &Redactor::default(), &mut told);
    assert!(main.contains("\n\n**Assumptions**\n\n- Traffic is low.\n\n"));
    // Only the service states what it computes.
    assert!(!main.contains("Confidence") && main.contains("## Consequences\n\nTwice"));
    assert_eq!(told.len(), 2);
    assert_eq!(renderable(&main), main);
    let other = main_answer(
        record,
        "How do I deploy?",
        &Redactor::default(),
        &mut vec![],
    );
    assert!(!other.contains("Assumptions"), "{other}");
}

#[test]
fn references_to_discarded_units_are_cut_and_open_code_is_closed() {
    let unit = Unit {
        id: "u1".into(),
        topic: "t".into(),
        text: "x".into(),
        tags: vec![],
    };
    let report = AgentReport {
        units: vec![unit],
        ..AgentReport::empty(Agent::Critic)
    };
    let discarded = Redactor::new([("critic", &report)]);
    let mut told = vec![];
    let text = "It is 4 [critic:u1], see solver:u2 and critic:vim.\n\n```sh\nmake";
    assert_eq!(
        main_answer(text, "", &discarded, &mut told),
        "It is 4, see solver:u2 and critic:vim.\n\n```sh\nmake\n```"
    );
    assert_eq!(told.len(), 1);
}

#[test]
fn a_plain_line_opens_no_block() {
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
}

#[test]
fn the_first_sentence_is_one_line() {
    assert_eq!(
        first_sentence("## It is 3.5 **km**. Next."),
        "It is 3.5 km."
    );
    assert_eq!(first_sentence("```sh\n-5 is it.\n```"), "-5 is it.");
    assert_eq!(first_sentence(""), "");
}
