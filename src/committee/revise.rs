//! What a later round may change: an agent revises a claim only for a reason that names it. Whoever merely falls in with
//! the others keeps his earlier report, for conformity is no evidence.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::contested::Claim;
use crate::domain::{AgentReport, Obtained, Unit};
use crate::journal::{Revised, RevisionReason};
use crate::scoring as score;

/// Words that a reason adds to what the positions say, at the least.
const LEAST_WORDS: usize = 3;

/// A change of a contested claim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The id of the contested claim, such as "C1".
    pub claim: String,
    /// The error, fact or case behind the change. That others agree is no reason.
    pub reason: String,
}

/// A report of a later round: an agent's report and, beside its keys, `revises`.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    pub revises: Vec<Change>,
    pub report: AgentReport,
}

impl JsonSchema for Revision {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Revision".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = AgentReport::json_schema(generator);
        let mut revises = generator.subschema_for::<Option<Vec<Change>>>();
        revises
            .insert("description".into(), json!("The contested claims that you changed; empty if you keep them all."));
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.insert("revises".into(), revises.to_value());
        }
        schema
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let revises = value.as_object_mut().and_then(|map| map.remove("revises")).unwrap_or_default();
        let revises: Option<Vec<Change>> = serde_json::from_value(revises).map_err(serde::de::Error::custom)?;
        let report = serde_json::from_value(value).map_err(serde::de::Error::custom)?;
        Ok(Self { revises: revises.unwrap_or_default(), report })
    }
}

/// What is held against a revision.
pub struct Before<'a> {
    pub agent: &'a str,
    pub message: &'a str,
    pub report: &'a AgentReport,
    pub claims: &'a [Claim],
}

/// What becomes of an earlier report: the new one where a contested claim was really changed, for a reason that names it,
/// else `None`, and the earlier one stands. Contested claims that are not named stay as they were; so does everything but
/// reasoning and failure modes while the final answer is not named. A new report without a usable answer replaces none.
pub fn settle(before: &Before<'_>, revision: Revision, obtained: Obtained) -> (Option<AgentReport>, Revised) {
    let mut revised = Revised { obtained, reasons: vec![], refused: vec![] };
    let Before { agent, message, report: earlier, claims } = *before;
    let now = &revision.report;
    let other_answer = !score::same_answer(message, earlier, now);
    let mut changed: Vec<&Claim> = vec![];
    for change in &revision.revises {
        let id = change.claim.trim();
        let Some(claim) = claims.iter().find(|claim| claim.id.eq_ignore_ascii_case(id)) else {
            revised.refused.push(format!("a change of {id:?}, which is not contested"));
            continue;
        };
        let differs = if claim.on_final_answer { other_answer } else { own_units_differ(agent, claim, earlier, now) };
        // Named and not changed: it is kept, and why it is kept is in the reasoning.
        if !differs || changed.iter().any(|known| known.id == claim.id) {
            continue;
        }
        if !is_reason(&change.reason, claim) {
            revised.refused.push(format!("a change of \"{}\" without a reason", claim.topic));
            continue;
        }
        changed.push(claim);
        let reason = change.reason.trim().to_owned();
        revised.reasons.push(RevisionReason { claim: claim.id.clone(), topic: claim.topic.clone(), reason });
    }
    let names_answer = changed.iter().any(|claim| claim.on_final_answer);
    let refusal = if other_answer && !names_answer {
        Some("another final answer, which no reason names")
    } else if !changed.is_empty() && !score::stands(message, earlier, now) {
        Some("a report that gives no usable answer")
    } else if changed.is_empty()
        && revised.refused.is_empty()
        && claims.iter().any(|c| own_units_differ(agent, c, earlier, now))
    {
        Some("changes that name no contested claim")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        revised.refused.push(refusal.to_owned());
        revised.reasons.clear();
        return (None, revised);
    }
    if changed.is_empty() {
        return (None, revised);
    }
    let left: Vec<&Claim> = claims.iter().filter(|claim| !changed.iter().any(|named| named.id == claim.id)).collect();
    let mut report = revision.report;
    if names_answer {
        report.units = with_kept(agent, &earlier.units, report.units, &left);
    } else {
        report.units = with_changed(agent, &earlier.units, report.units, &changed);
        report.answer_summary.clone_from(&earlier.answer_summary);
        report.assumptions.clone_from(&earlier.assumptions);
        report.steps_or_deliverables.clone_from(&earlier.steps_or_deliverables);
    }
    (Some(report), revised)
}

