//! Decision strategies: whether a learned answer replies to a request, or the committee.
//!
//! In reading order: [`strategy`] has the trait and its data; `committee_first` and
//! `heuristic_first` implement it; [`learning`] makes and changes learned answers, and `memory`
//! finds those that resemble a request; [`answer`] is the one place from which a run calls a
//! strategy.

mod answer;
mod committee_first;
mod heuristic_first;
pub mod learning;
mod memory;
pub mod report;
pub mod strategy;

#[cfg(test)]
mod tests;

pub use answer::answer;
