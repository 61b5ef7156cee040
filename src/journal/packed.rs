//! The bodies of entries that are written together, as one compressed value.
//!
//! Each entry keeps its row with key and hash, so the database still refuses a key that occurs
//! twice. The last row of the group has all bodies, as lines compressed with zstd. Each hash covers
//! the text of its own body, so compression changes nothing about the chain.

use std::cell::RefCell;

use zstd::bulk::Compressor;
use zstd::zstd_safe::get_frame_content_size;

use super::Error;
use super::encoded_event::EncodedEvent;

/// Shorter groups are stored as text.
const MIN_BYTES: usize = 512;

/// The largest group, in bytes. A larger value of a database was not written by this program.
const MAX_BYTES: usize = 256 << 20;

/// Higher levels take more time and save under a tenth.
const LEVEL: i32 = 1;

thread_local! {
    // A compressor holds tables that are expensive to allocate.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
        RefCell::new(Compressor::new(LEVEL).ok());
}

/// The columns of an entry's body. `text` may be empty if the last of the entries that are written
/// with it has `packed` bodies.
pub struct StoredBody<'a> {
    pub text: &'a str,
    pub packed: Option<Vec<u8>>,
}

/// Entries that are written in one transaction, as they are stored.
pub struct Batch {
    pub entries: Vec<EncodedEvent>,
    packed: Option<Vec<u8>>,
}

impl Batch {
    /// Entries whose bodies are stored as text.
    pub fn plain(entries: Vec<EncodedEvent>) -> Self {
        Self {
            entries,
            packed: None,
        }
    }

    /// Entries whose bodies are stored together, unless they are short or a view of the database
    /// reads one.
    pub fn packed(entries: Vec<EncodedEvent>) -> Self {
        let bytes: usize = entries.iter().map(|entry| entry.body.len()).sum();
        let stays_text = |it: &EncodedEvent| it.is_queried || it.body.contains('\n');
        let is_packed = (MIN_BYTES..=MAX_BYTES).contains(&bytes) && !entries.iter().any(stays_text);
        let packed = is_packed.then(|| pack(&bodies(entries.iter()))).flatten();
        Self { entries, packed }
    }

    /// Returns the body of the entry at `index` as it is stored after `written` entries of this batch.
    pub fn stored(&self, index: usize, written: usize) -> StoredBody<'_> {
        let has_all = index == written && index + 1 == self.entries.len();
        let text = match (&self.packed, self.entries.get(index)) {
            (None, Some(entry)) => &entry.body,
            _ => "",
        };
        let packed = self.packed.clone().filter(|_| has_all);
        StoredBody { text, packed }
    }

    /// Returns what the last of the `written` entries must have as `packed`, if not all were
    /// written.
    ///
    /// # Errors
    /// If the bodies cannot be compressed.
    pub fn of_rest(&self, written: &[&EncodedEvent]) -> Result<Option<Vec<u8>>, Error> {
        let all = written.len() == self.entries.len();
        if self.packed.is_none() || all || written.is_empty() {
            return Ok(None);
        }
        let packed = pack(&bodies(written.iter().copied()));
        let failed = || Error::Unwritable("the entries cannot be compressed".to_owned());
        packed.map(Some).ok_or_else(failed)
    }
}

fn bodies<'a>(entries: impl Iterator<Item = &'a EncodedEvent>) -> Vec<&'a str> {
    entries.map(|entry| &*entry.body).collect()
}

/// JSON as this program writes it has no line break.
fn pack(bodies: &[&str]) -> Option<Vec<u8>> {
    let lines = bodies.join("\n");
    COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(lines.as_bytes()).ok())
}

/// Returns the bodies of a group; `None` if it was not packed.
pub fn unpack(packed: &[u8]) -> Option<Vec<String>> {
    let bytes = get_frame_content_size(packed).ok().flatten()?;
    let bytes = usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes <= MAX_BYTES)?;
    let lines = zstd::bulk::decompress(packed, bytes).ok()?;
    let lines = String::from_utf8(lines).ok()?;
    Some(lines.split('\n').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back_in_order() {
        let long = format!("{{\"text\":\"{}\"}}", "naïve ".repeat(200));
        let bodies = [long.as_str(), "{}", "{\"a\":\"\\n\"}", &long];
        let packed = pack(&bodies).unwrap();
        assert!(packed.len() < 200, "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), bodies);
        assert_eq!(unpack(&pack(&["{}"]).unwrap()).unwrap(), ["{}"]);
    }

    #[test]
    fn what_was_not_packed_is_refused() {
        let mut packed = pack(&["{\"text\":1}"; 100]).unwrap();
        assert_eq!(unpack(&packed[..packed.len() - 1]), None);
        assert_eq!(unpack(b"nothing"), None);
        // The header claims more than any group has: a size of eight bytes, in one segment.
        packed.splice(4.., [0xe0, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(unpack(&packed), None);
    }
}
