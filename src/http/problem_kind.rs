//! The kinds of problem that a client can meet: one row each, for the responses and for their
//! description.

use axum::http::StatusCode;

/// A kind of problem, as clients distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    NotJson,
    WrongShape,
    WrongParameter,
    NoToken,
    LacksScope,
    NotLocal,
    NoSuchRun,
    NoSuchProposal,
    NoSuchPlan,
    ToolsOff,
    NoSuchPage,
    NoSuchMethod,
    TooSlow,
    Conflict,
    ProposalGone,
    PlanClosed,
    TooLarge,
    WrongType,
    Invalid,
    KeyReused,
    OverBudget,
    LimitSpent,
    RateLimited,
    Internal,
    ProviderFailed,
    Busy,
    NotReady,
    NoJournal,
    Deadline,
}

/// The status and the texts of a kind.
pub(super) struct Said {
    pub status: StatusCode,
    /// The last part of the problem's type.
    pub slug: &'static str,
    pub title: &'static str,
    /// When the problem occurs, for the reference.
    pub when: &'static str,
}

impl Kind {
    // Longer than other functions: one flat table, a row for each kind.
    pub fn said(self) -> Said {
        let (status, slug, title, when) = match self {
            Kind::NotJson => (
                400,
                "not-json",
                "The body is not valid JSON",
                "the body is not JSON",
            ),
            Kind::WrongShape => (
                400,
                "wrong-shape",
                "The body has the wrong shape",
                "a field is missing, unknown, of the wrong type or not an allowed value",
            ),
            Kind::WrongParameter => (
                400,
                "wrong-parameter",
                "A parameter is wrong",
                "a query parameter, `Idempotency-Key` or `Last-Event-ID` is wrong",
            ),
            Kind::NoToken => (
                401,
                "no-token",
                "A valid bearer token is needed",
                "there is no bearer token, or it is not valid",
            ),
            Kind::LacksScope => (
                403,
                "lacks-scope",
                "The token does not open this",
                "the token is valid, but lacks the scope",
            ),
            Kind::NotLocal => (
                403,
                "not-local",
                "The service is not known by this name",
                "no token is needed, and `Host` is not a name of this machine",
            ),
            Kind::NoSuchRun => (
                404,
                "no-such-run",
                "There is no such run",
                "no run has this id",
            ),
            Kind::NoSuchProposal => (
                404,
                "no-such-proposal",
                "There is no such proposal",
                "no proposal of this user in this guild has this id",
            ),
            Kind::NoSuchPlan => (
                404,
                "no-such-plan",
                "There is no such plan",
                "no plan of this user, or no execution, has this id",
            ),
            Kind::ToolsOff => (
                404,
                "tools-off",
                "Tool plans are off",
                "`TOOLS_WORKSPACE` is not set",
            ),
            Kind::NoSuchPage => (
                404,
                "no-such-page",
                "There is nothing here",
                "no route has this path",
            ),
            Kind::NoSuchMethod => (
                405,
                "no-such-method",
                "The method is not allowed here",
                "the path exists, but not with this method",
            ),
            Kind::TooSlow => (
                408,
                "too-slow",
                "The body did not arrive",
                "the body did not arrive in time",
            ),
            Kind::Conflict => (
                409,
                "conflict",
                "The run's state does not allow it",
                "the run was cancelled, has ended and cannot be cancelled, or has no reply for feedback",
            ),
            Kind::ProposalGone => (
                409,
                "proposal-gone",
                "The proposal can no longer be confirmed",
                "the proposal was confirmed already, or has expired",
            ),
            Kind::PlanClosed => (
                409,
                "plan-closed",
                "The plan waits for no such authorization",
                "the plan was rejected, is executed or halted, is not finished, or another step is next",
            ),
            Kind::TooLarge => (
                413,
                "too-large",
                "The body is too large",
                "the body has more bytes than are allowed",
            ),
            Kind::WrongType => (
                415,
                "wrong-content-type",
                "The content type is not supported",
                "the body is not sent as application/json",
            ),
            Kind::Invalid => (
                422,
                "invalid",
                "The request breaks a rule",
                "the body is of the right shape, but breaks a rule; every broken rule is listed",
            ),
            Kind::KeyReused => (
                422,
                "key-reused",
                "The idempotency key was used for another request",
                "the idempotency key was used with another body",
            ),
            Kind::OverBudget => (
                422,
                "over-budget",
                "The question does not fit under the cap",
                "the cap has no room for one agent and the synthesis, or ran out before the reply",
            ),
            Kind::LimitSpent => (
                429,
                "limit-spent",
                "A spending limit is reached",
                "the cap does not fit into a daily limit; the detail says whose, what is left and when it resets",
            ),
            Kind::RateLimited => (
                429,
                "rate-limited",
                "Too many requests",
                "the user asks too often, or too many wrong tokens came from this address",
            ),
            Kind::Internal => (
                500,
                "internal",
                "Something went wrong inside",
                "the service has a defect; the log says more under this id",
            ),
            Kind::ProviderFailed => (
                502,
                "provider-failed",
                "The models gave no usable output",
                "no core agent gave an output, or the master did not",
            ),
            Kind::Busy => (
                503,
                "busy",
                "The service takes no more runs now",
                "too many runs are in flight, or it shuts down",
            ),
            Kind::NotReady => (
                503,
                "not-ready",
                "The service is not ready",
                "a run could not be taken on; the detail says why",
            ),
            Kind::NoJournal => (
                503,
                "no-journal",
                "The journal is not available",
                "the database cannot be reached",
            ),
            Kind::Deadline => (
                504,
                "deadline",
                "The run's deadline passed",
                "the run's own deadline passed",
            ),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Said {
            status,
            slug,
            title,
            when,
        }
    }

    /// Returns the value of `type` in the problem.
    pub fn urn(self) -> String {
        format!("urn:conclave:problem:{}", self.said().slug)
    }

    /// True if the response says when to retry.
    pub fn has_retry_after(self) -> bool {
        matches!(
            self,
            Kind::LimitSpent | Kind::RateLimited | Kind::Busy | Kind::NotReady | Kind::NoJournal
        )
    }
}
