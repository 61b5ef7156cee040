//! The scoring engine.

pub mod answer;
pub mod expr;
