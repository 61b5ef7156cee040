//! What is cut from a main answer and what stays.

use super::*;
use crate::domain::{Agent, AgentReport, Unit};

fn main_of(text: &str) -> String {
    main_answer(text, "", &Redactor::default(), &mut vec![])
}

#[test]
fn the_services_own_sections_are_cut_with_all_they_hold() {
    let mut told = vec![];
    let text = "Use Docker.\n\n## Execution time estimate\n- Total: E_total=99\n\n### Confidence\n0.99\n\n## Next\nMore.";
    assert_eq!(
        main_answer(text, "", &Redactor::default(), &mut told),
        "Use Docker.\n\n## Next\nMore."
    );
    assert_eq!(told.len(), 2);
    for heading in [
        "## TL;DR",
        "# **TLDR**:",
        "### 1. Assumptions",
        "## 🎯 Confidence 🎯",
        "Audit appendix\n---",
    ] {
        assert_eq!(
            main_of(&format!("{heading}\nx\n\n# Answer\nIt is 4.")),
            "# Answer\nIt is 4.",
            "{heading}"
        );
    }
}

#[test]
fn sentences_and_code_that_look_like_headings_stay() {
    let text = "Assumptions matter here.\n\n```\n# Confidence\nO_total=3\n```\nConfidence in the supplier is low.";
    assert_eq!(main_of(text), text);
    let template =
        "Use it:\n\n~~~md\n## Execution time estimate\n\n## Audit appendix\nTL;DR: x\n~~~\n\nDone.";
    assert_eq!(main_of(template), template);
}

#[test]
fn headings_that_only_begin_with_a_name_stay() {
    for heading in [
        "## Audit trail: design",
        "## Confidence intervals: how",
        "## Confidence: how to earn it",
        "## Audit",
        "## Assumptions of the model",
        "## Confidence?",
        "**Acceptance tests of the supplier:** none.",
    ] {
        let text = format!("{heading}\n\nText of it.");
        assert_eq!(main_of(&text), text);
    }
}

#[test]
fn a_line_is_cut_and_what_follows_it_stays() {
    for (text, expected) in [
        ("TL;DR: 391.\n\nThe product is 391.", "The product is 391."),
        ("TL;DR: 391.\nThe product is 391.", "The product is 391."),
        (
            "## TL;DR: 391.\n\nThe product is 391.",
            "The product is 391.",
        ),
        (
            "**Confidence:** 0.8\n\nThe product is 391.",
            "The product is 391.",
        ),
        (
            "The product is 391.\n\nConfidence: high.",
            "The product is 391.",
        ),
        (
            "## Confidence: 0.8\nThe product is 391.",
            "The product is 391.",
        ),
        (
            "**Assumptions:** one host.\n\nDocker Compose is enough.\n\nBack up the volume.",
            "Docker Compose is enough.\n\nBack up the volume.",
        ),
        (
            "**Assumptions:** these.\n- one host\n  with Linux\n- root\nCompose is enough.",
            "Compose is enough.",
        ),
        (
            "TL;DR: three steps.\n1. Install\n2. Run",
            "1. Install\n2. Run",
        ),
        (
            "**TL;DR**\n\n391.\n\nThe product is 391.",
            "The product is 391.",
        ),
        (
            "**Assumptions**\n\n- one host\n\n- root\n\nCompose is enough.",
            "Compose is enough.",
        ),
    ] {
        assert_eq!(main_of(text), expected, "{text}");
    }
}

#[test]
fn a_short_section_without_a_heading_after_it_ends_with_its_block() {
    for (text, expected) in [
        ("## TL;DR\n391.\n\n17 * 23 = 391.", "17 * 23 = 391."),
        (
            "## TL;DR\n\n391.\n\n17 * 23 = 391.\n\nSo it is.",
            "17 * 23 = 391.\n\nSo it is.",
        ),
        (
            "## Assumptions\n\n- one host\n- root\n\nCompose is enough.",
            "Compose is enough.",
        ),
        (
            "## Assumptions\nThese:\n\n1. one host\n\n> root\n\nCompose is enough.",
            "Compose is enough.",
        ),
        (
            "## TL;DR\nThree steps.\n\n1. Install\n2. Run\n3. Check\n\nDone.",
            "1. Install\n2. Run\n3. Check\n\nDone.",
        ),
        (
            "# TL;DR\n391.\n\n## Working\n17 * 23\n\n# End\nx",
            "## Working\n17 * 23\n\n# End\nx",
        ),
        ("It is 391.\n\n## Confidence\n0.9", "It is 391."),
    ] {
        assert_eq!(main_of(text), expected, "{text}");
    }
    let long = "## TL;DR\n391.\n\na\n\nb\n\nc\n\nd\n\ne\n\nf\n\n## Notes\nx";
    assert_eq!(main_of(long), "a\n\nb\n\nc\n\nd\n\ne\n\nf\n\n## Notes\nx");
}

