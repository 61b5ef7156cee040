//! The statuses that an output cannot leave, whatever its merits, and how its axes are scaled to keep it there.
//!
//! | feature, on every axis | when | status at best |
//! | --- | --- | --- |
//! | `scaled_by_judge_attack`, `scaled_by_injection` | the text speaks to a judge or gives models new orders | DISCARD |
//! | `scaled_by_refusal`, `_empty`, `_repetition`, `_boilerplate`, `_echo` | there is no answer in it | DISCARD |
//! | `scaled_by_injection` | as above, but the task is to write a prompt, which gives orders by nature | QUARANTINE |
//! | `scaled_by_leaked_prompt` | it repeats instructions, or says what injected text told it to | QUARANTINE |
//! | `scaled_by_partial_refusal` | it declines what was asked and offers something else instead | QUARANTINE |
//! | `scaled_by_unsolved` | the request sets a number puzzle, and this does not solve it | QUARANTINE |
//!
//! `settled_by_support` moves all axes to what the support for a final answer calls for; `tempered` takes half of what lies
//! above 0.75 from outputs to open requests, which nobody can confirm. All axes are scaled by one factor, so that the order among limited outputs stays.

use super::compliance::obeyed_injection;
use super::reading::Reading;
use super::request::Request;
use super::screen::FlagKind::{
    Boilerplate, Echo, Empty, Injection, JudgeAttack, LeakedPrompt, PartialRefusal, Refusal, Repetition,
};
use super::support::Support;
use crate::domain::{Axes, Axis, AxisScore, Feature, Status, TaskType, Thresholds};

/// Why an output cannot leave a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    pub reason: &'static str,
    /// The best status that is left.
    pub best: Status,
}

/// A partial refusal of this weight declines what was asked, whatever it offers instead.
const DECLINED: f64 = 0.6;

/// The limit that the text itself calls for.
pub(super) fn of(reading: &Reading<'_>, request: &Request, task: Option<TaskType>) -> Option<Limit> {
    let screening = &reading.screening;
    if task == Some(TaskType::PromptEngineering) && screening.has(Injection) && !screening.has(JudgeAttack) {
        return Some(Limit { reason: Injection.as_str(), best: Status::Quarantine });
    }
    let barred = [JudgeAttack, Injection, Empty, Repetition, Boilerplate, Echo, Refusal];
    if let Some(kind) = barred.into_iter().find(|kind| screening.has(*kind)) {
        return Some(Limit { reason: kind.as_str(), best: Status::Discard });
    }
    let leaks = screening.has(LeakedPrompt) || obeyed_injection(&request.text, &reading.body);
    if screening.weight(PartialRefusal) >= DECLINED {
        return Some(Limit { reason: PartialRefusal.as_str(), best: Status::Quarantine });
    }
    if leaks {
        return Some(Limit { reason: LeakedPrompt.as_str(), best: Status::Quarantine });
    }
    let unsolved = request.puzzle.as_ref().is_some_and(|puzzle| !super::puzzle::solves(puzzle, &reading.body));
    unsolved.then_some(Limit { reason: "unsolved", best: Status::Quarantine })
}

/// Scales the axes so that Cred stays below the threshold above `limit.best`.
pub(super) fn apply(axes: Axes, limit: Limit, thresholds: Thresholds) -> Axes {
    let cred = axes.cred();
    let (floor, ceiling) = match limit.best {
        Status::Valid => return axes,
        Status::Quarantine => (thresholds.tau_hard.min(below_valid(thresholds)), below_valid(thresholds)),
        Status::Discard => (0.0, 0.95 * thresholds.tau_hard),
    };
    let target = floor + (ceiling - floor) * cred;
    if cred <= target || cred <= 0.0 {
        return axes;
    }
    let factor = (target / cred).clamp(0.0, 1.0);
    let scaled = |axis: Axis, score: AxisScore| scale(axis, score, limit.reason, factor);
    Axes {
        coherence: scaled(Axis::Coherence, axes.coherence),
        alignment: scaled(Axis::Alignment, axes.alignment),
        verifiability: scaled(Axis::Verifiability, axes.verifiability),
        signal_density: scaled(Axis::SignalDensity, axes.signal_density),
        compliance: scaled(Axis::Compliance, axes.compliance),
    }
}

/// The most that Cred may be without being VALID.
pub(super) fn below_valid(thresholds: Thresholds) -> f64 {
    0.97 * thresholds.tau_soft
}

/// Moves all axes by one share, towards 0 or towards the full points, so that Cred is what the panel's support for the
/// answer calls for. What moved is put down as `settled_by_support`, beside the values that called for it.
pub(super) fn settle(axes: Axes, support: &Support, target: f64) -> Axes {
    let mut axes = towards(axes, "settled_by_support", target);
    let noted = support.features.iter().map(|(name, value, _)| Feature {
        name: format!("{}.{name}", Axis::Coherence.as_str()),
        value: *value,
        points: 0.0,
    });
    axes.coherence.features.extend(noted);
    axes
}

/// Above this, half of what an output to an open request would get: no answer of another agent can confirm it.
const UNCONFIRMED: f64 = 0.75;

/// Tempers what the text alone earns where there is no final answer to compare.
pub(super) fn temper(axes: Axes) -> Axes {
    let cred = axes.cred();
    if cred <= UNCONFIRMED { axes } else { towards(axes, "tempered", UNCONFIRMED + (cred - UNCONFIRMED) / 2.0) }
}

fn towards(axes: Axes, name: &str, target: f64) -> Axes {
    let (cred, target) = (axes.cred(), target.clamp(0.01, 0.99));
    let to = |points: f64| {
        if target < cred {
            points * target / cred
        } else {
            Axis::MAX - (Axis::MAX - points) * (1.0 - target) / (1.0 - cred).max(1e-9)
        }
    };
    let settled = |axis: Axis, score: AxisScore| {
        let points = to(score.points);
        let name = format!("{}.{name}", axis.as_str());
        let mut features = score.features;
        features.push(Feature { name, value: target, points: points - score.points });
        AxisScore { points, from_code: score.from_code.min(points), features }
    };
    Axes {
        coherence: settled(Axis::Coherence, axes.coherence),
        alignment: settled(Axis::Alignment, axes.alignment),
        verifiability: settled(Axis::Verifiability, axes.verifiability),
        signal_density: settled(Axis::SignalDensity, axes.signal_density),
        compliance: settled(Axis::Compliance, axes.compliance),
    }
}

fn scale(axis: Axis, score: AxisScore, reason: &str, factor: f64) -> AxisScore {
    let points = score.points * factor;
    let mut features = score.features;
    features.push(Feature {
        name: format!("{}.scaled_by_{reason}", axis.as_str()),
        value: factor,
        points: points - score.points,
    });
    AxisScore { points, from_code: score.from_code * factor, features }
}
