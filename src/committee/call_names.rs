//! Recognizes a run's calls by their names.

use crate::domain::Agent;
use crate::journal::{CallSent, Event, Transcript};

/// True if a call belongs to a step: `plan`, `plan#2`, `plan/repair`.
pub fn is_of_step(call: &str, step: &str) -> bool {
    let rest = call.strip_prefix(step);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['#', '/']))
}

/// True if a call asks an agent for its report: `r1/solver`, `r1/solver#2`, `r2/solver/repair`.
pub fn is_report(call: &str, agent: Agent) -> bool {
    let step = call.split_once('/').map(|(_, step)| step);
    step.is_some_and(|step| is_of_step(step, agent.into_str()))
}

/// True if a call belongs to the cross-check.
pub fn is_cross_check(call: &str) -> bool {
    is_of_step(call, "cross-check")
}

/// Returns the last answered call whose name satisfies `wanted`.
pub fn last_answered<'a>(
    run: &Transcript<'a>,
    wanted: impl Fn(&str) -> bool,
) -> Option<&'a CallSent> {
    let answered = run.calls.iter().rev().filter(|call| call.is_answered());
    answered
        .map(|call| call.sent)
        .find(|sent| wanted(&sent.call))
}

/// Returns the stage of a call, in words: "round 1" for `r1/solver#2`.
pub fn stage_of(call: &str) -> String {
    let step = call.split(['/', '#']).next().unwrap_or(call);
    match step.strip_prefix('r').map(str::parse::<u8>) {
        Some(Ok(round)) => format!("round {round}"),
        _ => format!("the {step}"),
    }
}

/// Returns the stage that is under way after these events, in words.
pub fn stage_under_way(events: &[Event]) -> String {
    let stage = |event: &Event| match event {
        Event::CallSent(sent) => Some(stage_of(&sent.call)),
        Event::RoundStarted(started) => Some(format!("round {}", started.round)),
        Event::Planned(_) => Some("round 1".to_owned()),
        Event::Scored(_) => Some("the synthesis".to_owned()),
        Event::Synthesized(_) => Some("the check of the reply".to_owned()),
        Event::StepStarted(step) => Some(format!("step {} ({})", step.step_id, step.tool)),
        _ => None,
    };
    let last = events.iter().rev().find_map(stage);
    last.unwrap_or_else(|| "the plan".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::StepStarted;

    #[test]
    fn a_call_belongs_to_the_stage_that_its_name_begins_with() {
        for (call, stage) in [
            ("plan#2", "the plan"),
            ("r2/resolve/solver", "round 2"),
            ("cross-check/reversed", "the cross-check"),
        ] {
            assert_eq!(stage_of(call), stage);
        }
        assert_eq!(stage_under_way(&[]), "the plan");
        let step = StepStarted {
            step_id: "2".into(),
            tool: "lsp_check".into(),
            before: vec![],
        };
        let under_way = stage_under_way(&[Event::StepStarted(step)]);
        assert_eq!(under_way, "step 2 (lsp_check)");
    }
}
