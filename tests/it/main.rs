//! The integration tests, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "test code: a panic is a failed test"
)]

mod architecture;
mod chat;
mod cli;
mod crash;
mod faults;
mod keeping;
mod metrics;
mod pipeline;
mod provider_selftest;
mod real_model;
mod record;
mod runs;
mod store;
mod support;
mod upgrade;
