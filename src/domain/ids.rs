//! Run ids and fingerprints.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The id of a run: a UUIDv7, so that ids sort by time of acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Uuid);

impl RunId {
    /// Returns when the id was made, to the millisecond. `None` for an id without a time.
    pub fn made_at(self) -> Option<Timestamp> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        let nanos = i32::try_from(nanos).ok()?;
        Timestamp::new(i64::try_from(seconds).ok()?, nanos).ok()
    }

    /// Wraps an id that the caller has taken from the clock.
    pub fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    /// Returns the id as a UUID.
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(s).map(Self)
    }
}

/// Returns the SHA-256 of the parts in order, each preceded by its length, as 64 lower-case hex
/// digits.
pub fn fingerprint(parts: &[&[u8]]) -> String {
    let parts = parts.iter();
    parts
        .fold(Fingerprint::default(), |all, part| all.with(part))
        .finish()
}

/// A [`fingerprint`] to which parts are added.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    #[must_use]
    pub fn with(mut self, part: &[u8]) -> Self {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
        self
    }

    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Returns bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        hex.push(digit(byte >> 4));
        hex.push(digit(byte & 15));
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_where_its_parts_end() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_eq!(fingerprint(&[b"ab"]).len(), 64);
    }
}
