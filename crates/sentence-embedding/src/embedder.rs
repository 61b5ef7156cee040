//! The model as a whole: text to vector.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::encoder::Encoder;
use crate::sentencepiece;
use crate::table::Table;
use crate::tokenizer::Tokenizer;

/// Components of a vector.
pub const DIMENSIONS: usize = 512;

/// Tokens of a text that count. The rest is cut off, which bounds the time of a text. The network
/// itself has no limit. This one fits a chat message of about 2000 letters.
pub const MAX_TOKENS: usize = 512;

/// A loaded model. It may be used by several threads at once.
#[derive(Debug)]
pub struct Embedder {
    tokenizer: Tokenizer,
    table: Table,
    encoder: Encoder,
}

impl Embedder {
    /// Loads `sp.model`, `table.bin` and `dense.safetensors`, which `scripts/fetch-embedding.sh`
    /// writes. It reads 14 MB. The 66 MB of `table.bin` stay on disk, and the file stays open.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] and [`Error::Load`].
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let (path, bytes) = read(folder, "sp.model")?;
        let tokenizer = sentencepiece::parse(&bytes)
            .and_then(Tokenizer::new)
            .map_err(|reason| Error::load(&path, &reason))?;
        let table = Table::open(&folder.join("table.bin"), tokenizer.pieces())?;
        let (path, bytes) = read(folder, "dense.safetensors")?;
        let encoder = Encoder::parse(&bytes).map_err(|reason| Error::load(&path, &reason))?;
        Ok(Self {
            tokenizer,
            table,
            encoder,
        })
    }

    /// Returns the vector of `text`: [`DIMENSIONS`] components and unit length. A text without any
    /// token, such as an empty one, has a vector too, which means nothing. In a release build this
    /// computes for less than 10 milliseconds for a question, and 50 for [`MAX_TOKENS`].
    ///
    /// # Errors
    ///
    /// [`Error::Read`].
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, Error> {
        let tokens = self.tokenizer.tokens(text, MAX_TOKENS);
        let rows = self.table.rows(&tokens)?;
        Ok(self.encoder.encode(&tokens, &rows))
    }
}

/// Returns the cosine of the angle between two vectors, from -1 to 1. It is 0 if they differ in
/// length, or if a component is not finite, or if one is zero.
#[must_use]
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return 0.0;
    }
    let dot = |x: &[f32], y: &[f32]| -> f64 {
        x.iter()
            .zip(y)
            .map(|(x, y)| f64::from(*x) * f64::from(*y))
            .sum()
    };
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    if cosine.is_finite() {
        cosine.clamp(-1.0, 1.0) as f32
    } else {
        0.0
    }
}

fn read(folder: &Path, name: &str) -> Result<(PathBuf, Vec<u8>), Error> {
    let path = folder.join(name);
    match fs::read(&path) {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::Missing { path }),
        Err(error) => Err(Error::load(&path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_is_that_of_the_angle_and_zero_without_one() {
        for (a, b, expected) in [
            (&[3.0, 4.0][..], &[6.0, 8.0][..], 1.0),
            (&[1.0, 0.0], &[0.0, 2.0], 0.0),
            (&[1.0, 0.0], &[-2.0, 0.0], -1.0),
            (&[], &[], 0.0),
            (&[0.0], &[1.0], 0.0),
            (&[1.0], &[1.0, 0.0], 0.0),
            (&[f32::INFINITY], &[1.0], 0.0),
        ] {
            assert_eq!(cosine(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_missing_or_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sp.model");
        let error = Embedder::load(folder.path()).unwrap_err();
        assert_eq!(error, Error::Missing { path: path.clone() });
        fs::write(&path, "no model").unwrap();
        let error = Embedder::load(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Load { path: named, .. } if named == path));
    }

    #[test]
    fn an_embedder_may_be_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Embedder>();
    }
}
