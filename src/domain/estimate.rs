//! The execution time estimate. The model gives O, M and P; the service computes the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a whole estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Unit {
    Minutes,
    #[default]
    Hours,
}

/// The longest time of a figure, in its unit.
const MAX: f64 = 1e6;

/// A three-point estimate, in the estimate's unit: 0 <= optimistic <= most likely <= pessimistic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pert {
    #[serde(rename = "O")]
    pub optimistic: f64,
    #[serde(rename = "M")]
    pub likely: f64,
    #[serde(rename = "P")]
    pub pessimistic: f64,
    #[serde(rename = "E")]
    pub expected: f64,
}

impl Pert {
    /// Sorts three figures and computes E = (O + 4M + P) / 6 (PERT, Malcolm et al. 1959). A
    /// negative figure or one that is not finite counts as 0, and one above a million as a million.
    /// Nothing is rounded before display.
    pub fn new(o: f64, m: f64, p: f64) -> Self {
        // Adding zero turns a negative zero into a positive one.
        let clean = |x: f64| {
            Some(x)
                .filter(|x| x.is_finite())
                .map_or(0.0, |x| x.clamp(0.0, MAX) + 0.0)
        };
        let mut sorted = [o, m, p].map(clean);
        sorted.sort_by(f64::total_cmp);
        let [o, m, p] = sorted;
        Self::expecting(o, m, p)
    }

    fn expecting(optimistic: f64, likely: f64, pessimistic: f64) -> Self {
        Self {
            optimistic,
            likely,
            pessimistic,
            expected: (optimistic + 4.0 * likely + pessimistic) / 6.0,
        }
    }
}

/// A step of the plan with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EstimateStep {
    pub step: String,
    #[serde(flatten)]
    pub time: Pert,
}

/// The execution time estimate of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub unit: Unit,
    pub steps: Vec<EstimateStep>,
    pub assumptions: Vec<String>,
    /// Risks that would move the time towards P.
    pub risks: Vec<String>,
    /// Confidence in the estimate, 0 to 1.
    pub confidence: f64,
    /// True if the figures come from fixed rules, because no model gave any.
    pub by_rule: bool,
}

impl Estimate {
    /// Returns the totals: O, M and P are each summed over the steps, unrounded. E is computed from
    /// these sums, which equals the sum of the steps' E.
    pub fn total(&self) -> Pert {
        let sum = |f: fn(&Pert) -> f64| self.steps.iter().map(|s| f(&s.time)).sum::<f64>();
        Pert::expecting(
            sum(|t| t.optimistic),
            sum(|t| t.likely),
            sum(|t| t.pessimistic),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimate(times: &[(f64, f64, f64)]) -> Estimate {
        let step = |(o, m, p): &(f64, f64, f64)| EstimateStep {
            step: "x".into(),
            time: Pert::new(*o, *m, *p),
        };
        Estimate {
            unit: Unit::Hours,
            steps: times.iter().map(step).collect(),
            assumptions: vec![],
            risks: vec![],
            confidence: 0.5,
            by_rule: false,
        }
    }

    #[test]
    fn nothing_is_rounded_before_it_is_summed() {
        assert_eq!(Pert::new(5.0, 10.0, 21.0).expected, 11.0);
        assert_eq!(
            Pert::new(0.125, 0.25, 0.5).expected,
            (0.125 + 1.0 + 0.5) / 6.0
        );
        let total = estimate(&[(0.125, 0.25, 0.5); 3]).total();
        assert_eq!(total, Pert::expecting(0.375, 0.75, 1.5));
        assert!(Pert::new(-0.0, -1.0, 0.0).optimistic.is_sign_positive());
    }

    proptest! {
        #[test]
        fn the_total_is_the_sum_of_the_steps(times in prop::collection::vec((0.0..1e3, 0.0..1e3, 0.0..1e3), 0..9)) {
            let estimate = estimate(&times);
            let summed: f64 = estimate.steps.iter().map(|step| step.time.expected).sum();
            prop_assert!((estimate.total().expected - summed).abs() < 1e-6);
        }

        #[test]
        fn any_three_numbers_come_out_in_order(o in any::<f64>(), m in any::<f64>(), p in any::<f64>()) {
            let t = Pert::new(o, m, p);
            prop_assert!(0.0 <= t.optimistic && t.optimistic <= t.likely && t.likely <= t.pessimistic);
            prop_assert!(t.expected.is_finite() && t.pessimistic <= MAX);
        }
    }
}
