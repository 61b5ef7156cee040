//! Calls and what they cost, as a journal has them, and the stage that is under way.

use serde::Serialize;

use super::{CallResult, CallSent, CallSettled, Event};
use crate::domain::{Agent, CallName, CallStep, Usd, is_same_model};

impl CallSent {
    /// Returns the parsed name of the call; `None` if this version does not know it.
    pub fn name(&self) -> Option<CallName> {
        self.call.parse().ok()
    }

    pub fn step(&self) -> Option<CallStep> {
        self.name().map(|name| name.step)
    }

    pub fn is_report_of(&self, agent: Agent) -> bool {
        self.step().is_some_and(|step| step.is_report_of(agent))
    }

    /// True if the call asks an agent for its part in this round.
    pub fn is_of_round(&self, round: u8) -> bool {
        let turn = self.step().and_then(CallStep::turn);
        turn.is_some_and(|(own, _)| own == round)
    }

    pub fn is_cross_check(&self) -> bool {
        self.step().is_some_and(CallStep::is_cross_check)
    }
}

/// A call's intent and, if it ended, its settlement.
#[derive(Debug, Clone, Copy)]
pub struct CallView<'a> {
    pub sent: &'a CallSent,
    pub settled: Option<&'a CallSettled>,
}

impl CallView<'_> {
    /// Returns "answered", "failed: CAUSE", "in doubt" or "in flight".
    pub fn state(&self) -> String {
        match self.settled.map(|s| &s.result) {
            None => "in flight".into(),
            Some(CallResult::InDoubt) => "in doubt".into(),
            Some(CallResult::Failed { cause, .. }) => format!("failed: {cause}"),
            Some(CallResult::Answered { .. }) => "answered".into(),
        }
    }

    pub fn is_answered(&self) -> bool {
        self.settled
            .is_some_and(|settled| matches!(settled.result, CallResult::Answered { .. }))
    }

    /// Returns how long the call took in milliseconds, if it came back.
    pub fn latency_ms(&self) -> Option<u64> {
        let settled = self.settled?;
        (settled.result != CallResult::InDoubt).then_some(settled.latency_ms)
    }

    /// Returns the model that the provider reports, if the call was answered and it is not blank.
    pub fn served(&self) -> Option<&str> {
        self.settled?
            .served
            .as_deref()
            .filter(|id| !id.trim().is_empty())
    }

    /// True if the provider reports another model than the one asked for.
    pub fn is_replaced(&self) -> bool {
        self.served()
            .is_some_and(|served| !is_same_model(&self.sent.model, served))
    }
}

/// Returns the stage that is under way after these events, in words.
pub fn stage_under_way(events: &[Event]) -> String {
    let stage = |event: &Event| match event {
        Event::CallSent(sent) => sent.step().map(stage_of),
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

fn stage_of(step: CallStep) -> String {
    let stage = match step {
        CallStep::Report { round, .. } | CallStep::Resolve { round, .. } => {
            return format!("round {round}");
        }
        CallStep::Plan => "plan",
        CallStep::CrossCheck { .. } => "cross-check",
        CallStep::Synthesis | CallStep::SynthesisRest => "synthesis",
        CallStep::Question => "question",
        CallStep::Estimate => "estimate",
        CallStep::Proposal => "proposal",
        CallStep::ToolPlan => "tool plan",
        CallStep::ToolExplanation | CallStep::ToolRestatement => "explanation",
        CallStep::SameQuestion => "comparison with a learned answer",
    };
    format!("the {stage}")
}

/// Sums over calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub calls: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The part of the output that providers report as thinking.
    pub thinking_tokens: u64,
    pub latency_ms: u64,
    #[serde(skip)]
    pub cost: Usd,
}

/// Sums up calls.
pub fn totals(calls: &[&CallView<'_>]) -> Totals {
    let mut totals = Totals::default();
    for view in calls {
        totals.calls += 1;
        if let Some(settled) = view.settled {
            totals.latency_ms = totals.latency_ms.saturating_add(settled.latency_ms);
            totals.cost += settled.cost;
            if let Some(usage) = settled.usage {
                totals.input_tokens = totals.input_tokens.saturating_add(usage.all_input());
                totals.output_tokens = totals.output_tokens.saturating_add(usage.output);
                totals.thinking_tokens = totals.thinking_tokens.saturating_add(usage.thinking);
            }
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::StepStarted;

    #[test]
    fn a_call_belongs_to_the_stage_that_its_step_names() {
        let resolve = CallStep::Resolve {
            round: 2,
            agent: Agent::Solver,
        };
        assert_eq!(stage_of(resolve), "round 2");
        assert_eq!(stage_of(CallStep::Plan), "the plan");
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
