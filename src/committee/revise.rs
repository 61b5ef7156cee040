//! What a later round may change: an agent revises a claim only for a reason that names it. Whoever merely falls in with
//! the others keeps his earlier report, for conformity is no evidence.

use std::sync::LazyLock;

use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::contested::Claim;
use super::score;
use crate::domain::{AgentReport, Obtained, Unit};
use crate::journal::{Revised, RevisionReason};

/// Words that a reason has at the least, beside what it says of others' agreement.
const LEAST_WORDS: usize = 4;

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

/// What becomes of an earlier report: the new one where a contested claim was changed for a reason that names it, else
/// `None`, and the earlier one stands. Claims that nobody contests stay as they were, and so does a final answer that the
/// reasons do not name.
pub fn settle(
    message: &str,
    earlier: &AgentReport,
    revision: Revision,
    obtained: Obtained,
    claims: &[Claim],
) -> (Option<AgentReport>, Revised) {
    let mut revised = Revised { obtained, reasons: vec![], refused: vec![] };
    let mut changed: Vec<&Claim> = vec![];
    for change in &revision.revises {
        let id = change.claim.trim();
        match claims.iter().find(|claim| claim.id.eq_ignore_ascii_case(id)) {
            None => revised.refused.push(format!("a change of {id:?}, which is not contested")),
            Some(claim) if !is_reason(&change.reason) => {
                revised.refused.push(format!("a change of \"{}\" without a reason", claim.topic));
            }
            Some(claim) => {
                changed.push(claim);
                let reason = change.reason.trim().to_owned();
                revised.reasons.push(RevisionReason { topic: claim.topic.clone(), reason });
            }
        }
    }
    let names_answer = changed.iter().any(|claim| claim.on_final_answer);
    if !names_answer && !score::same_answer(message, earlier, &revision.report) {
        revised.refused.push("another final answer, which no reason names".to_owned());
        revised.reasons.clear();
        return (None, revised);
    }
    if changed.is_empty() {
        if revision.report != *earlier && revised.refused.is_empty() {
            revised.refused.push("changes that name no contested claim".to_owned());
        }
        return (None, revised);
    }
    let mut report = revision.report;
    if !names_answer {
        report.units = spliced(&earlier.agent, &earlier.units, report.units, &changed);
    }
    (Some(report), revised)
}

/// The earlier units, but those of changed claims as they are now.
fn spliced(agent: &str, earlier: &[Unit], now: Vec<Unit>, changed: &[&Claim]) -> Vec<Unit> {
    let positions = || changed.iter().flat_map(|claim| &claim.positions);
    let is_open = |unit: &Unit| {
        positions().any(|p| p.units.iter().any(|id| *id == format!("{agent}:{}", unit.id)))
            || changed.iter().any(|claim| claim.topic.eq_ignore_ascii_case(&unit.topic))
    };
    let mut units: Vec<Unit> = vec![];
    for unit in earlier {
        let renewed = now.iter().find(|new| new.id == unit.id).filter(|_| is_open(unit));
        units.push(renewed.unwrap_or(unit).clone());
    }
    let added = now.into_iter().filter(|new| is_open(new) && !earlier.iter().any(|old| old.id == new.id));
    units.extend(added);
    units
}

static CONFORMITY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:majority|consensus|unanimous\w*|everyone|everybody|(?:the |all )?others?|most (?:members|agents|reports)|(?:other|all|two|both) (?:members|agents|reports)|the committee)\b").ok()
});

/// Whether a text gives a reason: something is left of it when what it says of others' agreement is taken away.
fn is_reason(text: &str) -> bool {
    let own = |part: &&str| CONFORMITY.as_ref().is_none_or(|pattern| !pattern.is_match(part));
    let words = text.split([',', ';', '.', ':']).filter(own).flat_map(str::split_whitespace);
    words.count() >= LEAST_WORDS
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
        report("60", vec![unit("u1", "number of days", "It is 60 days."), unit("u2", "leap year", "2025 is none.")])
    }

    fn claims() -> [Claim; 2] {
        [claim("C1", "final answer", true, "u1"), claim("C2", "month lengths", false, "u3")]
    }

    #[test]
    fn a_change_needs_a_reason_that_names_a_contested_claim() {
        let revised = report("61", vec![unit("u1", "number of days", "It is 61 days.")]);
        let why = "March has 31 days, and 31 + 30 = 61.";
        let settled = |revises| {
            settle(ASKED, &earlier(), Revision { revises, report: revised.clone() }, Obtained::Clean, &claims())
        };

        let (taken, note) = settled(vec![change("c1", why)]);
        assert_eq!(taken.as_ref(), Some(&revised));
        assert_eq!(note.reasons, [RevisionReason { topic: "final answer".into(), reason: why.into() }]);

        for revises in [
            vec![],
            vec![change("C1", "")],
            vec![change("C1", "The majority of the members agree on it")],
            vec![change("C1", "All others say 61, so I follow the consensus.")],
            vec![change("C9", why)],
            // A detail is named, and the answer changed.
            vec![change("C2", why)],
        ] {
            let (taken, note) = settled(revises.clone());
            assert!(taken.is_none() && note.reasons.is_empty() && !note.refused.is_empty(), "{revises:?}: {note:?}");
        }
    }

    #[test]
    fn what_nobody_contests_stays_as_it_was() {
        let now = report(
            "60",
            vec![
                unit("u1", "number of days", "It is sixty or so."),
                unit("u3", "month lengths", "March has 31 days."),
                unit("u4", "weather", "It rains."),
            ],
        );
        let reason = "The Gregorian calendar gives March 31 days.";
        let revision = Revision { revises: vec![change("C2", reason)], report: now };
        let (taken, _) = settle(ASKED, &earlier(), revision, Obtained::Clean, &claims());
        let texts: Vec<String> = taken.unwrap().units.into_iter().map(|unit| unit.text).collect();
        assert_eq!(texts, ["It is 60 days.", "2025 is none.", "March has 31 days."]);
    }

    #[test]
    fn keeping_everything_is_no_refusal() {
        let revision = Revision { revises: vec![], report: earlier() };
        let (taken, note) = settle(ASKED, &earlier(), revision, Obtained::Clean, &claims());
        assert!(taken.is_none());
        assert_eq!(note, Revised { obtained: Obtained::Clean, reasons: vec![], refused: vec![] });
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