/// Whether a unit of the agent's is one by which it takes part in a claim.
fn belongs(agent: &str, claim: &Claim, unit: &Unit) -> bool {
    claim
        .positions
        .iter()
        .flat_map(|p| &p.units)
        .any(|id| id.split_once(':').is_some_and(|(holder, own)| holder == agent && own == unit.id))
        || claim.topic.eq_ignore_ascii_case(&unit.topic)
}

fn own_units_differ(agent: &str, claim: &Claim, earlier: &AgentReport, now: &AgentReport) -> bool {
    let texts = |report: &AgentReport| -> Vec<String> {
        let own = report.units.iter().filter(|unit| belongs(agent, claim, unit));
        own.map(|unit| unit.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    texts(earlier) != texts(now)
}

/// The earlier units, but those of changed claims as they are now.
fn with_changed(agent: &str, earlier: &[Unit], now: Vec<Unit>, changed: &[&Claim]) -> Vec<Unit> {
    let is_open = |unit: &Unit| changed.iter().any(|claim| belongs(agent, claim, unit));
    let mut units: Vec<Unit> = vec![];
    for unit in earlier {
        let renewed = now.iter().find(|new| new.id == unit.id).filter(|_| is_open(unit));
        units.push(renewed.unwrap_or(unit).clone());
    }
    let added = now.into_iter().filter(|new| is_open(new) && !earlier.iter().any(|old| old.id == new.id));
    units.extend(added);
    units
}

/// The units as they are now, but those of claims that were not named as they were.
fn with_kept(agent: &str, earlier: &[Unit], now: Vec<Unit>, left: &[&Claim]) -> Vec<Unit> {
    let is_shut = |unit: &Unit| left.iter().any(|claim| belongs(agent, claim, unit));
    let kept = earlier.iter().filter(|unit| is_shut(unit)).cloned();
    let fresh =
        now.into_iter().filter(|unit| !is_shut(unit) && !earlier.iter().any(|old| old.id == unit.id && is_shut(old)));
    kept.chain(fresh).collect()
}

/// Words that speak of others' agreement and of giving in to it, in a few languages.
static CONFORMITY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        \b(?:the|clear|large|overwhelming|a)\ majority\ (?:of\ (?:the\ )?(?:members|agents|reports|committee|us)|says?|said|agrees?|holds?|thinks?)\b
        | \bconsensus\b | \bunanim\w+ | \bevery(?:one|body)\b | \bthe\ committee\b
        | \b(?:other|all|two|both|most|several|many)\ (?:members|agents|reports|colleagues|reviewers)\b
        | \b(?:the|all|both|two|most)?\ ?others\ (?:all\ |both\ )?(?:agree|say|said|think|have|got|get|hold|claim|find|found|answer|are)\b
        | \b(?:member|agent|colleague|reviewer)s?\ (?:\d+\ )?(?:agree|say|said|think|got|get|hold|claim|find|found|answer)s?\b
        | \bI\ (?:now\ |also\ |then\ )*(?:agree|concur|follow|accept|switch|defer|join|conform)\b | \bnow\ follow\b
        | \bdie\ (?:anderen|mehrheit)\b | \ballen\ anderen\b | \bles\ autres\b | \bla\ (?:majorité|mayoría)\b | \blos\ demás\b",
    )
    .ok()
});

static EQUATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d\s*[-+*/×÷^=<>≤≥]\s*-?\d").ok());

