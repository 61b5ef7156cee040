use super::*;
use crate::committee::output_shapes::Ground;
use crate::domain::Tag;
use crate::domain::Unit;

const WHY: &str = "31 + 30 = 61";

fn earlier() -> AgentReport {
    let unit = |id: &str, text: &str, tags: &[Tag]| Unit {
        id: id.into(),
        topic: "days".into(),
        text: text.into(),
        tags: tags.to_vec(),
    };
    AgentReport {
        answer_summary: vec!["The answer is 60.".into()],
        reasoning: "2 * 30 = 60".into(),
        units: vec![
            unit("u1", "60", &[Tag::Answer, Tag::Calculated]),
            unit("u2", "March has 30 days.", &[Tag::Key, Tag::Memory]),
            unit("u3", "2025 is no leap year.", &[Tag::Given]),
        ],
        ..AgentReport::default()
    }
}

fn position(text: &str, agent: Agent, unit: Option<&str>) -> Position {
    Position {
        text: text.into(),
        agents: vec![agent.into()],
        units: unit
            .map(|unit| UnitRef::new(agent, unit))
            .into_iter()
            .collect(),
    }
}

/// Returns the contested answer and a contested detail.
fn claims() -> [ContestedClaim; 2] {
    let claim = |id: &str, on_final_answer, own, other| ContestedClaim {
        id: id.into(),
        topic: format!("topic of {id}"),
        on_final_answer,
        positions: vec![own, other],
    };
    let answer = (
        position("60", Agent::Critic, None),
        position("61", Agent::Solver, Some("u1")),
    );
    let own = position("March has 30 days.", Agent::Critic, Some("u2"));
    let other = position("March has 31 days.", Agent::Solver, Some("u2"));
    [
        claim("C1", true, answer.0, answer.1),
        claim("C2", false, own, other),
    ]
}

/// Applies decisions, each with its claim, the letter that it concedes to, and its evidence.
fn settled(decisions: &[(&str, Option<&str>, &str)]) -> (AgentReport, Resolved) {
    let claims = claims();
    let held = claims.each_ref().map(|claim| Held {
        claim,
        own: &claim.positions[0],
        others: vec![&claim.positions[1]],
    });
    let decision = |(claim, to, evidence): &(&str, Option<&str>, &str)| DecisionOut {
        claim: (*claim).into(),
        decision: to.map_or(Decision::Keep, |_| Decision::Concede),
        to: to.unwrap_or_default().into(),
        by: Ground::Calculation,
        evidence: (*evidence).into(),
    };
    let decisions = Decisions {
        decisions: decisions.iter().map(decision).collect(),
    };
    let mut report = earlier();
    let resolved = settle(
        &mut report,
        Agent::Critic,
        &held,
        &decisions,
        Obtained::Clean,
    );
    (report, resolved)
}

#[test]
fn only_a_conceded_claim_changes() {
    let (report, resolved) = settled(&[("C1", Some("A"), WHY), ("C2", None, WHY)]);
    let texts: Vec<&str> = report.units.iter().map(|unit| unit.text.as_str()).collect();
    assert_eq!(texts, ["61", "March has 30 days.", "2025 is no leap year."]);
    assert_eq!(report.answer_summary, ["61"]);
    assert_eq!(report.reasoning, earlier().reasoning);
    let told = |r: &Resolution| (r.claim.to_string(), r.concedes());
    let told: Vec<_> = resolved.resolutions.iter().map(told).collect();
    assert_eq!(
        told,
        [
            ("critic:u1".to_owned(), true),
            ("critic:u2".to_owned(), false)
        ]
    );
    assert_eq!(resolved.notes, [""; 0]);

    let (report, _) = settled(&[("c1", None, ""), ("C2", Some("position A"), WHY)]);
    assert_eq!(report.units[0].text, "60");
    assert_eq!(report.units[1].text, "March has 31 days.");
    assert_eq!(report.answer_summary, earlier().answer_summary);
}

#[test]
fn what_names_no_evidence_no_position_or_no_claim_changes_nothing() {
    for decisions in [
        &[][..],
        &[("C1", Some("A"), " "), ("C2", None, "")],
        &[("C1", Some("Q"), WHY), ("C2", None, "")],
        &[("C9", Some("A"), WHY)],
        &[("C1", Some("A"), WHY), ("C1", None, WHY)],
    ] {
        let (report, resolved) = settled(decisions);
        assert_eq!(report, earlier(), "{decisions:?}");
        let concedes = resolved.resolutions.iter().any(Resolution::concedes);
        assert!(!concedes && !resolved.notes.is_empty(), "{resolved:?}");
    }
}

#[test]
fn an_agent_without_a_unit_of_its_own_in_a_detail_holds_nothing() {
    let [answer, mut detail] = claims();
    assert_eq!(
        answer.position_of(Agent::Critic),
        Some(&answer.positions[0])
    );
    assert_eq!(
        detail.position_of(Agent::Critic),
        Some(&detail.positions[0])
    );
    detail
        .positions
        .push(position("March has 30 days.", Agent::Verifier, None));
    assert_eq!(detail.position_of(Agent::Verifier), None);
}

#[test]
fn a_calculation_that_no_machine_can_redo_counts_as_memory() {
    let in_words = "March is one of the seven long months.";
    let (report, resolved) = settled(&[("C2", Some("A"), in_words)]);
    assert_eq!(report.units[1].text, "March has 31 days.");
    let [concession] = &resolved.resolutions[..] else {
        panic!("{resolved:?}");
    };
    assert!(concession.concedes() && concession.by == Basis::Memory);

    let (report, resolved) = settled(&[("C1", Some("A"), "so it is 61")]);
    assert_eq!(report.answer_summary, earlier().answer_summary);
    assert!(resolved.resolutions.is_empty(), "{resolved:?}");
}
