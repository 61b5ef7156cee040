//! How the evidence for a final answer is weighed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weights, in log odds, of a logistic regression with one feature on recorded committees: how often an answer with that much
/// support is right. How it was fitted, and its error on sets left out of the fit, stands in `docs/scoring.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Calibration {
    /// The day of the fit, and how many committees on how many different requests it saw.
    pub fitted_on: String,
    pub rows: u32,
    pub prompts: u32,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub intercept: f64,
    /// Of the log odds of the independent voices for the answer against the others.
    #[schemars(range(min = -20.0, max = 20.0))]
    pub support: f64,
    /// Of the cross-check's verdict on the answer, -1 to 1. A setting and not a fit: the recorded committees had none.
    #[schemars(range(min = 0.0, max = 20.0))]
    pub cross_check: f64,
    /// How alike members of one model family err, 0 to 1: `n` of them are `n / (1 + (n - 1) * familyCorrelation)` voices. A
    /// setting and not a fit.
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
