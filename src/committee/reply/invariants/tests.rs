//! Good replies pass and each broken rule is found.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::committee::reply::{render, sections};
use crate::domain::{
    Agent, BudgetMeta, Clarification, Confidence, Estimate, EstimateStep, Invalidation, Meta,
    Obtained, Status, TaskType, Terms, TimeUnit, Unit,
};
use crate::journal::{Event, SynthesisSource, Synthesized};

const LONG: &str = "The volume has to be backed up before the container is replaced, or else all of its data is gone.";

fn draft_of(main: &str) -> Draft {
    Draft {
        tldr: vec!["It is 4.".into()],
        ..Draft::new(TaskType::TechnicalExecution, main.into())
    }
}

fn estimate_of(steps: usize, by_rule: bool) -> Estimate {
    let step = EstimateStep {
        step: "Do it".into(),
        time: Pert::new(1.0, 2.0, 3.0),
    };
    Estimate {
        unit: TimeUnit::Minutes,
        steps: vec![step; steps],
        assumptions: vec![],
        risks: vec![],
        confidence: 0.5,
        by_rule,
    }
}

fn synthesis(draft: &Draft) -> Synthesized {
    let source = SynthesisSource::Model(Obtained::Clean);
    Synthesized::new(Some(draft.clone()), question(), source, vec![])
}

fn written(draft: &Draft) -> Event {
    Event::Synthesized(Arc::new(synthesis(draft)))
}

fn question() -> Clarification {
    let options = ["A one".into(), "B two".into(), "C three".into()];
    Clarification::new("Which one?", &options).unwrap()
}

fn event(kind: &str, data: &Value) -> Event {
    json!({ "kind": kind, "data": data })
        .to_string()
        .parse()
        .unwrap()
}

fn finished(agent: Agent, id: &str, text: &str) -> Event {
    let unit = Unit {
        id: id.into(),
        topic: "t".into(),
        text: text.into(),
        tags: vec![],
    };
    let report = AgentReport {
        units: vec![unit],
        agent: agent.to_string(),
        ..AgentReport::default()
    };
    let outcome = json!({ "type": "answered", "report": report, "obtained": "clean",
                          "truncated": false, "notes": [], "tokens": 1 });
    event(
        "agent_finished",
        &json!({ "round": 1, "agent": agent, "outcome": outcome }),
    )
}

fn scored(round: u8, agent: Agent, status: Status) -> Event {
    let axis = json!({ "points": 0.0, "fromCode": 0.0, "features": [] });
    let axes = json!({ "coherence": axis, "alignment": axis, "verifiability": axis,
                       "signalDensity": axis, "compliance": axis });
    let score = json!({ "agent": agent, "axes": axes, "cred": 0.8, "status": status });
    let judgement = json!({ "scores": [score], "disagreements": [], "answerGroups": [],
                            "baseScore": 0.0, "conflictPenalty": 0.0, "coverageBonus": 0.0,
                            "parts": [], "covered": [] });
    event("scored", &json!({ "round": round, "judgement": judgement }))
}

fn plan(question: Option<&Clarification>) -> Event {
    let plan = json!({ "taskType": "MIXED", "agentsToRun": ["solver"], "rounds": 1,
                       "needsClarification": question.is_some(),
                       "clarificationQuestion": question, "outputShape": "ask" });
    event(
        "planned",
        &json!({ "plan": plan, "obtained": "clean", "corrections": [] }),
    )
}

fn reply_of(outcome: Outcome, text: String) -> Reply {
    let meta = Meta {
        task_type: TaskType::Mixed,
        c_final: 0.8,
        budget: BudgetMeta {
            cap: Usd::from_dollars(1.0),
            spent: Usd::ZERO,
            exceeded: false,
        },
        used_agents: vec![],
        invalidation: Invalidation::default(),
    };
    Reply {
        outcome,
        text,
        meta,
        audit: None,
    }
}

