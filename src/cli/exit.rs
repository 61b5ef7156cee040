//! The exit codes of the program, for scripts.

use std::process::ExitCode;

use super::printable::without_controls;
use crate::app::StartError;
use crate::journal::Cause;

/// The text below `--help`.
pub(super) const HELP: &str = "\
Exit codes:
  0    done: a reply was printed, be it an answer or a question back
  1    something unexpected: the database, the disk, a defect
  2    wrong usage of the command line
  3    the configuration is not usable; every problem is listed
  4    the request was refused: it breaks a rule, or the run or the file is unknown
  5    the models gave no usable output
  6    the run's deadline passed
  7    the question does not fit under the cap
  8    the server cannot be reached or takes no more runs
  9    show, verify, replay, export, restore, learned: the journal or the backup was altered or is damaged
  130  interrupted: the run was cancelled, or the message says that it may go on

Configuration: llm.config.json and the environment (.env is read); .env.example lists every variable.";

/// The program's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Unexpected = 1,
    Usage = 2,
    Configuration = 3,
    Refused = 4,
    Provider = 5,
    Deadline = 6,
    Budget = 7,
    Server = 8,
    Altered = 9,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl From<Cause> for Exit {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Provider => Exit::Provider,
            Cause::Deadline => Exit::Deadline,
            Cause::Budget => Exit::Budget,
            Cause::Internal => Exit::Unexpected,
        }
    }
}

impl From<&StartError> for Exit {
    fn from(error: &StartError) -> Self {
        match error {
            // Something that the configuration names is missing or not usable.
            StartError::LocalModel { .. }
            | StartError::Prompts(_)
            | StartError::Workspace { .. } => Exit::Configuration,
            StartError::Journal(_) | StartError::Llm(_) => Exit::Unexpected,
        }
    }
}

/// The result of a command. An error is the exit code, after the reason was printed.
pub(super) type Done = Result<(), Exit>;

/// Prints an error and returns its exit code.
pub(super) fn fail(exit: Exit, error: impl std::fmt::Display) -> Exit {
    tell!("conclave: {}", without_controls(&error.to_string()));
    exit
}

/// Returns a function that does what [`fail`] does, for an error of a [`Result`].
pub(super) fn failing<E: std::fmt::Display>(exit: Exit) -> impl FnOnce(E) -> Exit {
    move |error| fail(exit, error)
}
