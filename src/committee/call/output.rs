//! The output of a call, or the reason why there is none.

use conclave_lenient_json::Problem;

use crate::domain::{FailureCause, Obtained, Role};

/// What the output limit left of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Salvaged {
    /// The main part is whole; the rest is missing.
    MainPart,
    /// The main part has no end.
    Beginning,
}

/// A typed output.
#[derive(Debug, Clone)]
pub struct Typed<T> {
    pub value: T,
    pub obtained: Obtained,
    pub truncated: bool,
    /// Set if the output limit cut it and only its beginning could be used.
    pub salvaged: Option<Salvaged>,
    pub notes: Vec<String>,
    /// Output tokens of the call that gave it.
    pub tokens: u64,
}

impl<T> Typed<T> {
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Typed<U> {
        Typed {
            value: f(self.value),
            obtained: self.obtained,
            truncated: self.truncated,
            salvaged: self.salvaged,
            notes: self.notes,
            tokens: self.tokens,
        }
    }
}

/// The reason why there is no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    pub cause: FailureCause,
    pub detail: String,
    /// True if the run's own deadline ended the call, not the call's timeout.
    pub by_deadline: bool,
    /// True if another attempt would exceed the cap. The model itself did not fail for good.
    pub is_out_of_budget: bool,
}

impl CallFailure {
    pub fn new(cause: FailureCause, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: detail.into(),
            by_deadline: false,
            is_out_of_budget: false,
        }
    }

    /// True if the run can finish without this call. That is so if the model gave an unusable
    /// answer, refused this one request, or could not be called again for lack of money. If the
    /// provider itself is failing, the run fails (SPEC 1.3).
    pub fn is_recoverable(&self) -> bool {
        self.is_out_of_budget
            || matches!(
                self.cause,
                FailureCause::MalformedOutput
                    | FailureCause::OutputSpentOnThinking
                    | FailureCause::CutOff
                    | FailureCause::EmptyOutput
                    | FailureCause::Refused
                    | FailureCause::RequestRejected
                    | FailureCause::RequestUnfit
                    | FailureCause::ReplyTooLong
            )
    }

    /// Returns the failure for a well-formed answer that contains nothing usable.
    pub fn unusable(detail: &str) -> Self {
        Self::new(FailureCause::MalformedOutput, detail)
    }

    /// Returns the failure for an answer with these problems.
    pub(super) fn of_problems(cause: FailureCause, problems: &[Problem]) -> Self {
        let problems: Vec<String> = problems.iter().take(3).map(ToString::to_string).collect();
        Self::new(cause, problems.join("; "))
    }

    pub(in crate::committee) fn out_of_budget(detail: impl Into<String>) -> Self {
        Self {
            is_out_of_budget: true,
            ..Self::new(FailureCause::OutOfBudget, detail)
        }
    }

    pub(super) fn empty() -> Self {
        Self::new(FailureCause::EmptyOutput, "the model wrote nothing")
    }

    pub(super) fn limit_spent_on_thinking(role: Role, limit: u32) -> Self {
        let detail = format!(
            "the model spent all {limit} tokens thinking: raise maxTokens of {role}, or lower its effort"
        );
        Self::new(FailureCause::OutputSpentOnThinking, detail)
    }

    pub(super) fn no_time() -> Self {
        Self {
            by_deadline: true,
            ..Self::new(FailureCause::TimedOut, "no time was left for the call")
        }
    }
}

/// Returns the cause of a failure, with the detail if the reader can act on it. The detail of an
/// open circuit has the cause of the provider's last failure.
pub(in crate::committee) fn why(cause: &FailureCause, detail: &str) -> String {
    match cause {
        FailureCause::OutputSpentOnThinking => format!("{cause}: {detail}"),
        FailureCause::CircuitOpen => detail.to_owned(),
        _ => cause.to_string(),
    }
}
