//! A bearer token: `conclave_<id>_<secret>`. The id finds the row; only the hash of the secret is ever stored.

use std::fmt;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

const PREFIX: &str = "conclave";
const ID_CHARS: usize = 12;
const SECRET_CHARS: usize = 64;

/// A token with its secret, as it is handed out once and sent with each request.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    id: String,
    secret: String,
}

impl BearerToken {
    /// `id` need not be secret; `secret` must be 256 bits that nobody can guess.
    pub fn new(id: [u8; 6], secret: [u8; 32]) -> Self {
        Self {
            id: hex(&id),
            secret: hex(&secret),
        }
    }

    /// Reads what a client sent; `None` if it is no token of this form.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text
            .strip_prefix(PREFIX)?
            .strip_prefix('_')?
            .split_once('_')?;
        let is_hex = |part: &str, chars: usize| {
            part.len() == chars
                && part
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        (is_hex(id, ID_CHARS) && is_hex(secret, SECRET_CHARS)).then(|| Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// SHA-256 of the secret, in hex. A slow hash would only slow the service: nobody tries 2^256 secrets.
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(self.secret.as_bytes()))
    }

    /// Whether the stored hash is that of this token's secret; takes as long wherever they differ.
    pub fn matches(&self, stored_hash: &str) -> bool {
        self.hash().as_bytes().ct_eq(stored_hash.as_bytes()).into()
    }

    /// The whole token. Whoever reads it can use it: to be shown once, to the one who made it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, self.secret)
    }
}

impl fmt::Debug for BearerToken {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerToken({})", self.id)
    }
}

/// Whether two secrets are the same; the time taken tells neither their length nor where they differ.
pub fn same_secret(a: &str, b: &str) -> bool {
    Sha256::digest(a.as_bytes())
        .ct_eq(&Sha256::digest(b.as_bytes()))
        .into()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
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
