//! The routines of the committee that read text of models or users, under one signature.

#![allow(
    clippy::expect_used,
    reason = "a fixture that does not parse is a defect of this file"
)]

use std::collections::BTreeMap;

use conclave::committee::invariants::{self, InvariantInput};
use conclave::committee::routines::*;
use conclave::committee::{FinalSynthesis, audit_markdown, audit_view, text_bound};
use conclave::domain::{
    Agent, AgentReport, AssumptionKind, Confidence, Disagreement, Judgement, Mode, Obtained,
    Question, Reply, RunId, ScoringPolicy,
};
use conclave::journal::{AgentOutcome, CheckScope, Event, Synthesized, Transcript};
use conclave::{llm, scoring, text};
use serde_json::{Value, json};

pub const ROUTINES: &[Routine] = &[
    ("report: parse", |text| {
        let _ = conclave_lenient_json::parse::<AgentReport>(text, &schema_of::<AgentReport>());
    }),
    ("synthesis: parse", |text| {
        let schema = schema_of::<FinalSynthesis>();
        let _ = conclave_lenient_json::parse::<FinalSynthesis>(text, &schema);
    }),
    ("report: any JSON", |text| {
        let _ = conclave_lenient_json::extract_any(text);
    }),
    ("report: clean", |text| drop(report(text))),
    ("report: from plain text", |text| {
        drop(scoring::report_from_text("solver", text, &unquoted(text)));
    }),
    ("score: reports", |text| {
        drop(judgement("What is asked?", &report(text)));
    }),
    ("score: request", |text| {
        drop(judgement(text, &report("It is 4.")));
    }),
    ("contested claims", |text| {
        let latest = [(Agent::Solver, text), (Agent::Critic, "It is 4.")];
        let latest = latest.map(|(agent, text)| (agent, answered(report(text))));
        drop(claims(&disputed(text), &BTreeMap::from(latest)));
    }),
    ("decisions", |text| {
        let mut report = report(text);
        let latest = BTreeMap::from([(Agent::Solver, answered(report.clone()))]);
        let claims = claims(&disputed(text), &latest);
        let held = held(&request(text), 2, Agent::Solver, &claims);
        drop(claims_shown(&held));
        if let Ok(decisions) = serde_json::from_str(text) {
            let obtained = Obtained::Clean;
            drop(settle(
                &mut report,
                Agent::Solver,
                &held,
                &decisions,
                obtained,
            ));
        }
    }),
    ("cross-check", cross_check),
    ("main answer: steps", |text| drop(plan_steps(text))),
    ("main answer: sections", |text| {
        drop(main_answer(text, text, &Redactor::default(), &mut vec![]));
    }),
    ("main answer: discarded", |text| {
        drop(main_answer(
            text,
            "What is asked?",
            &barred(text),
            &mut vec![],
        ));
    }),
    ("lines", |text| {
        drop((first_sentence(text), plain_line(text)));
        drop((text::excerpt(text, 60), label(text)));
    }),
    ("assumptions", |text| {
        let report = report(text);
        let stated = report.assumptions.iter().cloned();
        let stated: Vec<_> = stated.map(|text| (text, AssumptionKind::Guess)).collect();
        drop(ledger(
            &stated,
            &[(Agent::Solver, &report)],
            &request("What is asked?"),
        ));
    }),
    ("draft: cut", |text| {
        barred(text).redact_draft(&mut synthesized(text), "redacted");
    }),
    ("reply, audit, invariants", reply),
    ("reply: secrets", |text| {
        let secrets = [
            "a-secret-of-some-length-1",
            "aaaaaaaaaaaaaaaaaaaaaaaab",
            "\\\\\\\\\\\\\\\\\\\\",
        ];
        drop(llm::without_secrets(text, &secrets.map(Into::into)));
    }),
    ("request: hints", |text| drop(hints_of(&question(text)))),
    ("request: input bound", |text| {
        let _ = text_bound(text);
    }),
    ("main answer: last paragraph", |text| {
        drop(to_last_paragraph(text));
    }),
    ("request: language", |text| {
        let _ = RuleTexts::in_language_of([text]);
    }),
];

/// Returns the lines of a text, as entries of lists.
fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

/// Returns a report with the text in each of its fields, and its lines as entries of its lists.
fn report(text: &str) -> AgentReport {
    let lines = lines(text);
    let unit = |line| json!({ "id": line, "topic": line, "text": line, "tags": ["answer"] });
    let report = json!({
        "agent": "solver", "answerSummary": lines, "assumptions": lines, "reasoning": text,
        "stepsOrDeliverables": lines, "failureModes": [], "selfConfidence": 0.0,
        "units": lines.iter().map(unit).collect::<Vec<Value>>(),
    });
    clean(serde_json::from_value(report).expect("a report"), 0.8)
}

fn answered(report: AgentReport) -> AgentOutcome {
    AgentOutcome::Answered {
        report: report.into(),
        obtained: Obtained::Clean,
        truncated: false,
        notes: vec![],
        tokens: 1,
    }
}

fn judgement(message: &str, report: &AgentReport) -> Judgement {
    let outputs = [Agent::Solver, Agent::Critic].map(|agent| scoring::Output {
        agent: agent.into(),
        report,
        obtained: Obtained::Clean,
        truncated: false,
        role_matches: true,
        family: None,
    });
    let panel = scoring::Panel {
        message,
        task_type: None,
        demands: &[],
        first_round: vec![],
        lost: 0,
        outputs: outputs.into(),
        cross_checks: &[],
        resolutions: &[],
    };
    scoring::judge(&panel, &ScoringPolicy::default())
}

