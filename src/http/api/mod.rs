//! The JSON API.

pub(super) mod chat;
pub(super) mod health;
pub(super) mod metrics;
pub(super) mod quote;
pub(super) mod runs;
