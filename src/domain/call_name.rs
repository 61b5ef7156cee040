//! The names of calls. The journal, the audit and the event stream have them as text.

use std::fmt;
use std::str::FromStr;

use super::Agent;

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStep {
    Plan,
    /// An agent reports.
    Report {
        round: u8,
        agent: Agent,
    },
    /// An agent keeps or concedes its contested claims.
    Resolve {
        round: u8,
        agent: Agent,
    },
    CrossCheck {
        /// True if only the solver has reported.
        of_solver: bool,
        /// True for the second pass, which has everything in reverse order.
        reversed: bool,
        /// True if it is shown only the first claim of each report.
        first_claims: bool,
    },
    Synthesis,
    /// Continues a synthesis that the output limit cut.
    SynthesisRest,
    Question,
    Estimate,
    /// Proposes an action.
    Proposal,
    ToolPlan,
    ToolExplanation,
    /// Restates an explanation that was rejected.
    ToolRestatement,
    /// Compares a question with that of a learned answer.
    SameQuestion,
}

/// The name of a call: `r1/solver`, `r1/solver#2`, `plan/repair`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallName {
    pub step: CallStep,
    /// True if the call repairs the answer to the step's first call.
    pub is_repair: bool,
    /// Counted from 1.
    pub attempt: u32,
}

/// A name that this version does not know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown name of a call")]
pub struct UnknownCall;

impl CallStep {
    /// Returns the round, and the agent that is asked in it.
    pub fn turn(self) -> Option<(u8, Agent)> {
        match self {
            Self::Report { round, agent } | Self::Resolve { round, agent } => Some((round, agent)),
            _ => None,
        }
    }

    pub fn is_report_of(self, agent: Agent) -> bool {
        matches!(self, Self::Report { agent: own, .. } if own == agent)
    }

    pub fn is_cross_check(self) -> bool {
        matches!(self, Self::CrossCheck { .. })
    }
}

impl fmt::Display for CallStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Report { round, agent } => return write!(f, "r{round}/{agent}"),
            Self::Resolve { round, agent } => return write!(f, "r{round}/resolve/{agent}"),
            Self::CrossCheck {
                of_solver,
                reversed,
                first_claims,
            } => {
                let part = |is_set: &bool, part| if *is_set { part } else { "" };
                return write!(
                    f,
                    "cross-check{}{}{}",
                    part(of_solver, "/solver"),
                    part(reversed, "/reversed"),
                    part(first_claims, "/first")
                );
            }
            Self::Plan => "plan",
            Self::Synthesis => "synthesis",
            Self::SynthesisRest => "synthesis/rest",
            Self::Question => "question",
            Self::Estimate => "estimate",
            Self::Proposal => "proposal",
            Self::ToolPlan => "tool_plan",
            Self::ToolExplanation => "tool_explain",
            Self::ToolRestatement => "tool_restate",
            Self::SameQuestion => "same_question",
        })
    }
}

impl FromStr for CallStep {
    type Err = UnknownCall;

    fn from_str(name: &str) -> Result<Self, UnknownCall> {
        let round = |part: &str| part.strip_prefix('r')?.parse().ok();
        let parts: Vec<&str> = name.split('/').collect();
        let step = match parts[..] {
            ["plan"] => Some(Self::Plan),
            ["synthesis"] => Some(Self::Synthesis),
            ["synthesis", "rest"] => Some(Self::SynthesisRest),
            ["question"] => Some(Self::Question),
            ["estimate"] => Some(Self::Estimate),
            ["proposal"] => Some(Self::Proposal),
            ["tool_plan"] => Some(Self::ToolPlan),
            ["tool_explain"] => Some(Self::ToolExplanation),
            ["tool_restate"] => Some(Self::ToolRestatement),
            ["same_question"] => Some(Self::SameQuestion),
            ["cross-check", ref parts @ ..] => Some(Self::CrossCheck {
                of_solver: parts.contains(&"solver"),
                reversed: parts.contains(&"reversed"),
                first_claims: parts.contains(&"first"),
            }),
            [first, "resolve", agent] => {
                let turn = round(first).zip(agent.parse().ok());
                turn.map(|(round, agent)| Self::Resolve { round, agent })
            }
            [first, agent] => {
                let turn = round(first).zip(agent.parse().ok());
                turn.map(|(round, agent)| Self::Report { round, agent })
            }
            _ => None,
        };
        step.ok_or(UnknownCall)
    }
}

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repair = if self.is_repair { "/repair" } else { "" };
        write!(f, "{}{repair}", self.step)?;
        match self.attempt {
            1 => Ok(()),
            attempt => write!(f, "#{attempt}"),
        }
    }
}

impl FromStr for CallName {
    type Err = UnknownCall;

    fn from_str(name: &str) -> Result<Self, UnknownCall> {
        let (name, attempt) = match name.split_once('#') {
            Some((name, attempt)) => (name, attempt.parse().map_err(|_| UnknownCall)?),
            None => (name, 1),
        };
        let repaired = name.strip_suffix("/repair");
        Ok(Self {
            step: repaired.unwrap_or(name).parse()?,
            is_repair: repaired.is_some(),
            attempt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for name in [
            "plan",
            "plan#2",
            "r1/solver",
            "r2/critic/repair#3",
            "r2/resolve/verifier",
            "cross-check",
            "cross-check/reversed/first",
            "cross-check/solver",
            "synthesis",
            "synthesis/rest/repair",
            "question",
            "estimate",
            "proposal",
            "tool_plan",
            "tool_explain",
            "tool_restate",
            "same_question",
        ] {
            let read = name.parse::<CallName>().unwrap();
            assert_eq!(read.to_string(), name);
        }
        let repair = CallName {
            step: CallStep::Resolve {
                round: 2,
                agent: Agent::Critic,
            },
            is_repair: true,
            attempt: 2,
        };
        assert_eq!("r2/resolve/critic/repair#2".parse(), Ok(repair));
    }

    #[test]
    fn other_names_are_unknown() {
        for name in ["", "r1", "r1/unknown", "r/solver", "plans", "plan#x"] {
            assert_eq!(name.parse::<CallName>(), Err(UnknownCall), "{name}");
        }
    }
}
