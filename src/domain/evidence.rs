//! Typed evidence (SPEC 3, 5): tags of an agent's units, verdicts of the cross-check on key claims,
//! and agents' concessions in later rounds.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::AgentName;

/// What a unit is, and what it rests on: the closed vocabulary of `units[].tags`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Tag {
    /// The unit's text is the bare final answer: a figure, a name, a choice, yes or no.
    Answer,
    /// The answer stands or falls with this claim.
    Key,
    /// It follows from a calculation that the reasoning shows.
    Calculated,
    /// It was run, tried or measured.
    Tested,
    /// A named source says so.
    Sourced,
    /// The request says so.
    Given,
    /// It is remembered, and nothing else supports it.
    Memory,
}

/// Deserializes tags. Drops words outside the vocabulary, because journals of earlier versions
/// contain free words.
///
/// # Errors
/// Fails if the value is not a list of strings.
pub(super) fn known_tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Tag>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    let tags = words
        .iter()
        .filter_map(|word| word.trim().to_lowercase().parse().ok());
    Ok(tags.collect())
}

/// A reference to a unit of an agent's report, written "solver:u1".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnitRef {
    pub agent: AgentName,
    pub unit: String,
}

impl UnitRef {
    pub fn new(agent: impl Into<AgentName>, unit: &str) -> Self {
        Self {
            agent: agent.into(),
            unit: unit.to_owned(),
        }
    }
}

impl fmt::Display for UnitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.agent, self.unit)
    }
}

impl FromStr for UnitRef {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let parts = s
            .rsplit_once(':')
            .map(|(agent, unit)| Self::new(agent.trim().to_owned(), unit.trim()));
        parts.ok_or_else(|| format!("{s:?} does not name a unit as \"agent:unit\""))
    }
}

impl Serialize for UnitRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnitRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A reference to a report, written "critic", or to one of its units, written "critic:u2".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ReportRef {
    pub agent: AgentName,
    pub unit: Option<String>,
}

impl From<String> for ReportRef {
    fn from(text: String) -> Self {
        let (agent, unit) = match text.rsplit_once(':') {
            Some((agent, unit)) => (agent, Some(unit.to_owned())),
            None => (&*text, None),
        };
        Self {
            agent: agent.to_owned().into(),
            unit,
        }
    }
}

impl From<ReportRef> for String {
    fn from(reference: ReportRef) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for ReportRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{}:{unit}", self.agent),
            None => self.agent.fmt(f),
        }
    }
}

/// Whether a claim holds, as far as the cross-check can tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Holds {
    Yes,
    No,
    #[default]
    Unknown,
}

/// What a verdict rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Basis {
    Calculation,
    Test,
    Source,
    /// The wording of the request.
    Given,
    #[default]
    Memory,
}

/// The cross-check's verdict on one key claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimVerdict {
    pub claim: UnitRef,
    /// The reports of other agents that support the claim, or their units that do.
    #[serde(default)]
    pub supported_by: Vec<ReportRef>,
    #[serde(default)]
    pub contradicted_by: Vec<ReportRef>,
    #[serde(default)]
    pub holds: Holds,
    #[serde(default)]
    pub by: Basis,
    /// The calculation, fact or wording that decides about the claim. If it is empty, the verdict
    /// counts half.
    #[serde(default)]
    pub evidence: String,
}

/// A part of the request, and the agents whose reports answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartAnswered {
    pub part: String,
    #[serde(default)]
    pub answered_by: Vec<AgentName>,
}

/// Why a report does not count as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum ConductKind {
    /// It declines the request.
    Declines,
    /// It lacks what it needs to answer, and says so.
    Lacks,
    /// It tries to steer its reader.
    Steers,
}

/// A report that does not count as an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conduct {
    pub agent: AgentName,
    pub kind: ConductKind,
    #[serde(default)]
    pub why: String,
}

/// The result of one cross-check call, with agents by name. Unknown claims and agents were dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrossCheck {
    #[serde(default)]
    pub claims: Vec<ClaimVerdict>,
    /// Groups of agents whose final answers mean the same but are written differently.
    #[serde(default)]
    pub same_answers: Vec<Vec<AgentName>>,
    #[serde(default)]
    pub parts: Vec<PartAnswered>,
    /// The audit calls them `reports`.
    #[serde(default, alias = "reports")]
    pub conduct: Vec<Conduct>,
}

/// An agent's decision in a later round on one of its own contested claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Keep,
    Concede,
}

/// What an agent decided about one of its own contested claims, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// The agent's own unit.
    pub claim: UnitRef,
    pub decision: Decision,
    pub by: Basis,
    pub evidence: String,
}

impl Resolution {
    /// True if the agent gave up the claim and named its reason.
    pub fn concedes(&self) -> bool {
        self.decision == Decision::Concede && !self.evidence.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::Agent;

    #[test]
    fn references_are_stored_as_written() {
        for text in ["critic", "critic:u2", "agent1", "llama3:8b:u1"] {
            let read: ReportRef = serde_json::from_value(json!(text)).unwrap();
            assert_eq!(json!(read), text);
        }
        let known = ReportRef::from("critic:u2".to_owned());
        assert_eq!(known.agent, Agent::Critic);
        assert_eq!(known.unit.as_deref(), Some("u2"));
    }
}
