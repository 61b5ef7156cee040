//! A bearer token: `conclave_<id>_<secret>`. The id is the key of its row; only the hash of the
//! secret is stored.

use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use super::ids::hex;

const PREFIX: &str = "conclave";
const ID_CHARS: usize = 12;
const SECRET_CHARS: usize = 64;

/// A token with its secret. It is shown once, and sent with each request.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    id: String,
    secret: String,
}

impl BearerToken {
    /// Creates a token. `id` may be public; `secret` must be 256 unpredictable bits.
    pub fn new(id: [u8; 6], secret: [u8; 32]) -> Self {
        Self {
            id: hex(&id),
            secret: hex(&secret),
        }
    }

    /// Parses a client's token. Returns `None` if it does not have this form.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?.strip_prefix('_')?;
        let (id, secret) = rest.split_once('_')?;
        let has = |part: &str, chars: usize| part.len() == chars && part.bytes().all(is_hex);
        (has(id, ID_CHARS) && has(secret, SECRET_CHARS)).then(|| Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// Returns the byte ranges of a text that have the form of a token.
    pub fn places(text: &str) -> impl Iterator<Item = Range<usize>> {
        const LENGTH: usize = PREFIX.len() + 1 + ID_CHARS + 1 + SECRET_CHARS;
        let places = text.match_indices(PREFIX);
        let places = places.map(|(start, _)| start..start + LENGTH);
        places.filter(|place| {
            text.get(place.clone())
                .is_some_and(|it| Self::parse(it).is_some())
        })
    }

    /// Returns where the beginning of a token, with a part of its secret, ends a text.
    pub fn cut_at_end(text: &str) -> Option<usize> {
        let at = text.rfind(PREFIX)?;
        let rest = text.get(at..)?.strip_prefix(PREFIX)?.strip_prefix('_')?;
        let (id, part) = rest.split_once('_')?;
        let is_token = id.len() == ID_CHARS && id.bytes().chain(part.bytes()).all(is_hex);
        (is_token && !part.is_empty()).then_some(at)
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the SHA-256 of the secret, in hex. A slow hash is not needed, because 2^256 secrets
    /// cannot be tried.
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(self.secret.as_bytes()))
    }

    /// True if the stored hash is that of this token's secret. The comparison takes constant time.
    pub fn matches(&self, stored_hash: &str) -> bool {
        self.hash().as_bytes().ct_eq(stored_hash.as_bytes()).into()
    }

    /// Returns the whole token with its secret. Show it only once, to the user who created it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, self.secret)
    }
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

impl fmt::Debug for BearerToken {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerToken({})", self.id)
    }
}

/// True if two secrets are equal. They are hashed and compared in constant time, so the time
/// reveals neither their length nor where they differ.
pub fn same_secret(a: &str, b: &str) -> bool {
    Sha256::digest(a.as_bytes())
        .ct_eq(&Sha256::digest(b.as_bytes()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written_and_known_by_its_hash() {
        let token = BearerToken::new([7; 6], [9; 32]);
        let text = token.reveal();
        assert_eq!(text, format!("conclave_070707070707_{}", "09".repeat(32)));
        assert_eq!(BearerToken::parse(&text), Some(token.clone()));
        assert!(token.matches(&token.hash()));
        assert!(!BearerToken::new([7; 6], [8; 32]).matches(&token.hash()) && !token.matches(""));
        assert_eq!(format!("{token:?}"), "BearerToken(070707070707)");
    }

    #[test]
    fn what_is_not_of_the_form_is_no_token() {
        let secret = "0".repeat(64);
        let upper = format!("conclave_070707070707_{}", "A".repeat(64));
        for text in [
            "",
            "conclave_",
            "conclave_0707_00",
            &format!("conclave_07070707070g_{secret}"),
            &upper,
        ] {
            assert_eq!(BearerToken::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_same_secret_is_the_same() {
        assert!(same_secret("secret", "secret"));
        assert!(!same_secret("secret", "secreT") && !same_secret("", "secret"));
    }
}
