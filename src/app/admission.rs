//! Accepts questions: checks their rules, and finds their idempotency key and what they continue.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use regex::Regex;

use super::answer::read_answer;
use super::problems::{FieldProblem, ProblemList};
use crate::config::{Limits, Policy};
use crate::domain::{Attachment, Question};
use crate::journal::{Continuation, Continues, Error, Requester, RunState, Store, Transcript};

/// A question as a client submits it.
#[derive(Debug, Clone)]
pub struct Submission {
    pub question: Question,
    pub idempotency_key: Option<String>,
    pub correlation_id: Option<String>,
}

/// Trims the message and returns the rules that the question breaks, bounded by [`ProblemList`].
pub fn check(question: &mut Question, limits: &Limits) -> Vec<FieldProblem> {
    let mut problems = ProblemList::default();
    let mut add = |pointer: &str, detail: String| problems.add(|| pointer.to_owned(), || detail);
    question.message = question.message.trim().to_owned();
    let chars = question.message.chars().count();
    if chars == 0 {
        add("/message", "must not be empty".into());
    } else if chars > limits.message_chars {
        add(
            "/message",
            format!(
                "has {chars} characters; at most {} are allowed",
                limits.message_chars
            ),
        );
    }
    if question.message.contains('\0') {
        // Not every database can store this character.
        add("/message", "has a NUL character".into());
    }
    let ids = [
        ("/user/id", Some(&question.user.id), true),
        ("/user/name", Some(&question.user.name), false),
        (
            "/context/channelId",
            question.context.channel_id.as_ref(),
            true,
        ),
        ("/context/guildId", question.context.guild_id.as_ref(), true),
        (
            "/context/messageId",
            question.context.message_id.as_ref(),
            true,
        ),
    ];
    for (pointer, value, needed) in ids {
        let Some(value) = value else { continue };
        if needed && value.trim().is_empty() {
            add(pointer, "must not be empty".into());
        } else if value.chars().count() > 200 {
            add(pointer, "has more than 200 characters".into());
        } else if value.chars().any(char::is_control) {
            add(pointer, "has control characters".into());
        }
    }
    if question.attachments.len() > limits.attachments {
        let count = question.attachments.len();
        add(
            "/attachments",
            format!(
                "has {count} entries; at most {} are allowed",
                limits.attachments
            ),
        );
    }
    // A list that is too long has a problem of its own. Only the allowed number of entries is
    // checked.
    for (i, attachment) in question
        .attachments
        .iter()
        .take(limits.attachments)
        .enumerate()
    {
        for (field, detail) in attachment_problems(attachment) {
            add(&format!("/attachments/{i}/{field}"), detail.to_owned());
        }
    }
    problems.finish()
}

/// Returns the fields of an attachment that break a rule, each with the rule.
fn attachment_problems(attachment: &Attachment) -> Vec<(&'static str, &'static str)> {
    let mut problems = vec![];
    if attachment.filename.trim().is_empty() || attachment.filename.chars().count() > 255 {
        problems.push(("filename", "must have 1 to 255 characters"));
    } else if attachment.filename.chars().any(char::is_control) {
        problems.push(("filename", "has control characters"));
    }
    if let Some(declared) = &attachment.content_type
        && (declared.len() > 100 || !declared.bytes().all(|b| b == b' ' || b.is_ascii_graphic()))
    {
        problems.push((
            "contentType",
            "must have at most 100 characters, all of them visible ASCII",
        ));
    }
    let data = attachment.url.starts_with("data:");
    if !written_as_uri(&attachment.url) {
        problems.push((
            "url",
            "has characters that an address must have percent-encoded",
        ));
    } else if !data {
        match url::Url::parse(&attachment.url) {
            Ok(url) if url.scheme() == "https" => {}
            Ok(_) => problems.push(("url", "must be an https address")),
            Err(_) => problems.push(("url", "is not an address")),
        }
    }
    problems
}

/// True if a text contains only what a URI (RFC 3986) may contain: no spaces, only ASCII, two
/// hexadecimal digits after each `%`, and at most one `#`.
fn written_as_uri(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'()*+,;=%".contains(c);
    let hex = |part: &str| {
        part.get(..2)
            .is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    text.chars().all(plain) && text.split('%').skip(1).all(hex) && text.matches('#').count() <= 1
}

/// Returns the key under which repeated requests join one run: the client's own key, or that of its
/// message.
pub(super) fn idempotency_key(question: &Question, header: Option<&str>) -> Option<String> {
    match (header, &question.context.message_id) {
        (Some(key), _) => Some(format!("key:{key}")),
        (None, Some(message)) => Some(format!("message:{}:{message}", question.source.as_str())),
        (None, None) => None,
    }
}

/// Matches "A2 is wrong: ...", "A2's not quite right", "assumption A2 isn't true because ...".
static CORRECTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let right = r"(?:true|right|correct|so|the\s+case)";
    let wrong =
        format!(r"(?:wrong|false|incorrect|untrue|(?:not|no\s+longer)\s+(?:\w+\s+)?{right})");
    let verdict = format!(
        r"(?:(?:\s+(?:is|was)|\s*['’]s)\s+{wrong}|\s+(?:is|was)n['’]?t\s+(?:\w+\s+)?{right}|(?:\s*:)?\s+{wrong})"
    );
    Regex::new(&format!(
        r"(?is)^\s*(?:(?:no|nope|actually|sorry)\s*[,.;:!]?\s+)?(?:(?:the\s+|your\s+)?assumption\s+)?(A\d{{1,2}}){verdict}\b\s*[:,.;!\-–—]*\s*(.*)$"
    ))
    .ok()
});

/// Returns what the question continues: the user's pending question in the same place, or a
/// numbered assumption of the user's last answer there. The prefix `new:` forces a new request and
/// is removed.
pub(super) async fn continuation(
    store: &dyn Store,
    policy: &Policy,
    question: &mut Question,
    now: Timestamp,
) -> Result<Option<Continues>, Error> {
    let lower = question.message.to_lowercase();
    if lower.starts_with("new:") {
        let rest = question.message.get(4..).unwrap_or("").trim().to_owned();
        if !rest.is_empty() {
            question.message = rest;
        }
        return Ok(None);
    }
    let asker = Requester {
        source: question.source,
        user_id: question.user.id.clone(),
        guild_id: question.context.guild_id.clone(),
        channel_id: question.context.channel_id.clone(),
    };
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
    let captures = CORRECTION.as_ref()?.captures(message)?;
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

    #[test]
    fn a_declared_content_type_has_a_bound() {
        use crate::domain::{Context, Mode, Source, User};
        let pointers = |content_type: &str| {
            let attachment = Attachment {
                filename: "a.png".into(),
                url: "https://cdn.discordapp.com/a.png".into(),
                content_type: Some(content_type.into()),
            };
            let mut question = Question {
                source: Source::Http,
                mode: Mode::Ask,
                user: User {
                    id: "u".into(),
                    name: "u".into(),
                },
                context: Context::default(),
                message: "x".into(),
                attachments: vec![attachment],
            };
            check(&mut question, &Limits::default())
                .into_iter()
                .map(|p| p.pointer)
                .collect::<Vec<_>>()
        };
        let longest = "x".repeat(100);
        for good in ["image/png", "image/svg+xml; charset=utf-8", &longest] {
            assert_eq!(pointers(good), [""; 0], "{good}");
        }
        let too_long = "x".repeat(101);
        for bad in [&too_long, "image/png\n", "image/\u{e4}", "image/\u{1b}[31m"] {
            assert_eq!(pointers(bad), ["/attachments/0/contentType"], "{bad:?}");
        }
    }
}
