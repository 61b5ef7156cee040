//! `c_final` and the gate (SPEC 6).

use serde::{Deserialize, Serialize};

/// A term of `c_final` in three versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The master's estimate. `None` if there was no synthesis.
    pub estimated: Option<f64>,
    /// The service's own measurement, from disagreements and coverage.
    pub measured: f64,
    /// The value used in `c_final`, after clamping.
    pub applied: f64,
}

/// `c_final` with all of its terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Confidence {
    /// Weighted mean of Cred over VALID agents; 0 if there are none.
    pub base_score: f64,
    pub conflict_penalty: Terms,
    pub coverage_bonus: Terms,
    /// clamp(base_score - conflict_penalty.applied + coverage_bonus.applied, 0, 1), unrounded.
    #[serde(rename = "c_final")]
    pub c_final: f64,
    pub threshold: f64,
    /// Why `c_final` is less than its terms give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<ConfidenceLimit>,
}

/// The reason for an upper limit of `c_final`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceLimit {
    /// An image of the request was not seen.
    UnseenImage,
    /// An open request was not cross-checked.
    NotCrossChecked,
}

/// The gate's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Gate {
    /// Return the answer and ask nothing.
    Ship,
    /// Ask one question instead of answering.
    Ask,
}

/// Returns a `c_final` with so many decimals. One that is below the threshold is rounded down if it
/// would reach the threshold otherwise, so that the figure does not contradict the gate.
pub fn shown_c_final(c_final: f64, threshold: f64, decimals: usize) -> String {
    let rounded = format!("{c_final:.decimals$}");
    let reaches = rounded.parse::<f64>().is_ok_and(|it| it >= threshold);
    if c_final >= threshold || !reaches {
        return rounded;
    }
    let below = c_final - 0.5 * 0.1_f64.powi(i32::try_from(decimals).unwrap_or(0));
    format!("{below:.decimals$}")
}

/// Returns a configured bound with all its decimals, and with two at least.
pub fn shown_bound(bound: f64) -> String {
    let rounded = format!("{bound:.2}");
    let is_exact = rounded.parse() == Ok(bound);
    if is_exact { rounded } else { bound.to_string() }
}

impl Confidence {
    /// `c_final = clamp(base - penalty + bonus, 0, 1)`.
    pub fn new(
        base_score: f64,
        conflict_penalty: Terms,
        coverage_bonus: Terms,
        threshold: f64,
    ) -> Self {
        let c_final =
            (base_score - conflict_penalty.applied + coverage_bonus.applied).clamp(0.0, 1.0);
        Self {
            base_score,
            conflict_penalty,
            coverage_bonus,
            c_final,
            threshold,
            limited_by: None,
        }
    }

    /// Returns the same with `c_final` limited to `most`.
    #[must_use]
    pub fn at_most(self, most: f64, limit: ConfidenceLimit) -> Self {
        if self.c_final <= most {
            return self;
        }
        Self {
            c_final: most,
            limited_by: Some(limit),
            ..self
        }
    }

    /// Returns a confidence of 0, for a run in which no agent ran.
    pub fn none(threshold: f64) -> Self {
        Self::new(0.0, Terms::default(), Terms::default(), threshold)
    }

    /// True if the unrounded `c_final` is below the threshold. No other code compares them.
    pub fn is_low(&self) -> bool {
        self.c_final < self.threshold
    }

    /// Returns what to do: ask if the confidence is low, but only if no earlier question of the
    /// conversation was answered.
    pub fn gate(&self, may_ask: bool) -> Gate {
        if !(may_ask && self.is_low()) {
            Gate::Ship
        } else {
            Gate::Ask
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confidence(base: f64) -> Confidence {
        Confidence::new(base, Terms::default(), Terms::default(), 0.70)
    }

    #[test]
    fn the_gate_compares_the_unrounded_number() {
        assert_eq!(confidence(0.70).gate(true), Gate::Ship);
        assert_eq!(confidence(0.699_999).gate(true), Gate::Ask);
        assert_eq!(Confidence::none(0.70).gate(true), Gate::Ask);
        assert_eq!(Confidence::none(0.70).gate(false), Gate::Ship);
    }

    #[test]
    fn the_figure_shown_does_not_contradict_the_gate() {
        for (c_final, decimals, shown) in [
            (0.6998, 2, "0.69"),
            (0.6998, 4, "0.6998"),
            (0.699_99, 4, "0.6999"),
            (0.70, 2, "0.70"),
            (0.6949, 2, "0.69"),
            (0.8161, 2, "0.82"),
        ] {
            assert_eq!(shown_c_final(c_final, 0.70, decimals), shown);
        }
    }

    #[test]
    fn a_bound_is_shown_as_it_was_set() {
        for (bound, shown) in [
            (0.7, "0.70"),
            (0.0, "0.00"),
            (0.984, "0.984"),
            (2.0, "2.00"),
        ] {
            assert_eq!(shown_bound(bound), shown);
        }
    }

    #[test]
    fn c_final_stays_within_zero_and_one() {
        let term = |applied| Terms {
            applied,
            ..Terms::default()
        };
        assert_eq!(Confidence::new(0.1, term(0.3), term(0.0), 0.7).c_final, 0.0);
        assert_eq!(Confidence::new(1.0, term(0.0), term(0.1), 0.7).c_final, 1.0);
    }
}
