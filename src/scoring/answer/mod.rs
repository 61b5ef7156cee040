//! Final answers: their normal form, and where plain texts and requests have them.

mod options;
mod plain;

pub(super) use super::normal;
pub(super) use options::{Options, letter_of};
pub(super) use plain::final_answer;
