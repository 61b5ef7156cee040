//! Turns a short text into a vector, inside the process, so that two questions can be compared.
//!
//! The model is the Universal Sentence Encoder Multilingual 3 of Google (Apache-2.0). It knows
//! Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese,
//! Russian, Spanish, Thai and Turkish. A text needs no prefix. The same question in two languages
//! has similar vectors.
//!
//! A high similarity is not a proof of the same question. "When does it start?" and "When does it
//! end?" are close, as are two questions that differ only in a name or a number.
//!
//! Reading order: `embedder`, `tokenizer` with `normalizer` and `sentencepiece` (the file format),
//! `encoder` (the network), `table` (vectors of the tokens), `error`.

mod embedder;
mod encoder;
mod error;
mod normalizer;
mod sentencepiece;
mod table;
mod tokenizer;

pub use embedder::{DIMENSIONS, Embedder, MAX_TOKENS, cosine};
pub use error::Error;
