//! Reads JSON from a provider, also if its text is cut within a character.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::de::{Deserialize as _, DeserializeOwned, Deserializer};
use serde_json::Value;

use super::{ErrorKind, Fault};
use crate::text::pattern;

/// An escaped half of a UTF-16 pair, beside what is none: an escaped backslash and a whole pair.
static HALF: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)(\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\ud[89a-f][0-9a-f]{2}")
});

/// Parses JSON. Bytes that are not UTF-8, and escaped halves of a character, count as U+FFFD: a limit on
/// the output may cut a character, and the rest was paid for.
///
/// # Errors
/// If it is no JSON of this type.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    // A byte order mark is no part of the text.
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    serde_json::from_slice(json).or_else(|_| {
        let text = String::from_utf8_lossy(json);
        let whole = HALF.replace_all(&text, |found: &Captures<'_>| {
            let kept = found.get(1).map(|kept| kept.as_str());
            kept.unwrap_or(r"\ufffd").to_owned()
        });
        serde_json::from_str(&whole)
    })
}

/// Reads the JSON of an event of a stream.
///
/// # Errors
/// If it is no JSON of this type.
pub(super) fn event<T: DeserializeOwned>(data: &str) -> Result<T, Fault> {
    let unreadable = |error| format!("an event of the stream cannot be read: {error}");
    read(data.as_bytes()).map_err(|error| (ErrorKind::Unreadable, unreadable(error)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_one_replacement() {
        for (json, expected) in [
            (&b"\"a\xf0\x9f\x98\""[..], "a\u{fffd}"),
            (b"\xef\xbb\xbf\"a\"", "a"),
            (br#""a\uD83D""#, "a\u{fffd}"),
            (
                br#""\ude00 \ud83d\ude00 \\ud83d""#,
                "\u{fffd} \u{1f600} \\ud83d",
            ),
        ] {
            assert_eq!(read::<String>(json).unwrap(), expected);
        }
    }
}
