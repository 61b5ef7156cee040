//! The kinds of problem that a client can meet. `problem_kinds.tsv` has one row for each, for the
//! responses and for their description.

use std::sync::LazyLock;

use axum::http::StatusCode;

/// A kind of problem, as clients distinguish them, in the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(serialize_all = "kebab-case", const_into_str)]
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
    #[strum(serialize = "wrong-content-type")]
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
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProblemText {
    pub status: StatusCode,
    pub title: &'static str,
    /// When the problem occurs, for the reference.
    pub when: &'static str,
}

static ROWS: LazyLock<Vec<(&str, ProblemText)>> = LazyLock::new(|| {
    let rows = include_str!("problem_kinds.tsv").lines();
    rows.filter_map(row).collect()
});

fn row(line: &'static str) -> Option<(&'static str, ProblemText)> {
    let mut cells = line.splitn(4, '\t');
    let slug = cells.next()?;
    let text = ProblemText {
        status: cells.next()?.parse().ok()?,
        title: cells.next()?,
        when: cells.next()?,
    };
    Some((slug, text))
}

impl Kind {
    pub fn text(self) -> ProblemText {
        // A test checks that every kind has its row.
        ROWS.get(self as usize).map(|row| row.1).unwrap_or_default()
    }

    /// Returns the value of `type` in the problem.
    pub fn urn(self) -> String {
        format!("urn:conclave:problem:{}", self.into_str())
    }

    /// True if the response says when to retry.
    pub fn has_retry_after(self) -> bool {
        matches!(self.text().status.as_u16(), 429 | 503)
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        assert_eq!(ROWS.len(), Kind::VARIANTS.len());
        for kind in Kind::VARIANTS {
            assert_eq!(ROWS[*kind as usize].0, kind.into_str());
            assert!(kind.text().status.as_u16() >= 400);
        }
    }
}
