//! Tool plans: a model proposes steps, the user authorizes them, tools execute them, and a model
//! explains what they returned. The model touches nothing itself.
//!
//! In reading order: [`Tool`] and `arguments` are the catalog; `validate` checks a plan; `propose`
//! asks for one; `execute` performs steps with the files in `run`; `explain` and `screen` are for
//! the explanation; [`view`] builds [`answers`] from journals.

pub mod answers;
mod arguments;
mod change;
mod citations;
mod file_error;
mod output;
mod path;
mod precondition;
mod process;
mod programs;
mod run;
mod tool;
mod toolbox;
mod walk;
mod workspace;

mod cargo_project;
mod folder;
mod magellan;
mod splice;

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

mod execute;
mod explain;
mod price;
mod propose;
mod routines;
mod screen;
mod step_end;
mod undo;
pub mod validate;
pub mod view;

use std::time::Duration;

pub use arguments::MAX_ARGUMENT_BYTES;
pub use price::quote;
pub use propose::{changes, completed};
pub use routines::ROUTINES;
pub use tool::Tool;
pub use toolbox::Toolbox;
pub use undo::restores;

use crate::committee::{Deps, Failure};
use crate::journal::{Ending, RunContext, Stop};

/// The time that an execution has, with its explanation.
pub const EXECUTION_DEADLINE: Duration = Duration::from_mins(5);

/// Returns the ending of a run that proposes a plan.
///
/// # Errors
/// [`Failure`] if the model gives no plan, tools are off, or the run must stop.
pub async fn propose(
    run: &RunContext,
    deps: &Deps,
    toolbox: Option<&Toolbox>,
    deadline: Duration,
) -> Result<Ending, Failure> {
    propose::propose(run, deps, toolbox.ok_or_else(off)?, deadline).await
}

/// Returns the ending of a run that executes steps.
///
/// # Errors
/// As [`propose`].
pub async fn execute(
    run: &RunContext,
    deps: &Deps,
    toolbox: Option<&Toolbox>,
    deadline: Duration,
) -> Result<Ending, Failure> {
    execute::execute(run, deps, toolbox.ok_or_else(off)?, deadline).await
}

/// Records an end for a step that is under way when its run is stopped: it is in doubt.
///
/// # Errors
/// [`Stop`] if the journal cannot be written.
pub async fn settle(run: &RunContext, deps: &Deps, toolbox: Option<&Toolbox>) -> Result<(), Stop> {
    execute::settle(run, deps, toolbox).await
}

/// Returns a path in the form in which steps record it.
pub fn normalised(path: &str) -> String {
    path::normalise(path).unwrap_or_else(|_| path.to_owned())
}

fn off() -> Failure {
    Failure::internal("tool plans are off: TOOLS_WORKSPACE is not set")
}

#[cfg(test)]
mod tests;
