//! Results of the scoring engine.

use serde::{Deserialize, Serialize};

use super::{Agent, AgentName, UnitRef};

/// One of the five axes, each worth 0 to 25 points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "camelCase", const_into_str)]
pub enum Axis {
    Coherence,
    Alignment,
    Verifiability,
    SignalDensity,
    Compliance,
}

impl Axis {
    /// The maximum number of points per axis.
    pub const MAX: f64 = 25.0;
}

/// A named measurement that changed the points of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// Stable dotted name, such as "verifiability.steps_fail".
    pub name: String,
    /// The measured value, in the feature's own unit.
    pub value: f64,
    /// Points added to the axis, or subtracted if negative.
    pub points: f64,
}

/// The points of an axis, with the features behind them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AxisScore {
    /// 0 to 25.
    pub points: f64,
    /// The part of the points that comes from mechanical checks of the text. The rest comes from
    /// peers.
    pub from_code: f64,
    pub features: Vec<Feature>,
}

/// The five axes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Axes {
    pub coherence: AxisScore,
    pub alignment: AxisScore,
    pub verifiability: AxisScore,
    pub signal_density: AxisScore,
    pub compliance: AxisScore,
}

impl Axes {
    /// The maximum number of points of all axes together.
    pub const MAX_POINTS: f64 = 5.0 * Axis::MAX;

    pub fn iter(&self) -> impl Iterator<Item = (Axis, &AxisScore)> {
        [
            (Axis::Coherence, &self.coherence),
            (Axis::Alignment, &self.alignment),
            (Axis::Verifiability, &self.verifiability),
            (Axis::SignalDensity, &self.signal_density),
            (Axis::Compliance, &self.compliance),
        ]
        .into_iter()
    }

    /// Returns the axes with each one changed.
    pub fn map(self, change: impl Fn(Axis, AxisScore) -> AxisScore) -> Self {
        Self {
            coherence: change(Axis::Coherence, self.coherence),
            alignment: change(Axis::Alignment, self.alignment),
            verifiability: change(Axis::Verifiability, self.verifiability),
            signal_density: change(Axis::SignalDensity, self.signal_density),
            compliance: change(Axis::Compliance, self.compliance),
        }
    }

    /// Returns `Cred = sum of the axes / 125`, in [0, 1] (SPEC 5). It is rounded to twelve
    /// decimals, so that the order of additions cannot affect a ranking.
    pub fn cred(&self) -> f64 {
        let points = self
            .iter()
            .map(|(_, axis)| axis.points.clamp(0.0, Axis::MAX));
        let sum: f64 = points.sum();
        ((sum / Self::MAX_POINTS).clamp(0.0, 1.0) * 1e12).round() / 1e12
    }
}

/// The label of an output in the synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
pub enum Status {
    Discard,
    Quarantine,
    Valid,
}

/// The two thresholds of Cred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thresholds {
    pub tau_hard: f64,
    pub tau_soft: f64,
}

impl Thresholds {
    /// Returns DISCARD below `tau_hard`, QUARANTINE below `tau_soft`, else VALID (SPEC 5).
    pub fn status(self, cred: f64) -> Status {
        if cred < self.tau_hard {
            Status::Discard
        } else if cred < self.tau_soft {
            Status::Quarantine
        } else {
            Status::Valid
        }
    }
}

/// The score of one agent's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    pub agent: AgentName,
    pub axes: Axes,
    /// 0 to 1.
    pub cred: f64,
    pub status: Status,
}

/// A position in a disagreement, with the agents that hold it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub text: String,
    pub agents: Vec<AgentName>,
    /// The units that state it.
    pub units: Vec<UnitRef>,
}

/// A topic with two or more positions that cannot all be true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disagreement {
    pub topic: String,
    /// True if it concerns the final answer itself and not a detail.
    pub on_final_answer: bool,
    /// True if the agents have given up their first positions since. It still counts against the
    /// answer, because agents conform regardless of the truth. But no agent is asked about it
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Weight of the disagreement, 0 to 1: the share of the panel's weight on minority positions.
    pub severity: f64,
    pub positions: Vec<Position>,
}

/// The agents that gave the same final answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerGroup {
    /// The answer in normal form.
    pub answer: String,
    /// The answers as the agents gave them, the most frequent first, and the text of the option that
    /// they name; empty if the normal form is the only one. Absent in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wordings: Vec<String>,
    pub agents: Vec<AgentName>,
    /// The penalty of `c_final` for a reply with this answer. Absent in journals of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_penalty: Option<f64>,
}

impl AnswerGroup {
    /// Returns the answer as most of the agents wrote it.
    pub fn shown(&self) -> &str {
        self.wordings.first().unwrap_or(&self.answer)
    }

    /// Returns the answer in every wording, its normal form last.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let wordings = self.wordings.iter().chain([&self.answer]);
        wordings.map(String::as_str)
    }
}

/// The scoring engine's judgement of a panel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// In the order of the agents' outputs.
    pub scores: Vec<Score>,
    pub disagreements: Vec<Disagreement>,
    pub answer_groups: Vec<AnswerGroup>,
    /// Weighted mean of Cred over the VALID outputs; 0 if there are none.
    pub base_score: f64,
    /// Measured from the disagreements, 0 to the policy's maximum.
    pub conflict_penalty: f64,
    /// Measured from the share of the request's parts that VALID outputs cover, 0 to the policy's
    /// maximum.
    pub coverage_bonus: f64,
    /// True if the judgement includes a cross-check.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cross_checked: bool,
    /// True if the request is about images that no model could see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rests_on_unseen: bool,
    /// The parts of the request. `covered` tells for each whether it is covered.
    pub parts: Vec<String>,
    pub covered: Vec<bool>,
}

impl Judgement {
    pub fn score_of(&self, agent: Agent) -> Option<&Score> {
        self.scores.iter().find(|score| score.agent == agent)
    }

    pub fn status_of(&self, agent: Agent) -> Option<Status> {
        self.score_of(agent).map(|score| score.status)
    }
}
