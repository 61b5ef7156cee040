//! How the evidence for a final answer is weighed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weights, in log odds per unit of each feature, of a logistic regression on recorded committees. What each feature
/// measures stands at the head of the engine's `support`; how the weights were got, in `docs/scoring.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Calibration {
    /// The day of the fit, and how many committees on how many different requests it saw.
    pub fitted_on: String,
    pub rows: u32,
    pub prompts: u32,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub intercept: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub support: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub spread: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub moved: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub disputed: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub hedged: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub checked: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub miscalculated: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub notation: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub argued: f64,
    #[schemars(range(min = -20.0, max = 20.0))]
    pub minority: f64,
    /// What a vote counts beside another one of the same model family. A caution, not a fit.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub same_family_vote: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            fitted_on: "2026-11-22".to_owned(),
            rows: 583,
            prompts: 416,
            intercept: 1.171,
            support: 0.371,
            spread: -1.354,
            moved: -0.274,
            disputed: -0.263,
            hedged: -0.776,
            checked: 1.17,
            miscalculated: -0.613,
            notation: -0.723,
            argued: -0.143,
            minority: -0.684,
            same_family_vote: 0.5,
        }
    }
}
