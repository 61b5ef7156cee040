//! All routines of the committee that read text of models or users, under one signature. The
//! benchmark of their cost per byte (`make bench`, table `cost`) and the fuzzer use them.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::committee::call::clean::clean;
use crate::committee::call::prompts::unquoted;
use crate::committee::money::budget;
use crate::committee::output_shapes::{
    ConductOut, CrossCheckReply, FinalSynthesis, PartOut, VerdictOut,
};
use crate::committee::reply::assumptions;
use crate::committee::reply::audit;
use crate::committee::reply::invariants::{self, InvariantInput};
use crate::committee::reply::plan_steps::{label, plan_steps};
use crate::committee::reply::redaction::Redactor;
use crate::committee::reply::render;
use crate::committee::reply::sections;
use crate::committee::request_context::RequestContext;
use crate::committee::rule_texts::RuleTexts;
use crate::committee::schemas::schema_of;
use crate::committee::stages::hints;
use crate::committee::stages::open_claims;
use crate::committee::stages::resolve;
use crate::committee::stages::verdicts::{self, Shown, Written};
use crate::domain::{
    Agent, AgentReport, Assumption, AssumptionKind, Basis, BudgetMeta, Clarification, ConductKind,
    Confidence, Context, Disagreement, Holds, Invalidation, Judgement, Meta, Mode, Obtained,
    Outcome, Position, Question, Reply, RunId, Source, Tag, TaskType, Unit, UnitRef, Usd, User,
};
use crate::journal::{
    Accepted, AgentFinished, AgentOutcome, CheckScope, DisagreementNote, Draft, Event, Scored,
    SynthesisSource, Synthesized, Transcript,
};
use crate::llm::without_secrets;
use crate::scoring;

