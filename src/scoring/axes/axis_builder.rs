//! Adds up an axis from its named features.

use crate::domain::{Axis, AxisScore, Feature};
use crate::scoring::checks::FlagKind;

/// What a feature measures. The names are stored, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(in crate::scoring) enum Measure {
    Base,
    FalseEquations,
    PeerAnswer,
    Support,
    Checked,
    CrossCheck,
    ClaimsSupported,
    ClaimsContradicted,
    SharedFigures,
    Parts,
    OnTopic,
    Demands,
    FinalAnswer,
    Basis,
    StepsHold,
    StepsFail,
    ClaimsHold,
    CodeParses,
    CodeBroken,
    NotGiven,
    BadDates,
    Novelty,
    Copied,
    Schema,
    Truncated,
    WrongRole,
    #[strum(transparent)]
    Flag(FlagKind),
}

impl Measure {
    /// True if a feature, of any axis, is of this measure.
    pub fn is_of(self, feature: &Feature) -> bool {
        let named = feature.name.split_once('.');
        named.is_some_and(|(_, name)| name == <&str>::from(self))
    }
}

/// An axis that is being computed.
#[derive(Debug)]
pub(super) struct AxisBuilder {
    axis: Axis,
    features: Vec<Feature>,
    from_peers: f64,
}

impl AxisBuilder {
    /// Starts an axis with the points of an output without any feature.
    pub fn new(axis: Axis, base: f64) -> Self {
        let mut tally = Self {
            axis,
            features: vec![],
            from_peers: 0.0,
        };
        tally.add(Measure::Base, base, base);
        tally
    }

    /// Adds a feature measured on the text itself. A feature with 0 points is not recorded.
    pub fn add(&mut self, measure: Measure, value: f64, points: f64) {
        if points != 0.0 {
            self.record(measure, value, points);
        }
    }

    /// As [`AxisBuilder::add`], also with 0 points: a value for use outside this axis.
    pub fn record(&mut self, measure: Measure, value: f64, points: f64) {
        self.features.push(Feature {
            name: [self.axis.into_str(), ".", measure.into()].concat(),
            value,
            points,
        });
    }

    /// Adds a feature that comes from other agents.
    pub fn add_from_peers(&mut self, measure: Measure, value: f64, points: f64) {
        self.from_peers += points;
        self.add(measure, value, points);
    }

    /// Returns the axis: the sum of its features, clamped.
    pub fn finish(self) -> AxisScore {
        let sum: f64 = self.features.iter().map(|feature| feature.points).sum();
        let points = sum.clamp(0.0, Axis::MAX);
        AxisScore {
            points,
            from_code: (points - self.from_peers).clamp(0.0, Axis::MAX),
            features: self.features,
        }
    }
}

/// Returns the position of a value between two marks, 0 to 1.
pub(super) fn ramp(value: f64, from: f64, to: f64) -> f64 {
    ((value - from) / (to - from)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_its_features_clamped() {
        let mut tally = AxisBuilder::new(Axis::Coherence, 20.0);
        tally.add(Measure::StepsHold, 1.0, 3.0);
        tally.add_from_peers(Measure::PeerAnswer, 1.0, 8.0);
        let score = tally.finish();
        assert_eq!((score.points, score.from_code), (25.0, 17.0));
    }
}
