//! Reads JSON from a provider, also if its text is cut within a character.

use serde::de::{Deserialize as _, DeserializeOwned, Deserializer};
use serde_json::Value;

use super::{ErrorKind, Fault};

/// Parses JSON. Bytes that are not UTF-8 count as U+FFFD: a limit on the output may cut a character,
/// and the rest was paid for.
///
/// # Errors
/// If it is no JSON of this type.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    // A byte order mark is no part of the text.
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    serde_json::from_slice(json).or_else(|_| serde_json::from_str(&String::from_utf8_lossy(json)))
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
        ] {
            assert_eq!(read::<String>(json).unwrap(), expected);
        }
    }
}
