//! The JSON API.

pub(super) mod act;
pub(super) mod chat;
pub(super) mod feedback;
pub(super) mod health;
pub(super) mod metrics;
pub(super) mod plans;
pub(super) mod quote;
pub(super) mod reply_body;
pub(super) mod run_bodies;
pub(super) mod runs;
pub(super) mod shapes;
