//! Tool plans: a model proposes steps, the user authorizes them, tools execute them, and a model
//! explains what they returned. Only this module changes files.
//!
//! In reading order: `call` and [`Tool`] are the catalog; `validate` checks a plan; `propose` asks
//! for one; `execute` performs steps with one file for each tool; `explain` and `screen` are for the
//! explanation; [`view`] builds [`answers`] from journals.

pub mod answers;
mod call;
mod citations;
mod execute;
mod explain;
mod in_doubt;
mod links;
mod magellan;
mod output;
mod path;
mod planner_input;
mod price;
mod programs;
mod propose;
mod record;
mod screen;
mod splice;
mod tool;
mod undo;
pub mod validate;
pub mod view;
mod walk;
mod workspace;

mod file_create;
mod file_glob;
mod file_read;
mod file_search;
mod file_write;
mod lsp_check;
mod references_from_file_to_symbol_name;
mod references_to_symbol_name;
mod splice_patch;
mod splice_plan;
mod symbols_in_file;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use call::{ELSEWHERE, Toolbox};
pub use citations::{QUERIES, is_empty};
pub use execute::{execute, settle};
pub use magellan::no_index;
pub use price::quote;
pub use propose::{completed, propose};
pub use tool::Tool;
pub use undo::{is_put_back, restores};

/// The time that an execution has, with its explanation.
pub const EXECUTION_DEADLINE: Duration = Duration::from_mins(5);
