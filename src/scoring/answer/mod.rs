//! Final answers in normal form, and the checks of dates.

pub mod dates;
mod normal;
mod number;
mod phrase;

pub use normal::{Answer, parse};
