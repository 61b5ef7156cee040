//! Finds the idempotency key of a request, and the run that a question continues.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use regex::Regex;

use super::Rejected;
use super::answer::read_answer;
use super::problems::FieldProblem;
use crate::config::Policy;
use crate::domain::{Assumption, Question, is_question_mark};
use crate::journal::{self, Continuation, Continues, Requester, RunReader, RunState, Transcript};
use crate::text::{self, pattern};

/// Returns the key under which repeated requests join one run: the client's own key, or that of its
/// message.
pub(super) fn idempotency_key(question: &Question, header: Option<&str>) -> Option<String> {
    match (header, &question.context.message_id) {
        (Some(key), _) => Some(format!("key:{key}")),
        (None, Some(message)) => Some(format!("message:{}:{message}", question.source.into_str())),
        (None, None) => None,
    }
}

/// Matches the handle of an assumption, set off from other letters and digits of its script.
static HANDLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?-u:\b)[Aa][1-9][0-9]?(?-u:\b)"));

/// The most words before the handle in a correction ("No, the assumption A2 ..."), and the most
/// characters of as few words between spaces. In a script without spaces a word may count as several.
const MAX_WORDS_BEFORE: usize = 3;
const MAX_CHARS_BEFORE: usize = 18;

/// Returns a message without the prefix `new:`, which forces a new request; `None` without the
/// prefix.
pub(super) fn without_new_prefix(message: &str) -> Option<&str> {
    let (prefix, rest) = message.split_at_checked(4)?;
    prefix.eq_ignore_ascii_case("new:").then_some(rest.trim())
}

/// Returns what the question continues: the user's pending question in the same place, or a
/// numbered assumption of the user's last answer there.
///
/// # Errors
/// [`Rejected::Invalid`] if the last answer has assumptions, and the message is one sentence that
/// begins with the handle of another one, or if a run that the last one continues is missing.
pub(super) async fn find(
    store: &dyn RunReader,
    policy: &Policy,
    question: &Question,
    now: Timestamp,
) -> Result<Option<Continues>, Rejected> {
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
    let transcript = Transcript::of_entries(&entries);
    let by = match (last.state, correction) {
        (RunState::Clarification, _) => {
            let Some(synthesized) = transcript.synthesized else {
                return Ok(None);
            };
            read_answer(&synthesized.question, &question.message)
        }
        (_, Some((mut handles, correction))) => {
            let listed = transcript.assumptions();
            let is_listed = |handle: &String| listed.iter().any(|a| a.handle == *handle);
            // A further one may be a word of the correction ("A2 uses A10 GPUs").
            if let Some(unknown) = handles.first().filter(|handle| !is_listed(handle))
                && !listed.is_empty()
                && begins_with_handle(&question.message)
            {
                return Err(Rejected::Invalid(vec![no_such_handle(unknown, listed)]));
            }
            if !handles.first().is_some_and(is_listed) {
                return Ok(None);
            }
            handles.retain(is_listed);
            let wrong = listed.iter().filter(|a| handles.contains(&a.handle));
            let wrong: Vec<&str> = wrong.map(|a| a.text.as_str()).collect();
            Continuation::Correction {
                handle: handles.join(", "),
                wrong: wrong.join("\n"),
                correction,
            }
        }
        _ => return Ok(None),
    };
    check_ancestors(store, &transcript).await?;
    Ok(Some(Continues {
        parent: last.id,
        by,
    }))
}

/// Checks that the runs which the last one continues still exist. Without them its question is
/// unknown.
///
/// # Errors
/// [`Rejected::Invalid`] if one is missing.
async fn check_ancestors(store: &dyn RunReader, last: &Transcript<'_>) -> Result<(), Rejected> {
    let read = |id| store.entries(id, 0);
    let found = journal::ancestors(last.accepted, read).await?;
    let mut ancestors = last.ancestors(&found).iter();
    let missing = ancestors.find(|(_, entries)| entries.is_empty());
    missing.map_or(Ok(()), |(id, _)| {
        let detail = format!(
            "your last reply continues the run {id}, which is no longer stored. To ask something else, begin with new:"
        );
        Err(Rejected::Invalid(vec![FieldProblem::new("/message", detail)]))
    })
}

fn no_such_handle(handle: &str, listed: &[Assumption]) -> FieldProblem {
    let handles: Vec<&str> = listed.iter().map(|a| a.handle.as_str()).collect();
    let known = handles.join(", ");
    let detail = format!(
        "your last reply has no assumption {handle}, only: {known}. To ask something else, begin with new:"
    );
    FieldProblem::new("/message", detail)
}

/// True if the message is one sentence whose first word is a handle ("A9 is wrong"). Any other
/// message with an unknown handle may speak of something else ("My A10 GPU crashes").
fn begins_with_handle(message: &str) -> bool {
    let message = with_plain_handles(message);
    let found = HANDLE.find(&message);
    found.is_some_and(|handle| handle.start() == 0) && text::sentences(&message).len() == 1
}

