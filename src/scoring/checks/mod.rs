//! Checks of an output without a model: stated arithmetic on the way to the answer, code,
//! screening.

mod code;
mod demands;
mod path;
mod repetition;
mod screening;
mod soundness;
#[cfg(feature = "grammars")]
mod syntax_tree;

pub(super) use code::soundness;
pub(super) use demands::satisfies;
pub(super) use path::{Path, path_to};
pub(super) use screening::{FlagKind, Screening};
pub use screening::{declines, repeats_instructions};
pub(super) use screening::{obeyed_injection, screen_answer};
pub(super) use soundness::Soundness;