fn answered(draft: &Draft, notes: &[String]) -> Reply {
    let confidence = Confidence::new(0.8, Terms::default(), Terms::default(), 0.7);
    reply_of(Outcome::Answered, render::answer(draft, &confidence, notes))
}

fn violations(
    reply: &Reply,
    events: &[Event],
    (mode, threshold): (Mode, f64),
    secrets: &[&str],
) -> Vec<Violation> {
    check(&InvariantInput {
        reply,
        mode,
        run: &Transcript::of(events),
        chain_fault: None,
        threshold,
        secrets,
    })
}

fn broken(reply: &Reply, events: &[Event], threshold: f64, secrets: &[&str]) -> Vec<&'static str> {
    let violations = violations(reply, events, (Mode::Ask, threshold), secrets).into_iter();
    let rules = violations.map(|violation| violation.rule);
    rules
        .filter(|rule| !rule.starts_with("plan and agent"))
        .collect()
}

/// What is found in a draft's own reply.
fn found(draft: &Draft, events: Vec<Event>) -> Vec<&'static str> {
    let events: Vec<Event> = std::iter::once(written(draft)).chain(events).collect();
    broken(&answered(draft, &[]), &events, 0.7, &[])
}

#[test]
fn headings_in_code_and_in_single_lines_are_no_sections() {
    let mut draft = draft_of(
        "Use this:\n\n```md\n## Execution time estimate\n\n## Audit appendix\n```\n\nDone.",
    );
    assert_eq!(found(&draft, vec![]), [""; 0]);
    draft.tldr = vec![
        "## Execution time estimate".into(),
        "> - ## Confidence".into(),
        "---".into(),
    ];
    draft.acceptance_tests = vec!["```".into(), "# It runs".into()];
    assert_eq!(found(&draft, vec![]), [""; 0]);
    let notes = ["## Audit appendix\n```".to_owned()];
    assert_eq!(
        broken(&answered(&draft, &notes), &[written(&draft)], 0.7, &[]),
        [""; 0]
    );
    // Even those of a main answer that was not cleaned, and a fence that it leaves open.
    let draft =
        draft_of("## Assumptions\nx\n\nConfidence\n---\n\n## Audit appendix\n\n```sh\nmake");
    assert_eq!(found(&draft, vec![]), [""; 0]);
}

#[test]
fn a_reply_without_its_sections_is_found() {
    let draft = draft_of("It is 4.");
    let mut reply = answered(&draft, &[]);
    reply.text = reply.text.replace("## Confidence", "```\n## Confidence");
    assert_eq!(broken(&reply, &[written(&draft)], 0.7, &[]).len(), 2);
    let mut reply = answered(&draft, &[]);
    reply.text.push_str("\n## Audit appendix\n");
    assert_eq!(
        broken(&reply, &[written(&draft)], 0.7, &[]),
        ["the audit is present exactly in audit and deep"]
    );
}

#[test]
fn totals_are_those_of_the_section_and_not_of_code_before_it() {
    let mut draft = draft_of("```\n- Total: O_total=1, M_total=1, P_total=1, E_total=1\n```");
    draft.estimate = Some(estimate_of(3, false));
    assert_eq!(found(&draft, vec![]), [""; 0]);
    let mut reply = answered(&draft, &[]);
    reply.text = reply.text.replace("O_total=3", "O_total=4");
    assert_eq!(
        broken(&reply, &[written(&draft)], 0.7, &[]),
        ["the totals are the sums of the steps"]
    );
}

#[test]
fn a_plan_has_an_estimate() {
    let mut draft = draft_of("1. Install it\n2. Run it\n3. Check it");
    let rule = ["a plan has an estimate"];
    assert_eq!(found(&draft, vec![]), rule);
    draft.estimate = Some(estimate_of(3, false));
    assert_eq!(found(&draft, vec![]), [""; 0]);
    draft.estimate = Some(estimate_of(0, false));
    assert!(found(&draft, vec![]).contains(&rule[0]));
}

