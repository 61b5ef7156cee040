//! The execution time estimate: the model gives O, M and P, the service computes the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a whole estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Minutes,
    Hours,
}

impl Unit {
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Minutes => "minutes",
            Unit::Hours => "hours",
        }
    }
}

/// The longest time that a figure may state, in its unit.
const MOST: f64 = 1e6;

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
    /// Puts three figures in order (what is negative or not a number counts as 0, and more
    /// than a million as a million) and computes
    /// E = (O + 4M + P) / 6 (PERT, Malcolm et al. 1959). All are kept to hundredths, so that sums of what is shown are
    /// the sums that are shown.
    pub fn new(o: f64, m: f64, p: f64) -> Self {
        let clean = |x: f64| if x.is_finite() { (x.clamp(0.0, MOST) * 100.0).round() / 100.0 } else { 0.0 };
        let mut sorted = [clean(o), clean(m), clean(p)];
        sorted.sort_by(f64::total_cmp);
        let [o, m, p] = sorted;
        Self { optimistic: o, likely: m, pessimistic: p, expected: clean((o + 4.0 * m + p) / 6.0) }
    }
}

/// One step of the plan with its figures.
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
    /// What would push the work towards P.
    pub risks: Vec<String>,
    /// Confidence in the estimate, 0 to 1.
    pub confidence: f64,
    /// Whether the figures came from fixed rules because no model gave any.
    pub by_rule: bool,
}

impl Estimate {
    /// The totals: O, M, P and E each summed over the steps.
    pub fn total(&self) -> Pert {
        // Every figure is in hundredths, and so is their sum.
        let sum = |f: fn(&Pert) -> f64| (self.steps.iter().map(|s| f(&s.time)).sum::<f64>() * 100.0).round() / 100.0;
        Pert {
            optimistic: sum(|t| t.optimistic),
            likely: sum(|t| t.likely),
            pessimistic: sum(|t| t.pessimistic),
            expected: sum(|t| t.expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_expected_time_is_pert() {
        assert_eq!(Pert::new(5.0, 10.0, 21.0).expected, 11.0);
    }

    proptest! {
        #[test]
        fn any_three_numbers_come_out_in_order(o in any::<f64>(), m in any::<f64>(), p in any::<f64>()) {
            let t = Pert::new(o, m, p);
            prop_assert!(0.0 <= t.optimistic && t.optimistic <= t.likely && t.likely <= t.pessimistic);
            prop_assert!(t.expected.is_finite() && t.pessimistic <= MOST);
        }
    }
}
