//! The weights of the evidence for a final answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weights, in log odds, of a logistic regression with one feature on recorded committees.
/// It estimates how often an answer with this much support is right.
/// `docs/scoring.md` describes the fit and its error on sets left out of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Calibration {
    /// The day of the fit, and how many committees on how many different requests it used.
    pub fitted_on: String,
    pub rows: u32,
    pub prompts: u32,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub intercept: f64,
    /// Weight of the log odds of the independent voices for the answer against the others.
    #[schemars(range(min = -20.0, max = 20.0))]
    pub support: f64,
    /// Weight of the cross-check's verdict on the answer, -1 to 1.
    /// A setting and not a fit: the recorded committees had none.
    #[schemars(range(min = 0.0, max = 20.0))]
    pub cross_check: f64,
    /// How similar the errors of one model family are, 0 to 1.
    /// `n` of its models count as `n / (1 + (n - 1) * familyCorrelation)` voices.
    /// A setting and not a fit.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub family_correlation: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            fitted_on: "2026-11-22".to_owned(),
            rows: 576,
            prompts: 411,
            intercept: -0.203,
            support: 1.125,
            cross_check: 2.5,
            family_correlation: 0.25,
        }
    }
}
