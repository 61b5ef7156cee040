//! Caps on the status of an output, independent of its merits, and the scaling of its axes that
//! enforces them. The feature is named `scaled_by_REASON` and is on every axis.
//!
//! | reason | when | status at best |
//! | --- | --- | --- |
//! | `judge_attack`, `injection` | screening found it | DISCARD |
//! | `refusal` | screening found it | DISCARD; QUARANTINE if every cross-check read the report and names no misconduct |
//! | `empty`, `repetition`, `echo` | screening found it | DISCARD |
//! | `declines`, `lacks`, `steers` | the cross-check found it | QUARANTINE |
//! | `injection` | as above, if the task is to write a prompt, which gives orders, and a cross-check did not clear it | QUARANTINE |
//! | `leaked_prompt`, `partial_refusal` | screening found it | QUARANTINE |
//! | `several_answers` | its units tagged as the answer give different ones | QUARANTINE |
//! | `impossible_date` | its answer is a date that does not exist | QUARANTINE |
//! | `disproved` | every cross-check disproved the final answer that the request has, or else all key claims, by more than memory | QUARANTINE |
//! | `false_last_step` | the equation that states the answer does not hold | QUARANTINE |
//! | `broken_deliverable` | its code does not parse | QUARANTINE |

use super::answer::dates;
use super::checks::{FlagKind, Soundness, obeyed_injection};
use super::parsed_output::ParsedOutput;
use crate::domain::{
    Axes, Axis, AxisScore, ConductKind, Feature, Score, Status, TaskType, Thresholds,
};

/// Why the status of an output is capped. The names are stored, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum CapReason {
    #[strum(transparent)]
    Flag(FlagKind),
    #[strum(transparent)]
    Conduct(ConductKind),
    SeveralAnswers,
    ImpossibleDate,
    Disproved,
    FalseLastStep,
    BrokenDeliverable,
}

impl CapReason {
    /// Returns the name of the feature that scales an axis.
    fn feature_of(self, axis: Axis) -> String {
        [axis.into_str(), ".scaled_by_", self.into()].concat()
    }
}

/// True if the status of an output is capped because the cross-check disproved its final answer, or
/// all of its key claims.
pub fn is_disproved(score: &Score) -> bool {
    let mut features = score.axes.iter().flat_map(|(_, axis)| &axis.features);
    features.any(is_of_disproof)
}

/// True for the feature that scales an axis for that reason.
pub(super) fn is_of_disproof(feature: &Feature) -> bool {
    let disproved: &str = CapReason::Disproved.into();
    let name = feature.name.split_once(".scaled_by_");
    name.is_some_and(|(_, reason)| reason == disproved)
}

/// A cap on the status of an output, and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StatusCap {
    pub reason: CapReason,
    /// The best status that the output can get.
    pub best: Status,
}

/// Returns the cap that applies to the output, if any. `is_disproved`: see the table.
pub(super) fn of(
    reading: &ParsedOutput<'_>,
    request: &str,
    task: Option<TaskType>,
    is_disproved: bool,
) -> Option<StatusCap> {
    use FlagKind::{
        Echo, Empty, Injection, JudgeAttack, LeakedPrompt, PartialRefusal, Refusal, Repetition,
    };
    let screening = &reading.screening;
    let quarantine = |reason| {
        Some(StatusCap {
            reason,
            best: Status::Quarantine,
        })
    };
    if task == Some(TaskType::PromptEngineering)
        && screening.has(Injection)
        && !screening.has(JudgeAttack)
    {
        return quarantine(CapReason::Flag(Injection));
    }
    let disqualifying = [JudgeAttack, Injection, Empty, Repetition, Echo, Refusal];
    if let Some(kind) = disqualifying.into_iter().find(|kind| screening.has(*kind)) {
        return Some(StatusCap {
            reason: CapReason::Flag(kind),
            best: if kind == Refusal && reading.is_cleared {
                Status::Quarantine
            } else {
                Status::Discard
            },
        });
    }
    if let Some(conduct) = reading.conduct {
        return quarantine(CapReason::Conduct(conduct));
    }
    if screening.has(PartialRefusal) {
        return quarantine(CapReason::Flag(PartialRefusal));
    }
    if screening.has(LeakedPrompt) || obeyed_injection(request, &reading.body) {
        return quarantine(CapReason::Flag(LeakedPrompt));
    }
    if reading.several_answers {
        return quarantine(CapReason::SeveralAnswers);
    }
    let answer = reading.answer.as_ref();
    if answer.is_some_and(|answer| dates::is_impossible(&answer.text)) {
        return quarantine(CapReason::ImpossibleDate);
    }
    if is_disproved {
        return quarantine(CapReason::Disproved);
    }
    if reading.path.last == Some(false) {
        return quarantine(CapReason::FalseLastStep);
    }
    if reading.code.contains(&Soundness::Broken) {
        return quarantine(CapReason::BrokenDeliverable);
    }
    None
}

/// Scales the axes so that Cred stays below the threshold above `cap.best`.
pub(super) fn apply(axes: Axes, cap: StatusCap, thresholds: Thresholds) -> Axes {
    let cred = axes.cred();
    let (floor, ceiling) = match cap.best {
        Status::Valid => return axes,
        Status::Quarantine => (thresholds.tau_hard, 0.97 * thresholds.tau_soft),
        Status::Discard => (0.0, 0.95 * thresholds.tau_hard),
    };
    let target = floor.min(ceiling) + (ceiling - floor).max(0.0) * cred;
    if cred <= target || cred <= 0.0 {
        return axes;
    }
    let factor = (target / cred).clamp(0.0, 1.0);
    axes.map(|axis, mut score| {
        let points = score.points * factor;
        score.features.push(Feature {
            name: cap.reason.feature_of(axis),
            value: factor,
            points: points - score.points,
        });
        AxisScore {
            points,
            from_code: score.from_code * factor,
            ..score
        }
    })
}
