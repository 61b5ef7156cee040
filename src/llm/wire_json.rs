//! Reads JSON from a provider, also if its text is cut within a character.

use std::borrow::Cow;

use serde::de::{Deserialize as _, DeserializeOwned, Deserializer};
use serde_json::Value;

use super::redact::unescaped;

/// Parses JSON. If it has bytes that are not UTF-8, or halves of surrogate pairs, each counts as
/// U+FFFD: a limit on the output may cut a character, and the rest was paid for.
///
/// # Errors
/// If it is no JSON of this type.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    // A byte order mark is no part of the text.
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    serde_json::from_slice(json).or_else(|error| {
        let text = String::from_utf8_lossy(json);
        match (with_whole_pairs(&text), &text) {
            (Some(whole), _) => serde_json::from_str(&whole),
            (None, Cow::Owned(text)) => serde_json::from_str(text),
            (None, Cow::Borrowed(_)) => Err(error),
        }
    })
}

/// Reads a field. A value of another type than expected counts as absent: a field that is not needed
/// must not lose a reply that was paid for.
///
/// # Errors
/// If it is no JSON.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Replaces escapes of half a surrogate pair; `None` if there are none.
fn with_whole_pairs(json: &str) -> Option<String> {
    let (mut out, mut rest, mut is_changed) = (String::with_capacity(json.len()), json, false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match unescaped(escape) {
            Some((char::REPLACEMENT_CHARACTER, 6)) => {
                is_changed = true;
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            Some((_, taken)) => taken,
            None => 1,
        };
        let (escape, behind) = escape.split_at_checked(taken).unwrap_or((escape, ""));
        out.push_str(escape);
        rest = behind;
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_one_replacement_and_nothing_else_changes() {
        for (json, expected) in [
            (&br#""a\ud83d""#[..], "a\u{fffd}"),
            (br#""\ude00b\ud83d\ude00\ud83dc""#, "\u{fffd}b😀\u{fffd}c"),
            (br#""\\ud83d \" \ud83d\n""#, "\\ud83d \" \u{fffd}\n"),
            (b"\"a\xf0\x9f\x98\"", "a\u{fffd}"),
            (b"\"\xff\\ud83d\"", "\u{fffd}\u{fffd}"),
            (b"\xef\xbb\xbf\"a\"", "a"),
        ] {
            assert_eq!(read::<String>(json).unwrap(), expected);
        }
        for json in [&br#""\u12""#[..], b"\"\\", br#"{"a""#, b"<html>", b""] {
            assert!(read::<serde_json::Value>(json).is_err());
        }
    }
}