#[test]
fn an_answer_of_nothing_but_own_sections_is_kept_as_plain_text() {
    let mut told = vec![];
    let text = "## TL;DR\n391.\n\n## Confidence\n0.9";
    let main = main_answer(text, "", &Redactor::default(), &mut told);
    assert!(main.starts_with("**TL;DR**\n\n391."), "{main}");
    assert!(Outline::of(&main).headings.is_empty());
    assert_eq!(told.len(), 1);
    assert_eq!(main_of("TL;DR: 391."), "TL;DR: 391.");
    assert_eq!(main_of("  \n"), "");
}

#[test]
fn what_a_master_leaves_open_is_closed() {
    assert_eq!(main_of("Run:\n\n```sh\nmake"), "Run:\n\n```sh\nmake\n```");
}

#[test]
fn references_to_discarded_units_are_cut() {
    let unit = |id: &str| Unit {
        id: id.into(),
        topic: "t".into(),
        text: "x".into(),
        tags: vec![],
    };
    let report = AgentReport {
        units: vec![unit("u1")],
        ..AgentReport::empty(Agent::Critic)
    };
    let discarded = Redactor::new([("critic", &report)]);
    let mut told = vec![];
    let text = "It is 4 [critic:u1], see solver:u2 and critic:vim.";
    assert_eq!(
        main_answer(text, "", &discarded, &mut told),
        "It is 4, see solver:u2 and critic:vim."
    );
    assert_eq!(told.len(), 1);
}

#[test]
fn a_plain_line_opens_no_block() {
    for (text, expected) in [
        ("## Execution time estimate", "Execution time estimate"),
        ("- > # Confidence\n", "Confidence"),
        ("```sh\nmake\n```", "sh make"),
        ("~~~\nx", "x"),
        ("---", ""),
        ("", ""),
        ("+", "\\+"),
        ("-5 degrees, C#", "-5 degrees, C#"),
        (">= 5 servers", "\\>= 5 servers"),
        ("<!-- x", "\\<!-- x"),
        ("**Use** `a`", "**Use** `a`"),
        ("#1 in sales", "#1 in sales"),
        ("391. It is.", "391. It is."),
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
    assert_eq!(first_sentence("```\n-5 is it.\n```"), "-5 is it.");
    assert_eq!(first_sentence(""), "");
}

#[test]
fn a_comment_that_is_left_open_hides_nothing() {
    assert_eq!(renderable("Hello <!-- unclosed"), "Hello &lt;!-- unclosed");
    assert_eq!(renderable("Hello <!-- a --> b"), "Hello <!-- a --> b");
    assert_eq!(renderable("Use `<!--` there"), "Use `<!--` there");
}

#[test]
fn sections_that_the_request_names_stay_and_are_no_headings() {
    let record = "## Context\n\nWe deploy weekly.\n\n## Assumptions\n\n- Traffic is low.\n\n## Decision\n\nBlue-green.\n\n\
        ## Confidence\n\nHigh, because it was tested.\n\n## TL;DR\n\nBlue-green wins.\n\n## Audit appendix\n\nNone.\n\n## Consequences\n\nTwice the cost.";
    let mut told = vec![];
    let request = "Write an ADR with the sections Context, Assumptions, Decision, Confidence, TL;DR and Consequences.";
    let main = main_answer(record, request, &Redactor::default(), &mut told);
    let plain: Vec<&str> = main.lines().filter(|line| !line.is_empty()).collect();
    for kept in [
        ["**Assumptions**", "- Traffic is low."],
        ["**TL;DR**", "Blue-green wins."],
    ] {
        assert!(plain.windows(2).any(|two| two == kept), "{main}");
    }
    // What the service computes is said by the service alone.
    assert!(
        !main.contains("High, because it was tested.") && !main.contains("Confidence"),
        "{main}"
    );
    assert!(
        !main.contains("Audit") && main.contains("## Consequences\n\nTwice"),
        "{main}"
    );
    assert_eq!(told.len(), 4);
    assert_eq!(renderable(&main), main);
    for other in [
        "How do I deploy?",
        "How much confidence do you have?",
        "Write a report on deployments.",
        "State your assumptions and your confidence.",
    ] {
        let main = main_answer(record, other, &Redactor::default(), &mut vec![]);
        assert!(
            !main.contains("Assumptions") && !main.contains("Confidence"),
            "{other}: {main}"
        );
    }
    let line = "TL;DR: 391.\n\nThe product is 391.";
    assert_eq!(
        main_answer(
            line,
            "Begin the text with the heading TL;DR",
            &Redactor::default(),
            &mut vec![]
        ),
        line
    );
}
