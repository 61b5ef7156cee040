//! Tests of the engine on whole panels: the properties that SPEC 5 and 6 name, and questions that
//! it once misread.

mod confidence;
mod evidence;
mod final_answers;
mod lost_votes;

use super::*;
use crate::domain::{Agent, Basis, ClaimVerdict, Decision, Holds, PartAnswered, Tag, UnitRef};

const AGENTS: [&str; 4] = ["solver", "critic", "verifier", "editor"];

fn unit(id: &str, text: &str, tags: &[Tag]) -> crate::domain::Unit {
    crate::domain::Unit {
        id: id.into(),
        topic: id.into(),
        text: text.into(),
        tags: tags.to_vec(),
    }
}

/// Returns a JSON report with a bare answer, if given, and a key claim.
fn report(agent: &str, answer: Option<&str>, claim: &str, reasoning: &str) -> AgentReport {
    let answered =
        answer.map(|answer| unit("u1", answer, &[Tag::Answer, Tag::Key, Tag::Calculated]));
    let claimed = unit("u2", claim, &[Tag::Key, Tag::Given]);
    AgentReport {
        agent: agent.to_owned(),
        answer_summary: vec![answer.unwrap_or(claim).to_owned()],
        assumptions: vec![],
        reasoning: reasoning.to_owned(),
        steps_or_deliverables: vec![],
        failure_modes: vec![],
        units: answered.into_iter().chain([claimed]).collect(),
        self_confidence: 0.5,
    }
}

/// Returns three equal reports.
fn three(answer: Option<&str>, claim: &str, reasoning: &str) -> Vec<AgentReport> {
    let agents = AGENTS[..3].iter();
    agents
        .map(|agent| report(agent, answer, claim, reasoning))
        .collect()
}

fn answers(given: &[&str]) -> Vec<AgentReport> {
    let each = AGENTS.iter().zip(given);
    each.map(|(agent, answer)| report(agent, Some(answer), &format!("It is {answer}."), ""))
        .collect()
}

fn outputs(reports: &[AgentReport], obtained: Obtained) -> Vec<Output<'_>> {
    let all = reports.iter().map(|report| Output {
        agent: report.agent.clone().into(),
        report,
        obtained,
        truncated: false,
        role_matches: true,
        family: None,
    });
    all.collect()
}

#[derive(Default)]
struct Evidence {
    first: Vec<AgentReport>,
    calls: Vec<CrossCheck>,
    resolutions: Vec<Resolution>,
}

impl From<Vec<CrossCheck>> for Evidence {
    fn from(calls: Vec<CrossCheck>) -> Self {
        Self {
            calls,
            ..Self::default()
        }
    }
}

fn judged(message: &str, reports: &[AgentReport], evidence: &Evidence) -> Judgement {
    let panel = Panel {
        message,
        outputs: outputs(reports, Obtained::Clean),
        first_round: outputs(&evidence.first, Obtained::Clean),
        cross_checks: &evidence.calls,
        resolutions: &evidence.resolutions,
        ..Panel::default()
    };
    judge(&panel, &ScoringPolicy::default())
}

fn of(message: &str, reports: &[AgentReport]) -> Judgement {
    judged(message, reports, &Evidence::default())
}

/// Judges raw texts, as `conclave score` does.
fn texts(message: &str, texts: &[&str], demands: &[Demand]) -> Judgement {
    let reports = AGENTS.iter().zip(texts);
    let reports: Vec<AgentReport> = reports
        .map(|(agent, text)| report_from_text(agent, message, text))
        .collect();
    let panel = Panel {
        message,
        demands,
        outputs: outputs(&reports, Obtained::Text),
        ..Panel::default()
    };
    judge(&panel, &ScoringPolicy::default())
}

fn c_final(judgement: &Judgement) -> f64 {
    (judgement.base_score - judgement.conflict_penalty + judgement.coverage_bonus).clamp(0.0, 1.0)
}

fn ships(judgement: &Judgement) -> bool {
    c_final(judgement) >= 0.70
}

fn statuses(judgement: &Judgement) -> Vec<Status> {
    judgement.scores.iter().map(|score| score.status).collect()
}

fn labels(judgement: &Judgement) -> Vec<&str> {
    judgement
        .answer_groups
        .iter()
        .map(|group| group.answer.as_str())
        .collect()
}

fn verdict(claim: &str, supported: &[&str], contradicted: &[&str], holds: Holds) -> ClaimVerdict {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned().into()).collect();
    ClaimVerdict {
        claim: claim.parse::<UnitRef>().unwrap(),
        supported_by: names(supported),
        contradicted_by: names(contradicted),
        holds,
        by: Basis::Source,
        evidence: "The manual says so.".into(),
    }
}

fn call(claims: Vec<ClaimVerdict>) -> CrossCheck {
    let agents = AGENTS[..3]
        .iter()
        .map(|agent| (*agent).to_owned().into())
        .collect();
    let parts = vec![PartAnswered {
        part: "what is asked".into(),
        answered_by: agents,
    }];
    CrossCheck {
        claims,
        parts,
        ..CrossCheck::default()
    }
}

fn checked(claims: Vec<ClaimVerdict>) -> Evidence {
    vec![call(claims)].into()
}

/// Returns the evidence of a cross-check that names no part of the request.
fn found(claims: impl IntoIterator<Item = ClaimVerdict>) -> Evidence {
    let call = CrossCheck {
        claims: claims.into_iter().collect(),
        ..CrossCheck::default()
    };
    vec![call].into()
}

/// The concession of a claim.
fn concedes(claim: &str, by: Basis, evidence: &str) -> Resolution {
    Resolution {
        claim: claim.parse::<UnitRef>().unwrap(),
        decision: Decision::Concede,
        by,
        evidence: evidence.into(),
    }
}

/// Returns the value of a feature of the first output.
fn feature(judgement: &Judgement, name: &str) -> Option<f64> {
    let mut axes = judgement.scores[0].axes.iter();
    axes.find_map(|(_, axis)| Some(axis.features.iter().find(|it| it.name == name)?.value))
}

const OPEN: &str = "How should we deploy the service on our two servers?";

/// Returns three reports to an open question that share their topic.
fn open_reports() -> Vec<AgentReport> {
    [
        "Run the service on both servers behind a load balancer and keep the database on the first server.",
        "Put a load balancer in front of both servers; the database stays on the first server with a replica.",
        "Both servers run the service behind a load balancer, and the database has a replica on the second server.",
    ]
    .iter()
    .zip(AGENTS)
    .map(|(text, agent)| report(agent, None, text, &format!("{text} Deploy with a rolling restart of each server.")))
    .collect()
}

fn all_hold() -> Vec<ClaimVerdict> {
    vec![
        verdict("solver:u2", &["critic", "verifier"], &[], Holds::Yes),
        verdict("critic:u2", &["solver", "verifier"], &[], Holds::Yes),
        verdict("verifier:u2", &["solver", "critic"], &[], Holds::Yes),
    ]
}
