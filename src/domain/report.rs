//! Agents' reports. Doc comments of the types with a schema are sent to the models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::evidence::known_tags;
use super::{Agent, Tag};

/// One claim that stands by itself, so that claims of several agents can be aligned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Short id, unique within the report, such as "u1".
    pub id: String,
    /// What the claim is about, in one to four words; one topic has the same words in every unit.
    pub topic: String,
    /// The claim itself, one or two sentences; of the unit tagged "answer" the bare answer.
    pub text: String,
    /// What the claim is and what it rests on.
    #[serde(deserialize_with = "known_tags")]
    pub tags: Vec<Tag>,
}

/// One agent's report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentReport {
    /// Your role's name, exactly as given to you.
    pub agent: String,
    /// One to five sentences that answer the question by themselves, the final answer first.
    pub answer_summary: Vec<String>,
    /// What you took for granted, one per entry; empty if nothing.
    pub assumptions: Vec<String>,
    /// How you got there: steps, calculations and checks that a reader can redo.
    pub reasoning: String,
    /// Ordered steps or deliverables, if the question asks for something to be done; else empty.
    pub steps_or_deliverables: Vec<String>,
    /// What could make this answer wrong or break, and how one would notice.
    pub failure_modes: Vec<String>,
    /// Your claims, one by one.
    pub units: Vec<Unit>,
    /// How sure you are, 0 to 1.
    pub self_confidence: f64,
}

impl Unit {
    /// True if it is tagged as the final answer.
    pub fn is_answer(&self) -> bool {
        self.tags.contains(&Tag::Answer)
    }

    /// True if the answer depends on it.
    pub fn is_key(&self) -> bool {
        self.is_answer() || self.tags.contains(&Tag::Key)
    }
}

impl AgentReport {
    /// Returns the units that are tagged as the final answer.
    pub fn answers(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(|unit| unit.is_answer())
    }

    /// Returns the claims that the answer depends on. If the report tags none, that is its first
    /// claim. A unit without a text is no claim.
    pub fn key_units(&self) -> Vec<&Unit> {
        let claims = self
            .units
            .iter()
            .filter(|unit| !unit.text.trim().is_empty());
        let keys: Vec<&Unit> = claims.clone().filter(|unit| unit.is_key()).collect();
        if keys.is_empty() {
            return claims.take(1).collect();
        }
        keys
    }

    /// Returns a report that was read from plain text as a model is shown it: its key claims, cut, and
    /// the text itself. Its other fields repeat the text. `named` gives the ids of its units.
    pub fn text_for_models(&self, named: impl Fn(&str) -> String) -> String {
        let keys = self.units.iter().filter(|unit| unit.is_key());
        let line = |unit: &Unit| {
            let text = unit.text.replace('\n', " ");
            let cut = text.floor_char_boundary(MAX_KEY_BYTES);
            let text = text.get(..cut).unwrap_or_default();
            format!("{}: {text}\n", named(&unit.id))
        };
        let keys: String = keys.map(line).collect();
        format!("{keys}\n{}", self.reasoning)
    }

    /// Returns the report as JSON for a prompt, without the model's own confidence (SPEC 3.4).
    /// `named` gives the ids of its units.
    pub fn for_models(&self, named: impl Fn(&str) -> String) -> String {
        let mut shown = json!(self);
        if let Some(fields) = shown.as_object_mut() {
            fields.shift_remove("selfConfidence");
        }
        let units = shown.get_mut("units").and_then(Value::as_array_mut);
        for unit in units.into_iter().flatten() {
            if let Some(Value::String(id)) = unit.get_mut("id") {
                *id = named(id);
            }
        }
        shown.to_string()
    }
}

/// The longest key claim in [`AgentReport::text_for_models`].
const MAX_KEY_BYTES: usize = 400;

/// The most tokens that [`AgentReport::text_for_models`] has beside the text: one key claim and its id.
const TEXT_REPORT_TOKENS: u64 = 450;

/// How a typed value was obtained from a model's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Obtained {
    /// Valid without changes.
    Clean,
    /// Valid after extraction: fences, prose around it, trailing commas, a cut end, coerced types.
    Extracted,
    /// Valid after one repair call.
    Repaired,
    /// Plain text converted into a report by fixed rules, as configured for the role.
    Text,
}

impl Obtained {
    /// Returns the most tokens of a report as models are shown it, of so many output tokens by the
    /// count of its own model.
    pub fn shown_tokens(self, tokens: u64) -> u64 {
        match self {
            Self::Text => tokens.saturating_add(TEXT_REPORT_TOKENS),
            Self::Clean | Self::Extracted | Self::Repaired => tokens,
        }
    }
}

/// Where an assumption comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum AssumptionKind {
    /// The request or the user's answer says so.
    Given,
    /// Taken from a named source.
    #[strum(serialize = "looked up")]
    LookedUp,
    /// Follows from what was given.
    Derived,
    Guess,
}

/// An entry of the ledger of assumptions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumption {
    /// "A1", "A2", ...
    pub handle: String,
    pub text: String,
    pub kind: AssumptionKind,
    /// The agents that made it. Empty if only the master or the user did.
    pub agents: Vec<Agent>,
}

impl Assumption {
    /// Returns the number of the handle; 0 if it has none.
    pub fn number(&self) -> usize {
        let digits = self.handle.strip_prefix('A').unwrap_or_default();
        digits.parse().unwrap_or(0)
    }
}
