//! Evidence in the journal: results of cross-checks, and what agents decided about their contested
//! claims.

use serde::{Deserialize, Serialize};

use crate::domain::{CrossCheck, Obtained, Resolution, Role};

/// The number of calls of the cross-check, and their input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSize {
    /// 1 or 2.
    pub passes: u8,
    pub scope: CheckScope,
}

/// Which claims of each report a cross-check is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckScope {
    /// The key claims.
    Key,
    /// Only the first key claim.
    First,
}

/// The result of the cross-check after round 1, or why there was none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossChecked {
    /// The calls that gave a result: none, one or two.
    pub passes: Vec<CheckPass>,
    /// Why a call is missing, one sentence each.
    pub notes: Vec<String>,
}

/// One call of the cross-check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckPass {
    pub role: Role,
    pub model: String,
    /// True if everything was shown in reverse order.
    pub reversed: bool,
    pub scope: CheckScope,
    pub obtained: Obtained,
    pub found: CrossCheck,
    /// What was dropped from its answer, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What an agent decided about its contested claims. The agent's outcome is its earlier report with
/// the conceded claims changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// How the output of this round was obtained. The outcome keeps the value of the report.
    pub obtained: Obtained,
    pub resolutions: Vec<Resolution>,
    /// What was dropped from its answer, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::journal::Event;

    #[test]
    fn reviews_and_revisions_of_earlier_versions_are_still_read() {
        let reviewed = json!({ "kind": "reviewed", "data": { "round": 2, "notes": ["critic did not review: refused"],
            "reviews": [{ "reviewer": "critic", "claim": "C1", "topic": "days", "onFinalAnswer": true, "position": "60",
                          "holders": ["solver"], "finding": "fails", "swapped": "holds", "reason": "31 + 30 = 61" }] } });
        let event: Event = reviewed.to_string().parse().unwrap();
        assert_eq!(
            (event.key(), json!(event)),
            ("r2/reviewed".to_owned(), reviewed)
        );

        let finished: Value = json!({ "kind": "agent_finished", "data": { "round": 2, "agent": "critic",
            "outcome": { "type": "failed", "cause": "timed out", "detail": "d" },
            "revision": { "obtained": "clean", "reasons": [{ "claim": "C1", "topic": "days", "reason": "r" }] } } });
        let event: Event = finished.to_string().parse().unwrap();
        assert!(matches!(event, Event::AgentFinished(finished) if finished.resolved.is_none()));

        let trimmed = json!({ "kind": "trimmed", "data": { "agents": ["solver"], "maxTokens": [], "leftOut": [] } });
        let event: Event = trimmed.to_string().parse().unwrap();
        assert_eq!(json!(event), trimmed);
    }
}