/// Whether a text gives a reason: a calculation, or something that the positions themselves do not say, in clauses that do not
/// speak of others' agreement. Whether it is a good one is not judged here.
fn is_reason(text: &str, claim: &Claim) -> bool {
    let clauses: Vec<&str> = text
        .split([',', ';', ':', '。', '，', '；', '\n'])
        .flat_map(|part| part.split(". "))
        .filter(|part| CONFORMITY.as_ref().is_none_or(|pattern| !pattern.is_match(part)))
        .collect();
    if clauses.iter().any(|clause| EQUATION.as_ref().is_some_and(|pattern| pattern.is_match(clause))) {
        return true;
    }
    let tokens = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
        words.map(str::to_lowercase).collect()
    };
    let said: BTreeSet<String> =
        claim.positions.iter().map(|p| p.text.as_str()).chain([claim.topic.as_str()]).flat_map(tokens).collect();
    let own: BTreeSet<String> =
        clauses.iter().flat_map(|clause| tokens(clause)).filter(|w| !said.contains(w)).collect();
    // In scripts without spaces a clause is one word: there its letters count, two for a word.
    let weight = |word: &String| if word.is_ascii() { 1 } else { (word.chars().count() / 2).max(1) };
    own.iter().map(weight).sum::<usize>() >= LEAST_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Agent, Position};

    fn unit(id: &str, topic: &str, text: &str) -> Unit {
        Unit { id: id.into(), topic: topic.into(), text: text.into(), tags: vec![] }
    }

    fn report(answer: &str, units: Vec<Unit>) -> AgentReport {
        AgentReport {
            answer_summary: vec![format!("The answer is {answer}.")],
            units,
            ..AgentReport::empty(Agent::Critic)
        }
    }

    fn claim(id: &str, topic: &str, on_final_answer: bool, unit: &str) -> Claim {
        let position = |agent: &str, unit: &str| Position {
            text: format!("{agent} on {topic}"),
            agents: vec![agent.into()],
            units: vec![format!("{agent}:{unit}")],
        };
        let positions = vec![position("solver", "u9"), position("critic", unit)];
        Claim { id: id.into(), topic: topic.into(), on_final_answer, positions }
    }

    fn change(claim: &str, reason: &str) -> Change {
        Change { claim: claim.into(), reason: reason.into() }
    }

    const ASKED: &str = "How many days lie between 1 March and 1 May?";

    fn earlier() -> AgentReport {
        report(
            "60",
            vec![
                unit("u1", "number of days", "It is 60 days."),
                unit("u2", "leap year", "2025 is none."),
                unit("u3", "month lengths", "March has 30 days."),
            ],
        )
    }

    fn claims() -> [Claim; 2] {
        [claim("C1", "final answer", true, "u1"), claim("C2", "month lengths", false, "u3")]
    }

    fn settled(revises: Vec<Change>, report: AgentReport) -> (Option<AgentReport>, Revised) {
        let (earlier, claims) = (earlier(), claims());
        let before = Before { agent: "critic", message: ASKED, report: &earlier, claims: &claims };
        settle(&before, Revision { revises, report }, Obtained::Clean)
    }

    fn sixty_one() -> AgentReport {
        report(
            "61",
            vec![unit("u1", "number of days", "It is 61 days."), unit("u3", "month lengths", "March has 31 days.")],
        )
    }

    const WHY: &str = "March has 31 days, and 31 + 30 = 61.";

    #[test]
    fn a_change_needs_a_reason_that_names_a_contested_claim() {
        let (taken, note) = settled(vec![change("c1", WHY), change("C2", WHY)], sixty_one());
        assert_eq!(taken, Some(sixty_one()));
        let topics: Vec<&str> = note.reasons.iter().map(|reason| reason.topic.as_str()).collect();
        assert_eq!((topics, note.refused), (vec!["final answer", "month lengths"], vec![]));
        for revises in [
            vec![],
            vec![change("C1", "")],
            vec![change("C1", "The majority of the members agree on it")],
            vec![change("C1", "All others say 61, so I follow the consensus.")],
            vec![change("C9", WHY)],
            // A detail is named, and the answer changed.
            vec![change("C2", WHY)],
        ] {
            let (taken, note) = settled(revises.clone(), sixty_one());
            assert!(taken.is_none() && note.reasons.is_empty() && !note.refused.is_empty(), "{revises:?}: {note:?}");
        }
    }

    #[test]
    fn who_names_a_claim_and_keeps_it_has_changed_nothing() {
        let (taken, note) = settled(vec![change("C1", "Checked once more: 2 * 30 = 60, kept.")], earlier());
        assert!(taken.is_none());
        assert_eq!(note, Revised { obtained: Obtained::Clean, reasons: vec![], refused: vec![] });
    }

    #[test]
    fn a_report_without_an_answer_replaces_none() {
        let refusing = AgentReport {
            answer_summary: vec!["I cannot help with that.".into()],
            ..report("", vec![unit("u1", "number of days", "I cannot help with that request.")])
        };
        for report in [AgentReport::empty(Agent::Critic), refusing] {
            let (taken, note) = settled(vec![change("C1", WHY)], report);
            assert!(taken.is_none() && note.reasons.is_empty() && note.refused.len() == 1, "{note:?}");
        }
    }

    #[test]
    fn what_is_not_named_stays_as_it_was() {
        let now = AgentReport {
            assumptions: vec!["The Julian calendar.".into()],
            ..report(
                "60",
                vec![
                    unit("u1", "number of days", "It is sixty or so."),
                    unit("u3", "month lengths", "March has 31 days."),
                    unit("u4", "weather", "It rains."),
                ],
            )
        };
        let (taken, _) = settled(vec![change("C2", "The Gregorian calendar gives March one more.")], now);
        let taken = taken.unwrap();
        let texts: Vec<&str> = taken.units.iter().map(|unit| unit.text.as_str()).collect();
        assert_eq!(texts, ["It is 60 days.", "2025 is none.", "March has 31 days."]);
        assert_eq!(taken.assumptions, Vec::<String>::new());

        // The answer is named, the month lengths are not.
        let (taken, _) = settled(vec![change("C1", WHY)], sixty_one());
        let texts: Vec<String> = taken.unwrap().units.into_iter().map(|unit| unit.text).collect();
        assert_eq!(texts, ["March has 30 days.", "It is 61 days."]);
    }

    #[test]
    fn a_reason_is_told_from_giving_in() {
        let claim = claim("C1", "final answer", true, "u1");
        for reason in [
            "31+30=61",
            "March has 31 days while the other month has 30",
            "A two-thirds majority under Article V needs 67 of 100 votes",
            "三月有三十一天而不是三十天",
            "The question excludes both end points of the interval.",
        ] {
            assert!(is_reason(reason, &claim), "{reason}");
        }
        for reason in [
            "I now agree that the answer is 61",
            "Member 2 says it is 61 and I now follow",
            "because because because because",
            "Die anderen sagen alle 61",
            "Two colleagues got 61 so I switch to it",
            "solver on final answer",
            "",
        ] {
            assert!(!is_reason(reason, &claim), "{reason}");
        }
    }

    #[test]
    fn a_revision_is_a_report_with_one_more_key_which_may_be_missing() {
        let schema = schemars::schema_for!(Revision).to_value();
        let mut value = json!(earlier());
        assert!(jsonschema::validate(&schema, &value).is_ok(), "{schema}");
        assert_eq!(serde_json::from_value::<Revision>(value.clone()).unwrap().report, earlier());
        value["revises"] = json!([{ "claim": "C1", "reason": "because" }]);
        assert!(jsonschema::validate(&schema, &value).is_ok());
        assert_eq!(serde_json::from_value::<Revision>(value.clone()).unwrap().revises, [change("C1", "because")]);
        value["revises"] = json!([{ "claim": "C1" }]);
        assert!(jsonschema::validate(&schema, &value).is_err());
        value["revises"] = json!(null);
        assert!(jsonschema::validate(&schema, &value).is_ok());
    }
}
