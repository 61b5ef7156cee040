//! The vectors of the tokens, read from the file as they are needed: 512 bytes for each token.
//! Most tokens of the vocabulary never occur, and the system caches what is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{DIMENSIONS, Error};

#[derive(Debug)]
pub struct Table {
    file: File,
}

impl Table {
    /// Opens the file. It must have rows for `pieces` tokens.
    pub fn open(path: &Path, pieces: usize) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Missing {
                path: path.to_owned(),
            },
            _ => Error::load(path, &error),
        })?;
        let size = file
            .metadata()
            .map_err(|error| Error::load(path, &error))?
            .len();
        if size < (pieces * DIMENSIONS) as u64 {
            let reason = format!("{size} bytes are too few for {pieces} tokens");
            return Err(Error::load(path, &reason));
        }
        Ok(Self { file })
    }

    /// Returns the quantized rows of `tokens` one after the other.
    pub fn rows(&self, tokens: &[u32]) -> Result<Vec<u8>, Error> {
        let mut rows = vec![0; tokens.len() * DIMENSIONS];
        let (chunks, _) = rows.as_chunks_mut::<DIMENSIONS>();
        for (row, token) in chunks.iter_mut().zip(tokens) {
            let position = u64::from(*token) * DIMENSIONS as u64;
            self.file
                .read_exact_at(row, position)
                .map_err(|error| Error::Read {
                    reason: error.to_string(),
                })?;
        }
        Ok(rows)
    }
}
