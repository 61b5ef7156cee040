//! The integration tests, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "test code: a panic is a failed test"
)]

mod access;
mod act;
mod act_fuzz;
mod act_guards;
mod act_store;
mod ahead;
mod architecture;
mod audit;
mod backup;
mod chat;
mod cli;
mod compute;
mod continued;
mod crash;
mod cross_check;
mod database_file;
mod database_trouble;
mod docs;
mod escalate;
mod eval;
mod faults;
mod fuzz_replay;
mod hostile;
mod injection;
mod input_bound;
mod journals;
mod keeping;
mod language;
mod learned;
mod limits_on_input;
mod metrics;
mod model_data;
mod money;
mod openapi;
mod panels;
mod patterns;
mod pipeline;
mod plans;
mod questions;
#[cfg(feature = "local")]
mod real_model;
mod record;
mod replicas;
mod reply;
mod resilience;
mod rounds;
mod runs;
mod schemathesis;
mod secrets;
mod shipped;
mod store;
mod support;
mod upgrade;
