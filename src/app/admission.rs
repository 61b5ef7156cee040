//! Finds the idempotency key of a request, and the run that a question continues.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use regex::Regex;

use super::answer::read_answer;
use crate::config::Policy;
use crate::domain::Question;
use crate::journal::{Continuation, Continues, Error, Requester, RunReader, RunState, Transcript};
use crate::text::pattern;

/// Returns the key under which repeated requests join one run: the client's own key, or that of its
/// message.
pub(super) fn idempotency_key(question: &Question, header: Option<&str>) -> Option<String> {
    match (header, &question.context.message_id) {
        (Some(key), _) => Some(format!("key:{key}")),
        (None, Some(message)) => Some(format!("message:{}:{message}", question.source.into_str())),
        (None, None) => None,
    }
}

/// Matches "A2 is wrong: ...", "A2's not quite right", "assumption A2 isn't true because ...".
static CORRECTION: LazyLock<Regex> = LazyLock::new(|| {
    let right = r"(?:true|right|correct|so|the\s+case)";
    let wrong =
        format!(r"(?:wrong|false|incorrect|untrue|(?:not|no\s+longer)\s+(?:\w+\s+)?{right})");
    let verdict = format!(
        r"(?:(?:\s+(?:is|was)|\s*['’]s)\s+{wrong}|\s+(?:is|was)n['’]?t\s+(?:\w+\s+)?{right}|(?:\s*:)?\s+{wrong})"
    );
    pattern(&format!(
        r"(?is)^\s*(?:(?:no|nope|actually|sorry)\s*[,.;:!]?\s+)?(?:(?:the\s+|your\s+)?assumption\s+)?(A\d{{1,2}}){verdict}\b\s*[:,.;!\-–—]*\s*(.*)$"
    ))
});

/// Returns a message without the prefix `new:`, which forces a new request; `None` without the
/// prefix.
pub(super) fn forced_new(message: &str) -> Option<&str> {
    let (prefix, rest) = message.split_at_checked(4)?;
    let rest = if rest.trim().is_empty() {
        message
    } else {
        rest.trim()
    };
    prefix.eq_ignore_ascii_case("new:").then_some(rest)
}

/// Returns what the question continues: the user's pending question in the same place, or a
/// numbered assumption of the user's last answer there.
pub(super) async fn continuation(
    store: &dyn RunReader,
    policy: &Policy,
    question: &Question,
    now: Timestamp,
) -> Result<Option<Continues>, Error> {
    let asker = Requester::of(question);
    let window = SignedDuration::try_from(policy.clarification_window)
        .unwrap_or(SignedDuration::from_mins(30));
    let since = now.saturating_sub(window).unwrap_or(now);
    let Some(last) = store.last_reply(&asker, since).await? else {
        return Ok(None);
    };
    let correction = read_correction(&question.message);
    if last.state != RunState::Clarification && correction.is_none() {
        return Ok(None);
    }
    let entries = store.entries(last.id, 0).await?;
    let Some(synthesized) = Transcript::of_entries(&entries).synthesized else {
        return Ok(None);
    };
    let by = match (last.state, correction) {
        (RunState::Clarification, _) => Some(read_answer(&synthesized.question, &question.message)),
        (_, Some((handle, said))) => {
            let assumption = synthesized
                .draft
                .as_ref()
                .and_then(|draft| draft.assumptions.iter().find(|a| a.handle == handle));
            assumption.map(|assumption| Continuation::Correction {
                handle,
                wrong: assumption.text.clone(),
                correction: if said.is_empty() {
                    format!("It is not so: {}", assumption.text)
                } else {
                    said
                },
            })
        }
        _ => None,
    };
    Ok(by.map(|by| Continues {
        parent: last.id,
        by,
    }))
}

/// Returns the handle of the assumption that a message corrects, and the corrected text.
pub fn read_correction(message: &str) -> Option<(String, String)> {
    let captures = CORRECTION.captures(message)?;
    let part = |i| captures.get(i).map_or("", |m| m.as_str().trim());
    Some((part(1).to_uppercase(), part(2).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_names_its_assumption() {
        let cases = [
            ("A2 is wrong: we run Kubernetes", "we run Kubernetes"),
            ("A2's wrong", ""),
            ("A2’s wrong: we run Kubernetes", "we run Kubernetes"),
            ("a2 isn't right", ""),
            ("A2 isn’t quite right, it is two", "it is two"),
            ("A2 is not true because we moved", "because we moved"),
            ("A2 is no longer true.", ""),
            (
                "assumption A2 is incorrect, we run Kubernetes",
                "we run Kubernetes",
            ),
        ];
        for (message, said) in cases {
            assert_eq!(
                read_correction(message),
                Some(("A2".to_owned(), said.to_owned())),
                "{message}"
            );
        }
        for other in [
            "A2 paper is wrong",
            "A2 is right",
            "A2 is wrongly sized",
            "A2s wrong side",
            "A222 is wrong",
        ] {
            assert_eq!(read_correction(other), None, "{other}");
        }
    }
}
