//! The JSON API.

pub(super) mod chat;
pub(super) mod health;
pub(super) mod runs;
