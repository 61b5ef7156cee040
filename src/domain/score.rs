//! What the engine measured.

use serde::{Deserialize, Serialize};

/// One of the five axes, each worth 0 to 25 points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Axis {
    Coherence,
    Alignment,
    Verifiability,
    SignalDensity,
    Compliance,
}

impl Axis {
    pub const ALL: [Axis; 5] = [
        Axis::Coherence,
        Axis::Alignment,
        Axis::Verifiability,
        Axis::SignalDensity,
        Axis::Compliance,
    ];

    /// The most points an axis can give.
    pub const MAX: f64 = 25.0;

    pub fn as_str(self) -> &'static str {
        match self {
            Axis::Coherence => "coherence",
            Axis::Alignment => "alignment",
            Axis::Verifiability => "verifiability",
            Axis::SignalDensity => "signalDensity",
            Axis::Compliance => "compliance",
        }
    }
}

/// A named measurement that moved an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// Stable dotted name, such as "verifiability.arithmetic_wrong".
    pub name: String,
    /// What was measured, in the feature's own unit.
    pub value: f64,
    /// What it added to the axis (or took away), in points.
    pub points: f64,
}

/// An axis with what made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AxisScore {
    /// 0 to 25.
    pub points: f64,
    /// How many of the points came from mechanical checks of the text; the rest came from peers.
    pub from_code: f64,
    pub features: Vec<Feature>,
}

/// The five axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Axes {
    pub coherence: AxisScore,
    pub alignment: AxisScore,
    pub verifiability: AxisScore,
    pub signal_density: AxisScore,
    pub compliance: AxisScore,
}

impl Axes {
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

    /// The axes, each changed.
    pub fn map(self, change: impl Fn(Axis, AxisScore) -> AxisScore) -> Self {
        Self {
            coherence: change(Axis::Coherence, self.coherence),
            alignment: change(Axis::Alignment, self.alignment),
            verifiability: change(Axis::Verifiability, self.verifiability),
            signal_density: change(Axis::SignalDensity, self.signal_density),
            compliance: change(Axis::Compliance, self.compliance),
        }
    }

    /// `Cred = sum of the axes / 125`, in [0, 1] (SPEC 5), to twelve decimals: what adding in another order leaves behind
    /// ranks nobody.
    pub fn cred(&self) -> f64 {
        let sum: f64 = self
            .iter()
            .map(|(_, axis)| axis.points.clamp(0.0, Axis::MAX))
            .sum();
        ((sum / (Axis::MAX * 5.0)).clamp(0.0, 1.0) * 1e12).round() / 1e12
    }
}

/// The label that an output carries into the synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Discard,
    Quarantine,
    Valid,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Discard => "DISCARD",
            Status::Quarantine => "QUARANTINE",
            Status::Valid => "VALID",
        }
    }
}

/// The two thresholds of Cred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thresholds {
    pub tau_hard: f64,
    pub tau_soft: f64,
}

impl Thresholds {
    /// DISCARD below `tau_hard`, QUARANTINE below `tau_soft`, else VALID (SPEC 5).
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

/// One agent's output, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The agent's name: a member of the committee, or any name in a recorded file (SPEC 13.1).
    pub agent: String,
    pub axes: Axes,
    /// 0 to 1.
    pub cred: f64,
    pub status: Status,
}

/// A position in a disagreement and who holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub text: String,
    pub agents: Vec<String>,
    /// The units that state it, as "agent:unit id".
    pub units: Vec<String>,
}

/// A topic on which agents say things that cannot both be true. Two positions or more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disagreement {
    pub topic: String,
    /// Whether it is about the final answer itself rather than about a detail.
    pub on_final_answer: bool,
    /// Whether the agents gave up their first positions since: it still counts against the answer, for agents conform
    /// whatever the truth, but nobody has to be asked about it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// How much it matters, 0 to 1: the share of the panel's weight that stands on the minority positions.
    pub severity: f64,
    pub positions: Vec<Position>,
}

/// Agents that gave the same final answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerGroup {
    /// The answer in its normal form.
    pub answer: String,
    pub agents: Vec<String>,
    /// The penalty of c_final for a reply that gives this answer; absent in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_penalty: Option<f64>,
}

/// What the engine says of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// In the order of the outputs.
    pub scores: Vec<Score>,
    pub disagreements: Vec<Disagreement>,
    pub answer_groups: Vec<AnswerGroup>,
    /// Weighted mean of Cred over the VALID outputs, 0 with none.
    pub base_score: f64,
    /// Measured from the disagreements, 0 to the policy's most.
    pub conflict_penalty: f64,
    /// Measured from the share of the request's parts that VALID outputs cover, 0 to the policy's most.
    pub coverage_bonus: f64,
    /// Whether a cross-check took part in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cross_checked: bool,
    /// The parts of the request, and for each whether it is covered.
    pub parts: Vec<String>,
    pub covered: Vec<bool>,
}