/// Returns a judgement with a disagreement for each line of a text, between two short reports.
fn disputed(text: &str) -> Judgement {
    let position = |agent: &str, text: &str| json!({ "text": text, "agents": [agent], "units": [format!("{agent}:u1")] });
    let disagreement = |line: &str| -> Disagreement {
        let disagreement = json!({
            "topic": line, "onFinalAnswer": true, "severity": 0.5,
            "positions": [position("solver", line), position("critic", "It is 4.")],
        });
        serde_json::from_value(disagreement).expect("a disagreement")
    };
    Judgement {
        disagreements: text.split('\n').take(24).map(disagreement).collect(),
        ..judgement("What is asked?", &report("It is 4."))
    }
}

/// Redacts the units of a report with this text.
fn barred(text: &str) -> Redactor {
    Redactor::new([("critic", Some(&report(text)))])
}

fn question(text: &str) -> Question {
    let user = json!({ "id": "u", "name": "u" });
    let question = json!({ "source": "http", "mode": "deep", "user": user, "message": text });
    serde_json::from_value(question).expect("a question")
}

fn request(text: &str) -> RequestContext {
    RequestContext {
        fence: "f".into(),
        seed: 1,
        ..RequestContext::alone(question(text))
    }
}

/// Shows the reports to the cross-check, and reads an answer with the text in each of its fields,
/// and its lines as entries of its lists.
fn cross_check(text: &str) {
    let (report, request, lines) = (report(text), request(text), lines(text));
    let written = AnsweredReport {
        agent: Agent::Solver,
        report: &report,
        tokens: 1,
    };
    let shown = reports_shown(&request, &[written], CheckScope::Key, false);
    for shown in &shown {
        drop((shown.value(), shown.model_text()));
    }
    let verdict = |claim: &str, reports: &[&str], evidence: &str| {
        json!({
            "claim": claim, "supportedBy": reports, "contradictedBy": reports, "holds": "no",
            "by": "memory", "evidence": evidence,
        })
    };
    let mut claims = vec![verdict("R1.1", &lines, text)];
    claims.extend(lines.iter().map(|line| verdict(line, &[], line)));
    let conduct = |line: &&str| json!({ "report": line, "kind": "declines", "why": line });
    let reply = json!({
        "claims": claims, "sameAnswers": [lines],
        "parts": [{ "part": text, "answeredBy": lines }],
        "reports": lines.iter().map(conduct).collect::<Vec<Value>>(),
    });
    let reply = serde_json::from_value(reply).expect("a cross-check");
    drop((problems(&reply, &shown), read(&reply, &shown)));
}

fn synthesized(text: &str) -> Synthesized {
    let lines = lines(text);
    let assumption = |line| json!({ "handle": "A1", "text": line, "kind": "guess", "agents": [] });
    let assumptions: Vec<Value> = lines.iter().take(24).map(assumption).collect();
    let synthesized = json!({
        "draft": {
            "taskType": "MIXED", "main": text, "tldr": lines.iter().take(3).collect::<Vec<_>>(),
            "acceptanceTests": lines, "assumptions": assumptions, "unitsUsed": lines,
            "disagreements": [{ "topic": text, "summary": text }], "quarantineJustifications": [],
        },
        "question": { "question": "Which one?", "options": ["one", "two", "three"] },
        "obtained": "clean", "corrections": [],
    });
    serde_json::from_value(synthesized).expect("a synthesis")
}

/// Renders and checks the reply of a run in which models wrote this text everywhere.
fn reply(text: &str) {
    let synthesized = synthesized(text);
    let finished = |agent: &str| {
        let report = AgentReport {
            agent: agent.to_owned(),
            ..report(text)
        };
        json!({ "kind": "agent_finished",
                "data": { "round": 1, "agent": agent, "outcome": answered(report) } })
    };
    let events = [
        json!({ "kind": "accepted", "data": {
            "question": question("What is asked?"), "cap": 0, "seed": 1, "configHash": "",
            "promptsHash": "", "version": "",
        } }),
        finished("solver"),
        finished("critic"),
        json!({ "kind": "scored", "data": { "round": 1, "judgement": disputed(text) } }),
        json!({ "kind": "synthesized", "data": synthesized }),
    ];
    let events: Vec<Event> = (events.into_iter())
        .map(|event| event.to_string().parse().expect("an event"))
        .collect();
    let transcript = Transcript::of(&events);
    let run: RunId = "00000000-0000-0000-0000-000000000000"
        .parse()
        .expect("an id");
    let audit = audit_view(run, &transcript);
    let appendix = audit.as_ref().map(audit_markdown).unwrap_or_default();
    let draft = synthesized.draft.expect("a draft");
    let shown = answer(&draft, &Confidence::none(0.7), &[]);
    let meta = json!({
        "task_type": "MIXED", "c_final": 0.8, "used_agents": [],
        "budget": { "cap": 0, "spent": 0, "exceeded": false },
        "invalidation": { "discarded": [], "quarantined": [], "valid": [] },
    });
    let reply = json!({ "outcome": "answered", "text": format!("{shown}\n{appendix}"),
                        "meta": meta, "audit": audit });
    let reply: Reply = serde_json::from_value(reply).expect("a reply");
    drop(invariants::check(&InvariantInput {
        reply: &reply,
        mode: Mode::Deep,
        run: &transcript,
        chain_fault: None,
        threshold: 0.7,
        secrets: &[],
    }));
}
