use super::*;
use crate::committee::output_shapes::Ground;
use crate::domain::Unit;

fn unit(id: &str, text: &str, tags: &[Tag]) -> Unit {
    Unit {
        id: id.into(),
        topic: "days".into(),
        text: text.into(),
        tags: tags.to_vec(),
    }
}

fn earlier() -> AgentReport {
    AgentReport {
        answer_summary: vec!["The answer is 60.".into()],
        reasoning: "2 * 30 = 60".into(),
        units: vec![
            unit("u1", "60", &[Tag::Answer, Tag::Calculated]),
            unit("u2", "March has 30 days.", &[Tag::Key, Tag::Memory]),
            unit("u3", "2025 is no leap year.", &[Tag::Given]),
        ],
        ..AgentReport::empty(Agent::Critic)
    }
}

fn position(text: &str, agent: &str, unit: Option<&str>) -> Position {
    Position {
        text: text.into(),
        agents: vec![agent.into()],
        units: unit
            .map(|unit| UnitRef::new(agent, unit))
            .into_iter()
            .collect(),
    }
}

fn claims() -> [Claim; 2] {
    let claim = |id: &str, on_final_answer, positions| Claim {
        id: id.into(),
        topic: format!("topic of {id}"),
        on_final_answer,
        positions,
    };
    [
        claim(
            "C1",
            true,
            vec![
                position("60", "critic", None),
                position("61", "solver", Some("u1")),
            ],
        ),
        claim(
            "C2",
            false,
            vec![
                position("March has 30 days.", "critic", Some("u2")),
                position("March has 31 days.", "solver", Some("u2")),
            ],
        ),
    ]
}

fn held(claims: &[Claim]) -> Vec<Held<'_>> {
    let held = |claim| {
        let Claim { positions, .. }: &Claim = claim;
        Held {
            claim,
            own: &positions[0],
            others: positions[1..].iter().collect(),
        }
    };
    claims.iter().map(held).collect()
}

fn decision(claim: &str, decision: Decision, to: &str, evidence: &str) -> DecisionOut {
    let (claim, to, evidence) = (claim.into(), to.into(), evidence.into());
    DecisionOut {
        claim,
        decision,
        to,
        by: Ground::Calculation,
        evidence,
    }
}

fn settled(decisions: Vec<DecisionOut>) -> (AgentReport, Resolved) {
    let claims = claims();
    settle(
        &earlier(),
        "critic",
        &held(&claims),
        &Decisions { decisions },
        Obtained::Clean,
    )
}

const WHY: &str = "31 + 30 = 61";

#[test]
fn only_a_conceded_claim_changes() {
    let (report, resolved) = settled(vec![
        decision("C1", Decision::Concede, "A", WHY),
        decision("C2", Decision::Keep, "", WHY),
    ]);
    let texts: Vec<&str> = report.units.iter().map(|unit| unit.text.as_str()).collect();
    assert_eq!(texts, ["61", "March has 30 days.", "2025 is no leap year."]);
    assert_eq!(
        (report.answer_summary, report.reasoning),
        (vec!["61".to_owned()], earlier().reasoning)
    );
    let told: Vec<(String, bool)> = resolved
        .resolutions
        .iter()
        .map(|r| (r.claim.to_string(), r.concedes()))
        .collect();
    assert_eq!(
        told,
        [
            ("critic:u1".to_owned(), true),
            ("critic:u2".to_owned(), false)
        ]
    );
    assert_eq!(resolved.notes, [""; 0]);

    let (report, _) = settled(vec![
        decision("c1", Decision::Keep, "", ""),
        decision("C2", Decision::Concede, "position A", WHY),
    ]);
    assert_eq!(
        (report.units[0].text.as_str(), report.units[1].text.as_str()),
        ("60", "March has 31 days.")
    );
    assert_eq!(report.answer_summary, earlier().answer_summary);
}

#[test]
fn what_names_no_evidence_no_position_or_no_claim_changes_nothing() {
    for decisions in [
        vec![],
        vec![
            decision("C1", Decision::Concede, "A", " "),
            decision("C2", Decision::Keep, "", ""),
        ],
        vec![
            decision("C1", Decision::Concede, "Q", WHY),
            decision("C2", Decision::Keep, "", ""),
        ],
        vec![decision("C9", Decision::Concede, "A", WHY)],
        vec![
            decision("C1", Decision::Concede, "A", WHY),
            decision("C1", Decision::Keep, "", WHY),
        ],
    ] {
        let (report, resolved) = settled(decisions.clone());
        assert_eq!(report, earlier(), "{decisions:?}");
        assert!(
            resolved.resolutions.iter().all(|r| !r.concedes()) && !resolved.notes.is_empty(),
            "{resolved:?}"
        );
    }
}

#[test]
fn an_agent_without_a_unit_of_its_own_in_a_detail_holds_nothing() {
    let [answer, detail] = claims();
    assert!(is_held(&answer, &answer.positions[0], "critic"));
    assert!(
        is_held(&detail, &detail.positions[0], "critic")
            && !is_held(&detail, &detail.positions[0], "verifier")
    );
    let alone = position("March has 30 days.", "verifier", None);
    assert!(!is_held(&detail, &alone, "verifier"));
}
