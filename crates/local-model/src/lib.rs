//! A GGUF language model inside the process, on the CPU.
//!
//! [`LocalModel`] is a handle to one thread that owns the weights and the key-value cache. Requests wait in a bounded
//! queue, join the running ones between two decode steps, and are decoded together. A request may carry
//! a JSON schema, which its reply then satisfies token by token.
//!
//! It is not an HTTP server, it does not stream, it keeps no conversation: every request brings all its messages.
//!
//! Reading order: `request` (what goes in and out), `model` (the handle), `queue`, `engine` (the thread's loop) with
//! `pace`, `sequence` (one request being decoded), `constrain` and `sample` (which token comes next), `prompt`, and
//! what is done once at load: `cpu`, `native`, `gguf`, `quantize`.

mod constrain;
mod cpu;
mod engine;
mod error;
mod gguf;
mod model;
mod native;
mod pace;
mod prompt;
mod quantize;
mod queue;
mod request;
mod sample;
mod sequence;

pub use error::Error;
pub use model::LocalModel;
pub use request::{Cancel, Completion, Message, Options, Request, Role, StopReason};
