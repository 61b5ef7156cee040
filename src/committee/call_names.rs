//! Recognizes a run's calls by their names.

use crate::domain::Agent;

/// True if a call asks an agent for its report: `r1/solver`, `r1/solver#2`, `r2/solver/repair`.
pub fn is_report(call: &str, agent: Agent) -> bool {
    let step = call.split_once('/').map_or("", |(_, step)| step);
    step.strip_prefix(agent.into_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['#', '/']))
}

/// True if a call belongs to the cross-check.
pub fn is_cross_check(call: &str) -> bool {
    call.strip_prefix("cross-check")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
}
