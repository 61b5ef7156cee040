//! The reasons why a run has no reply, and why a call has no output.

use std::collections::BTreeMap;

use crate::committee::call::output::{CallFailure, why};
use crate::committee::call::prompts::Error as PromptError;
use crate::domain::{Agent, FailureCause, Usd};
use crate::journal::{AgentOutcome, Cause, Stop, Uncalled};

/// The reason why a run has no reply.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run cannot continue in this process. Its journal has no final event.
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error("{detail}")]
    Failed { cause: Cause, detail: String },
}

impl Failure {
    pub fn internal(detail: &str) -> Self {
        Self::Failed {
            cause: Cause::Internal,
            detail: detail.to_owned(),
        }
    }

    pub fn master(stage: &str, failed: &CallFailure) -> Self {
        let cause = if failed.by_deadline {
            Cause::Deadline
        } else if failed.cause == FailureCause::OutOfBudget {
            Cause::Budget
        } else {
            Cause::Provider
        };
        let why = match failed.cause {
            FailureCause::CircuitOpen => failed.detail.clone(),
            _ => format!("{} ({})", failed.cause, failed.detail),
        };
        let detail = format!("the master gave no {stage}: {why}");
        Self::Failed { cause, detail }
    }

    pub(super) fn no_core_output(panel: &BTreeMap<Agent, AgentOutcome>) -> Self {
        let mut causes = vec![];
        let (mut is_budget, mut is_deadline) = (true, true);
        for (agent, outcome) in panel {
            if let AgentOutcome::Failed {
                cause,
                detail,
                by_deadline,
            } = outcome
            {
                let why = match cause {
                    FailureCause::RequestRejected | FailureCause::NotAuthorized => {
                        format!("{cause} ({detail})")
                    }
                    _ => why(cause, detail),
                };
                causes.push(format!("{agent}: {why}"));
                is_budget &= *cause == FailureCause::OutOfBudget;
                is_deadline &= by_deadline;
            }
        }
        let cause = match causes.as_slice() {
            [_, ..] if is_budget => Cause::Budget,
            [_, ..] if is_deadline => Cause::Deadline,
            _ => Cause::Provider,
        };
        let detail = format!("no core agent gave any output ({})", causes.join(", "));
        Self::Failed { cause, detail }
    }

    /// Returns the failure of a run that has too little money left for one agent and the synthesis,
    /// which can cost `needed`. The question may be long, or earlier calls used the money up.
    pub(super) fn over_cap(left: Usd, needed: Usd) -> Self {
        let detail = format!(
            "one agent and the synthesis can cost {needed}, and {left} of the cap is left. \
             Shorten the question or raise the cap"
        );
        Self::Failed {
            cause: Cause::Budget,
            detail,
        }
    }
}

impl From<PromptError> for Failure {
    fn from(error: PromptError) -> Self {
        Self::internal(&error.to_string())
    }
}

/// The error of a call.
pub enum CallError {
    /// There is no output. The run may continue without it.
    NoOutput(CallFailure),
    Stopped(Failure),
}

impl CallError {
    /// Returns why there is no output.
    ///
    /// # Errors
    /// The failure that stops the run.
    pub fn no_output(self) -> Result<CallFailure, Failure> {
        match self {
            Self::NoOutput(failure) => Ok(failure),
            Self::Stopped(failure) => Err(failure),
        }
    }
}

impl From<CallFailure> for CallError {
    fn from(failure: CallFailure) -> Self {
        Self::NoOutput(failure)
    }
}

impl<E: Into<Failure>> From<E> for CallError {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

impl From<Uncalled> for CallError {
    fn from(error: Uncalled) -> Self {
        match error {
            Uncalled::Refused(refused) => {
                Self::NoOutput(CallFailure::out_of_budget(refused.to_string()))
            }
            Uncalled::Stopped(stop) => Self::Stopped(stop.into()),
        }
    }
}