/// Returns the handles of the assumptions that a message seems to correct, and what the message says
/// of them: the text after a colon, or else the whole message. The plan call decides whether it is a
/// correction.
///
/// The first handle is near the beginning. Between two handles is at most one word and no colon
/// ("A2 and A3"). A dash means those between them too. The message is no question.
pub fn read_correction(message: &str) -> Option<(Vec<String>, String)> {
    let message = &with_plain_handles(message);
    let mut found = HANDLE.find_iter(message);
    let first = found.next()?;
    let is_near = is_short(message.get(..first.start())?);
    if !is_near || message.trim_end().ends_with(is_question_mark) {
        return None;
    }
    let (mut handles, mut end) = (vec![first.as_str().to_uppercase()], first.end());
    for next in found {
        let between = message.get(end..next.start())?;
        if text::count_words(between) > 1 || between.contains([':', '：']) {
            break;
        }
        end = next.end();
        let next = next.as_str().to_uppercase();
        if !between.trim().is_empty() && between.trim().chars().all(is_dash) {
            let skipped = handles.last().map(|last| skipped(last, &next));
            handles.extend(skipped.unwrap_or_default());
        }
        handles.push(next);
    }
    let rest = message.get(end..)?;
    let colon = rest.split_once(": ").or_else(|| rest.split_once('：'));
    let said = colon.map_or("", |(_, said)| said).trim();
    let said = if said.is_empty() { message } else { said }.trim();
    let mut seen = BTreeSet::new();
    handles.retain(|handle| seen.insert(handle.clone()));
    Some((handles, said.to_owned()))
}

/// True if a text may come before the first handle of a correction.
fn is_short(before: &str) -> bool {
    let has_few = |words: usize| words <= MAX_WORDS_BEFORE;
    has_few(text::count_words(before))
        || has_few(before.split_whitespace().count())
            && before.trim().chars().count() <= MAX_CHARS_BEFORE
}

fn is_dash(c: char) -> bool {
    "-‐‑‒–—―−~〜～－".contains(c)
}

/// Returns the handles between two handles.
fn skipped(first: &str, last: &str) -> Vec<String> {
    let number = |handle: &str| handle.get(1..).and_then(|it| it.parse::<u8>().ok());
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return vec![];
    };
    let between = first.saturating_add(1)..last;
    between.map(|number| format!("A{number}")).collect()
}

/// Returns the text with handles as the replies write them. Keyboards for Japanese and Chinese write
/// "Ａ２", and the Cyrillic "А" looks like the Latin one.
fn with_plain_handles(message: &str) -> String {
    static WRITTEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"[AaＡａАа][1-9１-９][0-9０-９]?"));
    let plain = |c: char| match c {
        'Ａ' | 'А' => 'A',
        'ａ' | 'а' => 'a',
        c => text::plain_sign(c),
    };
    let handle = |found: &regex::Captures<'_>| found[0].chars().map(plain).collect::<String>();
    WRITTEN.replace_all(message, handle).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_begins_with_its_handle_in_any_language() {
        for (message, said) in [
            ("A2 is wrong: we run Kubernetes", "we run Kubernetes"),
            ("No, A2 is wrong, it is two", "No, A2 is wrong, it is two"),
            ("a2 isn't right", "a2 isn't right"),
            ("A2 is not 3.5 but 4.5", "A2 is not 3.5 but 4.5"),
            (
                "A2 is db.example.com:5432, as I said",
                "A2 is db.example.com:5432, as I said",
            ),
            ("Die Annahme A2 stimmt nicht: es sind zwei", "es sind zwei"),
            ("A2は違います：二つあります", "二つあります"),
            ("前提A2は違います", "前提A2は違います"),
            ("前提条件A2は誤り：二つ", "二つ"),
            ("สมมติฐาน A2 ผิด: สองเครื่อง", "สองเครื่อง"),
        ] {
            let read = read_correction(message);
            assert_eq!(
                read,
                Some((vec!["A2".to_owned()], said.to_owned())),
                "{message}"
            );
        }
        for (message, handles) in [
            ("A2 and A3 are wrong: two hosts", vec!["A2", "A3"]),
            ("A2/A3 stimmen nicht", vec!["A2", "A3"]),
            ("Ａ２とＡ３は違います", vec!["A2", "A3"]),
            ("А2 неверно: хостов два", vec!["A2"]),
            ("A2 is wrong, and so is A3", vec!["A2"]),
            ("A2: A4 paper, not letter", vec!["A2"]),
            ("A2, A3, A2 are wrong", vec!["A2", "A3"]),
            ("A9-A11 are wrong", vec!["A9", "A10", "A11"]),
            ("A2 – A4 are wrong", vec!["A2", "A3", "A4"]),
            ("A3-A2 are wrong", vec!["A3", "A2"]),
        ] {
            let (read, _) = read_correction(message).unwrap();
            assert_eq!(read, handles, "{message}");
        }
        for other in [
            "A222 is wrong",
            "A2s wrong side",
            "BA2 is wrong",
            "What does A2 mean?",
            "Compare the sizes of the formats A2 and A3",
        ] {
            assert_eq!(read_correction(other), None, "{other}");
        }
    }

    #[test]
    fn only_one_sentence_that_begins_with_a_handle_is_refused() {
        for message in [
            "A9 is wrong",
            "A9 stimmt nicht: es sind 3.5",
            "a9は違います。",
        ] {
            assert!(begins_with_handle(message), "{message}");
        }
        for other in [
            "My A10 GPU crashes under load",
            "The A9 is closed",
            "A10 GPU crashes under load. The driver is 550.",
            "A9 motorway:\nPlan a detour",
        ] {
            assert!(!begins_with_handle(other), "{other}");
        }
    }
}
