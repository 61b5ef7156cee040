//! A GGUF language model inside the process, on the CPU.
//!
//! [`LocalModel`] is a handle to one thread that owns the weights and the key-value cache. Requests
//! wait in a bounded queue, start between two decode steps, and are decoded together. A request may
//! have a JSON schema, which is enforced on the reply token by token.
//!
//! The crate is not an HTTP server. It does not stream and stores no conversations: every request
//! contains all of its messages.
//!
//! Reading order: `request` (input and output types), `model` (the handle), `queue`, `engine` (the
//! thread's main loop) with `sequence` (one running request), `constrain` and `sample`
//! (choice of the next token), `prompt`. The modules `cpu`, `native` and `quantize` are used once,
//! when a model is loaded.

mod constrain;
mod cpu;
mod engine;
mod error;
mod model;
mod native;
mod prompt;
mod quantize;
mod queue;
mod request;
mod sample;
mod sequence;

pub use error::Error;
pub use model::LocalModel;
pub use request::{Completion, Message, Options, Request, Role, StopReason};
