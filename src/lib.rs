//! Conclave takes a question, asks several language models at once, scores their reports, and
//! lets a master model write one reply. This page names the modules in reading order.
//! `ARCHITECTURE.md` describes how they work together.
//!
//! # The central idea
//!
//! A run is a function over its journal: `convene(run, deps) -> Reply`. Every decision and every
//! model call of a run is an event in an append-only, hash-chained journal. The function may be
//! called again with the same journal at any time. It returns what is recorded and does only what
//! is missing, so a run survives a crash without paying twice for a settled call. The reply, the
//! audit, the event stream and the list of runs are views of the journal.
//!
//! # Foundations
//!
//! 1. [`domain`] has the types and rules that all other modules share: questions, plans, agents,
//!    reports, money, the ledger, confidence. It is pure: no async, no I/O.
//! 2. [`clock`] is the only source of time, ids and randomness, so that tests can fix them.
//! 3. [`compute`] runs CPU-heavy pieces of work without delaying other tasks, and notes which run
//!    crashed the process.
//! 4. [`text`] splits text into words and sentences and handles Markdown.
//!
//! # Storage, models and configuration
//!
//! 5. [`journal`] defines the events and stores them in SQLite or PostgreSQL. `RunContext` records
//!    a run's events and performs its calls, each exactly once, within the lease and the cap.
//! 6. [`llm`] calls models. A `ChatModel` makes one attempt. Around it are adapters for
//!    Anthropic, OpenAI-compatible servers and the in-process model, concurrency limits, circuit
//!    breakers, and the parsing of replies into typed values.
//! 7. [`config`] parses the environment and the config file, and reports all problems at once.
//! 8. [`attachments`] fetches the images of a question, from allowed public hosts only.
//!
//! # The committee
//!
//! 9. [`scoring`] judges the reports of a panel. It is deterministic and asks no model.
//! 10. [`committee`] has `convene` and four folders. `stages` has one file per stage: plan, rounds
//!     with a cross-check, synthesis, confidence. `call` gets one output of a model, `money` fits a
//!     run under its cap, and `reply` has the text, the audit and the invariants.
//! 11. [`actions`] maps free text to commands, such as a roll of dice: by a deterministic parser, or
//!     by a model's proposal, which has to pass four gates before anything is executed.
//! 12. [`tools`] validates a plan of tool calls that a model wrote, executes the steps that were
//!     authorized, and has them explained. Only this module changes files of a project.
//! 13. [`strategies`] decides whether a learned answer replies to a chat or the committee does, and
//!     learns answers from feedback.
//!
//! # The program
//!
//! 14. [`app`] connects the modules into a service. It accepts submissions, checks tokens and
//!     limits, and runs each run as a task with a lease, a deadline and a way to cancel it.
//! 15. [`http`] is the API server. [`cli`] is the command line. Both only submit runs and read
//!     them: they call `App`, and neither of them works on a run.
//!
//! # Dependencies
//!
//! A module uses only modules listed before it, and often fewer. `domain`, `clock` and `text` use
//! no other module. `tests/it/architecture.rs` checks the allowed dependencies, and
//! which external crates each module may use. Public traits that are used as `dyn`: the
//! stores in [`journal`], `ChatModel` in [`llm`], and `DecisionStrategy` with its `Llm` in
//! [`strategies`].

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod actions;
pub mod app;
pub mod attachments;
pub mod cli;
pub mod clock;
pub mod committee;
pub mod compute;
pub mod config;
pub mod domain;
pub mod http;
pub mod journal;
pub mod llm;
pub mod scoring;
pub mod strategies;
pub mod text;
pub mod tools;