#[test]
fn a_discarded_unit_is_found_in_text_and_audit() {
    let events = vec![
        written(&draft_of("It is 4.")),
        finished(Agent::Critic, "c-1", LONG),
        finished(Agent::Critic, "c-5", LONG),
        scored(2, Agent::Critic, Status::Discard),
    ];
    let rules = |text: &str, audit: Value| {
        let mut reply = answered(&draft_of("It is 4."), &[]);
        reply.text.push_str(&format!("\n{AUDIT}\n\n{text}\n"));
        reply.audit = Some(audit);
        let violations = violations(&reply, &events, (Mode::Audit, 0.7), &[]).into_iter();
        violations
            .filter(|it| it.rule.starts_with("DISCARD"))
            .count()
    };
    assert_eq!(rules("critic: DISCARD", json!({ "agents": ["critic"] })), 0);
    assert_eq!(rules("see critic:vim and solver:u1", json!({})), 0);
    // Those of every round, and those that no report has.
    for unit in ["critic:c-1", "critic:c-5", "critic:u12"] {
        assert_eq!(rules(&format!("critic says {unit}"), json!({})), 1);
        assert_eq!(rules("", json!({ "units": [unit] })), 1);
    }
    // Its text is not searched for.
    assert_eq!(rules(LONG, json!({ "text": LONG })), 0);
}

#[test]
fn a_quarantined_output_in_the_text_needs_its_reason() {
    let rule = ["QUARANTINE is justified"];
    let broken_by = |main: &str, justified: bool| {
        let mut draft = draft_of(main);
        if justified {
            let why = "it is needed".to_owned();
            draft.quarantine_justifications = vec![crate::journal::Justification {
                agent: Agent::Critic,
                why,
            }];
        }
        let mut reply = answered(&draft, &[]);
        reply.meta.invalidation.quarantined = vec![Agent::Critic];
        let events = vec![
            written(&draft),
            finished(Agent::Critic, "u1", LONG),
            scored(1, Agent::Critic, Status::Quarantine),
        ];
        broken(&reply, &events, 0.7, &[])
    };
    assert_eq!(broken_by("It is 4, see critic:u1.", false), rule);
    assert_eq!(broken_by("It is 4, see critic:u1.", true), [""; 0]);
    assert_eq!(broken_by("It is 4, see critic:u9.", false), rule);
    assert_eq!(broken_by("It is 4, see critic:us.", false), [""; 0]);
}

#[test]
fn a_redacted_draft_breaks_no_rule() {
    let events = vec![
        finished(Agent::Critic, "u1", "x"),
        scored(1, Agent::Critic, Status::Discard),
    ];
    let redactor = Redactor::of_discarded(&Transcript::of(&events));
    let mut draft = draft_of("It is 4 (critic:u1).");
    let mut estimate = estimate_of(1, false);
    estimate.steps[0].step = "Do critic:u1".into();
    estimate.assumptions = vec!["critic:u1".into()];
    estimate.risks = vec!["critic:u1 may be right".into()];
    draft.estimate = Some(estimate);
    draft.tldr = vec!["critic:u1".into()];
    draft.acceptance_tests = vec!["It is as critic:u1 says".into()];
    let mut synthesized = synthesis(&draft);
    redactor.redact_draft(&mut synthesized, "redacted");
    assert_eq!(synthesized.corrections.last().unwrap(), "redacted");
    let redacted = synthesized.draft.clone().unwrap();
    assert_eq!(redacted.main, "It is 4.");
    assert_eq!(redacted.acceptance_tests, ["It is as critic says"]);
    assert_eq!(found(&redacted, events), [""; 0]);
}

#[test]
fn the_last_judgement_says_what_is_discarded() {
    let critic = || finished(Agent::Critic, "u1", LONG);
    let (out, fine) = (Status::Discard, Status::Valid);
    let draft = draft_of("It is 4 [critic:u1]");
    let improved = vec![
        critic(),
        scored(1, Agent::Critic, out),
        scored(2, Agent::Critic, fine),
    ];
    assert_eq!(found(&draft, improved), [""; 0]);
    let worsened = vec![
        critic(),
        scored(1, Agent::Critic, fine),
        scored(2, Agent::Critic, out),
    ];
    assert_eq!(found(&draft, worsened), ["DISCARD is never referenced"]);
}

