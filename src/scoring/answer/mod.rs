//! Final answers: their normal form, and how to find them in plain texts and requests.

pub mod dates;
mod decimals;
mod normalize;
mod number;
mod options;
mod phrase;
mod plain;

pub use dates::Day;
pub use decimals::DecimalSign;
pub(super) use normalize::undress;
pub use normalize::{Answer, parse};
pub use number::{Number, each_amount, numbers};
pub(super) use options::{Options, letter_of};
pub use phrase::Phrase;
pub(super) use plain::{final_answer, opening_verdict};