/// A routine's name, and the function that runs it on a text.
pub type Routine = (&'static str, fn(&str));

pub const ROUTINES: &[Routine] = &[
    ("report: parse", |text| {
        let _ = conclave_lenient_json::parse::<AgentReport>(text, &schema_of::<AgentReport>());
    }),
    ("synthesis: parse", |text| {
        let _ =
            conclave_lenient_json::parse::<FinalSynthesis>(text, &schema_of::<FinalSynthesis>());
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
        let latest = BTreeMap::from([
            (Agent::Solver, answered(report(text))),
            (Agent::Critic, answered(report("It is 4."))),
        ]);
        let judgement = disputed(text);
        drop(open_claims::claims(&judgement, &latest));
    }),
    ("decisions", |text| {
        let report = report(text);
        let latest = BTreeMap::from([(Agent::Solver, answered(report.clone()))]);
        let claims = open_claims::claims(&disputed(text), &latest);
        let held = resolve::held(&case(text), 2, Agent::Solver, &claims);
        drop(resolve::shown(&held));
        if let Ok(decisions) = serde_json::from_str(text) {
            drop(resolve::settle(
                &report,
                "solver",
                &held,
                &decisions,
                Obtained::Clean,
            ));
        }
    }),
    ("cross-check", |text| {
        let (report, case) = (report(text), case(text));
        let written = Written {
            agent: Agent::Solver,
            report: &report,
            tokens: 1,
        };
        let shown = verdicts::shown(&case, &[written], CheckScope::Key, false);
        drop(shown.iter().map(Shown::value).collect::<Vec<_>>());
        let reply = verdict_on(text);
        drop((
            verdicts::problems(&reply, &shown),
            verdicts::read(&reply, &shown),
        ));
    }),
    ("main answer: steps", |text| drop(plan_steps(text))),
    ("main answer: sections", |text| {
        drop(sections::main_answer(
            text,
            text,
            &Redactor::default(),
            &mut vec![],
        ));
    }),
    ("main answer: discarded", |text| {
        drop(sections::main_answer(
            text,
            "What is asked?",
            &barred(text),
            &mut vec![],
        ));
    }),
    ("lines", |text| {
        drop((
            sections::first_sentence(text),
            sections::plain_line(text),
            crate::text::excerpt(text, 60),
            label(text),
        ));
    }),
    ("assumptions", |text| {
        let stated: Vec<(String, AssumptionKind)> = report(text)
            .assumptions
            .into_iter()
            .map(|text| (text, AssumptionKind::Guess))
            .collect();
        drop(assumptions::ledger(
            &stated,
            &[(Agent::Solver, &report(text))],
            &case("What is asked?"),
        ));
    }),
    ("draft: cut", |text| {
        let mut synthesized = synthesized(text);
        barred(text).redact_draft(&mut synthesized, "redacted");
    }),
    ("reply, audit, invariants", |text| render(text)),
    ("reply: secrets", |text| {
        let secrets = [
            "a-secret-of-some-length-1",
            "aaaaaaaaaaaaaaaaaaaaaaaab",
            "\\\\\\\\\\\\\\\\\\\\",
        ];
        drop(without_secrets(text, &secrets.map(SecretString::from)));
    }),
    ("request: hints", |text| {
        drop(hints::hints_of(&question(text)));
    }),
    ("request: input bound", |text| {
        let _ = budget::text_bound(text);
    }),
    ("main answer: last paragraph", |text| {
        drop(sections::to_last_paragraph(text));
    }),
    ("request: language", |text| {
        let _ = RuleTexts::for_question(text);
    }),
];

/// Returns a report with the text in each of its fields, and its lines as entries of its lists.
fn report(text: &str) -> AgentReport {
    let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let unit = |line: &String| Unit {
        id: line.clone(),
        topic: line.clone(),
        text: line.clone(),
        tags: vec![Tag::Answer],
    };
    let report = AgentReport {
        answer_summary: lines.clone(),
        assumptions: lines.clone(),
        reasoning: text.to_owned(),
        steps_or_deliverables: lines.clone(),
        failure_modes: vec![],
        units: lines.iter().map(unit).collect(),
        ..AgentReport::empty(Agent::Solver)
    };
    clean(report, 0.8)
}

fn answered(report: AgentReport) -> AgentOutcome {
    AgentOutcome::Answered {
        report,
        obtained: Obtained::Clean,
        truncated: false,
        notes: vec![],
        tokens: 1,
    }
}

fn judgement(message: &str, report: &AgentReport) -> Judgement {
    let other = AgentReport {
        agent: "critic".into(),
        ..report.clone()
    };
    let output = |agent, report| scoring::Output {
        agent,
        report,
        obtained: Obtained::Clean,
        truncated: false,
        role_matches: true,
        family: None,
    };
    let outputs = vec![output("solver", report), output("critic", &other)];
    let panel = scoring::Panel {
        message,
        task_type: None,
        demands: &[],
        first_round: vec![],
        outputs,
        cross_checks: &[],
        resolutions: &[],
    };
    scoring::judge(&panel, &scoring::Policy::default())
}

/// Returns a judgement with a disagreement for each line of a text, between two short reports.
fn disputed(text: &str) -> Judgement {
    let position = |agent: &str, text: &str| Position {
        text: text.to_owned(),
        agents: vec![agent.to_owned()],
        units: vec![UnitRef::new(agent, "u1")],
    };
    let disagreement = |line: &str| Disagreement {
        topic: line.to_owned(),
        on_final_answer: true,
        positions: vec![position("solver", line), position("critic", "It is 4.")],
        settled: false,
        severity: 0.5,
    };
    let disagreements = text.split('\n').take(24).map(disagreement).collect();
    Judgement {
        disagreements,
        ..judgement("What is asked?", &report("It is 4."))
    }
}

/// Redacts the units of a report with this text.
fn barred(text: &str) -> Redactor {
    Redactor::new([("critic", &report(text))])
}

fn question(text: &str) -> Question {
    Question {
        source: Source::Http,
        mode: Mode::Deep,
        user: User {
            id: "u".into(),
            name: "u".into(),
        },
        context: Context::default(),
        message: text.to_owned(),
        attachments: vec![],
        salience: Default::default(),
    }
}

fn case(text: &str) -> RequestContext {
    RequestContext {
        fence: "f".into(),
        seed: 1,
        ..RequestContext::alone(question(text))
    }
}

/// Returns a cross-check's answer with the text in each of its fields, and its lines as entries of
/// its lists.
fn verdict_on(text: &str) -> CrossCheckReply {
    let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let verdict = |claim: &str, reports: &[String]| VerdictOut {
        claim: claim.to_owned(),
        supported_by: reports.to_vec(),
        contradicted_by: reports.to_vec(),
        holds: Holds::No,
        by: Basis::Memory,
        evidence: text.to_owned(),
    };
    let each = lines.iter().map(|line| VerdictOut {
        evidence: line.clone(),
        ..verdict(line, &[])
    });
    CrossCheckReply {
        claims: std::iter::once(verdict("R1.1", &lines))
            .chain(each)
            .collect(),
        same_answers: vec![lines.clone()],
        parts: vec![PartOut {
            part: text.to_owned(),
            answered_by: lines.clone(),
        }],
        reports: lines
            .iter()
            .map(|line| ConductOut {
                report: line.clone(),
                kind: ConductKind::Declines,
                why: line.clone(),
            })
            .collect(),
    }
}

fn synthesized(text: &str) -> Synthesized {
    let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let assumption = |line: &String| Assumption {
        handle: "A1".into(),
        text: line.clone(),
        kind: AssumptionKind::Guess,
        agents: vec![],
    };
    let draft = Draft {
        tldr: lines.iter().take(3).cloned().collect(),
        acceptance_tests: lines.clone(),
        assumptions: lines.iter().take(24).map(assumption).collect(),
        units_used: lines.clone(),
        disagreements: vec![DisagreementNote {
            topic: text.to_owned(),
            summary: text.to_owned(),
        }],
        ..Draft::new(TaskType::Mixed, text.to_owned())
    };
    let options = ["one", "two", "three"].map(str::to_owned);
    let question = Clarification {
        question: "Which one?".into(),
        options,
        choices: None,
    };
    Synthesized {
        draft: Some(draft),
        question,
        obtained: SynthesisSource::Model(Obtained::Clean),
        corrections: vec![],
        broken_rules: vec![],
    }
}

/// Returns the events of a run in which models wrote this text everywhere.
fn events(text: &str, synthesized: &Synthesized) -> [Event; 5] {
    let accepted = Accepted {
        question: question("What is asked?"),
        action: None,
        tools: None,
        narrates: None,
        is_anew: false,
        continues: None,
        correlation_id: None,
        cap: Usd::ZERO,
        seed: 1,
        config_hash: String::new(),
        prompts_hash: String::new(),
        version: String::new(),
    };
    let finished = |agent| AgentFinished {
        round: 1,
        agent,
        outcome: answered(AgentReport {
            agent: agent.to_string(),
            ..report(text)
        }),
        reused_from: None,
        resolved: None,
    };
    [
        Event::Accepted(Box::new(accepted)),
        Event::AgentFinished(Box::new(finished(Agent::Solver))),
        Event::AgentFinished(Box::new(finished(Agent::Critic))),
        Event::Scored(Box::new(Scored {
            round: 1,
            judgement: disputed(text),
        })),
        Event::Synthesized(Box::new(synthesized.clone())),
    ]
}

fn render(text: &str) {
    let synthesized = synthesized(text);
    let Some(draft) = &synthesized.draft else {
        return;
    };
    let confidence = Confidence::none(0.7);
    let events = events(text, &synthesized);
    let run = RunId::from_uuid(uuid::Uuid::nil());
    let transcript = Transcript::of(&events);
    let audit = audit::view(run, &transcript);
    let appendix = audit
        .as_ref()
        .map(crate::committee::reply::audit_text::markdown)
        .unwrap_or_default();
    let meta = Meta {
        task_type: TaskType::Mixed,
        c_final: 0.8,
        budget: BudgetMeta {
            cap: Usd::ZERO,
            spent: Usd::ZERO,
            exceeded: false,
        },
        used_agents: vec![],
        invalidation: Invalidation::default(),
    };
    let text = format!("{}\n{appendix}", render::answer(draft, &confidence, &[]));
    let reply = Reply {
        outcome: Outcome::Answered,
        text,
        meta,
        audit,
    };
    drop(invariants::check(&InvariantInput {
        reply: &reply,
        mode: Mode::Deep,
        run: &transcript,
        chain_fault: None,
        threshold: 0.7,
        secrets: &[],
    }));
}