#[test]
fn a_violation_holds_nothing_of_the_reply() {
    let reply = reply_of(
        Outcome::Clarification,
        "My private words? And more?\nA) x".into(),
    );
    let violations = violations(&reply, &[], (Mode::Ask, 0.9), &[]);
    assert_eq!(violations.len(), 2);
    let is_told = |it: &Violation| it.to_string().contains("private");
    assert!(!violations.iter().any(is_told));
}

#[test]
fn only_what_cannot_be_guessed_is_a_secret() {
    let draft = draft_of("Use Docker with sk-0123456789abcdef.");
    let reply = answered(&draft, &[]);
    assert_eq!(
        broken(&reply, &[written(&draft)], 0.7, &["Docker", "sk-0123"]),
        [""; 0]
    );
    assert_eq!(
        broken(&reply, &[written(&draft)], 0.7, &["sk-0123456789abcdef"]),
        ["no secret anywhere"]
    );
}

#[test]
fn a_question_before_any_judgement_needs_no_threshold() {
    let rule = "c_final below the threshold means a question, else an answer";
    let mut asked = reply_of(Outcome::Clarification, render::clarification(&question()));
    asked.meta.c_final = 0.0;
    assert_eq!(
        broken(&asked, &[plan(Some(&question()))], 0.0, &[]),
        [""; 0]
    );
    assert_eq!(
        broken(&asked, &[plan(Some(&question()))], 0.7, &[]),
        [""; 0]
    );
    assert_eq!(broken(&asked, &[plan(None)], 0.0, &[]), [rule]);
    let mut ran = vec![plan(Some(&question())), finished(Agent::Solver, "u1", "x")];
    assert_eq!(broken(&asked, &ran, 0.0, &[]), [""; 0]);
    ran.push(scored(1, Agent::Solver, Status::Valid));
    assert_eq!(broken(&asked, &ran, 0.0, &[]), [rule]);
}

/// Pieces that, put together, look like the service's own sections, open blocks, or end them.
const PIECES: &str = "## TL;DR|## Assumptions|Confidence|---|## Confidence|0.80\
    |## Execution time estimate|## Audit appendix|```|~~~~|```sh|<!--|-->|<pre>\
    |- a|1. Install it|2. Run it|3. Check it|> b|    c|||Text.|TL;DR: x\
    |**Assumptions:** y|`|critic:u1|(critic:u1)|## Plan|**Steps**\
    |- Total: O_total=1, M_total=1, P_total=1, E_total=1|[a]: b";

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.split('|').collect::<Vec<_>>());
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.join("\n"))
}

proptest! {
    #[test]
    fn no_main_answer_and_no_line_breaks_the_frame(main in pieces(), lines in prop::collection::vec(pieces(), 0..4)) {
        let events = vec![finished(Agent::Critic, "u1", "x"), scored(1, Agent::Critic, Status::Discard)];
        let discarded = Redactor::of_discarded(&Transcript::of(&events));
        let mut draft = draft_of(&sections::main_answer(&main, "", &discarded, &mut vec![]));
        draft.tldr = lines.iter().map(|line| sections::plain_line(line)).filter(|l| !l.is_empty()).collect();
        draft.acceptance_tests.clone_from(&lines);
        let mut synthesized = synthesis(&draft);
        sections::plain_draft(synthesized.draft.as_mut().unwrap());
        discarded.redact_draft(&mut synthesized, "redacted");
        let mut draft = synthesized.draft.clone().unwrap();
        let steps = plan_steps(&draft.main).len();
        draft.estimate = (steps > 0).then(|| estimate_of(steps, true));
        prop_assert_eq!(found(&draft, events), [""; 0]);
        prop_assert_eq!(sections::renderable(&draft.main), draft.main.clone());
    }
}
