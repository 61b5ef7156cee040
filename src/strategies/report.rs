//! Compares decision strategies by the journals of their runs.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::Serialize;

use crate::domain::{DecisionPath, Outcome};
use crate::journal::{Ending, Transcript};

/// The quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.96;

/// The runs of one strategy, or of one arm of an A/B test.
#[derive(Debug, Clone, Default)]
pub struct Arm {
    pub runs: u64,
    pub failed: u64,
    /// Replies of learned answers.
    pub from_memory: u64,
    /// Of each run, in US dollars.
    costs: Vec<f64>,
    /// Of each run that replied.
    seconds: Vec<f64>,
    pub positive: u64,
    pub negative: u64,
}

/// A mean or a share with its interval of 95 %. One value has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimated {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Arm {
    /// Returns the mean cost in US dollars, with a normal interval; `None` without runs.
    pub fn cost(&self) -> Option<Estimated> {
        mean(&self.costs)
    }

    /// Returns the mean time until the reply in seconds; `None` without replies.
    pub fn seconds(&self) -> Option<Estimated> {
        mean(&self.seconds)
    }

    /// Returns the share of positive feedback, with Wilson's interval; `None` without feedback.
    pub fn approval(&self) -> Option<Estimated> {
        let all = (self.positive + self.negative) as f64;
        if all < 1.0 {
            return None;
        }
        let share = self.positive as f64 / all;
        let shrunk = 1.0 + Z * Z / all;
        let centre = (share + Z * Z / (2.0 * all)) / shrunk;
        let half = Z / shrunk * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
        Some(Estimated {
            value: share,
            low: Some((centre - half).max(0.0)),
            high: Some((centre + half).min(1.0)),
        })
    }
}

fn mean(values: &[f64]) -> Option<Estimated> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let value = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|it| (it - value).powi(2)).sum::<f64>();
    let half = (count > 1.0).then(|| Z * (squares / (count - 1.0) / count).sqrt());
    Some(Estimated {
        value,
        low: half.map(|half| value - half),
        high: half.map(|half| value + half),
    })
}

/// The runs of all strategies, by the name of the arm or of the strategy.
#[derive(Debug, Clone, Default)]
pub struct StrategyReport {
    pub arms: BTreeMap<String, Arm>,
}

impl StrategyReport {
    /// Adds a finished run. `took` is the time from its acceptance to its end.
    pub fn add(&mut self, run: &Transcript<'_>, took: SignedDuration) {
        let decided = run.decided;
        let name = decided.and_then(|decided| {
            let strategy = decided.strategy.get("strategy")?.as_str()?;
            Some(decided.arm.as_deref().unwrap_or(strategy))
        });
        let arm = self
            .arms
            .entry(name.unwrap_or("none").to_owned())
            .or_default();
        let Some(finished) = run.finished else { return };
        arm.runs += 1;
        arm.costs.push(finished.spent.dollars());
        match &finished.ending {
            Ending::Replied { reply } => {
                arm.seconds.push(took.as_secs_f64());
                let is_recalled = decided.is_some_and(|it| it.path == DecisionPath::Heuristic);
                arm.from_memory += u64::from(is_recalled && reply.outcome == Outcome::Heuristic);
            }
            Ending::Failed { .. } | Ending::Cancelled | Ending::Acted { .. } => arm.failed += 1,
        }
        // The last feedback counts.
        match run.feedback.last().map(|feedback| feedback.positive) {
            Some(true) => arm.positive += 1,
            Some(false) => arm.negative += 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_the_values_of_their_formulas() {
        let arm = Arm {
            positive: 8,
            negative: 2,
            ..Arm::default()
        };
        let approval = arm.approval().unwrap();
        // Wilson's interval for 8 of 10 at 95 %.
        let near = |a: f64, b: f64| (a - b).abs() < 0.0005;
        assert!(near(approval.value, 0.8), "{approval:?}");
        assert!(
            near(approval.low.unwrap(), 0.4902) && near(approval.high.unwrap(), 0.9433),
            "{approval:?}"
        );
        let three = mean(&[1.0, 2.0, 3.0]).unwrap();
        assert!(near(three.value, 2.0) && near(three.high.unwrap(), 2.0 + 1.96 / 3.0_f64.sqrt()));
        assert_eq!(
            mean(&[2.0]).unwrap().high,
            None,
            "one value has no interval"
        );
        assert_eq!(Arm::default().cost(), None);
    }
}
