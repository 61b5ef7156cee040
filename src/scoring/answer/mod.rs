//! Final answers: their normal form, and where plain texts and requests have them.

pub mod dates;
mod normal;
mod number;
mod options;
mod phrase;
mod plain;

pub use normal::{Answer, parse};
pub(super) use options::{Options, letter_of};
pub(super) use plain::final_answer;
